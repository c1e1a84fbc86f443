"""The condition that no stored integer is so large that arithmetic on it may overflow."""

from __future__ import annotations

from conformance.tla.spark import physical, sql
from conformance.tla.spark.columns import STORED
from conformance.tla.spark.physical import MapOf, Scalar, SequenceOf, SetOf, StructOf, TupleOf, Type
from conformance.tla.spark.sql import Sql


def within_bounds(kind: Type, text: Sql, depth: int = 0) -> Sql:
    """SQL: every integer within a stored value lies within `STORED`."""
    match kind:
        case Scalar(kind="integer"):
            return sql.between(text, sql.integer(STORED[0]), sql.integer(STORED[1]))
        case Scalar():
            return sql.TRUE
        case SetOf(element=None) | SequenceOf(element=None):
            return sql.TRUE
        case SetOf(element=element) | SequenceOf(element=element):
            name = f"r{depth}_"
            item = sql.variable(name)
            inner = within_bounds(element, item, depth + 1) if element else sql.TRUE
            return sql.TRUE if inner == sql.TRUE else sql.each("forall", text, name, inner)
        case StructOf(fields=fields):
            return sql.conjunction(
                within_bounds(part, sql.field_of(text, physical.field_name(key)), depth)
                for key, part in fields
            )
        case TupleOf(items=items):
            return sql.conjunction(
                within_bounds(part, sql.field_of(text, physical.item_name(i)), depth)
                for i, part in enumerate(items, 1)
            )
        case MapOf(key=key, value=value):
            pair = StructOf(((physical.KEY, key), (physical.RESULT, value)))
            return within_bounds(SequenceOf(pair), text, depth)
