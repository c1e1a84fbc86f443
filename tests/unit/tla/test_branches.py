"""Which disjuncts of an action a step takes."""

from __future__ import annotations

import pytest

from conformance.tla import Action, Spec, State
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

BODY = r"""
VARIABLES x, y
Even(n) == n % 2 = 0 \/ n = 7
RECURSIVE Below(_)
Below(n) == n = 0 \/ Below(n - 1)
Choose ==
  \/ x' = 1 /\ y' = y
  \/ x' = 1 /\ y' \in {y, 5}
  \/ x' = 2 /\ UNCHANGED y
Guarded(n) ==
  /\ Even(n)
  /\ \/ x = n
     \/ y[n] = 3
  /\ x' = n /\ y' = y
Sides == IF x > 3 THEN x' = 0 /\ y' = y ELSE (x' = 9 \/ x' = 8) /\ y' = y
Arms == CASE x = 1 -> x' = 3 /\ y' = y [] x = 2 -> x' = 4 /\ y' = y [] OTHER -> x' = 5 /\ y' = y
Some == \E n \in 1..3 : LET double == 2 * n IN
  (x' = double \/ (n = 3 /\ x' = 7)) /\ y' = y
Counts == Below(2) /\ x' = x /\ y' = y
Init == x = 0 /\ y = 0
Next == Choose \/ (\E n \in 0..7 : Guarded(n)) \/ Sides \/ Arms \/ Some \/ Counts
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return spec(tmp_path_factory.mktemp("branches"), BODY)


def taken(found: Spec, action: Action, before: State, after: State) -> list[str] | None:
    """The text of the branches that a step takes; None if it is no step of the action."""
    branches = found.branches(action)
    bits = branches(before, after)
    if bits < 0:
        return None
    places = [place for number, place in enumerate(branches.places) if bits >> number & 1]
    lines = found.module.sources["Small"].read_text().splitlines()
    assert {place.line for place in places} == {place.end_line for place in places}
    return [lines[at.line - 1][at.column - 1 : at.end_column] for at in places]


STEPS = [
    # Two disjuncts may hold of one step, and one of them of two.
    ("Choose", (), (0, 0), (1, 0), [r"x' = 1 /\ y' = y", r"x' = 1 /\ y' \in {y, 5}"]),
    ("Choose", (), (0, 0), (1, 5), [r"x' = 1 /\ y' \in {y, 5}"]),
    ("Choose", (), (0, 0), (2, 0), [r"x' = 2 /\ UNCHANGED y"]),
    ("Choose", (), (0, 0), (3, 0), None),
    # An operator's disjuncts are its caller's; y[7] has no value, and another disjunct holds.
    ("Guarded", (7,), (7, 0), (7, 0), ["n = 7", "x = n"]),
    ("Guarded", (2,), (2, (0, 3)), (2, (0, 3)), ["n % 2 = 0", "x = n", "y[n] = 3"]),
    ("Guarded", (3,), (3, 0), (3, 0), None),
    ("Sides", (), (4, 0), (0, 0), [r"x' = 0 /\ y' = y"]),
    ("Sides", (), (1, 0), (8, 0), [r"(x' = 9 \/ x' = 8) /\ y' = y", "x' = 8"]),
    ("Arms", (), (1, 0), (3, 0), [r"x' = 3 /\ y' = y"]),
    ("Arms", (), (0, 0), (5, 0), [r"x' = 5 /\ y' = y"]),
    # What is conjoined with a disjunct must hold for the same n.
    ("Some", (), (0, 0), (4, 0), ["x' = double"]),
    ("Some", (), (0, 0), (7, 0), [r"n = 3 /\ x' = 7"]),
    # A recursive operator is not entered.
    ("Counts", (), (0, 0), (0, 0), []),
]


@pytest.mark.parametrize(("name", "args", "before", "after", "expected"), STEPS)
def test_a_step_takes_the_disjuncts_that_hold_of_it(
    found: Spec,
    name: str,
    args: tuple[int, ...],
    before: State,
    after: State,
    expected: list[str] | None,
) -> None:
    shown = taken(found, Action(name, args), before, after)
    assert shown == expected if expected is None else sorted(shown or []) == sorted(expected)


def test_a_step_is_of_the_action_where_its_formula_says_so(found: Spec) -> None:
    for name, args, before, after, _ in STEPS:
        action = Action(name, args)
        holds = found.action_formula(action)(before, after)
        assert (found.branches(action)(before, after) >= 0) is holds


def test_places_are_known_without_any_step(found: Spec) -> None:
    assert [len(found.branch_places(name)) for name in ("Choose", "Guarded", "Counts")] == [3, 4, 0]
