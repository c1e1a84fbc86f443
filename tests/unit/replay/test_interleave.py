"""Actions of two threads: what they make of each other must be what they make in turn."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conformance.errors import UserError
from conformance.events import Emit, Event, Progress, ignore
from conformance.modelcheck.graph import StateGraph, StateTable
from conformance.replay import interruptions
from conformance.replay.engine import Driver, run_path
from conformance.replay.interleave import (
    InterruptedChoosingSystem,
    InterruptedSystem,
    SerialOrders,
    action_text,
    interrupted,
    interrupted_system,
    parts,
    together,
)
from conformance.replay.interruptions import (
    InterruptionResult,
    Pair,
    _changed,
    _drawn,
    _nearest_first,
    can_interrupt,
    interrupt_steps,
)
from conformance.replay.oracle import GraphOracle, SpecOracle
from conformance.replay.saved import ReplayOutcome, load, replay_again, save
from conformance.replay.telling import finding
from conformance.story.kind import BehaviourKind
from conformance.systems.protocol import ActionRefused
from conformance.tla import Action, Fn, State, Value
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
    voluntary: frozenset[str] = frozenset()
    unconditional: frozenset[str] = frozenset()

    def __init__(self, *, locked: bool = True, possible: bool = True) -> None:
        self.locked, self.possible = locked, possible
        self.x = 0
        self.held = False
        self.loose: set[tuple[Action, Action]] = set()
        self.closed = 0

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
        return running in (ONE, TWO) and between in (ONE, TWO, STOP)

    def in_parts(self, running: Action, between: Action) -> bool:
        return (running, between) in self.loose

    def close(self) -> None:
        self.closed += 1

    def interrupt(self, running: Action, point: int, between: Action) -> str:
        first = self.sections(running)
        reached = 0
        while reached < point and next(first, first) is not first:
            reached += 1
        while self.held:
            next(first, None)
        for rest in (self.sections(between), first):
            with suppress(ActionRefused):
                list(rest)
        return f"section {point}" if reached == point else ""


def interleaved(
    graph: StateGraph,
    make: Callable[[], Counter],
    *,
    samples: int = 9,
    seed: int = 1,
    emit: Emit = ignore,
) -> InterruptionResult:
    return interrupt_steps(graph, make, samples=samples, seed=seed, emit=emit)


def test_an_interrupted_step_is_an_action_that_says_of_what() -> None:
    running, between = Action("Read", (1, "b")), Action("Write", (2,))
    step = interrupted(running, 3, between)
    assert parts(step) == (running, 3, between)
    assert step.name == "Read_interrupted_by_Write"
    assert action_text(step) == 'Read(1, "b"), stopped at its interruption 3 for Write(2)'


def test_an_action_of_the_spec_is_left_alone() -> None:
    assert parts(ONE) is None
    assert action_text(Action("Read", (1,))) == "Read(1)"


def orders(edges: list[tuple[int, int, str]], system: Counter | None = None) -> SerialOrders:
    return SerialOrders(oracle_of(edges), InterruptedSystem(system or Counter()))


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
    class Lazy(Counter):
        voluntary = frozenset({"Two"})

    found = orders(EDGES, Lazy()).successors((0,), interrupted(ONE, 1, TWO))
    assert found == ((3,), (1,))


def test_a_state_at_the_model_s_bounds_is_not_judged() -> None:
    """One after Two would leave them: whoever takes it then is right too."""

    class Bounded(Counter):
        unconditional = frozenset({"One", "Two"})

    edges = [edge for edge in EDGES if edge != (2, 3, "One")]
    assert orders(edges, Bounded()).bounded((0,), ONE, TWO)
    assert orders(edges, Bounded()).bounded((0,), TWO, ONE)
    assert not orders(EDGES, Bounded()).bounded((0,), ONE, TWO)
    assert not orders(edges).bounded((0,), ONE, TWO)
    result = interleaved(graph_of(5, edges, [0]), lambda: Bounded(locked=False))
    assert list(result.interruptions.values()) == [0, 0, 0, 0]
    assert result.verdict is Verdict.INCONCLUSIVE


def test_where_a_step_is_seen_in_parts_every_variable_is_judged_for_itself() -> None:
    def successors(state: State) -> list[tuple[Action, State]]:
        """`x` is what came first, `y` what came last."""
        x, _ = state
        return [(one, (x or number, number)) for number, one in ((1, ONE), (2, TWO))]

    system = Counter()
    oracle = SerialOrders(SpecOracle(("x", "y"), [(0, 0)], successors), InterruptedSystem(system))
    step = interrupted(ONE, 1, TWO)
    assert oracle.successors((0, 0), step) == ((1, 2), (2, 1))
    system.loose.add((ONE, TWO))
    assert set(oracle.successors((0, 0), step)) == {(1, 2), (2, 1), (1, 1), (2, 2)}


class OneByOne(Counter):
    """Its steps go over the entries of `y`."""

    in_entries = frozenset({"y"})


def test_where_a_step_goes_over_many_objects_every_entry_is_judged_for_itself() -> None:
    def successors(state: State) -> list[tuple[Action, State]]:
        """One writes `x` to each entry of `y`, Two changes `x`."""
        x, y = state
        assert isinstance(y, Fn)
        return [(ONE, (x, Fn(dict.fromkeys(y, x)))), (TWO, (2, y))]

    start: State = (1, Fn({"p": 0, "q": 0}))
    step = interrupted(ONE, 1, TWO)

    def allowed(system: Counter) -> set[tuple[Value, ...]]:
        system.loose.add((ONE, TWO))
        spec = SpecOracle(("x", "y"), [start], successors)
        after = SerialOrders(spec, InterruptedSystem(system)).successors(start, step)
        return {(x, y["p"], y["q"]) for x, y in after if isinstance(y, Fn)}

    assert allowed(Counter()) == {(2, 1, 1), (2, 2, 2)}
    assert allowed(OneByOne()) == {(2, 1, 1), (2, 2, 2), (2, 1, 2), (2, 2, 1)}


class Mortal(Counter):
    """Two is the death of the process that takes One; Stop says what it leaves half done."""

    def midway(self, running: Action, between: Action) -> tuple[Action, ...]:
        return (between, STOP) if (running, between) == (ONE, TWO) else ()


def test_a_process_that_dies_in_a_step_does_not_go_on_with_it() -> None:
    def allowed(running: Action, between: Action) -> set[State]:
        system = InterruptedSystem(Mortal())
        orders = SerialOrders(GraphOracle(GRAPH), system)
        (start,) = orders.initial_states()
        return set(orders.successors(start, interrupted(running, 1, between)))

    states = [GraphOracle(GRAPH).state(number) for number in range(5)]
    done, dead, half_done = states[3], states[2], states[4]
    assert allowed(ONE, TWO) == {done, dead, half_done}
    assert allowed(TWO, ONE) == {done}


class Obedient(Counter):
    """It goes where it is told to."""

    def choose(self, wanted: Mapping[str, Value]) -> None:
        self.chosen = dict(wanted)


def test_a_system_is_told_how_to_choose_on_its_way() -> None:
    obedient = Obedient()
    system = interrupted_system(obedient)
    assert isinstance(system, InterruptedChoosingSystem)
    system.choose({"x": 2})
    assert obedient.chosen == {"x": 2}
    assert not isinstance(interrupted_system(Counter()), InterruptedChoosingSystem)


def test_a_system_without_interruptions_is_told_what_it_lacks() -> None:
    with pytest.raises(UserError) as error:
        InterruptedSystem(Table(moves(EDGES)))
    assert str(error.value) == (
        "The steps of this system cannot be interrupted: its adapter lacks what "
        "conformance.systems.protocol.Interruptible asks for. Add it, or leave this out."
    )


def test_nothing_is_reached_before_anything_is_interrupted() -> None:
    system = InterruptedSystem(Counter())
    assert system.stood_at == ""
    system.reset({"x": 0})
    system.apply(interrupted(ONE, 1, TWO))
    assert system.stood_at == "section 1"
    system.reset({"x": 0})
    assert system.stood_at == ""


@pytest.mark.parametrize("point", [1, 2, 3])
def test_under_a_lock_the_two_come_out_as_in_turn(point: int) -> None:
    system = InterruptedSystem(Counter())
    driver = Driver(system, SerialOrders(oracle_of(EDGES), system))
    result = run_path(driver, (0,), [interrupted(ONE, point, TWO)])
    assert result.divergence is None
    assert driver.candidates == ((3,),)
    assert system.stood_at == ("" if point == 3 else f"section {point}")


def test_a_lost_update_is_a_state_of_neither_order() -> None:
    system = InterruptedSystem(Counter(locked=False))
    driver = Driver(system, SerialOrders(oracle_of(EDGES), system))
    found = run_path(driver, (0,), [interrupted(ONE, 2, TWO)]).divergence
    assert found is not None
    assert (found.kind, found.allowed, found.observed) == (
        BehaviourKind.NOT_ALLOWED,
        ((3,),),
        {"x": 1},
    )
    told_of = finding(oracle_of(EDGES), found)
    assert told_of.title == "One, stopped at its interruption 2 for Two: state not allowed"
    assert told_of.message == (
        "One action interrupted by the other leads to a state that the spec allows after "
        "neither order of the two."
    )
    assert told_of.story[0] == "1. One, stopped at its interruption 2 for Two"


def test_all_that_can_meet_is_interrupted_at_every_point() -> None:
    result = interleaved(GRAPH, Counter)
    assert result.verdict is Verdict.PASS
    pairs = [("One", "Two"), ("One", "Stop"), ("Two", "One"), ("Two", "Stop")]
    assert result.interruptions == {together(*names): 2 for names in pairs}
    assert (result.paths, result.steps, result.missed) == (12, 12, 0)
    assert 0 <= result.seconds < 60


def test_each_pair_that_fails_is_told_once() -> None:
    result = interleaved(GRAPH, lambda: Counter(locked=False))
    assert result.verdict is Verdict.FAIL
    assert [str(found.action) for found in result.divergences] == [
        "One_interrupted_by_Two(<<>>, 2, <<>>)",
        "Two_interrupted_by_One(<<>>, 2, <<>>)",
    ]
    assert [found.detail for found in result.divergences] == [
        "One stood at: section 2",
        "Two stood at: section 2",
    ]


LONG = [*EDGES, *((a + 10, b + 10, name) for a, b, name in EDGES), (10, 0, "Reset")]


def test_a_failure_is_shown_in_the_nearest_state() -> None:
    """Of two states in which it fails, whichever is drawn."""
    graph = graph_of(15, LONG, [10])
    for seed in range(5):
        result = interleaved(graph, LongCounter, samples=1, seed=seed)
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


def drawn_by(seed: int) -> list[int]:
    """The states in which One was interrupted by Two, and all the others."""
    trail: list[int] = []

    class Noting(LongCounter):
        def __init__(self) -> None:
            super().__init__()
            self.locked = True

        def interrupt(self, running: Action, point: int, between: Action) -> str:
            trail.append(self.base + self.x)
            return super().interrupt(running, point, between)

    interleaved(graph_of(15, LONG, [10]), Noting, samples=1, seed=seed)
    return trail


@pytest.fixture
def _drawn_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the model were large."""
    monkeypatch.setattr(interruptions, "_ALL", 0)


