"""All that an adapter can do wrong is a divergence in its own words, or a mistake that is told."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.registry import load_factory
from conformance.replay.engine import Divergence
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.stages.adapter_check import adapter_of, material_of
from conformance.stages.context import Context, Workbench, one_model
from conformance.story.kind import BehaviourKind
from conformance.suites.postman import transition_cover
from conformance.systems.external.check import check_adapter
from conformance.verdict import Verdict
from tests.e2e.adapters.conftest import MODEL, PYTHON

pytestmark = pytest.mark.tlc


@dataclass(frozen=True)
class Fault:
    """An argument of the store, and what becomes of it."""

    argument: str
    kind: BehaviourKind
    told: tuple[str, ...]


FAULTS = (
    Fault("dies@5", BehaviourKind.RAISED, ("has exited with code 7", "about to die")),
    Fault("hangs@3", BehaviourKind.ENDLESS, ("has not answered after 1 s", "about to hang")),
    Fault("raises", BehaviourKind.RAISED, ("ZeroDivisionError: division by zero in the store",)),
    Fault("refuses", BehaviourKind.REFUSED, ("the store is closed",)),
    Fault("rubbish", BehaviourKind.RAISED, ("log: applying",)),
    # The second line may come with the first, or be found where the next answer is due.
    Fault("twice", BehaviourKind.RAISED, (" line",)),
    Fault("twice-later", BehaviourKind.RAISED, (" line",)),
    Fault("leaves-out", BehaviourKind.RAISED, ("does not show version",)),
    Fault("invents", BehaviourKind.RAISED, ("shows colour",)),
    Fault("half", BehaviourKind.RAISED, ("no TLA+ value in answer",)),
    Fault("forgets", BehaviourKind.NOT_ALLOWED, ()),
)


def replayed(bench: Workbench, argument: str) -> ReplayResult:
    factory = load_factory(f"{PYTHON} exec={argument}")
    return replay_suite(
        bench.graph, transition_cover(bench.graph), lambda: factory(bench.constants)
    )


def divergence_of(bench: Workbench, argument: str) -> Divergence:
    [divergence] = replayed(bench, argument).divergences
    return divergence


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.argument)
def test_a_fault_is_a_divergence_told_in_the_adapters_words(bench: Workbench, fault: Fault) -> None:
    divergence = divergence_of(bench, fault.argument)
    assert divergence.kind is fault.kind
    for part in fault.told:
        assert part in divergence.detail
    assert "Traceback" not in divergence.detail


@pytest.mark.parametrize("argument", ["hides"])
def test_an_observation_may_lack_what_cannot_be_seen(bench: Workbench, argument: str) -> None:
    result = replayed(bench, argument)
    assert (result.verdict, result.inconclusive) == (Verdict.PASS, 0)


def test_an_adapter_that_fills_its_standard_error_is_read(bench: Workbench) -> None:
    """1.2 MB at each step, and a pipe holds 64 KB: unread, it would never answer."""
    suite = transition_cover(bench.graph)
    factory = load_factory(f"{PYTHON} exec=floods")
    short = replace(suite, tests=suite.tests[:3])
    result = replay_suite(bench.graph, short, lambda: factory(bench.constants))
    assert result.verdict is Verdict.PASS


def test_after_a_crash_the_next_test_has_a_new_process(bench: Workbench) -> None:
    """It dies at every fifth action of a process; all tests that are shorter pass."""
    factory = load_factory(f"{PYTHON} exec=dies@9")
    result = replay_suite(
        bench.graph,
        transition_cover(bench.graph),
        lambda: factory(bench.constants),
        stop_after=3,
    )
    assert result.failed == 3
    assert all("exited with code 7" in one.detail for one in result.divergences)


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("newer", "speaks version 2"),
        ("stillborn", "no licence found"),
    ],
)
def test_an_adapter_that_says_no_hello_is_a_mistake(
    bench: Workbench, argument: str, told: str
) -> None:
    with pytest.raises(UserError, match=told):
        load_factory(f"{PYTHON} exec={argument}")(bench.constants)


def test_an_adapter_that_lies_about_its_variables_is_a_mistake(bench: Workbench) -> None:
    with pytest.raises(UserError, match="observes colour, which the spec does not declare"):
        replayed(bench, "lies")


def test_constants_that_it_cannot_take_are_a_mistake() -> None:
    factory = load_factory(PYTHON)
    with pytest.raises(UserError, match="cannot take this model: it needs the constant Keys"):
        factory({})


BROKEN_POINTS = {
    "dies": "apply",
    "hangs": "apply",
    "raises": "apply",
    "twice": "apply",
    "leaves-out": "apply",
    "keeps": "reset forgets",
    "shares": "two conversations",
    "obeys": "unknown command",
    "accepts": "unknown action",
    "fickle": "observe",
    "forgetful": "snapshot",
    "lies": "hello",
    "newer": "hello",
    "stillborn": "hello",
    "deaf": "end",
}


@pytest.mark.parametrize("argument", BROKEN_POINTS)
def test_adapter_check_names_the_point(
    context: Context, argument: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCONFORM_TEST_SHARED", str(tmp_path))
    adapter = adapter_of(f"{PYTHON} exec={argument}")
    results = list(check_adapter(adapter, material_of(context, one_model(str(MODEL)))))
    failed = [result.point for result in results if result.verdict is Verdict.FAIL]
    assert BROKEN_POINTS[argument] == failed[0]
