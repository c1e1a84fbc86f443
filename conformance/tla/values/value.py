"""TLA+ values as plain, immutable Python values: equality, order, fingerprint, printed form.

Normal form (so that ``==`` and ``hash`` follow TLA+'s equality):

===========================  =======================================
TLA+                         Python
===========================  =======================================
integer, boolean, string     ``int``, ``bool``, ``str``
model value                  ``ModelValue``
finite set                   ``frozenset``
function on 1..n (n >= 0)    ``tuple``
every other function         ``Fn`` (a record is a function on strings)
===========================  =======================================

Booleans and integers. Python holds ``True == 1``; TLA+ does not say, and TLC refuses to compare
the two. Plain ``==`` is therefore right for every pair of values that TLC compares. Where a
formula may compare a boolean with an integer, ``equal`` tells them apart at every depth, and
``make_set`` refuses a set that holds both. Order and fingerprint always tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from heapq import nsmallest
from math import expm1
from typing import ClassVar, NamedTuple, TypeAlias, TypeVar, cast

__all__ = [
    "Action",
    "Fingerprinter",
    "Fn",
    "ModelValue",
    "Sharing",
    "State",
    "Value",
    "abridged_value",
    "canonical_key",
    "canonical_sorted",
    "collision_probability",
    "equal",
    "fingerprint",
    "format_value",
    "make_function",
    "make_record",
    "make_set",
    "mismatch",
]


class ModelValue:
    """An uninterpreted constant, equal to itself only. One object per name and process.

    TLC compares a typed one, whose name begins with a letter and `_`, with those of its type and
    with untyped ones only.
    """

    __slots__ = ("name",)

    _interned: ClassVar[dict[str, ModelValue]] = {}
    name: str

    def __new__(cls, name: str) -> ModelValue:
        entry = cls._interned.get(name)
        if entry is None:
            entry = super().__new__(cls)
            entry.name = name
            entry = cls._interned.setdefault(name, entry)
        return entry

    @property
    def letter(self) -> str | None:
        """The letter of a typed model value."""
        typed = len(self.name) > 2 and self.name[1] == "_" and self.name[0].isalpha()
        return self.name[0] if typed else None

    def __repr__(self) -> str:
        return f"ModelValue({self.name!r})"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[type[ModelValue], tuple[str]]:
        return ModelValue, (self.name,)


class Fn(Mapping["Value", "Value"]):
    """A function that is not a sequence: immutable, hashed once.

    ``Fn(mapping)`` keeps the dict it is given, without a copy: hand over one that nobody else
    changes. Use ``make_function`` unless the domain is known not to be 1..n.
    """

    __slots__ = ("_hash", "mapping")

    mapping: dict[Value, Value]
    _hash: int

    def __init__(self, mapping: dict[Value, Value]) -> None:
        self.mapping = mapping

    def __getitem__(self, key: Value) -> Value:
        return self.mapping[key]

    def __iter__(self) -> Iterator[Value]:
        return iter(self.mapping)

    def __len__(self) -> int:
        return len(self.mapping)

    def __contains__(self, key: object) -> bool:
        return key in self.mapping

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Fn:
            return NotImplemented
        return self.mapping == other.mapping

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(frozenset(self.mapping.items()))
            return self._hash

    def __repr__(self) -> str:
        return f"Fn({self.mapping!r})"

    def __reduce__(self) -> tuple[type[Fn], tuple[dict[Value, Value]]]:
        return Fn, (self.mapping,)

    def except_(self, key: Value, value: Value) -> Fn:
        """[f EXCEPT ![key] = value]: f itself where key is outside its domain, as in TLA+."""
        mapping = self.mapping
        if key not in mapping or mapping[key] is value:
            return self
        changed = mapping.copy()
        changed[key] = value
        return Fn(changed)


Value: TypeAlias = "bool | int | str | ModelValue | frozenset[Value] | tuple[Value, ...] | Fn"
"""A TLA+ value in normal form."""

State: TypeAlias = tuple[Value, ...]
"""The values of a spec's variables, in the spec's order."""


_Part = TypeVar("_Part", "Value", "Value | None")


class Action(NamedTuple):
    """An action's name and its arguments; prints as TLA+ applies it: ``Fetch("b1")``."""

    name: str
    args: tuple[Value, ...] = ()

    def __str__(self) -> str:
        if not self.args:
            return self.name
        return f"{self.name}({', '.join(map(format_value, self.args))})"


