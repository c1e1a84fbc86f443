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


def call(function: str, *arguments: str) -> str:
    """An application. Operators too are written so: the time that Spark's parser takes grows
    steeply with nested parentheses (12 KB of text took 17 s, and 0.4 s in this form)."""
    return f"{function}({', '.join(arguments)})"


def equal(left: str, right: str) -> str:
    """left = right."""
    return call("`=`", left, right)


def compare(operator: str, left: str, right: str) -> str:
    """left operator right, for < <= > >= + - *."""
    return call(f"`{operator}`", left, right)


def between(expression: str, low: str, high: str) -> str:
    """low <= expression <= high."""
    return call("between", expression, low, high)


def case(arms: Iterable[tuple[str, str]], otherwise: str) -> str:
    """The expression of the first condition that is true."""
    parts = [part for arm in arms for part in arm]
    return call("`when`", *parts, otherwise) if parts else otherwise


def conjunction(parts: Iterable[str]) -> str:
    """SQL AND over total conditions, evaluated in this order."""
    kept = list(dict.fromkeys(part for part in parts if part != TRUE))
    if FALSE in kept:
        return FALSE
    return _balanced("`and`", kept) if kept else TRUE


def disjunction(parts: Iterable[str]) -> str:
    """SQL OR over total conditions, evaluated in this order."""
    kept = list(dict.fromkeys(part for part in parts if part != FALSE))
    if TRUE in kept:
        return TRUE
    return _balanced("`or`", kept) if kept else FALSE


def _balanced(operator: str, parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return call(operator, _balanced(operator, parts[:half]), _balanced(operator, parts[half:]))


def negation(condition: str) -> str:
    """SQL NOT of a total condition."""
    if condition == TRUE:
        return FALSE
    return TRUE if condition == FALSE else call("`not`", condition)


def choice(condition: str, then: str, otherwise: str) -> str:
    """SQL IF on a total condition."""
    if condition == TRUE or then == otherwise:
        return then
    if condition == FALSE:
        return otherwise
    return call("if", condition, then, otherwise)


def first(array: str) -> str:
    """The first element of an array, NULL if it has none."""
    return f"get({array}, 0)"
