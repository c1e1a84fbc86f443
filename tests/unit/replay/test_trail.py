"""A system that repeats itself is not looked at again where a path begins like the last one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from conformance.modelcheck.check import graph_and_spec
from conformance.registry import factory_path, load_factory
from conformance.replay.engine import Driver, PathResult, StepTrail, run_path
from conformance.replay.oracle import GraphOracle
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.replay.walker import Walker
from conformance.stages.context import constants_of, one_model
from conformance.story.kind import BehaviourKind
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite, Test
from conformance.systems.protocol import ActionRefused, CannotSnapshot, SystemUnderTest
from conformance.tla import Action, Value
from tests.breadth import every
from tests.unit.replay.machines import actions, graph, moves

EDGES = [(0, 1, "A"), (1, 2, "A"), (2, 0, "B"), (1, 3, "C"), (3, 0, "B")]
GRAPH = graph(EDGES)
ORACLE = GraphOracle(GRAPH)
START = ORACLE.initial_states()[0]


class Seen:
    """Goes by a table, and counts how often it was looked at."""

    variables = ("x",)

    def __init__(self, *, repeatable: bool = True, **changed: int) -> None:
        self.repeatable = repeatable
        self._moves = moves(EDGES, **changed)
        self.here = self.looks = self.resets = 0
        self.refuses_from = 1_000

    def reset(self, _initial: Mapping[str, Value]) -> None:
        self.here = 0
        self.resets += 1

    def apply(self, action: Action) -> None:
        if self.resets >= self.refuses_from:
            raise ActionRefused("not again")
        self.here = self._moves[self.here, action.name]

    def observe(self) -> Mapping[str, Value]:
        self.looks += 1
        return {"x": self.here}


def driven(system: Seen, *paths: str) -> list[PathResult]:
    driver = Driver(system, ORACLE)
    trail = StepTrail() if driver.repeats else None
    return [run_path(driver, START, actions(path), trail) for path in paths]


LOOKS = [
    pytest.param(["A A B"], 4, id="the first path: its beginning and each step"),
    pytest.param(["A A B", "A A B"], 4, id="the same path: nothing"),
    pytest.param(["A A B", "A C B"], 4 + 2, id="from where it leaves the last one"),
    pytest.param(["A A B", "A A", "A A B"], 4 + 1, id="a shorter one forgets the rest"),
    pytest.param(["A A", "A A B"], 3 + 1, id="a longer one: what it adds"),
]


@pytest.mark.parametrize(("paths", "looks"), LOOKS)
def test_only_what_is_new_is_looked_at(paths: Sequence[str], looks: int) -> None:
    system = Seen()

    results = driven(system, *paths)

    assert [(one.steps, one.divergence) for one in results] == [
        (len(path.split()), None) for path in paths
    ]
    assert system.looks == looks


def test_a_system_that_does_not_say_so_is_always_looked_at() -> None:
    system = Seen(repeatable=False)
    driven(system, "A A B", "A A B")
    assert system.looks == 8


def test_a_divergence_behind_a_known_beginning_is_told_with_the_whole_path() -> None:
    first, second = driven(Seen(C=2), "A A B", "A C B")
    assert first.divergence is None
    assert second.divergence is not None
    assert second.divergence.actions == actions("A C")
    assert second.divergence.before == (ORACLE.state(1),)


def test_what_diverged_is_looked_at_again() -> None:
    first, again = driven(Seen(C=2), "A C B", "A C B")
    assert first.divergence == again.divergence
    assert again.steps == 2


def test_a_system_that_does_not_repeat_itself_after_all_is_found_by_what_it_refuses() -> None:
    system = Seen()
    system.refuses_from = 2
    _, again = driven(system, "A A B", "A A B")
    assert again.divergence is not None
    assert (again.divergence.kind, again.divergence.step) == (BehaviourKind.REFUSED, 1)


class Returning(Seen):
    """Has snapshots, but in the states that `stuck` names."""

    def __init__(self, *, stuck: Sequence[int] = (), forgets: bool = False, **changed: int) -> None:
        super().__init__(**changed)
        self.steps = self.taken = self.returns = 0
        self._stuck, self._forgets = stuck, forgets

    def apply(self, action: Action) -> None:
        super().apply(action)
        self.steps += 1

    def snapshot(self) -> int:
        if self.here in self._stuck:
            raise CannotSnapshot("no way back to here")
        self.taken += 1
        return self.here

    def restore(self, snapshot: object) -> None:
        assert isinstance(snapshot, int)
        self.returns += 1
        self.here = 9 if self._forgets else snapshot


def suite_of(*paths: str) -> Suite:
    """Tests along these paths of GRAPH."""
    return Suite("some", tuple(Test(0, np.array(edges_of(path), np.int32)) for path in paths), "")


def edges_of(path: str) -> list[int]:
    here, taken = 0, []
    for action in actions(path):
        (edge,) = np.flatnonzero(
            (GRAPH.source == here) & (GRAPH.action == GRAPH.actions.index(action))
        )
        here = int(GRAPH.target[edge])
        taken.append(int(edge))
    return taken


RETURNS = [
    pytest.param(["A A B", "A C B"], (), (1, 1, 5), id="back to where they part"),
    pytest.param(["A A B", "A C B", "A A B A A"], (), (1, 2, 3 + 2 + 2), id="in their order"),
    pytest.param(["A A", "A C B A A", "A C B A C"], (), (1, 2, 2 + 4 + 1), id="two partings"),
    pytest.param(
        ["A A", "A C"], (1,), (1, 1, 4), id="to the beginning where there is no way to the parting"
    ),
    pytest.param(["A A", "A C", "A A B A"], (2,), (1, 2, 2 + 3 + 1), id="back to an earlier place"),
]


@pytest.mark.parametrize(("paths", "stuck", "expected"), RETURNS)
def test_a_system_goes_back_to_where_paths_part(
    paths: Sequence[str], stuck: Sequence[int], expected: tuple[int, int, int]
) -> None:
    system = Returning(stuck=stuck)
    result = replay_suite(GRAPH, suite_of(*paths), lambda: system)
    assert (result.passed, result.failed) == (len(paths), 0)
    assert result.steps == sum(len(path.split()) for path in paths)
    assert (system.resets, system.returns, system.steps) == expected


def test_a_divergence_after_going_back_is_told_with_the_whole_path() -> None:
    system = Returning(C=2)
    found = replay_suite(GRAPH, suite_of("A A B", "A C B"), lambda: system).divergences
    assert [one.actions for one in found] == [actions("A C")]


def test_what_diverges_only_after_going_back_is_no_divergence() -> None:
    system = Returning(forgets=True)
    result = replay_suite(GRAPH, suite_of("A A B", "A C B", "A C B A"), lambda: system)
    assert (result.passed, result.failed) == (3, 0)
    assert system.returns == 1
    assert "agreed only when the system was set up again" in result.notes[0]


def test_a_recorder_goes_back_to_the_beginning() -> None:
    afresh, returning = Seen(), Returning()
    expected = [Walker(afresh, ORACLE).walk(seed, 6) for seed in range(3)]
    walker = Walker(returning, ORACLE)
    assert [walker.walk(seed, 6) for seed in range(3)] == expected
    assert (returning.resets, returning.returns) == (1, 2)


def test_what_a_recorder_sees_only_after_going_back_is_no_divergence() -> None:
    system = Returning(forgets=True)
    expected = [Walker(Seen(), ORACLE).walk(seed, 6) for seed in range(3)]
    walker = Walker(system, ORACLE)
    assert [walker.walk(seed, 6) for seed in range(3)] == expected
    assert (system.resets, system.returns) == (3, 1)


def test_a_recorder_keeps_what_diverges_from_the_beginning() -> None:
    walker, alone = (Walker(kind(A=9), ORACLE) for kind in (Returning, Seen))
    assert [walker.walk(seed, 6) for seed in range(3)] == [alone.walk(seed, 6) for seed in range(3)]


MODELS = [
    "acknowledgement/two-step-isr-2b",
    "controller/shutdown-2b",
    "delayed/shared-lock",
    "group/member-threads-1m",
    "offsets/transactions",
    "replication/bench/truncate-on-fetch-fine-2b",
]


@pytest.mark.parametrize("name", every(2, MODELS))
def test_a_bundled_suite_shows_the_same_with_every_look(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = one_model(name)
    states, prepared = graph_and_spec(model)
    factory, constants = load_factory(factory_path(model.system)), constants_of(prepared)
    suite = transition_cover(states)

    def replayed(*, repeats: bool) -> ReplayResult:
        monkeypatch.setattr(Driver, "repeats", property(lambda _: repeats))

        def make() -> SystemUnderTest:
            return factory(constants)

        return replay_suite(states, suite, make)

    seldom, always = replayed(repeats=True), replayed(repeats=False)
    assert seldom.verdict == always.verdict == "pass"
    assert (seldom.passed, seldom.steps) == (always.passed, always.steps)
    assert np.array_equal(seldom.visits, always.visits)
