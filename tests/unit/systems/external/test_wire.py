"""Values on the wire: both forms, and lies that are told."""

from __future__ import annotations

import msgspec
import pytest

from conformance.systems.external.wire import (
    EXACT,
    Form,
    Observations,
    action_texts,
    read_action,
    to_json,
)
from conformance.systems.protocol import SystemFailed
from conformance.tla import Action, Fn, ModelValue, Value


@pytest.mark.parametrize(
    ("value", "plain", "itf"),
    [
        (3, 3, {"#bigint": "3"}),
        (-EXACT + 1, -EXACT + 1, {"#bigint": str(-EXACT + 1)}),
        (EXACT, {"#bigint": str(EXACT)}, {"#bigint": str(EXACT)}),
        (True, True, True),
        ((1, 2), [1, 2], [{"#bigint": "1"}, {"#bigint": "2"}]),
        ((1, "a"), {"#tup": [1, "a"]}, {"#tup": [{"#bigint": "1"}, "a"]}),
        (frozenset({2, 1}), {"#set": [1, 2]}, {"#set": [{"#bigint": "1"}, {"#bigint": "2"}]}),
        (Fn({"leader": "b1"}), {"leader": "b1"}, {"leader": "b1"}),
        (Fn({0: True}), {"#map": [[0, True]]}, {"#map": [[{"#bigint": "0"}, True]]}),
        (ModelValue("m"), {"#unserializable": "m"}, {"#unserializable": "m"}),
    ],
)
def test_the_forms_differ_in_integers_only(value: Value, plain: object, itf: object) -> None:
    assert to_json(value) == plain
    assert to_json(value, Form.ITF) == itf


def test_an_action_is_written_once_and_read_again() -> None:
    text = action_texts(Form.PLAIN)
    action = Action("CompareAndSet", ("a", 0, "x"))
    assert text(action) is text(Action("CompareAndSet", ("a", 0, "x")))
    assert read_action(msgspec.json.decode(text(action))) == action


def raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())


def test_the_same_text_is_the_same_observation() -> None:
    read = Observations(("x", "y"), frozenset()).read
    assert read(raw('{"x": 1, "y": [2]}')) is read(raw('{"x": 1, "y": [2]}'))
    assert dict(read(raw('{"x": 1, "y": [2]}'))) == {"x": 1, "y": (2,)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("null", "no object of variables"),
        ("[1, 2]", "no object of variables"),
        ('{"x": 1}', "does not show y"),
        ('{"x": 1, "y": 2, "z": 3}', "shows z"),
        ('{"x": 1, "y": 0.5}', "no TLA+ value in y"),
        ('{"x": 1, "y": null}', "no TLA+ value in y"),
        ('{"x": 1, "y": {"#set": 1}}', "no TLA+ value in y"),
    ],
)
def test_what_is_not_the_declared_variables_is_told(text: str, told: str) -> None:
    with pytest.raises(SystemFailed, match=told.replace("+", r"\+")):
        Observations(("x", "y"), frozenset()).read(raw(text))


def test_what_cannot_always_be_seen_may_be_missing() -> None:
    read = Observations(("x", "y"), frozenset({"y"})).read
    assert dict(read(raw('{"x": 1}'))) == {"x": 1}
    with pytest.raises(SystemFailed, match="does not show x"):
        read(raw('{"y": 1}'))
