"""A failing path gets the shortest way that the spec knows, and only one that really fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conformance.replay.engine import Divergence, Driver, run_path
from conformance.replay.minimise import minimise
from conformance.replay.oracle import Oracle
from conformance.replay.reach import ways_to
from conformance.replay.shorten import shortest_failure
from conformance.story.kind import BehaviourKind
from conformance.tla import Action, State
from tests.unit.replay.machines import Moves, Table, actions, moves, oracle_of

# A ring 0 -> 1 -> 2 -> 3 -> 0 with a short cut from 0 to 3, and Bad everywhere.
RING = [(0, 1, "A"), (1, 2, "A"), (2, 3, "A"), (3, 0, "A"), (0, 3, "Cut")]
EDGES = [*RING, *((number, number, "Bad") for number in range(4))]
ORACLE = oracle_of(EDGES)


class Runs:
    """Drives fresh systems of one table, and counts how many."""

    def __init__(self, table: Moves, oracle: Oracle = ORACLE) -> None:
        self.table, self.oracle, self.tried = table, oracle, 0

    def __call__(self, initial: State, path: Sequence[Action]) -> Divergence | None:
        self.tried += 1
        return run_path(Driver(Table(self.table), self.oracle), initial, path).divergence

    def first(self, path: str) -> Divergence:
        found = self((0,), actions(path))
        assert found is not None
        return found


def names(divergence: Divergence) -> str:
    return " ".join(action.name for action in divergence.actions)


def test_the_way_to_the_bad_step_is_replaced_by_the_shortest() -> None:
    runs = Runs(moves(EDGES) | {(3, "Bad"): 0})
    found = runs.first("A A A A A A A Bad")
    assert names(shortest_failure(ORACLE, found, runs)) == "Cut Bad"


def test_a_failure_on_the_way_is_shorter_still() -> None:
    runs = Runs(moves(EDGES) | {(3, "Bad"): 0, (0, "Cut"): 2})
    found = runs.first("A A A Bad")
    assert names(shortest_failure(ORACLE, found, runs)) == "Cut"


def test_a_way_that_does_not_fail_is_not_taken() -> None:
    class OnTheThirdStep(Table):
        steps = 0

        def apply(self, action: Action) -> None:
            super().apply(action)
            self.steps += 1
            if action.name == "Bad" and self.steps >= 4:
                self.x = 9

    def attempt(initial: State, path: Sequence[Action]) -> Divergence | None:
        return run_path(Driver(OnTheThirdStep(moves(EDGES)), ORACLE), initial, path).divergence

    found = attempt((0,), actions("A A A Bad"))
    assert found is not None
    assert shortest_failure(ORACLE, found, attempt) is found


def test_what_cannot_be_shorter_is_not_driven_again() -> None:
    runs = Runs(moves(EDGES) | {(3, "Bad"): 0, (1, "A"): 3})
    for path in ("Cut Bad", "A A"):
        found = runs.first(path)
        runs.tried = 0
        assert shortest_failure(ORACLE, found, runs) is found
        assert runs.tried == 0


def test_a_wrong_initial_state_is_as_short_as_can_be() -> None:
    found = Divergence(BehaviourKind.WRONG_INITIAL, (0,), (), (), ((0,),), {"x": 1})
    assert shortest_failure(ORACLE, found, Runs({})) is found


@pytest.mark.parametrize(("limit", "path"), [(4, "Cut Bad"), (1, "Cut Bad"), (0, "A A A Bad")])
def test_the_search_ends_at_its_limit(limit: int, path: str) -> None:
    runs = Runs(moves(EDGES) | {(3, "Bad"): 0})
    found = runs.first("A A A Bad")
    assert names(shortest_failure(ORACLE, found, runs, limit=limit)) == path


def test_the_shortest_way_starts_where_it_is_shortest() -> None:
    oracle = oracle_of(EDGES, initial=(0, 2))
    runs = Runs(moves(EDGES) | {(3, "Bad"): 0}, oracle)
    shortest = shortest_failure(oracle, runs.first("A A A A A A A Bad"), runs)
    assert (shortest.initial, names(shortest)) in {((2,), "A Bad"), ((0,), "Cut Bad")}
    assert shortest.step == 2


def test_every_missing_action_is_reached_by_a_shortest_way() -> None:
    oracle = oracle_of([*RING, (2, 2, "Two"), (3, 3, "Three")])
    reach = ways_to(oracle, ["Two", "Three", "Nowhere", "A"], limit=100)
    found = {name: " ".join(a.name for a in way.actions) for name, way in reach.ways.items()}
    assert found == {"A": "A", "Two": "A A Two", "Three": "Cut Three"}
    assert {way.initial for way in reach.ways.values()} == {(0,)}
    assert reach.exhausted


def test_a_search_that_has_found_everything_stops_early() -> None:
    reach = ways_to(oracle_of(RING), ["Cut"], limit=100)
    assert set(reach.ways) == {"Cut"}
    assert not reach.exhausted


@pytest.mark.parametrize(("limit", "found"), [(2, set()), (3, {"Two"}), (4, {"Two"})])
def test_a_search_looks_through_its_limit_of_states(limit: int, found: set[str]) -> None:
    line = oracle_of([(0, 1, "A"), (1, 2, "A"), (2, 3, "A"), (2, 2, "Two")])
    assert set(ways_to(line, ["Two"], limit=limit).ways) == found


def loses_step(path: str, needed: str) -> Divergence:
    """`path` minimised where a run fails that has these steps in this order."""

    def attempt(initial: State, tried: Sequence[Action]) -> Divergence | None:
        rest = iter(tried)
        if all(action in rest for action in actions(needed)):
            return Divergence(BehaviourKind.NOT_ALLOWED, initial, tuple(tried), (), (), {})
        return None

    first = attempt((0,), actions(path))
    assert first is not None
    return minimise(first, attempt)


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("A", "A"),
        ("A B", "A"),
        ("A B", "B"),
        ("A B C D E F G", "D"),
        ("A B C D E F G", "A G"),
        ("A A B B C C", "A B C"),
        ("A B A B A B A B A B X", "B A X"),
    ],
)
def test_minimise_keeps_what_is_needed_and_nothing_else(path: str, needed: str) -> None:
    assert names(loses_step(path, needed)) == needed


def test_steps_that_only_leave_together_are_deleted_together() -> None:
    def attempt(initial: State, tried: Sequence[Action]) -> Divergence | None:
        word = "".join(action.name for action in tried)
        if word.count("P") == word.count("Q") and word.endswith("X"):
            return Divergence(BehaviourKind.NOT_ALLOWED, initial, tuple(tried), (), (), {})
        return None

    first = attempt((0,), actions("A P B Q P Q B X"))
    assert first is not None
    assert names(minimise(first, attempt)) == "X"


@pytest.mark.parametrize(("budget", "tried"), [(0, 0), (1, 1), (3, 3)])
def test_minimise_ends_with_its_budget(budget: int, tried: int) -> None:
    count = 0

    def attempt(initial: State, path: Sequence[Action]) -> Divergence | None:
        nonlocal count
        count += 1
        return None

    first = Divergence(BehaviourKind.NOT_ALLOWED, (0,), actions("A B C D"), (), (), {})
    assert minimise(first, attempt, budget=budget) is first
    assert count == tried


def test_an_attempt_that_fails_no_earlier_is_no_gain() -> None:
    """An unreliable system may fail later than its path is long; that must not go on for ever."""
    first = Divergence(BehaviourKind.NOT_ALLOWED, (0,), actions("A B"), (), (), {})
    other = Divergence(BehaviourKind.REFUSED, (0,), actions("C D"), (), (), {})
    assert minimise(first, lambda initial, path: other, budget=50) is first


def test_halves_are_tried_first_then_quarters_then_every_run() -> None:
    tried: list[str] = []

    def attempt(initial: State, path: Sequence[Action]) -> Divergence | None:
        assert initial == (7,)
        tried.append("".join(action.name for action in path))
        return None

    minimise(
        Divergence(BehaviourKind.REFUSED, (7,), actions("A B C D E F G H"), (), (), {}), attempt
    )
    assert tried[:6] == ["ABCD", "EFGH", "ABCDEF", "ABCDGH", "ABEFGH", "CDEFGH"]
    every = [
        "ABCDEFGH"[:start] + "ABCDEFGH"[start + size :]
        for size in range(7, 0, -1)
        for start in range(8 - size, -1, -1)
    ]
    assert tried[6:] == every


@pytest.mark.parametrize(("path", "runs"), [("A", 0), ("A B", 2), ("A B C", 5), ("A B C D E", 16)])
def test_a_short_path_has_few_runs_and_is_never_tried_empty(path: str, runs: int) -> None:
    tried: list[int] = []

    def attempt(initial: State, path: Sequence[Action]) -> Divergence | None:
        tried.append(len(path))
        return None

    minimise(Divergence(BehaviourKind.REFUSED, (0,), actions(path), (), (), {}), attempt)
    assert len(tried) == runs
    assert all(0 < length < len(actions(path)) for length in tried)
