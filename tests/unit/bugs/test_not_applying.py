"""A fault whose patch no longer fits the implementation ends neither the bench nor the gate."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.bugs import bench, canary
from conformance.bugs.bench import BugEffort, run_bench
from conformance.bugs.fault import Catalogue, Fault, Patch
from conformance.bugs.worker import FaultSearchResult
from conformance.events import Event, Finding, StageFinished
from conformance.stages.context import Context
from conformance.verdict import Verdict

CHANGED = Fault("X1", "KAFKA-1", "one is two", ("seq",), (Patch("clock.py", "  one\ngone", "2"),))
FITTING = Fault(
    "X2",
    "KAFKA-2",
    "a comment",
    ("seq",),
    (Patch("clock.py", "import time\n", "import time  # faulty\n"),),
)
KILLED = FaultSearchResult(killed=True, oracle="transition suite", counterexample_length=3)


@pytest.fixture(autouse=True)
def _kills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "by_oracles", lambda *_: KILLED)


def of_stage(events: list[Event]) -> StageFinished:
    """The end of the whole; each fault's end comes before it."""
    return [event for event in events if isinstance(event, StageFinished)][-1]


def canary_of(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """The events of a gate's canary that can choose this fault only."""
    events: list[Event] = []
    monkeypatch.setattr(canary, "built_in_catalogues", lambda: [Path("faults.toml")])
    monkeypatch.setattr(canary, "load_catalogue", lambda _: Catalogue("small", (), (fault,)))
    benches: list[Any] = [SimpleNamespace(model=SimpleNamespace(system="small"))]
    canary.run_canary(Context(emit=events.append), benches)
    return events


def test_a_canary_that_does_not_apply_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    events = canary_of(CHANGED, monkeypatch)

    finished = of_stage(events)
    assert finished.verdict is Verdict.INCONCLUSIVE
    for part in ("fault X1", "`one`", "impl/clock.py", "was changed", "faults.toml"):
        assert part in finished.summary
    assert not any(isinstance(event, Finding) for event in events)


def test_a_canary_that_applies_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    finished = of_stage(canary_of(FITTING, monkeypatch))

    assert finished.verdict is Verdict.PASS
    assert finished.summary == "a comment: found by the transition suite in 3 steps"


def test_a_canary_that_survives_fails_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "by_oracles", lambda *_: FaultSearchResult(killed=False))
    events = canary_of(FITTING, monkeypatch)

    assert of_stage(events).verdict is Verdict.FAIL
    assert [event.key for event in events if isinstance(event, Finding)] == ["bugs:X2"]


def test_the_bench_goes_on_after_a_fault_that_does_not_apply() -> None:
    events: list[Event] = []
    changed, fitting = run_bench(
        [Catalogue("small", (), (CHANGED, FITTING))], BugEffort(), events.append
    )

    assert (changed.verdict, fitting.verdict) == (Verdict.INCONCLUSIVE, Verdict.PASS)
    assert "impl/clock.py" in changed.reason
    assert of_stage(events).verdict is Verdict.INCONCLUSIVE
