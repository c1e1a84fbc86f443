"""The successor search: one small action after the other, and what it leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import Action, EvaluationError, Spec, State
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

PREFIX = """
CONSTANT N
VARIABLES x, y
vars == <<x, y>>
pair == <<x, y>>
Init == x = 1 /\\ y = 2
"""

# From x = 1, y = 2, with N = 2.
ACTIONS: list[tuple[str, set[State]]] = [
    (r"x' = x + 1 /\ y' = x'", {(2, 2)}),
    (r"x' \in 1..2 /\ y' = 0", {(1, 0), (2, 0)}),
    (r"x' \in {} /\ y' = 0", set()),
    (r"UNCHANGED <<x, y>>", {(1, 2)}),
    (r"UNCHANGED pair", {(1, 2)}),
    (r"UNCHANGED x /\ y' = 5", {(1, 5)}),
    (r"x' = 1 /\ x' = 2 /\ y' = 0", set()),
    (r"x' \in 1..3 /\ x' > 1 /\ y' = x' * 2", {(2, 4), (3, 6)}),
    (r"(x' = 1 \/ x' = 2) /\ y' = x'", {(1, 1), (2, 2)}),
    (r"(x' = 1 /\ y' = 1) \/ (x = 2 /\ x' = 3 /\ y' = 3)", {(1, 1)}),
    (r"IF x = 1 THEN x' = 9 /\ UNCHANGED y ELSE UNCHANGED vars", {(9, 2)}),
    (r"(IF x = 2 THEN x' = 9 ELSE x' \in {7, 8}) /\ y' = x'", {(7, 7), (8, 8)}),
    (r"(CASE x = 2 -> x' = 0 [] OTHER -> x' = 5) /\ y' = 0", {(5, 0)}),
    (r"LET z == x + y IN x' = z /\ y' = z", {(3, 3)}),
    (r"LET z == x' IN (x' = 4 \/ x' = 5) /\ y' = z", {(4, 4), (5, 5)}),
    (r"LET F(a) == x' = a IN F(6) /\ y' = 0", {(6, 0)}),
    (r"\E a \in 1..2 : \E b \in {a, 9} : x' = a /\ y' = b", {(1, 1), (1, 9), (2, 2), (2, 9)}),
    (r"\E <<a, b>> \in {<<1, 3>>, <<2, 4>>} : x' = a /\ y' = b", {(1, 3), (2, 4)}),
    (r"\E a, b \in {x, y} : a # b /\ x' = a /\ y' = b", {(1, 2), (2, 1)}),
    (r"Set(8) /\ y' = 0", {(8, 0)}),
    (r"Assign(x, 7) /\ Assign(y, 3)", {(7, 3)}),
    (r"Change(LAMBDA v : x' = v) /\ UNCHANGED y", {(3, 2)}),
    (r"(x = 1 => x' = 4) /\ y' = 0", {(4, 0)}),
    (r"(\A i \in {1} : x' = i + 1) /\ y' = 0", {(2, 0)}),
    (r"(\A i \in {x} : y' = i) /\ x' = 0", {(0, 1)}),
    (r"[x' = 3 /\ y' = 3]_vars", {(3, 3), (1, 2)}),
    (r"<<x' \in {1, 3} /\ y' = 2>>_vars", {(3, 2)}),
    (r"x' = 1 /\ y' = (x + 1)' + 1", {(1, 3)}),
    (r"(ENABLED (x' = 1 /\ x > 5)) /\ UNCHANGED vars", set()),
    (r"(ENABLED (\E a \in 1..x : x' = a)) /\ UNCHANGED vars", {(1, 2)}),
    (r"x = 2 /\ x' = Head(<<>>) /\ y' = 0", set()),
    (r"x' = N /\ y' = Square(N)", {(2, 4)}),
    (r"~(x = 2) /\ x' = 1 /\ y' = 1", {(1, 1)}),
    (r"x' = [i \in 1..2 |-> i][2] /\ y' = IF x' = 2 THEN 1 ELSE 0", {(2, 1)}),
    (r"x' \in [{1} -> {5, 6}] /\ y' \in SUBSET {1}",
     {((5,), frozenset()), ((6,), frozenset()), ((5,), frozenset([1])), ((6,), frozenset([1]))}),
]  # fmt: skip

OPERATORS = r"""
Set(v) == x' = v
Assign(var, v) == var' = v
Change(A(_)) == A(3)
Square(n) == n * n
"""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    rows = [f"A{i} == {text}" for i, (text, _) in enumerate(ACTIONS)]
    names = [rf"\/ A{i}" for i in range(len(ACTIONS))]
    body = PREFIX + OPERATORS + "\n".join(rows) + "\nNext ==\n  " + "\n  ".join(names)
    return spec(tmp_path_factory.mktemp("actions"), body, "CONSTANT N = 2")


@pytest.mark.parametrize(("row", "text", "expected"), [(i, *a) for i, a in enumerate(ACTIONS)])
def test_action_leads_to(table: Spec, row: int, text: str, expected: set[State]) -> None:
    found = table.successors_by(Action(f"A{row}"), (1, 2))
    assert set(found) == expected


@pytest.mark.parametrize(("row", "text", "expected"), [(i, *a) for i, a in enumerate(ACTIONS)])
def test_formula_agrees_with_the_search(
    table: Spec, row: int, text: str, expected: set[State]
) -> None:
    formula = table.action_formula(f"A{row}")
    others = {(1, 2), (0, 0)} if row < len(ACTIONS) - 1 else {((7,), frozenset())}
    assert {state for state in others | expected if formula((1, 2), state)} == expected


def test_all_successors_are_those_of_the_instances(table: Spec) -> None:
    found = {(str(action), state) for action, state in table.successors((1, 2))}
    each = {
        (str(action), state)
        for action in table.actions
        for state in table.successors_by(action, (1, 2))
    }
    assert found == each


def test_labels_are_those_of_tlc(tmp_path: Path) -> None:
    body = r"""
