"""A recorder's walk: what is stored is what the system did, and a behaviour that explains it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.replay.oracle import SpecOracle
from conformance.replay.walker import Walk, Walker, trace_seed
from conformance.tla import Action, State, Value
from conformance.traces.model import TraceEnd
from tests.unit.replay.machines import Table, actions, moves, oracle_of

EDGES = [(0, 1, "A"), (0, 2, "B"), (1, 0, "C"), (2, 0, "C"), (2, 1, "A")]
A, B = actions("A B")


def walks(walker: Walker, count: int = 40, length: int = 6) -> list[Walk]:
    return [walker.walk(seed, length) for seed in range(count)]


def test_a_walk_is_a_path_of_the_spec_and_takes_every_turn() -> None:
    recorded = walks(Walker(Table(moves(EDGES)), oracle_of(EDGES)))
    allowed = {((source,), Action(name), (target,)) for source, target, name in EDGES}
    steps = {
        step
        for walk in recorded
        for step in zip(walk.states, walk.actions, walk.states[1:], strict=False)
    }
    assert steps == allowed
    assert {(len(w.states), len(w.actions), w.end, w.problem) for w in recorded} == {
        (7, 6, TraceEnd.LENGTH, None)
    }


def test_every_initial_state_is_begun_in_and_their_order_is_nobodys() -> None:
    table, one, other = moves(EDGES), oracle_of(EDGES, (0, 1, 2)), oracle_of(EDGES, (2, 0, 1))
    recorded = walks(Walker(Table(table), one))
    assert {walk.states[0] for walk in recorded} == {(0,), (1,), (2,)}
    assert walks(Walker(Table(table), other)) == recorded


def test_initial_states_of_several_kinds_of_values_are_no_matter() -> None:
    class Any(Table):
        def reset(self, initial: Mapping[str, Value]) -> None:
            self.shown = initial["x"]

        def observe(self) -> Mapping[str, Value]:
            return {"x": self.shown}

    oracle = SpecOracle(("x",), [("a",), (1,), (frozenset(),)], lambda state: [])
    starts = {walk.states[0] for walk in walks(Walker(Any({}), oracle))}
    assert starts == {("a",), (1,), (frozenset(),)}


def test_a_walk_ends_where_the_spec_does() -> None:
    line = oracle_of(EDGES[:1])
    walk = Walker(Table(moves(EDGES)), line).walk(1, 5)
    assert walk == Walk(((0,), (1,)), (A,), TraceEnd.DEADLOCK)


def test_a_walk_of_no_step_is_its_initial_state() -> None:
    assert Walker(Table({}), oracle_of(EDGES)).walk(1, 0) == Walk(((0,),), (), TraceEnd.LENGTH)


def test_a_divergence_ends_the_walk_with_what_was_observed() -> None:
    walk = Walker(Table(moves(EDGES[:1]) | {(1, "C"): 2}), oracle_of(EDGES[:1] + EDGES[2:3]))
    assert walk.walk(1, 5) == Walk(
        ((0,), (1,), (2,)),
        actions("A C"),
        TraceEnd.DIVERGED,
        "state not allowed: x\nx: expected 0, observed 2",
    )


def test_a_wrong_start_is_all_that_such_a_walk_has() -> None:
    walk = Walker(Table(moves(EDGES), start=2), oracle_of(EDGES)).walk(1, 5)
    assert walk == Walk(
        ((2,),), (), TraceEnd.DIVERGED, "wrong initial state: x\nx: expected 0, observed 2"
    )


def test_a_refusal_shows_no_state_and_says_why() -> None:
    walk = Walker(Table({}), oracle_of(EDGES[:1])).walk(1, 5)
    assert walk == Walk(((0,), (None,)), (A,), TraceEnd.DIVERGED, "action refused\nno A from 0")


def test_what_only_the_wider_oracle_allows_is_no_divergence() -> None:
    bounded = oracle_of([(0, 1, "A"), (1, 0, "C")])
    wider = oracle_of([(0, 1, "A"), (0, 3, "A"), (1, 0, "C"), (3, 0, "C")])
    system = Table({(0, "A"): 3, (3, "C"): 0})
    assert Walker(system, bounded).walk(1, 5).end is TraceEnd.DIVERGED
    # The narrow oracle knows nothing of where the system went.
    assert Walker(system, bounded, wider).walk(1, 5) == Walk(((0,), (3,)), (A,), TraceEnd.DEADLOCK)


def test_what_neither_oracle_allows_is_a_divergence() -> None:
    narrow, wider = oracle_of([(0, 1, "A")]), oracle_of([(0, 1, "A"), (0, 3, "A")])
    walk = Walker(Table({(0, "A"): 2}), narrow, wider).walk(1, 5)
    assert (walk.end, walk.states) == (TraceEnd.DIVERGED, ((0,), (2,)))


def test_a_refusal_is_no_matter_for_the_wider_oracle() -> None:
    narrow = oracle_of([(0, 1, "A")])
    assert Walker(Table({}), narrow, narrow).walk(1, 5).end is TraceEnd.DIVERGED


class Shown(Table):
    """Shows `x` of a spec that has a ghost beside it."""


def ghostly(steps: Mapping[State, list[tuple[Action, State]]]) -> SpecOracle:
    return SpecOracle(("x", "ghost"), [(0, "")], lambda state: steps.get(state, []))


# From 0 by A to 1 in two ways; only the first enables B, and only from the second leads C to 3.
# The ghost is a string or a number: nothing here may rely on an order of values.
FORK: dict[State, list[tuple[Action, State]]] = {
    (0, ""): [(A, (1, "l")), (A, (1, 5))],
    (1, "l"): [(Action("C"), (2, "l")), (B, (0, ""))],
    (1, 5): [(Action("C"), (2, 5)), (Action("C"), (3, 5))],
}


@pytest.mark.parametrize(("end", "branch"), [(3, {5}), (2, {"l", 5})])
def test_a_witness_is_one_behaviour_that_shows_all_that_was_seen(
    end: int, branch: set[Value]
) -> None:
    walk = Walker(Shown({(0, "A"): 1, (1, "C"): end}), ghostly(FORK)).walk(1, 2)
    assert walk.actions == actions("A C")
    assert [state[0] for state in walk.states] == [0, 1, end]
    assert walk.states[1] in {(1, side) for side in branch}
    assert walk.states[2][1] == walk.states[1][1]


def test_where_branches_join_again_either_is_a_witness() -> None:
    joined = {**FORK, (1, "l"): [(Action("C"), (2, ""))], (1, 5): [(Action("C"), (2, ""))]}
    walk = Walker(Shown({(0, "A"): 1, (1, "C"): 2}), ghostly(joined)).walk(1, 2)
    assert walk.states[1] in {(1, "l"), (1, 5)}
    assert (walk.states[0], walk.states[2]) == ((0, ""), (2, ""))


def test_only_what_every_candidate_enables_is_taken() -> None:
    recorded = walks(Walker(Shown({(0, "A"): 1, (1, "C"): 2}), ghostly(FORK)), length=2)
    assert {walk.actions for walk in recorded} == {actions("A C")}


def test_where_candidates_enable_nothing_in_common_the_walk_is_ambiguous() -> None:
    apart = {**FORK, (1, 5): [(Action("D"), (0, ""))]}
    walk = Walker(Shown({(0, "A"): 1}), ghostly(apart)).walk(1, 5)
    assert (walk.end, len(walk.actions)) == (TraceEnd.AMBIGUOUS, 1)


def test_a_divergence_after_a_fork_has_a_witness_too() -> None:
    walk = Walker(Shown({(0, "A"): 1, (1, "C"): 7}), ghostly(FORK)).walk(1, 5)
    assert walk.states[0] == (0, "")
    assert walk.states[1] in {(1, "l"), (1, 5)}
    assert walk.states[2] == (7, None)
    assert walk.problem == "state not allowed: x\nx: expected 2 or 3, observed 7"


def test_a_divergence_after_two_forked_steps_has_a_witness_of_both() -> None:
    far = {**FORK, (2, "l"): [(A, (4, "l"))], (2, 5): [(A, (4, 5))]}
    walk = Walker(Shown({(0, "A"): 1, (1, "C"): 2, (2, "A"): 7}), ghostly(far)).walk(1, 5)
    assert walk.actions == actions("A C A")
    assert [state[0] for state in walk.states] == [0, 1, 2, 7]
    assert walk.states[2][1] == walk.states[1][1]


def test_a_problem_is_told_against_the_nearest_state_that_was_allowed() -> None:
    class Pair(Table):
        variables = ("x", "y")

        def observe(self) -> Mapping[str, Value]:
            return {"x": 9, "y": 1} if self.x else {"x": 0, "y": 0}

    oracle = SpecOracle(("x", "y"), [(0, 0)], lambda state: [(A, (1, 2)), (A, (2, 1))])
    walk = Walker(Pair({(0, "A"): 1}), oracle).walk(1, 5)
    assert walk.states == ((0, 0), (9, 1))
    assert walk.problem == "state not allowed: x\nx: expected 2 or 1, observed 9"


def test_a_problem_names_every_variable_that_differs_on_its_first_line() -> None:
    class Pair(Table):
        variables = ("x", "y")

        def observe(self) -> Mapping[str, Value]:
            return {"x": 7, "y": 8}

    walk = Walker(Pair({}), SpecOracle(("x", "y"), [(0, 1)], lambda state: [])).walk(1, 5)
    assert walk.problem == (
        "wrong initial state: x, y\nx: expected 0, observed 7\ny: expected 1, observed 8"
    )


def test_a_witness_may_lead_through_what_only_the_wider_oracle_allows() -> None:
    wider = {**FORK, (0, ""): [*FORK[0, ""], (A, (5, "w"))], (5, "w"): [(B, (6, "w"))]}
    narrow = {**FORK, (5, "w"): [(B, (6, "w")), (B, (6, "v"))]}
    system = Shown({(0, "A"): 5, (5, "B"): 6})
    walk = Walker(system, ghostly(narrow), ghostly(wider)).walk(1, 5)
    assert walk.actions == actions("A B")
    assert walk.states[:2] == ((0, ""), (5, "w"))


def test_each_trace_has_a_seed_of_its_own_that_never_changes() -> None:
    seeds = {trace_seed(seed, trace) for seed in range(20) for trace in range(20)}
    assert len(seeds) == 400
    assert min(seeds) < 0 < max(seeds)
    assert all(-(2**63) <= seed < 2**63 for seed in seeds)
    # Recorded stores are told apart by it: it is part of their content hash.
    assert trace_seed(1, 2) == -4404767744819913038
