"""Reading what TLC prints: its own spacing, line breaks and escapes."""

from __future__ import annotations

import pytest

from conformance.tla import (
    Action,
    DataError,
    Fn,
    ModelValue,
    StateReader,
    format_state,
    format_value,
    parse_action,
    parse_value,
)

M1, M2 = ModelValue("m1"), ModelValue("m2")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("TRUE", True),
        ("-12", -12),
        ("m1", M1),
        ('"a\\"b\\\\ \\n\\t|-> }"', 'a"b\\ \n\t|-> }'),
        ("{}", frozenset()),
        ("<< >>", ()),
        ("<<>>", ()),
        ("-1..1", frozenset({-1, 0, 1})),
        ("3..1", frozenset()),
        ("{1..2, {m1}}", frozenset({frozenset({1, 2}), frozenset({M1})})),
        ("[a |-> 1, b_2 |-> <<m1, TRUE>>]", Fn({"a": 1, "b_2": (M1, True)})),
        ("(1 :> 5 @@ 2 :> 6)", (5, 6)),
        ("(0 :> 5 @@ m1 :> 6)", Fn({0: 5, M1: 6})),
        ("(1 :> 5 @@ 1 :> 6)", (5,)),
        ('("a b" :> 1)', Fn({"a b": 1})),
        (
            "<< [ n |-> 1,\n     fn |-> (m1 :> 0 @@ m2 :> 1) ] >>",
            (Fn({"n": 1, "fn": Fn({M1: 0, M2: 1})}),),
        ),
    ],
)
def test_values_as_tlc_prints_them(text, value):
    assert parse_value(text) == value
    assert parse_value(format_value(value)) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected a value, found the end"),
        ("1 2", "expected the end, found 2"),
        ("{1", "expected a comma or }, found the end"),
        ("<<1,>>", "expected a value, found >>"),
        ("[a 1]", "expected a field name and |->, found a"),
        ("(1 :> 2", "expected @@ or )"),
        ('"abc', "expected a value"),
        ("1 $ 2", "expected the end, found $"),
    ],
)
def test_what_is_no_value_is_told_where(text, expected):
    with pytest.raises(DataError) as error:
        parse_value(text)
    assert expected in str(error.value)


def test_a_state_of_an_error_trace():
    text = '/\\ log = << [ e |-> 1 ],\n   [ e |-> 2 ] >>\n/\\ who = "b /\\\\ c"\n/\\ z = m1'
    state = StateReader(["who", "log", "z"]).read(text)
    assert state == ("b /\\ c", (Fn({"e": 1}), Fn({"e": 2})), M1)


def test_a_state_of_one_variable_has_no_conjunction():
    assert format_state(["x"], (1,)) == "x = 1"
    assert StateReader(["x"]).read("x = 1") == (1,)


def test_a_label_of_a_dump():
    label = '/\\\\ x = {\\"a\\\\\\"b\\", \\"c\\\\\\\\d\\"}\\n/\\\\ y = <<1,\\n  2>>'
    assert StateReader(["x", "y"]).read_label(label) == (frozenset({'a"b', "c\\d"}), (1, 2))


def test_equal_texts_give_one_object():
    reader = StateReader(["x", "y"])
    first, second = reader.read("/\\ x = <<1>>\n/\\ y = 1"), reader.read("/\\ x = <<1>>\n/\\ y = 2")
    assert first[0] is second[0]


def test_a_missing_and_a_foreign_variable_are_named():
    reader = StateReader(["x", "y"])
    with pytest.raises(DataError, match="lacks the variable y"):
        reader.read("x = 1")
    with pytest.raises(DataError, match="the spec lacks: z"):
        reader.read("/\\ x = 1\n/\\ y = 1\n/\\ z = 1")


@pytest.mark.parametrize(
    "action", [Action("Tick"), Action("Fetch", ("b1",)), Action("I!Send", (1, frozenset({M1})))]
)
def test_actions(action):
    assert parse_action(str(action)) == action


def test_what_is_no_action_is_refused():
    for text in ("", "Fetch(", "1 + 2", "Fetch(,)"):
        with pytest.raises(DataError):
            parse_action(text)
