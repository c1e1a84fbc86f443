"""Small models of the group protocol against the implementation, and against broken ones."""

from __future__ import annotations

import pytest

from conformance.replay.suite import ReplayResult, replay_suite
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.story.kind import BehaviourKind
from conformance.suites.postman import transition_cover
from conformance.verdict import Verdict
from impl.group import join_group, rebalancer
from impl.group.client.abstract_coordinator import AbstractCoordinator

pytestmark = pytest.mark.tlc


@pytest.fixture(scope="module")
def context() -> Context:
    return Context()


@pytest.fixture(scope="module")
def full_group(context: Context) -> Workbench:
    """Two members for a group of one."""
    return workbench(context, one_model("group/maximum-size-2m"))


@pytest.fixture(scope="module")
def store_failure(context: Context) -> Workbench:
    """The log refuses an assignment."""
    return workbench(context, one_model("group/store-failure-2m"))


def replayed(bench: Workbench) -> ReplayResult:
    return replay_suite(bench.graph, transition_cover(bench.graph), bench.make_system)


def test_every_transition_of_small_models_is_replayed(
    full_group: Workbench, store_failure: Workbench
) -> None:
    for bench in (full_group, store_failure):
        result = replayed(bench)
        assert (result.verdict, result.inconclusive) == (Verdict.PASS, 0)
        assert result.steps >= len(bench.graph.source)


def test_a_coordinator_that_takes_everybody_is_found(
    full_group: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_group, "accept_joining_member", lambda *_: True)
    result = replayed(full_group)
    assert result.verdict is Verdict.FAIL
    assert result.divergences[0].kind is BehaviourKind.NOT_ALLOWED
    assert str(result.divergences[0].action) in ('HandleJoinGroup("m1")', 'HandleJoinGroup("m2")')


def test_a_coordinator_that_keeps_refused_assignments_is_found(
    store_failure: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        rebalancer.GroupRebalancer, "reset_and_propagate_assignment_error", lambda *_: None
    )
    assert replayed(store_failure).verdict is Verdict.FAIL


def test_a_consumer_that_never_gets_stable_is_found(
    store_failure: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AbstractCoordinator, "_become_stable", lambda _: None)
    result = replayed(store_failure)
    assert [divergence.kind for divergence in result.divergences] == [BehaviourKind.NOT_ALLOWED]
