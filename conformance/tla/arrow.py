"""States as Arrow columns and back, losslessly.

=====================  ==============================================================
type                   column
=====================  ==============================================================
boolean, integer       bool, int64
string, model value    string
``SetOf``              list, sorted in canonical order, without duplicates
``SequenceOf``         list
``StructOf``           struct with one field per argument, named as the argument prints
``TupleOf``            struct with the fields ``_1``, ``_2``, ...
``MapOf``              list of struct<key, value>, sorted by key
mixed                  string: the value as TLC prints it
=====================  ==============================================================

Canonical order is the order that Spark's ``sort_array`` gives, so equal values are equal
columns, and Spark compares them without a map type. A set or sequence that is empty in every
state is a list of int64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import TypeVar

import pyarrow as pa

from conformance.tla.errors import DataError
from conformance.tla.values import (
    Fn,
    ModelValue,
    State,
    Value,
    abridged_value,
    canonical_key,
    canonical_sorted,
    format_value,
    make_function,
)
from conformance.tla.values.schema import Schema, pairs_of
from conformance.tla.values.text import parse_value
from conformance.tla.values.types import (
    KEY,
    MIXED,
    RESULT,
    MapOf,
    Scalar,
    SequenceOf,
    SetOf,
    StructOf,
    TupleOf,
    Type,
    describe,
    field_name,
    item_name,
)

__all__ = [
    "arrow_schema",
    "arrow_type",
    "read_states",
    "read_values",
    "write_states",
    "write_values",
]


def arrow_type(kind: Type | None) -> pa.DataType:
    """The Arrow type of a TLA+ type."""
    match kind:
        case None | Scalar(kind="integer"):
            return pa.int64()
        case Scalar(kind="boolean"):
            return pa.bool_()
        case Scalar():
            return pa.string()
        case SetOf(element=element) | SequenceOf(element=element):
            return pa.list_(arrow_type(element))
        case StructOf(fields=fields):
            return pa.struct([(field_name(key), arrow_type(item)) for key, item in fields])
        case TupleOf(items=items):
            return pa.struct([(item_name(i), arrow_type(item)) for i, item in enumerate(items, 1)])
        case MapOf(key=key, value=value):
            pair = pa.struct([(KEY, arrow_type(key)), (RESULT, arrow_type(value))])
            return pa.list_(pair)


def arrow_schema(schema: Schema) -> pa.Schema:
    """One column per variable."""
    return pa.schema([(name, arrow_type(kind)) for name, kind in schema.variables])


def write_states(schema: Schema, states: Sequence[State]) -> pa.Table:
    """The states as a table; DataError that names a variable whose value has another type."""
    columns = list(zip(*states, strict=True)) or [()] * len(schema.variables)
    arrays = []
    for (name, kind), column in zip(schema.variables, columns, strict=True):
        try:
            arrays.append(write_values(kind, column))
        except _OtherTypeError as error:
            raise DataError(
                f"The variable {name} has a value that its type does not hold: expected "
                f"{describe(error.kind)}, found {abridged_value(error.value, 200)}."
            ) from None
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema))


def read_states(schema: Schema, table: pa.Table) -> list[State]:
    """The states of a table with (at least) the schema's columns."""
    columns = [read_values(kind, table.column(name)) for name, kind in schema.variables]
    return list(zip(*columns, strict=True))


class _OtherTypeError(DataError):
    def __init__(self, kind: Type | None, value: Value) -> None:
        super().__init__(f"expected {describe(kind)}, found {abridged_value(value, 200)}")
        self.kind = kind
        self.value = value


def write_values(kind: Type | None, values: Sequence[Value]) -> pa.Array:
    """The values as one column; each object is converted once however often it occurs."""
    if kind is None or isinstance(kind, Scalar):
        return _write_scalars(kind, values)
    rows: dict[int, int] = {}
    distinct: list[Value] = []
    indices = []
    for value in values:
        row = rows.setdefault(id(value), len(distinct))
        if row == len(distinct):
            distinct.append(value)
        indices.append(row)
    column = _write_containers(kind, distinct)
    return column if len(distinct) == len(values) else column.take(pa.array(indices, pa.int64()))


_PYTHON_TYPES: dict[str, type] = {
    "boolean": bool,
    "integer": int,
    "string": str,
    "model value": ModelValue,
}


def _write_scalars(kind: Scalar | None, values: Sequence[Value]) -> pa.Array:
    if kind == MIXED:
        return pa.array(map(format_value, values), pa.string())
    expected = None if kind is None else _PYTHON_TYPES[kind.kind]
    if set(map(type, values)) - {expected}:
        raise _OtherTypeError(kind, next(item for item in values if type(item) is not expected))
    if expected is ModelValue:
        return pa.array([item.name for item in values if isinstance(item, ModelValue)], pa.string())
    try:
        return pa.array(values, arrow_type(kind))
    except OverflowError:
        largest = max((item for item in values if isinstance(item, int)), key=abs)
        raise DataError(f"An Arrow column holds integers of 64 bits, not {largest}.") from None


def _write_containers(kind: Type, values: list[Value]) -> pa.Array:
    match kind:
        case SetOf(element=element):
            sets = _checked(frozenset, kind, values)
            return _write_lists(element, [canonical_sorted(item) for item in sets])
        case SequenceOf(element=element):
            return _write_lists(element, _checked(tuple, kind, values))
        case MapOf():
            return _write_maps(kind, values)
        case StructOf():
            return _write_structs(kind, values)
        case TupleOf():
            return _write_tuples(kind, values)
    raise AssertionError(f"{kind} is no container")


