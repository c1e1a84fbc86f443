"""The types of a spec's variables: inferred from states, written to and read from JSON.

TLA+ is untyped; a specification whose states fit these types can be stored in Arrow columns
and compiled to Spark. The types themselves and their physical form are those of
`conformance.tla.value_types`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from conformance.tla.errors import DataError
from conformance.tla.values import (
    Fn,
    ModelValue,
    State,
    Value,
    abridged_value,
    canonical_sorted,
    format_value,
)
from conformance.tla.values.itf import Json
from conformance.tla.values.text import parse_value
from conformance.tla.values.types import (
    BOOLEAN,
    INTEGER,
    MIXED,
    MODEL_VALUE,
    STRING,
    MapOf,
    Scalar,
    SequenceOf,
    SetOf,
    StructOf,
    TupleOf,
    Type,
)

__all__ = ["Schema", "UntypableError", "infer", "infer_schema", "pairs_of"]

STRUCT_LIMIT = 64
"""A larger fixed domain is stored as pairs: a struct has a column for each argument."""

_SCALARS: Mapping[type, Scalar] = {
    bool: BOOLEAN,
    int: INTEGER,
    str: STRING,
    ModelValue: MODEL_VALUE,
}


class UntypableError(DataError):
    """Values at one place that have no type in common; the message names the place."""


def infer(values: Iterable[Value], path: str, *, mixed: bool = False) -> Type | None:
    """The type that all the values have; None if there is no value.

    `path` says where the values come from, for the message of UntypableError. With `mixed` there
    is none: a place with values of several kinds, as deep as it lies, is MIXED.
    """
    distinct = list({id(value): value for value in values}.values())
    kinds = set(map(type, distinct))
    if not kinds:
        return None
    if len(kinds) == 1 and (scalar := _SCALARS.get(*kinds)):
        return scalar
    if kinds == {frozenset}:
        sets = cast("list[frozenset[Value]]", distinct)
        items = (item for elements in sets for item in elements)
        return SetOf(infer(items, f"an element of {path}", mixed=mixed))
    if kinds == {tuple}:
        return _infer_sequences(cast("list[tuple[Value, ...]]", distinct), path, mixed)
    if kinds <= {tuple, Fn}:
        return _infer_functions(cast("list[tuple[Value, ...] | Fn]", distinct), path, mixed)
    if mixed:
        return MIXED
    raise UntypableError(_clash(path, distinct))


def _infer_sequences(sequences: list[tuple[Value, ...]], path: str, mixed: bool) -> Type:
    items = [item for sequence in sequences for item in sequence]
    try:
        return SequenceOf(infer(items, f"{path}[i]"))
    except UntypableError:
        if len(set(map(len, sequences))) != 1:
            if mixed:
                return SequenceOf(infer(items, f"{path}[i]", mixed=True))
            raise
    columns = zip(*sequences, strict=True)
    return TupleOf(
        tuple(_some(column, f"{path}[{i}]", mixed) for i, column in enumerate(columns, 1))
    )


def _infer_functions(functions: list[tuple[Value, ...] | Fn], path: str, mixed: bool) -> Type:
    domains = {frozenset(function) for function in functions if isinstance(function, Fn)}
    if len(domains) == 1 and all(isinstance(function, Fn) for function in functions):
        keys = canonical_sorted(*domains)
        if len(keys) <= STRUCT_LIMIT:
            return StructOf(tuple((key, _column(functions, key, path, mixed)) for key in keys))
    mappings = [pairs_of(function) for function in functions]
    return MapOf(
        _some((key for pairs in mappings for key, _ in pairs), f"an argument of {path}", mixed),
        _some((value for pairs in mappings for _, value in pairs), f"{path}[x]", mixed),
    )


def _column(
    functions: Iterable[tuple[Value, ...] | Fn], key: Value, path: str, mixed: bool
) -> Type:
    step = f".{key}" if isinstance(key, str) else f"[{format_value(key)}]"
    return _some((fn[key] for fn in functions if isinstance(fn, Fn)), path + step, mixed)


def _some(values: Iterable[Value], path: str, mixed: bool) -> Type:
    result = infer(values, path, mixed=mixed)
    if result is None:
        raise ValueError(f"no value at {path}")
    return result


def _clash(path: str, values: Sequence[Value]) -> str:
    first = values[0]
    other = next(value for value in values if type(value) is not type(first))
    return (
        f"The values of {path} have no common type: {abridged_value(first, 200)} and "
        f"{abridged_value(other, 200)}. Columns need values of one kind: give records the same "
        "fields, and mark an absent value by a field of its own instead of a value of another kind."
    )


def pairs_of(function: tuple[Value, ...] | Fn) -> Iterable[tuple[Value, Value]]:
    """(argument, result) for each argument, in no particular order."""
    return function.mapping.items() if isinstance(function, Fn) else list(enumerate(function, 1))


@dataclass(frozen=True, slots=True)
class Schema:
    """The type of each variable, in the spec's order."""

    variables: tuple[tuple[str, Type], ...]

    def names(self) -> tuple[str, ...]:
        """The variables' names."""
        return tuple(name for name, _ in self.variables)

    def to_json(self) -> Json:
        """The schema for a manifest; `from_json` reads it."""
        return [{"variable": name, "type": _type_to_json(kind)} for name, kind in self.variables]

    @staticmethod
    def from_json(data: Json) -> Schema:
        """The schema that `to_json` wrote; DataError where it did not write this."""
        if isinstance(data, Sequence) and not isinstance(data, str):
            return Schema(tuple(map(_variable_from_json, data)))
        raise _malformed(data)


