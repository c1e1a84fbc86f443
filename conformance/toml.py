"""Reads TOML into typed values, naming the whole key of what does not fit; writes tables."""

from __future__ import annotations

import copy
import datetime
import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from conformance import conversion

T = TypeVar("T")

_WIDTH = 80
"""Columns that an array may take on one line."""

_ANY = "[...]"
"""What msgspec writes for a key of a table whose keys are the user's."""


def decode(data: bytes | str, kind: type[T]) -> T:
    """The document as a value of this type; msgspec.DecodeError if it is none."""
    return convert(msgspec.toml.decode(data), kind)


def convert(raw: object, kind: type[T]) -> T:
    """A decoded document as a value of this type; msgspec.ValidationError names the whole key."""
    try:
        return _converted(raw, kind)
    except msgspec.ValidationError as error:
        text = str(error)
        while _ANY in text and (key := _culprit(raw, kind, str(error), text)) is not None:
            text = text.replace(_ANY, f".{key}", 1)
        raise msgspec.ValidationError(text.replace("`$.", "`")) from None


def encode(table: Mapping[str, object]) -> str:
    """A document: strings, integers, booleans, arrays of them, and tables of all these."""
    return "\n\n".join(_sections(table, ())) + "\n"


def _sections(table: Mapping[str, object], path: tuple[str, ...]) -> Iterator[str]:
    """A table's own entries below its head, then the tables in it."""
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(table[key])}" for key in table if key not in inner]
    if lines or not inner:
        head = [f"[{'.'.join(map(_key, path))}]"] if path else []
        yield "\n".join([*head, *lines])
    for key, value in inner.items():
        yield from _sections(value, (*path, key))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return _string(value)
        case list() | tuple():
            items = [_value(item) for item in value]
            flat = f"[{', '.join(items)}]"
            lines = "".join(f"  {item},\n" for item in items)
            return flat if len(flat) <= _WIDTH else f"[\n{lines}]"
        case _:
            raise TypeError(f"TOML of a {type(value).__name__} is not written here")


def _string(text: str) -> str:
    """A literal string if quotes or backslashes stand in it, as TLA+ is full of both."""
    if ("\\" in text or '"' in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _converted(raw: object, kind: type[T]) -> T:
    dates = (datetime.datetime, datetime.date, datetime.time)
    return conversion.convert(raw, kind, builtin_types=dates, str_keys=True)


def _culprit(raw: object, kind: type[object], complaint: str, text: str) -> str | None:
    """The key for which the first `[...]` stands: without the others the complaint is the same."""
    path = text.partition(_ANY)[0].rpartition("`$")[2]
    for key in _table(raw, path):
        alone = copy.deepcopy(raw)
        table = _table(alone, path)
        for other in [other for other in table if other != key]:
            del table[other]
        try:
            _converted(alone, kind)
        except msgspec.ValidationError as error:
            if str(error) == complaint:
                return key
    return None


def _table(raw: object, path: str) -> dict[str, object]:
    """The table at a path such as `.tiers.ci` or `.rule[1].fields`."""
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", path):
        if isinstance(raw, dict) and name:
            raw = raw.get(name)
        elif isinstance(raw, list) and index:
            raw = raw[int(index)]
    return raw if isinstance(raw, dict) else {}