def make_function(mapping: dict[Value, Value]) -> tuple[Value, ...] | Fn:
    """The function in normal form: a tuple where its domain is 1..n. Keeps the dict."""
    size = len(mapping)
    if size == 0:
        return ()
    if (
        1 in mapping
        and size in mapping
        and all(type(key) is int and 1 <= key <= size for key in mapping)
    ):
        return tuple([mapping[index] for index in range(1, size + 1)])
    return Fn(mapping)


def make_record(**fields: Value) -> Fn:
    """The record with these fields; TLA+ has none without a field."""
    return Fn(dict(fields.items()))


def make_set(elements: Iterable[Value]) -> frozenset[Value]:
    """The set of the elements; TypeError where it would hold a boolean and an integer."""
    members = tuple(elements)
    result = frozenset(members)
    if any(type(member) is bool for member in members) and any(
        type(member) is int for member in members
    ):
        raise TypeError("a set cannot hold a boolean and an integer: TLC cannot compare them")
    return result


def equal(left: Value, right: Value) -> bool:
    """Whether two values are equal, telling TRUE from 1 at every depth."""
    return left is right or (left == right and mismatch(left, right) is None)


def mismatch(left: object, right: object) -> tuple[object, object] | None:
    """Of values that are equal for Python: the first parts that differ in kind, if any do."""
    kind = left.__class__
    if kind is Fn:
        return _mismatch_of_functions(cast("Fn", left).mapping, cast("Fn", right).mapping)
    if kind is tuple:
        pairs: Iterable[tuple[object, object]] = zip(
            cast("tuple[object, ...]", left), cast("tuple[object, ...]", right), strict=True
        )
    elif kind is frozenset:
        pairs = _paired(cast("frozenset[object]", left), cast("frozenset[object]", right))
    else:
        return None if (kind is bool) is (right.__class__ is bool) else (left, right)
    for left_part, other in pairs:
        if (
            left_part is not other
            and left_part.__class__ is not str
            and (result := mismatch(left_part, other))
        ):
            return result
    return None


def _mismatch_of_functions(
    left: Mapping[Value, Value], right: Mapping[Value, Value]
) -> tuple[object, object] | None:
    argument: object = ""
    for argument, left_part in left.items():
        other = right[argument]
        if (
            left_part is not other
            and left_part.__class__ is not str
            and (result := mismatch(left_part, other))
        ):
            return result
    if argument.__class__ is str:  # those of most functions: brokers, members, fields
        return None
    return mismatch(frozenset(left), frozenset(right))


def _paired(
    elements: Iterable[object], others: Iterable[object]
) -> Iterable[tuple[object, object]]:
    """The elements with those that they equal; none where all are of one simple class."""
    classes = set(map(type, elements))
    if classes <= _NEVER_CONFUSED:
        return ()
    classes.update(map(type, others))
    if len(classes) == 1 and classes <= _SIMPLE:
        return ()
    index = {other: other for other in others}
    return [(element, index[element]) for element in elements]


_NEVER_CONFUSED = frozenset({str, ModelValue})
_SIMPLE = frozenset({bool, int})


# Order


