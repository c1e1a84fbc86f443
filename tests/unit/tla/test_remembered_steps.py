"""A search that remembers the steps of action instances finds what one finds that does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.tla import Fn, ModelValue, State
from conformance.tla.python.selection import TracedAction
from conformance.tla.python.traced import Read
from conformance.tla.search import (
    SearchError,
    SearchProblem,
    SearchResult,
    problem_of,
    remembered,
    search,
)
from conformance.tla.search.parts import StateParts
from conformance.tla.search.remembered import _Tree
from conformance.workers import ForkedProcesses
from tests.unit.tla.small import spec

CONFIG = "INIT Init NEXT Next CHECK_DEADLOCK FALSE"

SPECS = {
    "one argument of several functions": r"""
        VARIABLES x, y, pc
        Init == x = [i \in 0..3 |-> {0}] /\ y = [i \in 0..3 |-> 0] /\ pc = [i \in 0..3 |-> "a"]
        A(i) == /\ pc[i] = "a"
                /\ x' = [x EXCEPT ![i] = {0, 1}]
                /\ pc' = [pc EXCEPT ![i] = "b"]
                /\ y' = y
        B(i) == /\ pc[i] = "b"
                /\ \E v \in x[(i + 1) % 4] : y' = [y EXCEPT ![i] = v]
                /\ pc' = [pc EXCEPT ![i] = "c"]
                /\ UNCHANGED x
        Next == \E i \in 0..3 : A(i) \/ B(i)
        """,
    "what was just changed": r"""
        VARIABLES f, n
        Init == f = [i \in 0..2 |-> 0] /\ n = 0
        Same(i) == f' = [f EXCEPT ![i] = (@ + 1) % 3] /\ n' = f'[i]
        Other(i) == f' = [f EXCEPT ![i] = (@ + 1) % 3] /\ n' = f'[(i + 1) % 3]
        All(i) == f' = [f EXCEPT ![i] = 0] /\ n' = IF f' = f THEN 7 ELSE n
        Next == \E i \in 0..2 : Same(i) \/ Other(i) \/ All(i)
        """,
    "a function as a whole": r"""
        VARIABLES f, g
        Init == f = [i \in {"a", "b"} |-> 0] /\ g = f
        Copy == g' = f /\ UNCHANGED f
        Swap == f' = g /\ g' = f
        Up(i) == f' = [f EXCEPT ![i] = (@ + 1) % 3] /\ UNCHANGED g
        Both(i, j) == f' = [f EXCEPT ![i] = 1, ![j] = f[i]] /\ g' = [f EXCEPT ![j] = 2]
        Next == Copy \/ Swap \/ \E i, j \in {"a", "b"} : Up(i) \/ Both(i, j)
        """,
    "several arguments of one function": r"""
        VARIABLES f, r
        Init == /\ f = [i \in {"a", "b", "c"} |-> 0]
                /\ r = [s |-> [i \in 0..1 |-> {}], n |-> 0, t |-> 0]
        Two(i, j) == f' = [f EXCEPT ![i] = 1 - @, ![j] = (@ + f[i]) % 2] /\ UNCHANGED r
        Again(i) == f' = [f EXCEPT ![i] = 1, ![i] = @ + 1, !["d"] = 5] /\ r' = r
        Read(i) == f' = [f EXCEPT ![i] = 0, !["a"] = 1] /\ r' = [r EXCEPT !.t = f'["a"] + f'["b"]]
        Deep(n) == r' = [r EXCEPT !.s[n] = @ \union {r.n}, !.n = (@ + 1) % 2] /\ f' = f
        All == /\ f' = [f EXCEPT !["a"] = 0, !["b"] = 0]
               /\ r' = [r EXCEPT !.t = IF f' = f THEN 3 ELSE 4]
        Next == All \/ \E i \in {"a", "b"} : Again(i) \/ Read(i) \/ Deep(IF i = "a" THEN 0 ELSE 1)
                                         \/ \E j \in {"a", "b"} : Two(i, j)
        """,
    "records, sequences and arguments that are not there": r"""
        VARIABLES r, q
        Init == r = [a |-> 0, b |-> <<>>] /\ q = <<>>
        Field == r.a < 2 /\ r' = [r EXCEPT !.a = @ + 1] /\ q' = Append(q, r.a)
        Deep == q # <<>> /\ r' = [r EXCEPT !.b = <<Head(q)>>] /\ q' = Tail(q)
        Set(n) == n \in DOMAIN q /\ q[n] # 5 /\ q' = [q EXCEPT ![n] = 5] /\ UNCHANGED r
        None == q' = [q EXCEPT ![9] = 5] /\ r' = [r EXCEPT !.c = 1]
        Next == Field \/ Deep \/ None \/ \E n \in 1..2 : Set(n)
        """,
    "operators, ENABLED and assignments in a loop": r"""
        VARIABLES x, y
        Low(n) == \A i \in 1..3 : x[i] <= n /\ (x[i] = n => \E j \in 1..3 : x[j] < n \/ y = 0)
        Up(i) == x[i] < 2 /\ x' = [x EXCEPT ![i] = @ + 1] /\ y' = y
        Init == x = <<0, 0, 0>> /\ y = 0
        Meet == ~ENABLED Up(1) /\ Low(2) /\ \A v \in {1} : y' = v /\ x' = x
        Next == Meet \/ \E i \in 1..3 : Up(i)
        """,
    "arguments that Python takes for others": r"""
        VARIABLES f, n
        Init == f = [b \in BOOLEAN |-> 0] /\ n = 0
        Set(b) == f' = [f EXCEPT ![b] = 1 - @] /\ n' = f[~b]
        Next == \E b \in BOOLEAN : Set(b)
        """,
    "many arguments": r"""
        VARIABLES f
        Init == f = [i \in 0..6 |-> 0]
        Next == \E i \in 0..6 : (\A j \in 0..6 : f[j] < 2 \/ j > i) /\ f' = [f EXCEPT ![i] = @ + 1]
        """,
}


def found(problem: SearchProblem) -> SearchResult:
    result = search(problem, keep_transitions=True)
    return replace(result, seconds=0.0, transitions=None)


def transitions(problem: SearchProblem) -> list[object]:
    kept = search(problem, keep_transitions=True).transitions
    assert kept is not None
    return list(kept)


@pytest.mark.parametrize(("tried", "most"), [(200, 200_000), (1, 200_000), (200, 3)])
@pytest.mark.parametrize("name", SPECS)
def test_the_same_states_and_steps_in_the_same_order(
    name: str, tried: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "WORTH_IT", 1)
    monkeypatch.setattr(remembered, "_TRIED", tried)
    monkeypatch.setattr(remembered, "_MOST_STEPS", most)
    problem = problem_of(spec(tmp_path, SPECS[name], CONFIG))
    assert problem.traced_actions()
    usual = replace(problem, traced_actions=tuple)
    assert found(problem) == found(usual)
    assert transitions(problem) == transitions(usual)
    together = search(problem, elsewhere=ForkedProcesses(2))
    assert together.states == search(usual).states


def test_what_was_read_before_is_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "WORTH_IT", 1)
    runs = 0
    trace = TracedAction.trace

    def counted(self: TracedAction, reads: object) -> object:
        nonlocal runs
        runs += 1
        return trace(self, reads)  # type: ignore[arg-type]

    monkeypatch.setattr(TracedAction, "trace", counted)
    monkeypatch.setattr(TracedAction, "successors", None)
    result = search(problem_of(spec(tmp_path, SPECS["one argument of several functions"], CONFIG)))
    assert len(result.states) > 100
    # Of A(i) three values of pc[i]; of B(i) that of pc[i], with it those of x[i + 1] and y[i].
    assert runs <= 4 * (3 * 1 + 2 + 2 * 2)


@pytest.mark.parametrize(
    ("step", "paths"),
    [
        # Four values of a and b together: c and d are not read.
        ("f' = [f EXCEPT !.a = 1 - @, !.b = (@ + 1) % 2]", 4),
        # A step that reads the whole reads its results with it: 2^4 paths of one decision.
        ("DOMAIN f # {} /\\ f' = [f EXCEPT !.a = f.b, !.b = f.c]", 16),
    ],
)
def test_a_path_holds_no_more_than_what_the_step_needs(
    step: str, paths: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "WORTH_IT", 1)
    orders: list[Sequence[Read]] = []
    add = _Tree.add

    def noted(self: _Tree, reads: Sequence[Read], *rest: Any) -> None:
        orders.append(reads)
        add(self, reads, *rest)

    monkeypatch.setattr(_Tree, "add", noted)
    body = rf"""
        VARIABLES f
        Init == f \in [{{"a", "b", "c", "d"}} -> {{0, 1}}]
        Next == {step}
        """
    search(problem_of(spec(tmp_path, body, CONFIG)))
    assert len(orders) == paths
    assert all(len(reads) == (2 if paths == 4 else 1) for reads in orders)


def test_a_formula_without_a_value_is_the_usual_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an integer in a function of booleans too, though one of integers was read before."""
    body = r"""
        VARIABLES f, n
        Init == f = [i \in {0, 1} |-> 5] /\ n = 0
        Read == f[1] = 5 /\ n' = (n + 1) % 2 /\ f' = f
        Turn == n = 1 /\ f' = [b \in BOOLEAN |-> 5] /\ n' = 0
        Next == Read \/ Turn
        """
    problem = problem_of(spec(tmp_path, body, CONFIG))
    with pytest.raises(SearchError) as usual:
        search(replace(problem, traced_actions=tuple))
    monkeypatch.setattr(remembered, "WORTH_IT", 1)
    with pytest.raises(SearchError) as error:
        search(problem)
    assert str(error.value) == str(usual.value)


