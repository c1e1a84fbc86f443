"""Decoded documents as values of a type."""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec

T = TypeVar("T")

_KNOWN: set[object] = set()
_LOCK = threading.Lock()


def convert(
    raw: object,
    kind: type[T],
    *,
    strict: bool = True,
    str_keys: bool = False,
    builtin_types: tuple[type, ...] | None = None,
) -> T:
    """`msgspec.convert`, for any thread. Raises msgspec.ValidationError.

    msgspec 0.22 reads a type's fields when it first meets it. Another thread that meets the type
    meanwhile finds fields without types, and the process ends with a segmentation fault.
    """
    if kind not in _KNOWN:
        with _LOCK:
            msgspec.msgpack.Decoder(kind)  # reads the fields
            _KNOWN.add(kind)
    return msgspec.convert(raw, kind, strict=strict, str_keys=str_keys, builtin_types=builtin_types)