@pytest.mark.usefixtures("_drawn_always")
def test_the_seed_draws_the_states() -> None:
    drawn = [drawn_by(seed) for seed in range(12)]
    assert drawn == [drawn_by(seed) for seed in range(12)]
    assert {state for trail in drawn for state in trail} == {0, 10}


def test_every_kind_of_pair_is_drawn_and_all_alike() -> None:
    kinds = [[Pair(n, n, ONE, TWO) for n in range(at, at + 10)] for at in (0, 10, 20)]
    for samples, share in ((3, 1), (5, 1), (6, 2), (29, 9), (30, 10), (99, 10)):
        found = sorted(pair.state // 10 for pair in _drawn(kinds, samples, random.Random(1)))
        assert found == [0] * share + [1] * share + [2] * share
    few = {pair.state // 10 for seed in range(9) for pair in _drawn(kinds, 1, random.Random(seed))}
    assert few == {0, 1, 2}
    assert len(_drawn(kinds, 2, random.Random(1))) == 2


def test_the_kind_of_a_step_is_what_it_changes() -> None:
    values = ((0, 1), (0, 1), (0, 1))
    states = StateTable(values, np.array([[0, 0, 0], [1, 0, 0], [1, 1, 1]], np.int32))
    graph = replace(graph_of(3, [(0, 1, "A"), (1, 2, "B"), (2, 2, "C")], [0]), states=states)
    assert _changed(graph) == [0b001, 0b110, 0b000]


def test_of_pairs_the_nearest_come_first_and_not_too_many() -> None:
    kinds = [[Pair(n, n % 7, ONE, TWO) for n in range(at, at + 1_500)] for at in (0, 1_500)]
    found = list(_nearest_first(kinds))
    assert len(found) == 2_000
    assert [pair.depth for pair in found] == sorted(pair.depth for pair in found)


def test_a_path_on_which_another_branch_was_taken_is_missed() -> None:
    """Go leads to 1 or 2, and only where it was expected to can One and Two be taken."""
    edges = [(0, 1, "Go"), (0, 4, "Go"), (1, 2, "One"), (1, 3, "Two"), (2, 5, "Two"), (3, 5, "One")]

    class Other(Counter):
        def apply(self, action: Action) -> None:
            self.x = 4

    result = interleaved(graph_of(6, edges, [0]), Other)
    assert (result.missed, result.paths) == (2, 2)
    assert result.verdict is Verdict.INCONCLUSIVE


def test_progress_is_told_pair_by_pair() -> None:
    events: list[Event] = []
    interleaved(GRAPH, Counter, emit=events.append)
    assert events == [Progress("interleave", number, 4) for number in range(4)]


def test_what_was_made_is_closed() -> None:
    made: list[Counter] = []

    def make() -> Counter:
        made.append(Counter())
        return made[-1]

    interleaved(GRAPH, make)
    can_interrupt(GRAPH, make)
    assert [system.closed for system in made] == [1, 1]


def test_a_small_model_is_searched_whole_whatever_the_samples_and_the_seed() -> None:
    assert {tuple(sorted(drawn_by(seed))) for seed in range(6)} == {
        (0, 0, 0, 0, 0, 0, 10, 10, 10, 10, 10, 10)
    }
    result = interleaved(graph_of(15, LONG, [10]), LongCounter, samples=1)
    assert (result.exhaustive, result.meetings) == (True, 4)


def test_a_larger_model_needs_more_samples_to_be_searched_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interruptions, "_ALL", 3)
    graph = graph_of(15, LONG, [10])
    whole = [interleaved(graph, LongCounter, samples=n).exhaustive for n in (1, 2)]
    assert whole == [False, True]


@pytest.mark.usefixtures("_drawn_always")
def test_a_pair_is_tried_in_as_many_states_as_are_asked_for() -> None:
    graph = graph_of(15, LONG, [10])

    class Locked(LongCounter):
        def __init__(self) -> None:
            super().__init__()
            self.locked = True

    one, both = (interleaved(graph, Locked, samples=n).interruptions for n in (1, 2))
    assert one["One_interrupted_by_Two"] == 2
    assert both["One_interrupted_by_Two"] == 4


def test_nothing_that_meets_is_nothing_that_passes() -> None:
    result = interleaved(GRAPH, lambda: Counter(possible=False))
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
    (found, _) = interleaved(GRAPH, lambda: Counter(locked=False)).divergences
    path, oracle = tmp_path / "lost.itf.json", GraphOracle(GRAPH)
    save(path, oracle, found, model="counter", system="counter")
    saved = load(path)
    assert saved.actions == found.actions
    again, divergence = replay_again(saved, oracle, lambda: Counter(locked=False))
    assert (again, divergence) == (ReplayOutcome.AS_BEFORE, replace(found, detail=""))
    assert replay_again(saved, oracle, Counter) == (ReplayOutcome.FIXED, None)
