"""Typed columns hold every value of their type, and schemas survive a manifest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.tla import (
    INTEGER,
    STRING,
    DataError,
    Fn,
    ModelValue,
    Schema,
    SequenceOf,
    SetOf,
    UntypableError,
    equal,
    infer,
    infer_schema,
)
from conformance.tla.arrow import (
    arrow_schema,
    read_states,
    read_values,
    write_states,
    write_values,
)
from tests.property.tla.strategies import types, values, values_of

columns = types.flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(values_of(kind), max_size=5))
)


@given(columns)
def test_a_column_gives_back_its_values(column):
    kind, several = column
    several = several * 2  # the same objects again
    written = write_values(kind, several)
    assert equal(tuple(read_values(kind, written)), tuple(several))
    assert equal(tuple(read_values(kind, written.slice(1, 3))), tuple(several[1:4]))


@given(columns)
def test_an_inferred_type_holds_its_values(column):
    _, several = column
    kind = infer(several, "x")
    assert equal(tuple(read_values(kind, write_values(kind, several))), tuple(several))


@given(columns)
def test_equal_values_are_equal_in_their_physical_form(column):
    kind, several = column
    physical = write_values(kind, several).to_pylist()
    for left, left_row in zip(several, physical, strict=True):
        for right, right_row in zip(several, physical, strict=True):
            assert equal(left, right) == (repr(left_row) == repr(right_row))


@given(types.map(lambda kind: Schema((("x", kind),))))
def test_a_schema_survives_json(schema):
    assert Schema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


@given(st.lists(values, min_size=1))
def test_whatever_has_a_type_is_stored_losslessly(several):
    states = [(value,) for value in several]
    try:
        schema = infer_schema(("x",), states)
    except UntypableError:
        return
    table = write_states(schema, states)
    assert table.schema == arrow_schema(schema)
    assert equal(tuple(read_states(schema, table)), tuple(states))


def test_the_place_of_a_clash_is_named():
    states = [(Fn({"log": (1,)}),), (Fn({"log": ("a", 2)}),)]
    with pytest.raises(UntypableError, match=r"broker\.log\[i\]"):
        infer_schema(("broker",), states)


def test_a_variable_of_another_type_is_named():
    schema = Schema((("epoch", INTEGER),))
    with pytest.raises(DataError, match=r"variable epoch .* expected integer, found TRUE"):
        write_states(schema, [(True,)])


@pytest.mark.parametrize("value", [{1}, "x", ModelValue("m"), (1, "x"), Fn({"a": 1})])
def test_no_column_takes_a_value_of_another_type(value):
    value = frozenset(value) if isinstance(value, set) else value
    for kind in (INTEGER, SequenceOf(INTEGER), SetOf(STRING)):
        with pytest.raises(DataError):
            write_values(kind, [value])


def test_an_integer_beyond_64_bits_is_refused():
    with pytest.raises(DataError, match=str(2**70)):
        write_values(INTEGER, [1, 2**70])


def test_the_empty_set_alone_is_stored():
    schema = infer_schema(("s", "q"), [(frozenset(), ())])
    table = write_states(schema, [(frozenset(), ())] * 2)
    assert read_states(schema, table) == [(frozenset(), ())] * 2