def canonical_key(value: Value) -> tuple[int, object]:
    """A sort key: a total order over all values, the same on every machine.

    Kinds first (boolean, integer, string, model value, set, function). Within a kind it is the
    order of Spark's ``sort_array`` on the value's physical type: strings by code point, sets as
    the sorted sequences of their elements, functions as the sequences of their (argument,
    result) pairs sorted by argument, hence sequences lexicographically.
    """
    match value:
        case bool():
            return 0, value
        case int():
            return 1, value
        case str():
            return 2, value
        case ModelValue():
            return 3, value.name
        case frozenset():
            return 4, tuple(sorted([canonical_key(item) for item in value]))
        case tuple():
            pairs = [((1, index), canonical_key(item)) for index, item in enumerate(value, 1)]
            return 5, tuple(pairs)
        case Fn():
            unsorted = [(canonical_key(key), canonical_key(item)) for key, item in value.items()]
            return 5, tuple(sorted(unsorted))


def canonical_sorted(values: Iterable[Value]) -> Sequence[Value]:
    """The values in canonical order."""
    items = list(values)
    kinds = set(map(type, items))
    if len(kinds) == 1 and kinds <= {bool, int, str}:
        return sorted(cast("list[str]", items))  # the same order, and much faster
    return sorted(items, key=canonical_key)


# Fingerprint


class Fingerprinter:
    """Fingerprints of many values that share parts: remembers the encoding of each part.

    Memory is by identity, since equal Python values may differ in kind (``(1,)`` and
    ``(True,)``); it keeps up to ``limit`` objects alive, then starts again.
    """

    __slots__ = ("_alive", "_encodings", "_limit")

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        self._encodings: dict[int, bytes] = {}
        self._alive: list[Value] = []

    def __call__(self, value: Value) -> int:
        """As ``fingerprint``. Remembers the parts of the value, not the value itself."""
        encoded = tagged(value, self._parts(value))
        digest = (
            encoded[1:9] if encoded[:1] == _DIGEST else blake2b(encoded, digest_size=8).digest()
        )
        return int.from_bytes(digest, "big", signed=True)

    def _encode(self, value: Value) -> bytes:
        encoded = self._encodings.get(id(value))
        if encoded is None:
            encoded = tagged(value, self._parts(value))
            if len(self._alive) >= self._limit:
                self._encodings.clear()
                self._alive.clear()
            self._encodings[id(value)] = encoded
            self._alive.append(value)
        return encoded

    def _parts(self, value: Value) -> list[bytes]:
        """The encodings of a container's parts, sorted where their order means nothing."""
        known, encode = self._encodings.get, self._encode
        if isinstance(value, tuple):
            return [known(id(item)) or encode(item) for item in value]
        if isinstance(value, frozenset):
            return sorted([known(id(item)) or encode(item) for item in value])
        if isinstance(value, Fn):
            return sorted([encode(key) + encode(item) for key, item in value.mapping.items()])
        return []


class Sharing:
    """Makes states share the values of their variables: of equal values, one object is kept.

    States differ in few variables, and a variable has few values. What remembers values by
    identity, a `Fingerprinter` above all, then finds what it knows.
    """

    __slots__ = ("_encode", "_values")

    def __init__(self) -> None:
        self._encode = Fingerprinter()._encode
        self._values: dict[bytes, Value] = {}

    def __call__(self, state: tuple[_Part, ...]) -> tuple[_Part, ...]:
        """The same state, made of the values that were met first; None stays None."""
        first, encode = self._values.setdefault, self._encode
        return tuple([value if value is None else first(encode(value), value) for value in state])


_DIGEST = b"d"


def tagged(value: Value, parts: Sequence[bytes]) -> bytes:
    """A prefix-free encoding: leaves as text, containers as digests of their parts."""
    match value:
        case tuple():
            return _digest(b"T", parts)
        case frozenset():
            return _digest(b"S", parts)
        case Fn():
            return _digest(b"F", parts)
        case bool():
            return b"b%d;" % value
        case int():
            return b"i%d;" % value
        case str():
            text = value.encode()
            return b"s%d:%b" % (len(text), text)
        case ModelValue():
            name = value.name.encode()
            return b"m%d:%b" % (len(name), name)


def _digest(tag: bytes, parts: Sequence[bytes]) -> bytes:
    # 128 bits within, so that only the outermost 64 bits count for collisions.
    return _DIGEST + blake2b(tag + b"".join(parts), digest_size=16).digest()


