"""Whether a Python object is a TLA+ value in normal form, and how it is written if it is none."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Mapping, Set
from itertools import count, repeat

from conformance.tla.values.value import Fn, ModelValue

__all__ = ["objection"]

_ATOMS = (bool, int, ModelValue)
_ATOMIC_TYPES = frozenset(_ATOMS)


def objection(value: object, place: str = "") -> str:
    """Why the object is no TLA+ value, and what to write instead; empty if it is one.

    `place` names the object; entries are named within it, as in `log["b1"][2]`. The text begins
    with the place and is one or two sentences.
    """
    # Nearly every object is a value, and the names of its entries cost more than the answer.
    return "" if _is_value(value) else _objection(value, place)


def _is_value(value: object) -> bool:
    """Whether there is nothing to object to. A worklist: calls would cost more than the answer."""
    parts: list[object] = [value]
    for part in parts:
        if type(part) is str:
            if not part.isascii() and _of_text(part, ""):
                return False
        elif type(part) in _ATOMIC_TYPES:
            continue
        elif type(part) is Fn:
            if _is_sequence(part.mapping):
                return False
            parts += part.mapping
            parts += part.mapping.values()
        elif type(part) is tuple or type(part) is frozenset:
            parts += part
        elif _objection(part, ""):
            return False  # a subclass of these may be a value
    return True


def _is_sequence(keys: Collection[object]) -> bool:
    """Whether a function on these arguments is written as a tuple."""
    if type(next(iter(keys), 0)) is not int:
        return False
    return all(type(key) is int for key in keys) and {*keys} == {*range(1, len(keys) + 1)}


def _objection(value: object, place: str) -> str:
    if isinstance(value, _ATOMS):
        return ""
    if isinstance(value, str):
        return "" if value.isascii() else _of_text(value, place)
    if isinstance(value, tuple):
        return _first(value, (f"{place}[{number}]" for number in count(1)))
    if isinstance(value, Fn):
        return _of_function(value, place)
    if isinstance(value, frozenset):
        return _first(value, repeat(f"an element of {place}"))
    return f"{place} is {reprlib.repr(value)}, {_kind(value)}. {_remedy(value)}"


def _of_text(text: str, place: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        return (
            f"{place} holds {half}, which is half of a surrogate pair and no character. Decode the "
            "text without `surrogateescape` or `surrogatepass`."
        )
    return ""


def _of_function(function: Fn, place: str) -> str:
    keys: list[object] = list(function)
    if _is_sequence(keys):
        return (
            f"{place} is a function on 1..{len(keys)}, which is written as a tuple. Make functions "
            "with conformance.tla.make_function."
        )
    return _first(keys, repeat(f"an argument of {place}")) or _first(
        function.values(), (f"{place}[{reprlib.repr(key)}]" for key in keys)
    )


def _first(values: Iterable[object], places: Iterable[str]) -> str:
    return next((why for why in map(_objection, values, places) if why), "")


def _kind(value: object) -> str:
    if value is None:
        return "which is no TLA+ value"
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"a Python {module}{kind.__qualname__}"


def _remedy(value: object) -> str:
    """What TLA+ has in the place of such an object."""
    if isinstance(value, list):
        return "Write a sequence or tuple of TLA+ as a Python tuple."
    if isinstance(value, Set):
        return "Write a set of TLA+ as a frozenset."
    if isinstance(value, Mapping):
        return (
            "Write a function or record of TLA+ with conformance.tla.make_function or make_record."
        )
    if isinstance(value, bytes | bytearray):
        return "TLA+ has no bytes: write a string, or a tuple of integers."
    if isinstance(value, float) or hasattr(value, "__int__"):
        return "TLA+ has no such numbers: write a Python int."
    return (
        "Write a bool, int, str, conformance.tla.ModelValue, tuple, frozenset, or a function that "
        "make_function or make_record gives."
    )