CONSTANT Nodes
VARIABLE x
Init == x \in {<<n>> : n \in Nodes}
Add(a, b) == x' = Append(x, a) /\ a # b
Both(n) == \/ Add(n, n) \/ x' = <<n>>
Of(s) == x' = s
Next == \/ \E m \in Nodes : \E n \in Nodes \ {m} : Add(m, n)
        \/ \E n \in Nodes : Both(n)
        \/ \E n \in DOMAIN x : Of(<<n>>)
        \/ Of(x)
        \/ x' = <<>>
"""
    found = spec(tmp_path, body, 'CONSTANT Nodes = {"a", "b"}')
    assert [str(action) for action in found.actions] == [
        'Add("a", "b")',
        'Add("b", "a")',
        'Add("a", "a")',
        'Both("a")',
        'Add("b", "b")',
        'Both("b")',
        "Next",
        "Of",
    ]
    assert set(found.initial_states()) == {(("a",),), (("b",),)}


def test_a_choice_over_an_empty_set_is_no_action(tmp_path: Path) -> None:
    body = r"""
CONSTANTS Nodes, Kinds
VARIABLE x
Init == x = 0
Add(n) == x' = x + 1
Change(n, k) == x' = 0
Next == \/ \E n \in Nodes : Add(n)
        \/ \E n \in Nodes, k \in Kinds : Change(n, k)
"""
    found = spec(tmp_path, body, 'CONSTANTS Nodes = {"a", "b"} Kinds = {}')
    assert [str(action) for action in found.actions] == ['Add("a")', 'Add("b")']
    assert {str(action) for action, _ in found.successors((0,))} == {'Add("a")', 'Add("b")'}


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (r"x' = 1", "does not say what becomes of the variables y"),
        (r"y' = x' /\ x' = 1", "x' is used before"),
        (r"x' \in Nat /\ y' = 0", "infinite set Nat"),
        (r"x' = 1 /\ y' = Head(<<>>)", "Head of the empty sequence"),
    ],
)
def test_bad_action_is_an_error_with_a_place(tmp_path: Path, action: str, reason: str) -> None:
    found = spec(tmp_path, PREFIX + f"Next == {action}", "CONSTANT N = 1")
    with pytest.raises(EvaluationError, match=reason) as caught:
        found.successors((1, 2))
    assert caught.value.location is not None
    assert caught.value.location.module == "Small"
