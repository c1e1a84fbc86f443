"""Reads TOML into typed values; what does not fit is named by its whole key."""

from __future__ import annotations

import copy
import datetime
import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

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
        told = str(error)
        while _ANY in told and (key := _culprit(raw, kind, str(error), told)) is not None:
            told = told.replace(_ANY, f".{key}", 1)
        raise msgspec.ValidationError(told.replace("`$.", "`")) from None


def _converted(raw: object, kind: type[T]) -> T:
    dates = (datetime.datetime, datetime.date, datetime.time)
    return msgspec.convert(raw, kind, builtin_types=dates, str_keys=True)


def _culprit(raw: object, kind: type[object], complaint: str, told: str) -> str | None:
    """The key for which the first `[...]` stands: without the others the complaint is the same."""
    path = told.partition(_ANY)[0].rpartition("`$")[2]
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
