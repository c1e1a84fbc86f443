"""The search over a hand-made state space, whose answers can be counted by hand."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from conformance.tla import Action, State
from conformance.tla.search import (
    FormulaKind,
    SearchEnd,
    SearchError,
    SearchLimits,
    SearchProblem,
    SearchVerdict,
    processes,
    search,
)
from conformance.tla.semantics.errors import EvaluationError
from conformance.workers import ForkedProcesses

UP, DOWN, JUMP = Action("Up"), Action("Down"), Action("Jump", (5,))


def counter(state: State) -> Iterable[tuple[Action, State]]:
    """0..9 with steps up and down, and a jump from 1 to 5; 9 is a dead end."""
    (number,) = state
    assert isinstance(number, int)
    if number == 9:
        return
    yield UP, (number + 1,)
    if number > 0:
        yield DOWN, (number - 1,)
    if number == 1:
        yield JUMP, (5,)


COUNTER = SearchProblem(("n",), lambda: [(0,)], counter, check_deadlock=False)


def test_the_whole_space_is_searched() -> None:
    result = search(COUNTER, keep_transitions=True)
    assert result.end is SearchEnd.EXHAUSTED
    assert {state for (state,) in result.states} == set(range(10))
    assert result.generated == 1 + 9 + 8 + 1  # initial, up, down, jump
    assert result.transitions is not None
    assert len(result.transitions) == 18
    assert (1, JUMP, result.states.index((5,))) in list(result.transitions)
    assert result.depth == 1 + 6  # 0 1 5 6 7 8 9


def test_the_counterexample_is_the_shortest() -> None:
    result = search(replace(COUNTER, invariants={"Low": lambda state: state != (6,)}))
    assert result.end is SearchEnd.VIOLATION
    assert result.violated is not None
    path = result.violated.counterexample
    assert path is not None
    assert path.states == ((0,), (1,), (5,), (6,))
    assert [str(action) for action, _ in path.steps] == ["Up", "Jump(5)", "Up"]
    assert len(path) == 4


def test_every_formula_gets_its_verdict_if_the_search_goes_on() -> None:
    problem = replace(
        COUNTER,
        invariants={"Low": lambda state: state < (6,), "Natural": lambda state: state >= (0,)},
        action_properties={"NoJump": lambda state, after: abs(state[0] - after[0]) == 1},
        check_deadlock=True,
    )
    result = search(problem, SearchLimits(stop_at_violation=False))
    verdicts = {formula.name: formula.verdict for formula in result.formulas}
    assert verdicts == {
        "Low": SearchVerdict.FAIL,
        "Natural": SearchVerdict.PASS,
        "NoJump": SearchVerdict.FAIL,
        "deadlock": SearchVerdict.FAIL,
    }
    deadlock = next(f for f in result.formulas if f.kind is FormulaKind.DEADLOCK)
    assert deadlock.counterexample is not None
    assert deadlock.counterexample.states[-1] == (9,)


def test_a_limit_leaves_verdicts_open() -> None:
    problem = replace(COUNTER, invariants={"True": lambda state: True})
    result = search(problem, SearchLimits(states=3))
    assert result.end is SearchEnd.LIMIT
    assert result.formulas[0].verdict is SearchVerdict.INCONCLUSIVE


def test_it_stops_when_cancelled() -> None:
    assert search(COUNTER, cancelled=lambda: True).end is SearchEnd.CANCELLED


def test_nothing_to_search_is_no_pass() -> None:
    empty = replace(COUNTER, initial=list, invariants={"False": lambda state: False})
    assert search(empty).formulas[0].verdict is SearchVerdict.INCONCLUSIVE


def test_invariants_are_checked_where_a_constraint_discards() -> None:
    problem = replace(
        COUNTER,
        constraints=(lambda state: state < (2,),),
        invariants={"NotFive": lambda state: state != (5,)},
    )
    result = search(problem)
    assert result.states == ((0,), (1,))
    assert result.violated is not None
    assert result.violated.counterexample is not None
    assert result.violated.counterexample.states == ((0,), (1,), (5,))


def test_an_action_constraint_cuts_the_step() -> None:
    problem = replace(
        COUNTER, action_constraints=(lambda state, after: after != (5,) or state > (3,),)
    )
    assert search(problem).depth == 10


def test_a_view_merges_states() -> None:
    parity = replace(COUNTER, view=lambda state: state[0] % 2)
    assert search(parity).states == ((0,), (1,))


def test_one_and_true_are_two_states() -> None:
    problem = replace(COUNTER, initial=lambda: [(1,), (True,)], successors=lambda state: [])
    assert len(search(problem).states) == 2


SIZE = 12


def grid(state: State) -> Iterable[tuple[Action, State]]:
    """Points of a square, each reached from its left and from below."""
    x, y = state
    assert isinstance(x, int)
    assert isinstance(y, int)
    if x < SIZE:
        yield Action("Right"), (x + 1, y)
    if y < SIZE:
        yield Action("Up", (y,)), (x, y + 1)


def undefined_at(point: State) -> Callable[[State], bool]:
    def holds(state: State) -> bool:
        if state == point:
            raise EvaluationError("no value")
        return True

    return holds


GRID = SearchProblem(("x", "y"), lambda: [(0, 0)], grid, check_deadlock=False)
WITHIN = replace(GRID, constraints=(lambda state: state != (4, 4),))
SEARCHES = {
    "whole": (GRID, SearchLimits()),
    "deadlock": (replace(GRID, check_deadlock=True), SearchLimits()),
    "constraint": (WITHIN, SearchLimits()),
    "invariant": (replace(GRID, invariants={"Near": lambda s: s != (7, 3)}), SearchLimits()),
    "discarded": (replace(WITHIN, invariants={"Near": lambda s: s != (4, 4)}), SearchLimits()),
    "property": (replace(GRID, action_properties={"P": lambda s, t: t != (5, 6)}), SearchLimits()),
    "symmetry": (replace(GRID, view=lambda state: frozenset(state)), SearchLimits()),
    "limit": (GRID, SearchLimits(states=60)),
    "all violations": (
        replace(
            GRID,
            invariants={f"Not{n}": lambda s, n=n: s != (n, n) for n in range(SIZE)},
            check_deadlock=True,
        ),
        SearchLimits(stop_at_violation=False),
    ),
}


def forked(count: int) -> ForkedProcesses | None:
    return None if count < 2 else ForkedProcesses(count)


@pytest.fixture
def small_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are forked for small levels too."""
    monkeypatch.setattr(processes, "WORTH_IT", 3)
    monkeypatch.setattr(processes, "CHUNK", 2)


@pytest.mark.usefixtures("small_levels")
@pytest.mark.parametrize("name", SEARCHES)
def test_several_processes_find_what_one_finds(name: str) -> None:
    problem, limits = SEARCHES[name]
    alone, *others = (
        replace(search(problem, limits, keep_transitions=True, elsewhere=forked(count)), seconds=0)
        for count in (1, 2, 3)
    )
    assert others == [alone, alone]


@pytest.mark.usefixtures("small_levels")
@pytest.mark.parametrize("count", [1, 2])
def test_an_error_has_its_path_with_several_processes_too(count: int) -> None:
    problem = replace(GRID, invariants={"Defined": undefined_at((5, 2))})
    with pytest.raises(SearchError) as raised:
        search(problem, elsewhere=forked(count))
    path = raised.value.counterexample
    assert len(path) == 7  # The state whose successor has no value.
    assert path.states[-1] == (5, 1)


@pytest.mark.usefixtures("small_levels")
def test_no_process_is_left_behind() -> None:
    search(replace(GRID, invariants={"Near": lambda state: state != (3, 3)}), elsewhere=forked(2))
    search(GRID, elsewhere=forked(3), cancelled=iter([False] * 40 + [True] * 9).__next__)
    assert multiprocessing.active_children() == []
