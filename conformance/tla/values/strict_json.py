"""Reads JSON that a user wrote: what Python's reader lets pass in silence is an error here.

A key that stands twice in an object would lose its first value, half of a surrogate pair can be
written nowhere, and NaN and Infinity are no JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn, TypeAlias, TypeVar

from conformance.tla.errors import DataError

__all__ = ["DEEPEST", "Json", "load_json"]

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

_T = TypeVar("_T")

DEEPEST = 100
"""So deep may arrays and objects nest: no value of a specification comes near, and what is much
deeper ends recursive functions."""

_OPENING = re.compile(r'"(?:[^"\\]|\\.)*+"|([\[{])|([\]}])', re.DOTALL)
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def load_json(text: str | bytes) -> Json:
    """The value that a text stands for. DataError says what is wrong with it, and where."""
    try:
        read = text if isinstance(text, str) else text.decode()
        _check_depth(read)
        data: Json = json.loads(read, object_pairs_hook=_object, parse_constant=_no_number)
        if _HALF.search(read):
            json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise DataError(f"a string holds {half}, which is half of a surrogate pair") from None
    except ValueError as error:  # of JSON, of UTF-8, and of numbers that are too long
        raise DataError(f"not JSON: {error}") from None
    return data


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    for match in _OPENING.finditer(text):
        if match[1]:
            depth += 1
            if depth > DEEPEST:
                raise DataError(
                    f"arrays and objects nest more than {DEEPEST} deep (character {match.start()})"
                )
        elif match[2]:
            depth -= 1


def _object(pairs: Sequence[tuple[str, Json]]) -> Mapping[str, Json]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise DataError(f"an object has the key {twice([key for key, _ in pairs])!r} twice")
    return data


def twice(keys: Sequence[_T]) -> _T:
    """The first of the keys that equals one before it; there is one."""
    return next(key for number, key in enumerate(keys) if key in keys[:number])


def _no_number(name: str) -> NoReturn:
    raise DataError(f"not JSON: {name} is no number there")
