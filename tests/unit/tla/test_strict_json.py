"""What Python's reader of JSON lets pass in silence is an error of the text; so with ITF's maps."""

from __future__ import annotations

import json

import pytest

from conformance.tla import DataError, from_itf, load_json, load_trace, parse_value
from conformance.tla.values.strict_json import DEEPEST

WRONG = {
    "a key twice": ('{"a": 1, "b": {"c": 1, "c": 2}}', "has the key 'c' twice"),
    "a key twice, escaped": ('{"c": 1, "\\u0063": 2}', "has the key 'c' twice"),
    "half of a pair": ('{"a": "\\ud800"}', "half of a surrogate pair"),
    "the other half": ('["\\uDC00x"]', "half of a surrogate pair"),
    "half of a pair in a key": ('{"\\ud800": 1}', "half of a surrogate pair"),
    "NaN": ("[NaN]", "NaN"),
    "Infinity": ("-Infinity", "Infinity"),
    "a long number": ("9" * 5000, "not JSON"),
    "too deep": ("[" * 101 + "]" * 101, "nest more than 100 deep"),
    "much too deep": ('{"a":' * 100_000 + "1" + "}" * 100_000, "nest more than 100 deep"),
    "nothing": ("", "not JSON"),
}


@pytest.mark.parametrize(("text", "told"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_text_is_refused(text: str, told: str) -> None:
    with pytest.raises(DataError) as caught:
        load_json(text)
    assert told in str(caught.value)
    with pytest.raises(DataError):
        load_json(text.encode())


def test_bytes_that_are_no_utf_8_are_refused() -> None:
    for data in (b'"\xed\xa0\x80"', b'"\xff"', '"x"'.encode("utf-16")):
        with pytest.raises(DataError, match="not JSON"):
            load_json(data)


def test_what_is_right_is_read_as_by_python() -> None:
    text = json.dumps({"a": [1, -2, 1.5, None, True, '[[{\\"', "\U0001f600é"], "{": {}})
    assert load_json(text) == json.loads(text)
    whole = "[" * DEEPEST + "]" * DEEPEST
    assert load_json(whole) == json.loads(whole)
    assert load_json(json.dumps(["[" * 1000, '"{' * 1000])) == ["[" * 1000, '"{' * 1000]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"#map": [["a", 1], ["b", 2], ["a", 1]]}, '#map has the key "a" twice'),
        ({"#map": [[[1], 1], [{"#tup": [1]}, 2]]}, "#map has the key <<1>> twice"),
        ({"#map": [[1, 1], [True, 2]]}, "#map has the key TRUE twice"),
        ({"#bigint": "9" * 5000}, "no whole number"),
        ({"#unserializable": "9" * 5000}, "no whole number"),
        ({"#unserializable": "1..1000000000000"}, "more than 1,000,000 elements"),
        ({"#unserializable": "{" * 50_000 + "}" * 50_000}, "nests more than 100 deep"),
        ({"#unserializable": "[a |-> 1, a |-> 2]"}, "the field a twice"),
    ],
)
def test_a_value_that_is_none_is_refused(data: object, told: str) -> None:
    with pytest.raises(DataError) as caught:
        from_itf(data)  # type: ignore[arg-type]
    assert told in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_wide_value_is_not_a_deep_one() -> None:
    assert len(parse_value("{" + ", ".join(f"{{{n}}}" for n in range(500)) + "}")) == 500  # type: ignore[arg-type]


def test_the_variables_of_an_itf_file_stand_once() -> None:
    for names in (["x", "x"], ["x", 1]):
        with pytest.raises(DataError, match="each once"):
            load_trace(json.dumps({"vars": names, "states": [{"x": 1}]}))
