"""In real time: what diverges beside others is driven alone, what was late is no disagreement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from conformance.replay.suite import ReplayResult, replay_suite
from conformance.suites.suite import Suite, Test
from conformance.tla import Action, Value
from conformance.verdict import Verdict
from tests.unit.replay.machines import Table, graph, moves

EDGES = [(0, 1, "A"), (1, 2, "A"), (2, 0, "B")]
GRAPH = graph(EDGES)
RIGHT, WRONG = moves(EDGES), moves(EDGES, B=1)


@dataclass(slots=True)
class Machine:
    """What all systems of a replay run on: how often a test began, and whether one is alone."""

    wrong: Callable[[Machine, bool], bool]
    """Whether a test's system goes wrong, by whether it is alone."""
    late: Callable[[bool], str] = lambda _alone: ""
    runs: int = 0
    alone: list[bool] = field(default_factory=list)


class Clockwork:
    """A system in real time, over a table that is right or wrong."""

    variables = Table(RIGHT).variables
    patience = 0.0
    lanes = 2

    def __init__(self, machine: Machine) -> None:
        self._machine, self._alone = machine, False
        self._table = Table(RIGHT)

    def foresee(self, _actions: Sequence[Action]) -> str:
        return ""

    def be_alone(self) -> None:
        self._alone = True

    def reset(self, initial: Mapping[str, Value]) -> None:
        self._machine.runs += 1
        self._machine.alone.append(self._alone)
        self._table = Table(WRONG if self._machine.wrong(self._machine, self._alone) else RIGHT)
        self._table.reset(initial)

    def apply(self, action: Action) -> None:
        self._table.apply(action)

    def observe(self) -> Mapping[str, Value]:
        return self._table.observe()

    def look_again(self, _seconds: float) -> Mapping[str, Value]:
        return self._table.observe()

    @property
    def late(self) -> str:
        return self._machine.late(self._alone)


def replayed(machine: Machine, tests: int = 1, stop_after: int = 1) -> ReplayResult:
    around = np.array([0, 1, 2], np.int32)
    suite = Suite("transitions", tuple(Test(0, around) for _ in range(tests)), GRAPH.digest)
    result = replay_suite(GRAPH, suite, lambda: Clockwork(machine), stop_after=stop_after)
    judged = result.passed + result.failed + result.inconclusive + result.spoiled
    assert judged + result.not_run == tests
    return result


def test_what_diverges_beside_others_and_alone_disagrees() -> None:
    machine = Machine(wrong=lambda _machine, _alone: True)
    result = replayed(machine)
    assert (result.verdict, result.failed, result.spoiled) == (Verdict.FAIL, 1, 0)
    assert machine.alone[:4] == [False, False, False, True]


def test_what_agrees_alone_passes_and_is_counted() -> None:
    result = replayed(Machine(wrong=lambda _machine, alone: not alone), tests=3)
    assert (result.verdict, result.passed, result.again) == (Verdict.PASS, 3, 3)
    assert result.notes[0] == "test 0: agreed at try 4; time is real"


def test_what_agrees_at_once_is_driven_once() -> None:
    machine = Machine(wrong=lambda _machine, _alone: False)
    result = replayed(machine, tests=3)
    assert (result.verdict, result.again, machine.runs) == (Verdict.PASS, 0, 3)


def test_what_is_late_each_time_is_spoiled_and_no_disagreement() -> None:
    machine = Machine(wrong=lambda _machine, _alone: True, late=lambda _: "a timer was over")
    result = replayed(machine, tests=2)
    assert (result.verdict, result.failed, result.spoiled) == (Verdict.INCONCLUSIVE, 0, 2)
    assert result.notes[0] == "test 0: spoiled by a slow machine 24 times: a timer was over"


def test_a_machine_that_is_too_slow_for_every_test_is_given_up() -> None:
    machine = Machine(wrong=lambda _machine, _alone: True, late=lambda _: "a timer was over")
    result = replayed(machine, tests=25)
    assert (result.failed, result.spoiled) == (0, 25)
    assert machine.alone.count(True) == 20 * 12


def test_late_beside_others_needs_as_many_runs_alone_as_any() -> None:
    late = {False: "a timer was over", True: ""}
    machine = Machine(wrong=lambda _machine, _alone: True, late=late.__getitem__)
    result = replayed(machine)
    assert result.failed == 1
    assert machine.alone[:15] == [False] * 12 + [True] * 3


@pytest.mark.parametrize(("stop_after", "failed"), [(1, 1), (2, 2), (9, 4)])
def test_enough_disagreements_end_it(stop_after: int, failed: int) -> None:
    machine = Machine(wrong=lambda _machine, _alone: True)
    result = replayed(machine, tests=4, stop_after=stop_after)
    assert (result.failed, result.not_run) == (failed, 4 - failed)