def fingerprint(value: Value) -> int:
    """A signed 64-bit hash of the value's canonical encoding, equal on every machine.

    A ``Fingerprinter`` gives the same numbers faster where values share parts.
    """
    return Fingerprinter()(value)


def collision_probability(distinct: int) -> float:
    """The birthday bound: that among so many distinct values two have the same fingerprint."""
    return -expm1(-distinct * (distinct - 1) / 2**65)


# Printed form

_IDENTIFIER = re.compile(r"\w+", re.ASCII)
_ESCAPES = str.maketrans(
    {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
)


def format_value(value: Value) -> str:
    """The value as TLC prints it, sets and functions in canonical order."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _digits(value)
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case ModelValue():
            return value.name
        case frozenset():
            return "{" + ", ".join(map(format_value, canonical_sorted(value))) + "}"
        case tuple():
            return "<<" + ", ".join(map(format_value, value)) + ">>"
        case Fn():
            return _format_function(value)


_BITS_AT_ONCE = 14_000
"""Python refuses to write integers of more than 4,300 digits in one go."""


def _digits(number: int) -> str:
    if number.bit_length() < _BITS_AT_ONCE:
        return str(number)
    if number < 0:
        return f"-{_digits(-number)}"
    low_digits = number.bit_length() * 3 // 20
    high, low = divmod(number, 10**low_digits)
    return _digits(high) + _digits(low).zfill(low_digits)


def abridged_value(value: Value, limit: int) -> str:
    """The beginning of what `format_value` gives, with "..." after so many characters.

    However large or deep the value is, no more of it is looked at than is shown; of a large set
    the elements that come first in canonical order are found without sorting the others.
    """
    room, parts = limit, list[str]()
    for piece in _pieces(value, limit):
        if len(piece) > room:
            return f"{''.join(parts)}{piece[:room]}..."
        room -= len(piece)
        parts.append(piece)
    return "".join(parts)


def _pieces(value: Value, limit: int) -> Iterator[str]:
    match value:
        case bool() | ModelValue():
            yield format_value(value)
        case int():
            surplus = value.bit_length() * 3 // 10 - 2 * limit
            yield format_value(value if surplus < 0 else value // 10**surplus)
        case str():
            yield format_value(value[: limit + 1])
        case frozenset():
            yield "{"
            yield from _listed(_first(value, limit), limit)
            yield "}"
        case tuple():
            yield "<<"
            yield from _listed(value, limit)
            yield ">>"
        case Fn():
            yield from _pieces_of_function(value, limit)


def _listed(items: Iterable[Value], limit: int) -> Iterator[str]:
    for number, item in enumerate(items):
        if number:
            yield ", "
        yield from _pieces(item, limit)


def _first(items: Collection[Value], limit: int) -> Sequence[Value]:
    """The items in canonical order, so many that they fill the room."""
    if len(items) <= limit:
        return canonical_sorted(items)
    return nsmallest(limit, items, key=canonical_key)


def _pieces_of_function(function: Fn, limit: int) -> Iterator[str]:
    record = all(type(key) is str and _IDENTIFIER.fullmatch(key) for key in function)
    yield "[" if record else "("
    for number, key in enumerate(_first(function.mapping.keys(), limit)):
        if number:
            yield ", " if record else " @@ "
        if record:
            yield f"{key} |-> "
        else:
            yield from _pieces(key, limit)
            yield " :> "
        yield from _pieces(function[key], limit)
    yield "]" if record else ")"


def _format_function(function: Fn) -> str:
    if all(type(key) is str and _IDENTIFIER.fullmatch(key) for key in function):
        fields = [f"{key} |-> {format_value(function[key])}" for key in canonical_sorted(function)]
        return f"[{', '.join(fields)}]"
    pairs = [
        f"{format_value(key)} :> {format_value(function[key])}"
        for key in canonical_sorted(function)
    ]
    return f"({' @@ '.join(pairs)})"
