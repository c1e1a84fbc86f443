"""What the gate explores in processes of their own is what the stage finds by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from conformance.events import ignore
from conformance.replay.parallel import side_by_side
from conformance.replay.profile import Profile
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.stages.explore import ExploreJob, ExploreOutcome, Search, explored, search_of
from conformance.systems.group.system import GroupSystem, create
from conformance.tla import Value
from conformance.verdict import Verdict

pytestmark = pytest.mark.tlc


@pytest.fixture(scope="module")
def bench() -> Workbench:
    return workbench(Context(), one_model("group/maximum-size-2m"), None)


def few(bench: Workbench) -> Search:
    return search_of(Context(), bench, profile=Profile.CI, examples=8, steps=12)


def elsewhere(bench: Workbench) -> list[ExploreOutcome]:
    """By two processes at once."""
    jobs = [ExploreJob.of(bench, few(bench))] * 2
    return [found for _, found in side_by_side(jobs, 2)]


def test_the_same_seed_takes_the_same_steps_in_any_process(bench: Workbench) -> None:
    here = explored(bench, bench.known_graph, few(bench), ignore)

    assert here.result.steps > 50
    assert here.branches
    for there in elsewhere(bench):
        assert there.branches == here.branches
        assert there.result.frequencies == here.result.frequencies
        assert there.result.verdict is Verdict.PASS


def wide(constants: Mapping[str, Value]) -> GroupSystem:
    """A coordinator with room for more members than the model says."""
    return create({**constants, "MaxSize": 3})


def test_a_divergence_comes_back_with_its_way(bench: Workbench) -> None:
    for there in elsewhere(replace(bench, factory=f"{__name__}:wide")):
        divergence = there.result.divergence
        assert there.result.verdict is Verdict.FAIL
        assert divergence is not None
        assert divergence.action is not None
        assert divergence.action.name == "HandleJoinGroup"