def infer_schema(variables: Sequence[str], states: Iterable[State]) -> Schema:
    """The types that the states' values have; UntypableError names the place where none fits.

    A function whose domain is the same in all states is a struct, any other function an array
    of pairs: take all the states that the columns are to hold.
    """
    columns = list(zip(*states, strict=True))
    if not columns and variables:
        raise DataError("The types of the variables cannot be found without a state.")
    pairs = zip(variables, columns, strict=True)
    return Schema(tuple((name, _some(column, name, False)) for name, column in pairs))


_KINDS = {kind.kind: kind for kind in (BOOLEAN, INTEGER, STRING, MODEL_VALUE, MIXED)}


def _type_to_json(kind: Type | None) -> Json:
    match kind:
        case None:
            return None
        case Scalar(kind=name):
            return name
        case SetOf(element=element):
            return {"set": _type_to_json(element)}
        case SequenceOf(element=element):
            return {"sequence": _type_to_json(element)}
        case TupleOf(items=items):
            return {"tuple": [_type_to_json(item) for item in items]}
        case StructOf(fields=fields):
            return {"struct": [[format_value(key), _type_to_json(item)] for key, item in fields]}
        case MapOf(key=key, value=value):
            return {"map": [_type_to_json(key), _type_to_json(value)]}


def _type_from_json(data: Json) -> Type:
    match data:
        case str(name) if name in _KINDS:
            return _KINDS[name]
        case {"set": element}:
            return SetOf(_optional_from_json(element))
        case {"sequence": element}:
            return SequenceOf(_optional_from_json(element))
        case {"tuple": [*items]}:
            return TupleOf(tuple(map(_type_from_json, items)))
        case {"struct": [*fields]}:
            return StructOf(tuple(map(_field_from_json, fields)))
        case {"map": [key, value]}:
            return MapOf(_type_from_json(key), _type_from_json(value))
    raise _malformed(data)


def _optional_from_json(data: Json) -> Type | None:
    return None if data is None else _type_from_json(data)


def _field_from_json(data: Json) -> tuple[Value, Type]:
    match data:
        case [str(key), kind]:
            return parse_value(key), _type_from_json(kind)
    raise _malformed(data)


def _variable_from_json(data: Json) -> tuple[str, Type]:
    match data:
        case {"variable": str(name), "type": kind}:
            return name, _type_from_json(kind)
    raise _malformed(data)


def _malformed(data: Json) -> DataError:
    return DataError(f"A schema of TLA+ types is malformed or of a later version: {data!r}.")
