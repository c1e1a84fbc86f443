"""The physical form of TLA+ values in Spark, and how a known value is written in SQL.

The schema is the one of `conformance.tla.arrow`: integers are bigint, strings and model values
are string, sets are arrays in canonical order, sequences are arrays, functions with a domain
that all states share are structs with one field per argument, other functions are arrays of
(key, value) structs in canonical order of the keys.
"""

from __future__ import annotations

from conformance.tla.spark import sql
from conformance.tla.spark.sql import Sql
from conformance.tla.values import (
    Fn,
    ModelValue,
    Value,
    canonical_key,
    canonical_sorted,
)
from conformance.tla.values import format_value as show
from conformance.tla.values.types import (
    BOOLEAN,
    INTEGER,
    KEY,
    MODEL_VALUE,
    RESULT,
    STRING,
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
    "BOOLEAN",
    "INTEGER",
    "KEY",
    "MODEL_VALUE",
    "RESULT",
    "STRING",
    "MapOf",
    "Scalar",
    "SequenceOf",
    "SetOf",
    "StructOf",
    "TupleOf",
    "Type",
    "TypeClash",
    "describe",
    "field_name",
    "item_name",
]


class TypeClash(Exception):
    """Two values of different types where one type is needed."""


def type_of(value: Value) -> Type:
    """The narrowest type that holds a value; TypeClash where parts have no common type."""
    match value:
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case str():
            return STRING
        case ModelValue():
            return MODEL_VALUE
        case frozenset():
            return SetOf(common_type([type_of(item) for item in value]))
        case tuple():
            return sequence_type([type_of(item) for item in value])
        case Fn():
            arguments = canonical_sorted(value)
            return StructOf(tuple((key, type_of(value[key])) for key in arguments))


def sequence_type(items: list[Type]) -> Type:
    """The type of a sequence with items of these types."""
    try:
        return SequenceOf(common_type(items))
    except TypeClash:
        return TupleOf(tuple(items))


def common_type(types: list[Type]) -> Type | None:
    """One type for all, None of none."""
    result: Type | None = None
    for item in types:
        result = item if result is None else unify(result, item)
    return result


def unify(left: Type, right: Type) -> Type:
    """The type that holds the values of both."""
    if left == right:
        return left
    match left, right:
        case SetOf(element=a), SetOf(element=b):
            return SetOf(_unify_parts(a, b))
        case SequenceOf(element=a), SequenceOf(element=b):
            return SequenceOf(_unify_parts(a, b))
        case StructOf(fields=a), StructOf(fields=b) if [k for k, _ in a] == [k for k, _ in b]:
            return StructOf(tuple((k, unify(s, t)) for (k, s), (_, t) in zip(a, b, strict=True)))
        case TupleOf(items=a), TupleOf(items=b) if len(a) == len(b):
            return TupleOf(tuple(unify(s, t) for s, t in zip(a, b, strict=True)))
        case MapOf(), MapOf():
            return MapOf(unify(left.key, right.key), unify(left.value, right.value))
        case StructOf() | SequenceOf(), MapOf():
            return unify(_as_map(left), right)
        case MapOf(), StructOf() | SequenceOf():
            return unify(left, _as_map(right))
        case StructOf(), StructOf():
            return unify(_as_map(left), _as_map(right))
    raise TypeClash(f"{describe(left)} and {describe(right)}")


def _unify_parts(left: Type | None, right: Type | None) -> Type | None:
    if left is None or right is None:
        return left or right
    return unify(left, right)


def _as_map(function: StructOf | SequenceOf) -> MapOf:
    if isinstance(function, SequenceOf):
        if function.element is not None:
            raise TypeClash("a sequence and a function whose domain varies")
        raise TypeClash("the empty function")
    keys = common_type([type_of(key) for key, _ in function.fields])
    results = common_type([result for _, result in function.fields])
    if keys is None or results is None:
        raise TypeClash("the empty function")
    return MapOf(keys, results)


def ddl(kind: Type | None) -> str:
    """The type as Spark SQL writes it."""
    match kind:
        case None:
            return "bigint"
        case Scalar(kind="boolean"):
            return "boolean"
        case Scalar(kind="integer"):
            return "bigint"
        case Scalar():
            return "string"
        case SetOf(element=element) | SequenceOf(element=element):
            return f"array<{ddl(element)}>"
        case StructOf(fields=fields):
            inner = ", ".join(f"{sql.name(field_name(k))}: {ddl(t)}" for k, t in fields)
            return f"struct<{inner}>"
        case TupleOf(items=items):
            inner = ", ".join(f"{item_name(i)}: {ddl(t)}" for i, t in enumerate(items, 1))
            return f"struct<{inner}>"
        case MapOf(key=key, value=value):
            return f"array<struct<{KEY}: {ddl(key)}, {RESULT}: {ddl(value)}>>"


def struct(parts: list[tuple[str, Sql]]) -> Sql:
    """SQL of a struct from names and expressions."""
    named = (part for name, value in parts for part in (sql.string(name), value))
    return sql.call("named_struct", *named)


def array(parts: list[Sql], element: Type | None) -> Sql:
    """SQL of an array; typed where it is empty."""
    return sql.call("array", *parts) if parts else sql.empty(ddl(element))


def literal(value: Value, kind: Type) -> Sql:
    """A value in SQL, in the form of a type that holds it; TypeClash where it does not."""
    match kind, value:
        case Scalar(kind="boolean"), bool():
            return sql.TRUE if value else sql.FALSE
        case Scalar(kind="integer"), int() if not isinstance(value, bool):
            return sql.integer(value) if -(2**63) < value < 2**63 else _too_large(value)
        case Scalar(kind="string"), str():
            return sql.string(value)
        case Scalar(kind="model value"), ModelValue():
            return sql.string(value.name)
        case SetOf(element=element), frozenset():
            return array([_part(item, element) for item in canonical_sorted(value)], element)
        case SequenceOf(element=element), tuple():
            return array([_part(item, element) for item in value], element)
        case TupleOf(items=items), tuple() if len(items) == len(value):
            parts = zip(value, items, strict=True)
            return struct(
                [(item_name(i), literal(item, t)) for i, (item, t) in enumerate(parts, 1)]
            )
        case StructOf(fields=fields), Fn() if {key for key, _ in fields} == set(value):
            return struct([(field_name(k), literal(value[k], t)) for k, t in fields])
        case MapOf(), Fn() | tuple():
            return array([_pair(k, item, kind) for k, item in _pairs(value)], _pair_type(kind))
    raise TypeClash(f"{show(value)} and {describe(kind)}")


def _too_large(value: int) -> Sql:
    raise TypeClash(f"{value} and integers of 64 bits")


def _part(value: Value, kind: Type | None) -> Sql:
    if kind is None:
        raise TypeClash(f"{show(value)} and nothing")
    return literal(value, kind)


def _pairs(function: Fn | tuple[Value, ...]) -> list[tuple[Value, Value]]:
    if isinstance(function, tuple):
        return list(enumerate(function, 1))
    return sorted(function.items(), key=lambda pair: canonical_key(pair[0]))


def _pair(key: Value, value: Value, kind: MapOf) -> Sql:
    return struct([(KEY, literal(key, kind.key)), (RESULT, literal(value, kind.value))])


def _pair_type(kind: MapOf) -> Type:
    return StructOf(((KEY, kind.key), (RESULT, kind.value)))