def test_what_depends_on_more_than_the_state_is_never_remembered(tmp_path: Path) -> None:
    body = r"""
        VARIABLES n
        Init == n = 0
        Next == n < 3 /\ n' = n + 1 /\ TLCSet(1, n)
        """
    assert not problem_of(spec(tmp_path, body, CONFIG)).traced_actions()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1,), (True,)),
        (((),), (frozenset(),)),
        (((1,),), (frozenset({1}),)),
        ((Fn({0: 1}),), (Fn({1: 0}),)),
        ((Fn({0: 1}),), (Fn({False: 1}),)),
        ((Fn({"a": (1,)}),), (Fn({"a": (True,)}),)),
        ((ModelValue("a"),), ("a",)),
        (((1, 2),), ((2, 1),)),
        ((1, 2), (2, 1)),
        ((Fn({0: 1}), 0), (0, Fn({0: 1}))),
    ],
)
def test_two_states_have_two_keys(one: State, other: State) -> None:
    parts = StateParts(len(one))
    (first, key), (second, key_of_other) = parts.state(one), parts.state(other)
    assert key != key_of_other
    assert repr((first, second)) == repr((one, other))
    assert parts.state(one) == (first, key)


def test_equal_states_are_made_of_the_same_objects() -> None:
    parts = StateParts(2)
    first, key = parts.state((Fn({"a": (1, 2), "b": frozenset({3})}), 10**6))
    again, same_key = parts.state((Fn({"b": frozenset({3}), "a": (1, 2)}), 10**6 + 0))
    assert key == same_key
    assert all(one is other for one, other in zip(first, again, strict=True))
