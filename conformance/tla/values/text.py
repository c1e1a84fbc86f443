"""Reads values and states as TLC prints them: error traces, dumps, labels of dot graphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from conformance.tla.errors import DataError
from conformance.tla.values import (
    Action,
    Fn,
    ModelValue,
    State,
    Value,
    format_value,
    make_function,
)
from conformance.tla.values.strict_json import DEEPEST

__all__ = [
    "StateReader",
    "ValueReader",
    "format_state",
    "format_value",
    "parse_action",
    "parse_value",
    "whole_number",
]

# One token per field name and per interval; `\S` last, so that nothing is skipped in silence.
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|<<|>>|:>|@@|\w+\s*\|->|-?\d+\s*\.\.\s*-?\d+|-?\d+(?!\w)|\w+|\S', re.ASCII
)
_END = ""
_CLOSERS = frozenset({",", "}", ">>", "]", ")", ":>", "@@", _END})
_OPENERS = frozenset({"{", "<<", "[", "("})
_LARGEST = 1_000_000
"""Elements of an interval that is read as a set."""
_STRING_ESCAPE = re.compile(r"\\(.)")
_UNESCAPED = {"t": "\t", "n": "\n", "f": "\f", "r": "\r"}


class ValueReader:
    """Parses printed values; remembers each distinct text, so equal texts give one object."""

    __slots__ = ("_leaves", "_values")

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._leaves: dict[str, Value] = {}

    def __call__(self, text: str) -> Value:
        """The value; raises DataError that shows the text and the place."""
        try:
            return self._values[text]
        except KeyError:
            value = self._values[text] = self._parse(text)
            return value

    def _parse(self, text: str) -> Value:
        tokens = _TOKEN.findall(text)
        if sum(token in _OPENERS for token in tokens) > DEEPEST:
            _check_depth(text, tokens)
        tokens.reverse()
        tokens.insert(0, _END)
        try:
            value = self._value(tokens)
            if tokens != [_END]:
                raise _ParseError(tokens[-1], "the end")
        except _ParseError as error:
            raise DataError(
                f"Cannot read {_shorten(text)} as a TLA+ value: expected {error.expected}, found "
                f"{error.token or 'the end'}. Values are written as TLC prints them, such as "
                '[a |-> {1, 2}], <<TRUE, "x">> or (1 :> 2 @@ 3 :> 4).'
            ) from None
        return value

    def _value(self, tokens: list[str]) -> Value:
        """Takes one value off the end of the reversed tokens."""
        token = tokens.pop()
        known = self._leaves.get(token)
        if known is not None:
            return known
        match token:
            case "{":
                return frozenset(self._items(tokens, "}"))
            case "<<":
                return tuple(self._items(tokens, ">>"))
            case "[":
                return self._record(tokens)
            case "(":
                return self._function(tokens)
        value = self._leaves[token] = _leaf(token)
        return value

    def _items(self, tokens: list[str], closer: str) -> list[Value]:
        items: list[Value] = []
        if tokens[-1] == closer:
            tokens.pop()
            return items
        while True:
            items.append(self._value(tokens))
            token = tokens.pop()
            if token == closer:
                return items
            if token != ",":
                raise _ParseError(token, f"a comma or {closer}")

    def _record(self, tokens: list[str]) -> Value:
        fields: dict[Value, Value] = {}
        while True:
            token = tokens.pop()
            if not token.endswith("|->"):
                raise _ParseError(token, "a field name and |->")
            name = token[:-3].rstrip()
            if name in fields:
                raise DataError(f"A record has the field {name} twice.")
            fields[name] = self._value(tokens)
            token = tokens.pop()
            if token == "]":
                return Fn(fields)
            if token != ",":
                raise _ParseError(token, "a comma or ]")

    def _function(self, tokens: list[str]) -> Value:
        mapping: dict[Value, Value] = {}
        while True:
            key = self._value(tokens)
            token = tokens.pop()
            if token != ":>":
                raise _ParseError(token, ":>")
            mapping.setdefault(key, self._value(tokens))  # the left side of @@ wins
            token = tokens.pop()
            if token == ")":
                return make_function(mapping)
            if token != "@@":
                raise _ParseError(token, "@@ or )")


class _ParseError(Exception):
    def __init__(self, token: str, expected: str) -> None:
        super().__init__(token)
        self.token = token
        self.expected = expected


def _leaf(token: str) -> Value:
    if token == "TRUE" or token == "FALSE":
        return token == "TRUE"
    if token.startswith('"') and len(token) > 1:
        return _STRING_ESCAPE.sub(lambda match: _UNESCAPED.get(match[1], match[1]), token[1:-1])
    if ".." in token:
        low, high = map(whole_number, token.split(".."))
        if high - low >= _LARGEST:
            raise DataError(f"{_shorten(token)} has more than {_LARGEST:,} elements.")
        return frozenset(range(low, high + 1))
    if token in _CLOSERS or not re.fullmatch(r"-?\w+", token, re.ASCII):
        raise _ParseError(token, "a value")
    return whole_number(token) if _NUMBER.fullmatch(token) else ModelValue(token)


_NUMBER = re.compile(r"-?\d+", re.ASCII)


def whole_number(digits: str) -> int:
    """The number; DataError for one that is longer than Python reads."""
    try:
        return int(digits)
    except ValueError:
        raise DataError(f"{_shorten(digits)} is no whole number, or is too long a one.") from None


def _check_depth(text: str, tokens: Iterable[str]) -> None:
    depth = 0
    for token in tokens:
        depth += (token in _OPENERS) - (token in ("}", ">>", "]", ")"))
        if depth > DEEPEST:
            raise DataError(f"{_shorten(text)} nests more than {DEEPEST} deep.")


def parse_value(text: str) -> Value:
    """The value that TLC prints as this text; DataError if there is none.

    Many texts: a ``ValueReader`` parses each distinct one once.
    """
    return ValueReader()(text)


_ACTION = re.compile(r"\s*([\w!]+)\s*(?:\((.*)\))?\s*", re.ASCII | re.DOTALL)


def parse_action(text: str) -> Action:
    """The action that prints so: ``Fetch("b1")`` or ``Tick``; DataError if none does."""
    match = _ACTION.fullmatch(text)
    if match is None:
        raise DataError(f'Cannot read {_shorten(text)} as an action such as Fetch("b1", 2).')
    name, printed = match.groups()
    args = () if printed is None else parse_value(f"<<{printed}>>")
    return Action(name, args if isinstance(args, tuple) else ())


def format_state(variables: Sequence[str], state: State) -> str:
    """The state as TLC prints it, one conjunct per line."""
    if len(variables) == 1:
        return f"{variables[0]} = {format_value(state[0])}"
    lines = zip(variables, state, strict=True)
    return "\n".join(f"/\\ {name} = {format_value(value)}" for name, value in lines)


_LABEL_ESCAPE = re.compile(r"\\(.)")


def _unescape_label(text: str) -> str:
    return _LABEL_ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], text)


class StateReader:
    """Parses states of a spec whose variables are known; shares the values that they share."""

    __slots__ = ("_labels", "_read", "_variables")

    def __init__(self, variables: Iterable[str]) -> None:
        self._variables = tuple(variables)
        self._read = ValueReader()
        self._labels: dict[str, Value] = {}

    def read(self, text: str) -> State:
        """The state of an error trace or a `-dump`: lines `/\\ x = value`, values may wrap."""
        return self._state(text, "\n/\\ ", "/\\ ", self._read)

    def read_label(self, label: str) -> State:
        """The state of a node's label in a dot dump, as in the file, between its quotes."""
        return self._state(label, "\\n/\\\\ ", "/\\\\ ", self._label_value)

    def _label_value(self, text: str) -> Value:
        try:
            return self._labels[text]
        except KeyError:
            value = self._labels[text] = self._read(_unescape_label(text))
            return value

    def _state(self, text: str, separator: str, start: str, read: Callable[[str], Value]) -> State:
        values: dict[str, Value] = {}
        for line in text.removeprefix(start).split(separator):
            name, _, printed = line.partition(" = ")
            values[name] = read(printed)
        try:
            state = tuple([values[name] for name in self._variables])
        except KeyError as error:
            raise DataError(
                f"A state lacks the variable {error.args[0]}; it has {', '.join(values)}: "
                f"{_shorten(text)}. Was it written by another version of the spec?"
            ) from None
        if len(values) != len(state):
            extra = ", ".join(sorted(values.keys() - set(self._variables)))
            raise DataError(f"A state has a variable that the spec lacks: {extra}.")
        return state


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}...")
