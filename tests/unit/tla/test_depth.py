"""Recursion as deep as a specification needs it, and messages that stay short."""

from __future__ import annotations

import pytest

from conformance.tla import EvaluationError, Spec, Value
from conformance.tla.semantics.errors import LONGEST, shown
from conformance.tla.values import Fn, abridged_value, format_value
from tests.unit.tla.small import HEADER, spec

DEEP = r"""
VARIABLE x
RECURSIVE Down(_)
Down(n) == IF n = 0 THEN 0 ELSE 1 + Down(n - 1)
up[n \in 0..9000] == IF n = 0 THEN 0 ELSE 1 + up[n - 1]
Left == FoldLeft(LAMBDA a, b : a + b, 0, [i \in 1..6000 |-> i]) = 18003000
Right == FoldRight(LAMBDA a, b : a + b, [i \in 1..6000 |-> i], 0) = 18003000
Set == FoldSet(LAMBDA a, b : a + b, 0, 1..1500) = 1125750
Operator == Down(4000) = 4000
Function == up[9000] = 9000
Loop == LET f[n \in 0..9] == f[(n + 1) % 10] IN f[0] = 1
"""


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    header = HEADER.strip() + ", SequencesExt, FiniteSetsExt\n"
    return spec(tmp_path_factory.mktemp("deep"), DEEP, header=header)


@pytest.mark.parametrize("name", ["Left", "Right", "Set", "Operator", "Function"])
def test_a_recursion_is_as_deep_as_it_needs(deep: Spec, name: str) -> None:
    assert deep.state_formula(name)((0,))


def test_a_recursion_without_an_end_has_no_value(deep: Spec) -> None:
    with pytest.raises(EvaluationError, match="needs its own value"):
        deep.state_formula("Loop")((0,))


def nested(depth: int) -> Value:
    value: Value = ()
    for _ in range(depth):
        value = (value,)
    return value


@pytest.mark.parametrize(
    "value",
    [
        2**20_000,
        -(2**20_000),
        "x" * 1000,
        frozenset(range(100_000)),
        tuple(range(100_000)),
        Fn({f"f{i}": i for i in range(1000)}),
        Fn({i: i for i in range(0, 4000, 2)}),
        nested(5000),
    ],
    ids=["integer", "negative", "string", "set", "sequence", "record", "function", "deep"],
)
def test_a_message_shows_the_beginning_of_any_value(value: Value) -> None:
    text = shown(value)
    assert len(text) == LONGEST + len("...")
    if not isinstance(value, tuple):
        assert format_value(value).startswith(text[:-3])


@pytest.mark.parametrize("value", [1, "a", frozenset({1, 2}), (1, (2,)), Fn({"a": 1}), Fn({0: 1})])
def test_a_short_value_is_shown_whole(value: Value) -> None:
    assert abridged_value(value, LONGEST) == format_value(value)


def test_a_long_integer_has_all_its_digits() -> None:
    digits = format_value(-(10**10_000))
    assert digits == "-1" + "0" * 10_000
