"""The condition that no stored integer is so large that arithmetic on it may overflow."""

from __future__ import annotations

from conformance.tla.spark import sql, types
from conformance.tla.spark.columns import STORED
from conformance.tla.spark.types import MapOf, Scalar, SequenceOf, SetOf, StructOf, TupleOf, Type


def within_bounds(kind: Type, text: str, depth: int = 0) -> str:
    """SQL: every integer within a stored value lies within `STORED`."""
    match kind:
        case Scalar(kind="integer"):
            return sql.between(text, f"{STORED[0]}L", f"{STORED[1]}L")
        case Scalar():
            return sql.TRUE
        case SetOf(element=None) | SequenceOf(element=None):
            return sql.TRUE
        case SetOf(element=element) | SequenceOf(element=element):
            name = f"r{depth}_"
            inner = within_bounds(element, name, depth + 1) if element else sql.TRUE
            return sql.TRUE if inner == sql.TRUE else f"forall({text}, {name} -> {inner})"
        case StructOf(fields=fields):
            return sql.conjunction(
                within_bounds(part, sql.field(text, types.field_name(key)), depth)
                for key, part in fields
            )
        case TupleOf(items=items):
            return sql.conjunction(
                within_bounds(part, sql.field(text, types.item_name(i)), depth)
                for i, part in enumerate(items, 1)
            )
        case MapOf(key=key, value=value):
            pair = StructOf(((types.KEY, key), (types.RESULT, value)))
            return within_bounds(SequenceOf(pair), text, depth)
