"""Actions of two threads: what they make of each other must be what they make in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.replay.engine import Driver, Kind, run_path
from conformance.replay.interleave import (
    InterruptedSystem,
    SerialOrders,
    interrupted,
    parts,
    together,
    told,
)
from conformance.replay.interruptions import can_interrupt, interrupt_steps
from conformance.replay.oracle import GraphOracle, SpecOracle
from conformance.replay.saved import Again, load, replay_again, save
from conformance.replay.suite import finding
from conformance.systems.protocol import ActionRefused
from conformance.tla.values import Action, State, Value
from conformance.verdict import Verdict
from tests.unit.replay.machines import Table, moves, oracle_of
from tests.unit.suites.graphs import graph_of

ONE, TWO, STOP = Action("One"), Action("Two"), Action("Stop")
EDGES = [(0, 1, "One"), (0, 2, "Two"), (1, 3, "Two"), (2, 3, "One"), (0, 4, "Stop")]
"""One and Two add 1 and 2, in either order; after Stop there is neither."""

GRAPH = graph_of(5, EDGES, [0])


class Counter:
    """Adds in two sections, a read and a write; with a lock, nobody comes in between."""

    variables = ("x",)

    def __init__(self, *, locked: bool = True, possible: bool = True) -> None:
        self.locked, self.possible = locked, possible
        self.x = 0
        self.held = False
        self.loose = False

    def reset(self, initial: Mapping[str, Value]) -> None:
        assert isinstance(initial["x"], int)
        self.x = initial["x"]

    def apply(self, action: Action) -> None:
        for _ in self.sections(action):
            pass

    def observe(self) -> Mapping[str, Value]:
        return {"x": self.x}

    def sections(self, action: Action) -> Iterator[None]:
        """Stands still at each yield."""
        yield
        if self.x == 4:
            raise ActionRefused("stopped")
        if action == STOP:
            self.x = 4
            return
        self.held = self.locked
        read = self.x
        yield
        if self.x < 4:
            self.x = read + (1 if action == ONE else 2)
        self.held = False

    def make_interruptible(self) -> bool:
        return self.possible

    def concurrent(self, running: Action, between: Action) -> bool:
        return running != STOP

    def in_parts(self, running: Action, between: Action) -> bool:
        return self.loose

    def interrupt(self, running: Action, point: int, between: Action) -> bool:
        first = self.sections(running)
        reached = 0
        while reached < point and next(first, first) is not first:
            reached += 1
        while self.held:
            next(first, None)
        for rest in (self.sections(between), first):
            with suppress(ActionRefused):
                list(rest)
        return reached == point


def test_an_interrupted_step_is_an_action_that_says_of_what() -> None:
    running, between = Action("Read", (1, "b")), Action("Write", ())
    step = interrupted(running, 3, between)
    assert parts(step) == (running, 3, between)
    assert step.name == "Read_interrupted_by_Write"
    assert told(step) == 'Read(1, "b"), stopped at its interruption 3 for Write'


def test_an_action_of_the_spec_is_left_alone() -> None:
    assert parts(ONE) is None
    assert told(Action("Read", (1,))) == "Read(1)"


def orders(edges: list[tuple[int, int, str]], system: object = None) -> SerialOrders:
    made = InterruptedSystem(Counter() if system is None else system)  # type: ignore[arg-type]
    return SerialOrders(oracle_of(edges), made)


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (EDGES, [3]),
        # Two states, as the order matters.
        ([(0, 1, "One"), (0, 2, "Two"), (1, 5, "Two"), (2, 6, "One")], [5, 6]),
        # The first disables the second; in the other order both are taken.
        ([(0, 1, "One"), (0, 2, "Two"), (2, 6, "One")], [1, 6]),
        ([(0, 1, "One"), (0, 2, "Two")], [1, 2]),
        # Nondeterminism, first in one action, then in the other.
        ([(0, 1, "One"), (0, 7, "One"), (0, 2, "Two"), (7, 8, "Two"), (2, 3, "One")], [1, 8, 3]),
        # One of the two is not enabled to begin with.
        ([(0, 1, "One"), (1, 2, "Two")], []),
        ([(0, 1, "Two"), (1, 2, "One")], []),
    ],
)
def test_the_spec_allows_the_two_in_turn(
    edges: list[tuple[int, int, str]], expected: list[int]
) -> None:
    found = orders(edges).successors((0,), interrupted(ONE, 1, TWO))
    assert found == tuple((x,) for x in expected)


def test_the_spec_s_own_actions_are_as_before() -> None:
    oracle = orders(EDGES)
    assert oracle.successors((0,), ONE) == ((1,),)
    assert oracle.enabled((0,)) == (ONE, TWO, STOP)
    assert list(oracle.initial_states()) == [(0,)]
    assert oracle.variables == ("x",)


def test_a_voluntary_step_need_not_be_taken() -> None:
    class Offering(Counter):
        offerable = frozenset({"Two"})

        def offers(self) -> frozenset[Action]:
            return frozenset()

    found = orders(EDGES, Offering()).successors((0,), interrupted(ONE, 1, TWO))
    assert found == ((3,), (1,))


def test_where_a_step_is_seen_in_parts_every_variable_is_judged_for_itself() -> None:
    def successors(state: State) -> list[tuple[Action, State]]:
        """`x` is what came first, `y` what came last."""
        x, _ = state
        return [(one, (x or number, number)) for number, one in ((1, ONE), (2, TWO))]

    system = Counter()
    oracle = SerialOrders(SpecOracle(("x", "y"), [(0, 0)], successors), InterruptedSystem(system))
    step = interrupted(ONE, 1, TWO)
    assert oracle.successors((0, 0), step) == ((1, 2), (2, 1))
    system.loose = True
    assert set(oracle.successors((0, 0), step)) == {(1, 2), (2, 1), (1, 1), (2, 2)}


def test_a_system_without_interruptions_is_told_what_it_lacks() -> None:
    with pytest.raises(UserError, match="Interruptible"):
        InterruptedSystem(Table(moves(EDGES)))


@pytest.mark.parametrize("point", [1, 2, 3])
def test_under_a_lock_the_two_come_out_as_in_turn(point: int) -> None:
    system = InterruptedSystem(Counter())
    driver = Driver(system, SerialOrders(oracle_of(EDGES), system))
    result = run_path(driver, (0,), [interrupted(ONE, point, TWO)])
    assert result.divergence is None
    assert driver.candidates == ((3,),)
    assert system.reached == (point < 3)


def test_a_lost_update_is_a_state_of_neither_order() -> None:
    system = InterruptedSystem(Counter(locked=False))
    driver = Driver(system, SerialOrders(oracle_of(EDGES), system))
    found = run_path(driver, (0,), [interrupted(ONE, 2, TWO)]).divergence
    assert found is not None
    assert (found.kind, found.allowed, found.observed) == (Kind.NOT_ALLOWED, ((3,),), {"x": 1})
    told_of = finding(oracle_of(EDGES), found)
    assert told_of.title == "One, stopped at its interruption 2 for Two: state not allowed"
    assert "neither order" in told_of.message
    assert told_of.story[0] == "  1. One, stopped at its interruption 2 for Two"


def test_all_that_can_meet_is_interrupted_at_every_point() -> None:
    result = interrupt_steps(GRAPH, Counter)
    assert result.verdict is Verdict.PASS
    pairs = [("One", "Two"), ("One", "Stop"), ("Two", "One"), ("Two", "Stop")]
    assert result.interruptions == {together(*names): 2 for names in pairs}
    assert (result.paths, result.steps, result.missed) == (12, 12, 0)


def test_each_pair_that_fails_is_told_once() -> None:
    result = interrupt_steps(GRAPH, lambda: Counter(locked=False))
    assert result.verdict is Verdict.FAIL
    assert [str(found.action) for found in result.divergences] == [
        "One_interrupted_by_Two(<<>>, 2, <<>>)",
        "Two_interrupted_by_One(<<>>, 2, <<>>)",
    ]


LONG = [*EDGES, *((a + 10, b + 10, name) for a, b, name in EDGES), (10, 0, "Reset")]


def test_a_failure_is_shown_in_the_nearest_state() -> None:
    """Of two states in which it fails, whichever is drawn."""
    graph = graph_of(15, LONG, [10])
    for seed in range(5):
        result = interrupt_steps(graph, LongCounter, samples=1, seed=seed)
        assert [found.step for found in result.divergences] == [1, 1]
        assert [found.initial for found in result.divergences] == [(10,), (10,)]


class LongCounter(Counter):
    """Once more from 10 on, until it is reset."""

    def __init__(self) -> None:
        super().__init__(locked=False)
        self.base = 0

    def reset(self, initial: Mapping[str, Value]) -> None:
        self.base, self.x = 10, 0

    def observe(self) -> Mapping[str, Value]:
        return {"x": self.base + self.x}

    def concurrent(self, running: Action, between: Action) -> bool:
        return {running, between} == {ONE, TWO}

    def apply(self, action: Action) -> None:
        if action.name == "Reset":
            self.base = 0
        else:
            super().apply(action)


def test_the_seed_draws_the_states() -> None:
    graph = graph_of(15, LONG, [10])
    results = [
        interrupt_steps(graph, lambda: LongCounter(), samples=1, seed=seed).paths for seed in (1, 1)
    ]
    assert results[0] == results[1]


def test_a_pair_is_tried_in_as_many_states_as_are_asked_for() -> None:
    graph = graph_of(15, LONG, [10])

    class Locked(LongCounter):
        def __init__(self) -> None:
            super().__init__()
            self.locked = True

    one, both = (interrupt_steps(graph, Locked, samples=n).interruptions for n in (1, 2))
    assert one["One_interrupted_by_Two"] == 2
    assert both["One_interrupted_by_Two"] == 4


def test_nothing_that_meets_is_nothing_that_passes() -> None:
    result = interrupt_steps(GRAPH, lambda: Counter(possible=False))
    assert (result.verdict, result.paths) == (Verdict.INCONCLUSIVE, 0)


@pytest.mark.parametrize(
    ("system", "edges", "expected"),
    [
        (Counter(), EDGES, True),
        (Counter(possible=False), EDGES, False),
        (Counter(), [(0, 4, "Stop")], False),
        (Table(moves(EDGES)), EDGES, False),
    ],
    ids=["meets", "not here", "one action", "no threads"],
)
def test_a_model_can_be_interleaved_if_two_of_its_actions_meet(
    system: Counter | Table, edges: list[tuple[int, int, str]], expected: bool
) -> None:
    assert can_interrupt(graph_of(5, edges, [0]), lambda: system) is expected


def test_an_interrupted_step_is_saved_and_replayed(tmp_path: Path) -> None:
    (found, _) = interrupt_steps(GRAPH, lambda: Counter(locked=False)).divergences
    path, oracle = tmp_path / "lost.itf.json", GraphOracle(GRAPH)
    save(path, oracle, found, model="counter", system="counter")
    saved = load(path)
    assert saved.actions == found.actions
    again, divergence = replay_again(saved, oracle, lambda: Counter(locked=False))
    assert (again, divergence) == (Again.AS_BEFORE, found)
    assert replay_again(saved, oracle, Counter) == (Again.FIXED, None)
