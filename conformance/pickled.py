"""Pickles what plain pickle cannot: the read-only mappings of a syntax tree."""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar


def dumps(value: object) -> bytes:
    """The value's bytes; `pickle.loads` reads them."""
    written = io.BytesIO()
    _Pickler(written, pickle.HIGHEST_PROTOCOL).dump(value)
    return written.getvalue()


_Reduced = tuple[Callable[..., object], tuple[object, ...]]


def _as_dict(proxy: MappingProxyType[object, object]) -> _Reduced:
    return MappingProxyType, (dict(proxy),)


class _Pickler(pickle.Pickler):
    dispatch_table: ClassVar[Mapping[type, Callable[[Any], _Reduced]]] = {
        **copyreg.dispatch_table,  # type: ignore[dict-item]
        MappingProxyType: _as_dict,
    }
