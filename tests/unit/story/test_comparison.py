"""Observed and allowed values side by side, at the innermost places that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from conformance.story.comparison import (
    differences,
    model_values_as_strings,
    nearest,
    variables_of,
)
from conformance.tla import Fn, ModelValue, Partial, State, Value, parse_value

VARIABLES = ("log", "mark")


def compared(
    allowed: Sequence[Partial], observed: Mapping[str, Value]
) -> list[tuple[str, str, str]]:
    found = differences(VARIABLES, allowed, observed)
    return [(one.variable, one.expected, one.actual) for one in found]


@pytest.mark.parametrize(
    ("expected", "actual", "rows"),
    [
        ("1", "2", [("log", "1", "2")]),
        ("[b1 |-> 1, b2 |-> 2]", "[b1 |-> 1, b2 |-> 3]", [("log.b2", "2", "3")]),
        (
            "[b1 |-> [hw |-> 0, leo |-> 5], b2 |-> 2]",
            "[b1 |-> [hw |-> 1, leo |-> 5], b2 |-> 3]",
            [("log.b1.hw", "0", "1"), ("log.b2", "2", "3")],
        ),
        # Another domain, or no function on one side: the whole values.
        ("[b1 |-> 1]", "[b2 |-> 1]", [("log", "[b1 |-> 1]", "[b2 |-> 1]")]),
        ("[b1 |-> 1]", "7", [("log", "[b1 |-> 1]", "7")]),
        ("7", "[b1 |-> 1]", [("log", "7", "[b1 |-> 1]")]),
        ("<<1, 2>>", "<<1, 3>>", [("log", "<<1, 2>>", "<<1, 3>>")]),
        ('(5 :> "x" @@ 7 :> "y")', '(5 :> "x" @@ 7 :> "z")', [("log[7]", '"y"', '"z"')]),
        (
            '[b1 |-> ("no name" :> 1 @@ "b" :> 1)]',
            '[b1 |-> ("no name" :> 2 @@ "b" :> 1)]',
            [('log.b1["no name"]', "1", "2")],
        ),
    ],
)
def test_differences_lie_at_the_innermost_place(
    expected: str, actual: str, rows: list[tuple[str, str, str]]
) -> None:
    observed = {"log": parse_value(actual), "mark": 0}
    assert compared(((parse_value(expected), 0),), observed) == rows


def test_the_nearest_allowed_state_is_shown_with_what_else_was_possible() -> None:
    allowed: tuple[State, ...] = ((1, 1), (2, 0), (3, 0), (2, 5))
    assert compared(allowed, {"log": 9, "mark": 0}) == [("log", "2 or 1 or 3", "9")]


def test_functions_that_several_states_allow_are_shown_whole() -> None:
    one, other, seen = Fn({"b": 1}), Fn({"b": 2}), Fn({"b": 3})
    rows = [("log", "[b |-> 1] or [b |-> 2]", "[b |-> 3]")]
    assert compared(((one, 0), (other, 0)), {"log": seen, "mark": 0}) == rows


def test_only_what_was_observed_is_compared() -> None:
    assert compared(((1, 1),), {"mark": 2}) == [("mark", "1", "2")]


@pytest.mark.parametrize(("allowed", "observed"), [((), {"log": 1}), (((1, 1),), {})])
def test_without_two_sides_there_is_no_difference(
    allowed: Sequence[Partial], observed: dict[str, Value]
) -> None:
    assert compared(allowed, observed) == []


def test_differences_end_at_their_limit() -> None:
    many = Fn({f"b{number}": 0 for number in range(30)})
    seen = Fn({f"b{number}": 1 for number in range(30)})
    observed: dict[str, Value] = {"log": seen, "mark": 0}
    assert len(differences(VARIABLES, [(many, 0)], observed)) == 20
    assert len(differences(VARIABLES, [(many, 0)], observed, limit=3)) == 3


def test_what_is_not_known_of_the_allowed_state_differs_and_is_said_to_be_unknown() -> None:
    assert compared(((None, 0),), {"log": 1, "mark": 0}) == [("log", "(unknown)", "1")]


def test_the_nearest_state_is_the_first_of_those_that_differ_in_the_fewest_variables() -> None:
    assert nearest(VARIABLES, [(1, 1), (2, 0), (3, 0)], {"log": 9, "mark": 0}) == (2, 0)
    assert nearest(VARIABLES, [], {"log": 9}) is None


def test_the_variables_that_differ_are_named_once_without_their_entries() -> None:
    observed: dict[str, Value] = {"log": Fn({"b1": 1, "b2": 1}), "mark": 1}
    found = differences(VARIABLES, [(Fn({"b1": 0, "b2": 0}), 0)], observed)
    assert variables_of(found) == ("log", "mark")


@pytest.mark.parametrize(
    ("expected", "actual", "names"),
    [
        (ModelValue("n1"), "n1", ["n1"]),
        (frozenset({ModelValue("n1"), ModelValue("n2")}), frozenset({"n1", "n2"}), ["n1", "n2"]),
        (Fn({ModelValue("n1"): 0}), Fn({"n1": 0}), ["n1"]),
        (Fn({"owner": ModelValue("n1")}), Fn({"owner": "n1"}), ["n1"]),
        ((ModelValue("n1"), 1), ("n1", 2), ["n1"]),
        (ModelValue("n1"), "n2", []),
        ("n1", ModelValue("n1"), []),
        ("n1", "n2", []),
        (True, "TRUE", []),
        (Fn({"n1": 0}), Fn({"n1": 1}), []),
    ],
)
def test_a_string_in_a_model_values_place_is_noticed(
    expected: Value, actual: Value, names: list[str]
) -> None:
    found = differences(("v",), [(expected,)], {"v": actual})
    assert [*model_values_as_strings(found)] == names