_Container = TypeVar("_Container", frozenset[Value], tuple[Value, ...])


def _checked(python_type: type[_Container], kind: Type, values: list[Value]) -> list[_Container]:
    checked = [value for value in values if isinstance(value, python_type)]
    if len(checked) != len(values):
        raise _OtherTypeError(kind, next(v for v in values if not isinstance(v, python_type)))
    return checked


def _offsets(lists: Iterable[Sequence[object]]) -> pa.Array:
    return pa.array(accumulate(map(len, lists), initial=0), pa.int32())


def _write_lists(element: Type | None, lists: Sequence[Sequence[Value]]) -> pa.Array:
    items = write_values(element, list(chain.from_iterable(lists)))
    return pa.ListArray.from_arrays(_offsets(lists), items)


def _write_maps(kind: MapOf, values: list[Value]) -> pa.Array:
    maps = [
        sorted(pairs_of(value), key=lambda pair: canonical_key(pair[0]))
        for value in values
        if isinstance(value, tuple | Fn)
    ]
    if len(maps) != len(values):
        raise _OtherTypeError(kind, next(v for v in values if not isinstance(v, tuple | Fn)))
    pairs = list(chain.from_iterable(maps))
    columns = [
        write_values(kind.key, [key for key, _ in pairs]),
        write_values(kind.value, [value for _, value in pairs]),
    ]
    return pa.ListArray.from_arrays(
        _offsets(maps), pa.StructArray.from_arrays(columns, [KEY, RESULT])
    )


def _write_structs(kind: StructOf, values: list[Value]) -> pa.Array:
    keys = [key for key, _ in kind.fields]
    domain = dict.fromkeys(keys)
    mappings = [
        value.mapping for value in values if isinstance(value, Fn) and value.keys() == domain.keys()
    ]
    if len(mappings) != len(values):
        wrong = (v for v in values if not isinstance(v, Fn) or v.keys() != domain.keys())
        raise _OtherTypeError(kind, next(wrong))
    columns = [write_values(item, [m[key] for m in mappings]) for key, item in kind.fields]
    return pa.StructArray.from_arrays(columns, [field_name(key) for key in keys])


def _write_tuples(kind: TupleOf, values: list[Value]) -> pa.Array:
    size = len(kind.items)
    tuples = [value for value in values if isinstance(value, tuple) and len(value) == size]
    if len(tuples) != len(values):
        wrong = (v for v in values if not isinstance(v, tuple) or len(v) != size)
        raise _OtherTypeError(kind, next(wrong))
    columns = [
        write_values(item, [pair[index] for pair in tuples])
        for index, item in enumerate(kind.items)
    ]
    return pa.StructArray.from_arrays(columns, [item_name(i) for i in range(1, size + 1)])


def read_values(kind: Type | None, column: pa.Array | pa.ChunkedArray) -> list[Value]:
    """The values of a column; DataError if it holds nulls or has another Arrow type."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if array.null_count:
        raise DataError("A column of TLA+ values holds a null: the file is damaged or not ours.")
    match kind:
        case None | Scalar():
            return _read_scalars(kind, array)
        case SetOf(element=element):
            return _read_lists(element, array, frozenset)
        case SequenceOf(element=element):
            return _read_lists(element, array, tuple)
        case MapOf(key=key, value=value):
            return _read_maps(key, value, array)
        case StructOf(fields=fields):
            keys = [key for key, _ in fields]
            columns = _read_fields([item for _, item in fields], array)
            return [Fn(dict(zip(keys, row, strict=True))) for row in zip(*columns, strict=True)]
        case TupleOf(items=items):
            return list(zip(*_read_fields(items, array), strict=True))


def _read_scalars(kind: Scalar | None, array: pa.Array) -> list[Value]:
    if array.type != arrow_type(kind) and not pa.types.is_large_string(array.type):
        raise DataError(f"A column of {describe(kind)} has the Arrow type {array.type}.")
    if kind is None or kind.kind in ("integer", "boolean"):
        numbers: list[Value] = array.to_numpy(zero_copy_only=False).tolist()
        return numbers
    # Few distinct strings: each becomes one object.
    encoded = array.dictionary_encode()
    texts: list[str] = encoded.dictionary.to_pylist()
    distinct: list[Value] = [_of_text(kind, text) for text in texts]
    return [distinct[index] for index in encoded.indices.to_numpy().tolist()]


def _of_text(kind: Scalar, text: str) -> Value:
    match kind.kind:
        case "model value":
            return ModelValue(text)
        case "mixed":
            return parse_value(text)
        case _:
            return text


def _slices(array: pa.Array) -> Iterable[tuple[int, int]]:
    offsets: list[int] = array.offsets.to_numpy().tolist()
    start = offsets[0]
    return zip((at - start for at in offsets), (at - start for at in offsets[1:]), strict=False)


def _read_lists(
    element: Type | None, array: pa.Array, make: Callable[[Iterable[Value]], Value]
) -> list[Value]:
    items = read_values(element, array.flatten())
    return [make(items[start:end]) for start, end in _slices(array)]


def _read_maps(key: Type, value: Type, array: pa.Array) -> list[Value]:
    columns = _read_fields([key, value], array.flatten())
    pairs: list[tuple[Value, Value]] = list(zip(*columns, strict=True))
    return [make_function(dict(pairs[start:end])) for start, end in _slices(array)]


def _read_fields(kinds: Sequence[Type], array: pa.Array) -> list[list[Value]]:
    return [read_values(kind, field) for kind, field in zip(kinds, array.flatten(), strict=True)]
