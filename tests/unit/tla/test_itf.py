"""Traces of Apalache and Quint, as these tools write them."""

from __future__ import annotations

import pytest

from conformance.tla import DataError, Fn, ModelValue, from_itf, load_trace, to_itf

APALACHE = """{
  "#meta": {"format": "ITF", "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html"},
  "vars": ["bank_of_boat", "who_is_on_bank"],
  "states": [
    {"#meta": {"index": 0}, "bank_of_boat": "E",
     "who_is_on_bank": {"#map": [["E", {"#set": ["c1_OF_PERSON", "m1_OF_PERSON"]}],
                                 ["W", {"#set": []}]]}},
    {"#meta": {"index": 1, "action": "Move(\\"W\\")"}, "bank_of_boat": "W",
     "who_is_on_bank": {"#map": [["E", {"#set": []}], ["W", {"#set": ["c1_OF_PERSON"]}]]}}
  ]
}"""


def test_a_trace_of_apalache():
    trace = load_trace(APALACHE)
    assert trace.variables == ("bank_of_boat", "who_is_on_bank")
    assert trace.states[0][1] == Fn(
        {"E": frozenset({"c1_OF_PERSON", "m1_OF_PERSON"}), "W": frozenset()}
    )
    assert [str(action) for action in trace.actions] == ['Move("W")']
    assert trace.loop is None


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({"#bigint": "-12345678901234567890"}, -12345678901234567890),
        (7, 7),
        (["a", "b"], ("a", "b")),
        ({"#tup": [1, "a"]}, (1, "a")),
        ({"#map": [[1, "a"], [2, "b"]]}, ("a", "b")),
        ({"#map": []}, ()),
        ({"#unserializable": "m1"}, ModelValue("m1")),
        ({"tag": "Some", "value": {"#bigint": "1"}}, Fn({"tag": "Some", "value": 1})),
    ],
)
def test_values(data, value):
    assert from_itf(data) == value
    assert from_itf(to_itf(value)) == value


@pytest.mark.parametrize(
    "data", [None, 1.5, {"#bigint": "x"}, {"#set": 1}, {"#map": [[1]]}, {"#strange": 1}, [None]]
)
def test_what_is_no_value_is_refused(data):
    with pytest.raises(DataError):
        from_itf(data)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Not an ITF file"),
        ("[]", 'arrays "vars" and "states"'),
        ('{"vars": ["x"], "states": [{"y": 1}]}', "state 0 lacks the variable x"),
        ('{"vars": ["x"], "states": [1]}', "state 0 is no object"),
    ],
)
def test_what_is_no_trace_is_refused(text, message):
    with pytest.raises(DataError, match=message):
        load_trace(text)
