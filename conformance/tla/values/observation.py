"""What was seen of a state, and whether a state shows it: nowhere else are the two compared.

TRUE is not 1, at any depth; what was not seen (None) may be anything. What was seen may be a
whole variable or, at a `Place`, one entry of a function or field of a record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from conformance.tla.errors import DataError
from conformance.tla.values import Fn, State, Value, equal, format_value
from conformance.tla.values.text import parse_value

__all__ = ["Part", "Partial", "Place", "agree", "differing", "parse_place", "shows", "value_at"]

Partial: TypeAlias = "Sequence[Value | None]"
"""The values of the spec's variables in the spec's order; None where nothing was observed."""


def agree(value: Value | None, seen: Value | None) -> bool:
    """Whether a value is the one that was seen: None was not seen, TRUE is not 1."""
    return seen is None or (value is not None and equal(value, seen))


def shows(state: Partial, seen: Partial) -> bool:
    """Whether a state has every value that was seen."""
    return all(
        value is found or agree(found, value) for found, value in zip(state, seen, strict=True)
    )


def differing(
    variables: Sequence[str], state: Partial, observed: Mapping[str, Value]
) -> tuple[str, ...]:
    """The observed variables that have another value in the state, in the spec's order."""
    return tuple(
        name
        for name, value in zip(variables, state, strict=True)
        if name in observed and not agree(value, observed[name])
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A variable, or what one of its entries holds: `log.b1`, `owned[3]`, `channel.b2.error`."""

    variable: str
    path: tuple[Value, ...] = ()

    def entry(self, key: Value) -> Place:
        """The place of an entry of the function or record that is here."""
        return Place(self.variable, (*self.path, key))

    def __str__(self) -> str:
        return self.variable + "".join(map(_selector, self.path))


def _selector(key: Value) -> str:
    # A function on strings and a record are one thing in TLA+: `f.b1` is `f["b1"]`, and shorter.
    return f".{key}" if isinstance(key, str) and _NAME.fullmatch(key) else f"[{format_value(key)}]"


@dataclass(frozen=True, slots=True)
class Part:
    """A value that was seen at a place."""

    place: Place
    value: Value

    def shown_by(self, state: State, position: int) -> bool:
        """Whether the state, in which the variable is at this position, has the value there."""
        found = value_at(state[position], self.place.path)
        return found is not None and agree(found, self.value)


def value_at(value: Value, path: Sequence[Value]) -> Value | None:
    """What stands at the end of a path of arguments and fields; None if there is no such entry."""
    found: Value = value
    for key in path:
        if isinstance(found, Fn) and key in found:
            found = found[key]
        elif isinstance(found, tuple) and type(key) is int and 1 <= key <= len(found):
            found = found[key - 1]
        else:
            return None
    return found


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_FIELD = re.compile(r"\.([A-Za-z_]\w*)", re.ASCII)


def parse_place(text: str) -> Place:
    """The place that `log["b1"]`, `channel["b2"].error` or `registration` names.

    DataError where the text is none.
    """
    variable = _NAME.match(text)
    if variable is None:
        raise _no_place(text)
    path: list[Value] = []
    rest = text[variable.end() :]
    while rest:
        field = _FIELD.match(rest)
        if field is not None:
            path.append(field[1])
            rest = rest[field.end() :]
            continue
        end = _closing(rest) if rest[0] == "[" else -1
        if end < 0:
            raise _no_place(text)
        path.append(parse_value(rest[1:end]))
        rest = rest[end + 1 :]
    return Place(variable[0], tuple(path))


def _closing(text: str) -> int:
    """The index of the bracket that closes the first one, brackets in strings left aside."""
    depth = 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]]', text):
        depth += {"[": 1, "]": -1}.get(found[0], 0)
        if depth == 0:
            return found.start()
    return -1


def _no_place(text: str) -> DataError:
    return DataError(
        f"{text} names no part of a state: write a variable, and after it arguments in brackets "
        'and fields after a dot, as in channel["b2"].error.'
    )
