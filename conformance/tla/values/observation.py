"""What was seen of a state, and whether a state shows it: nowhere else are the two compared.

TRUE is not 1, at any depth; what was not seen (None) may be anything. What was seen may be a
whole variable or, at a `Place`, one entry of a function or field of a record. Of a value that was
not seen itself, a length or a member may have been seen: its `Aspect`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from conformance.tla.errors import DataError
from conformance.tla.values import Fn, State, Value, equal, format_value
from conformance.tla.values.text import parse_value

__all__ = [
    "Aspect",
    "ObservedPart",
    "Partial",
    "PartialRecord",
    "Place",
    "agree",
    "differing",
    "parse_place",
    "shows",
    "value_at",
]

Partial: TypeAlias = "Sequence[Value | None]"
"""The values of the spec's variables in the spec's order; None where nothing was observed."""


def agree(value: Value | None, seen: Value | None) -> bool:
    """Whether a value is the one that was seen: None was not seen, TRUE is not 1."""
    return seen is None or (value is not None and equal(value, seen))


def shows(state: Partial, seen: Partial) -> bool:
    """Whether a state has every value that was seen."""
    return all(
        value is result or agree(result, value) for result, value in zip(state, seen, strict=True)
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
class Aspect:
    """What TLA+ says of a value: `Len(v)`, `Cardinality(v)`, `m \\in v`, `m \\in DOMAIN v`."""

    operator: str
    member: Value | None = None

    def of(self, value: Value) -> Value | None:
        """What it is of a value; None of a value of another kind."""
        match (self.operator, value):
            case "Len", tuple():
                return len(value)
            case "Cardinality", frozenset():
                return len(value)
            case "\\in", frozenset():
                return self._among(value)
            case "\\in DOMAIN", Fn():
                return self._among(value.keys())
            case "\\in DOMAIN", tuple():
                return self._among(range(1, len(value) + 1))
        return None

    def _among(self, values: Iterable[Value]) -> bool:
        return any(agree(value, self.member) for value in values)

    def text(self, place: str) -> str:
        """The expression, of the value at a place."""
        if self.member is None:
            return f"{self.operator}({place})"
        return f"{format_value(self.member)} {self.operator} {place}"


@dataclass(frozen=True, slots=True)
class Place:
    """A variable, or what one of its entries holds: `log.b1`, `owned[3]`, `channel.b2.error`.

    With an aspect, what that says of it: `Len(log.b1)`.
    """

    variable: str
    path: tuple[Value, ...] = ()
    aspect: Aspect | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is a variable, of which nothing is left out."""
        return not self.path and self.aspect is None

    def entry(self, key: Value) -> Place:
        """The place of an entry of the function or record that is here."""
        return Place(self.variable, (*self.path, key))

    def within(self, value: Value) -> Value | None:
        """What is there in a value of the variable; None if there is no such entry."""
        result = value_at(value, self.path)
        return result if result is None or self.aspect is None else self.aspect.of(result)

    def __str__(self) -> str:
        text = self.variable + "".join(map(_selector, self.path))
        return text if self.aspect is None else self.aspect.text(text)


def _selector(key: Value) -> str:
    # A function on strings and a record are one thing in TLA+: `f.b1` is `f["b1"]`, and shorter.
    return f".{key}" if isinstance(key, str) and _NAME.fullmatch(key) else f"[{format_value(key)}]"


@dataclass(frozen=True, slots=True)
class ObservedPart:
    """A value that was seen at a place."""

    place: Place
    value: Value

    def shown_by(self, state: State, position: int) -> bool:
        """Whether the state, in which the variable is at this position, has the value there."""
        value = self.place.within(state[position])
        return value is not None and agree(value, self.value)


@dataclass(frozen=True, slots=True)
class PartialRecord:
    """A record of which some fields were seen, or parts and aspects of them.

    The place of each part begins with the field.
    """

    parts: tuple[ObservedPart, ...]

    def admits(self, value: Value) -> bool:
        """Whether it may have been this value."""
        return isinstance(value, Fn) and all(
            part.place.variable in value and part.shown_by((value[part.place.variable],), 0)
            for part in self.parts
        )

    def __str__(self) -> str:
        shown = [f"{part.place} = {format_value(part.value)}" for part in self.parts]
        return f"[{', '.join(shown)}]"


def value_at(value: Value, path: Sequence[Value]) -> Value | None:
    """What stands at the end of a path of arguments and fields; None if there is no such entry."""
    result: Value = value
    for key in path:
        if isinstance(result, Fn) and key in result:
            result = result[key]
        elif isinstance(result, tuple) and type(key) is int and 1 <= key <= len(result):
            result = result[key - 1]
        else:
            return None
    return result


_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_FIELD = re.compile(r"\.([A-Za-z_]\w*)", re.ASCII)


_SIZE = re.compile(r"\s*(Len|Cardinality)\s*\((.*)\)\s*", re.DOTALL)
_MEMBER = re.compile(r"(.*)\\in\b(\s+DOMAIN\b)?(.*)", re.DOTALL)


def parse_place(text: str) -> Place:
    """The place that `log["b1"]`, `channel["b2"].error` or `registration` names.

    Also what `Len(log["b1"])` or `"b1" \\in isr` says of one. DataError where the text is none.
    """
    try:
        return _entry(text)
    except DataError:
        aspect = _aspect(text)
        if aspect is None:
            raise
        return aspect


def _aspect(text: str) -> Place | None:
    size = _SIZE.fullmatch(text)
    if size is not None:
        return replace(_entry(size[2].strip()), aspect=Aspect(size[1]))
    member = _MEMBER.fullmatch(text)
    if member is None:
        return None
    operator = "\\in DOMAIN" if member[2] else "\\in"
    aspect = Aspect(operator, parse_value(member[1].strip()))
    return replace(_entry(member[3].strip()), aspect=aspect)


def _entry(text: str) -> Place:
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
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]]', text):
        depth += {"[": 1, "]": -1}.get(match[0], 0)
        if depth == 0:
            return match.start()
    return -1


def _no_place(text: str) -> DataError:
    return DataError(
        f"{text} names no part of a state: write a variable, and after it arguments in brackets "
        'and fields after a dot, as in channel["b2"].error. Of it may be said Len(...), '
        "Cardinality(...), VALUE \\in ... and VALUE \\in DOMAIN ..."
    )
