"""Pickles what plain pickle cannot: the read-only mappings of a syntax tree."""

from __future__ import annotations

import copyreg
import io
import pickle
from types import MappingProxyType
from typing import Any


def dumps(value: object) -> bytes:
    """The value's bytes; `pickle.loads` reads them."""
    written = io.BytesIO()
    _Pickler(written, pickle.HIGHEST_PROTOCOL).dump(value)
    return written.getvalue()


def _proxy(mapping: dict[object, object]) -> MappingProxyType[object, object]:
    return MappingProxyType(mapping)


def _reduced(proxy: MappingProxyType[object, object]) -> tuple[object, ...]:
    return _proxy, (dict(proxy),)  # the type itself has no name that pickle could write


class _Pickler(pickle.Pickler):
    dispatch_table: Any = {**copyreg.dispatch_table, MappingProxyType: _reduced}  # noqa: RUF012
