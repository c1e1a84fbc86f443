"""Types of TLA+ values: what the values of a place have in common, so that columns can hold them.

TLA+ is untyped; a specification whose states fit these types can be stored in Arrow columns
(`conformance.tla.arrow`) and compiled to Spark. `conformance.tla.schema` infers them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from conformance.tla.values import Value, format_value


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without parts; `MIXED` values, of any kinds, are stored as one printed text."""

    kind: Literal["boolean", "integer", "string", "model value", "mixed"]


@dataclass(frozen=True, slots=True)
class SetOf:
    """Finite sets; `element` is None for the empty set alone."""

    element: Type | None


@dataclass(frozen=True, slots=True)
class SequenceOf:
    """Sequences of one element type; None for the empty sequence alone."""

    element: Type | None


@dataclass(frozen=True, slots=True)
class StructOf:
    """Functions with one fixed domain, records among them, in canonical order of arguments."""

    fields: tuple[tuple[Value, Type], ...]


@dataclass(frozen=True, slots=True)
class TupleOf:
    """Tuples of one fixed length whose parts differ in type."""

    items: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """Functions whose domains differ: pairs in canonical order of the argument.

    Some of the functions may be sequences: those whose domain happens to be 1..n.
    """

    key: Type
    value: Type


Type = Scalar | SetOf | SequenceOf | StructOf | TupleOf | MapOf

BOOLEAN = Scalar("boolean")
INTEGER = Scalar("integer")
STRING = Scalar("string")
MODEL_VALUE = Scalar("model value")
MIXED = Scalar("mixed")


def is_mixed(kind: Type | None) -> bool:
    """Whether values of several kinds stand at one place within the type."""
    match kind:
        case Scalar():
            return kind == MIXED
        case SetOf(element=element) | SequenceOf(element=element):
            return is_mixed(element)
        case StructOf(fields=fields):
            return any(is_mixed(item) for _, item in fields)
        case TupleOf(items=items):
            return any(map(is_mixed, items))
        case MapOf(key=key, value=value):
            return is_mixed(key) or is_mixed(value)
        case None:
            return False


KEY, RESULT = "key", "value"
"""The names of a pair's fields in the physical form of a MapOf."""


def field_name(key: Value) -> str:
    """The name of the struct field that holds a StructOf's result for this argument."""
    return key if isinstance(key, str) else format_value(key)


def item_name(index: int) -> str:
    """The name of the struct field that holds a TupleOf's item, counted from 1."""
    return f"_{index}"


def describe(kind: Type | None) -> str:
    """The type in words, for messages."""
    match kind:
        case None:
            return "nothing"
        case Scalar(kind=name):
            return name
        case SetOf(element=element):
            return f"set of {describe(element)}"
        case SequenceOf(element=element):
            return f"sequence of {describe(element)}"
        case StructOf(fields=fields):
            return f"[{', '.join(f'{field_name(k)}: {describe(t)}' for k, t in fields)}]"
        case TupleOf(items=items):
            return f"<<{', '.join(map(describe, items))}>>"
        case MapOf(key=key, value=value):
            return f"function from {describe(key)} to {describe(value)}"
