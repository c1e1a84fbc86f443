"""SQL text: the few shapes that every part of the Spark back end writes.

All text that is produced here is total under Spark's ANSI mode: no expression throws, whatever
the row holds. What TLA+ leaves undefined is kept apart as a `Guard` (see `formulas`).
"""

from __future__ import annotations

from collections.abc import Iterable

TRUE = "true"
FALSE = "false"


def text(value: str) -> str:
    """A string literal, whatever characters the value has."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def name(identifier: str) -> str:
    """A quoted column or field name."""
    return "`" + identifier.replace("`", "``") + "`"


def field(expression: str, identifier: str) -> str:
    """A field of a struct."""
    return f"{expression}.{name(identifier)}"


def conjunction(parts: Iterable[str]) -> str:
    """SQL AND over total conditions."""
    kept = list(dict.fromkeys(part for part in parts if part != TRUE))
    if FALSE in kept:
        return FALSE
    if len(kept) <= 1:
        return kept[0] if kept else TRUE
    return "(" + " AND ".join(kept) + ")"


def disjunction(parts: Iterable[str]) -> str:
    """SQL OR over total conditions."""
    kept = list(dict.fromkeys(part for part in parts if part != FALSE))
    if TRUE in kept:
        return TRUE
    if len(kept) <= 1:
        return kept[0] if kept else FALSE
    return "(" + " OR ".join(kept) + ")"


def negation(condition: str) -> str:
    """SQL NOT of a total condition."""
    if condition == TRUE:
        return FALSE
    if condition == FALSE:
        return TRUE
    return f"(NOT {condition})"


def choice(condition: str, then: str, otherwise: str) -> str:
    """SQL IF on a total condition."""
    if condition == TRUE or then == otherwise:
        return then
    if condition == FALSE:
        return otherwise
    return f"if({condition}, {then}, {otherwise})"


def first(array: str) -> str:
    """The first element of an array, NULL if it has none."""
    return f"get({array}, 0)"
