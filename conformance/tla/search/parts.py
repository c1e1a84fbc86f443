"""States whose equal parts are one object, and the key of each state.

    key of a state = xor of the keys of its variables' values
    of a function: xor of the keys of (variable, argument, result)
    of any other value: the key of (variable, value)

So the key of a successor follows from what changes, before there is a successor. Two states have
the same key as rarely as with any fingerprint of 64 bits, and it depends on values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from conformance.tla.python.traced import has_boolean_argument
from conformance.tla.semantics.kinds import match_elements
from conformance.tla.values import Fingerprinter, Fn, State, Value

__all__ = ["StateParts"]

_REMEMBERED = 100_000
"""Objects of which it is remembered which part they equal."""


class _ComparableElements(Fingerprinter):
    """Fingerprints of values whose sets TLC can sort; EvaluationError for others.

    TLC sorts the sets of a state before it takes its fingerprint (SetEnumValue.normalize).
    """

    __slots__ = ()

    def _parts(self, value: Value) -> list[bytes]:
        if isinstance(value, frozenset) and len(value) > 1:
            match_elements(value)
        return super()._parts(value)


class StateParts:
    """The values that the variables of a search have had, and the results of their functions."""

    def __init__(self, variables: int) -> None:
        self.with_booleans = frozenset[int]()
        """The variables that were a function of booleans, which Python takes for 0 and 1."""
        self._encode = _ComparableElements()._encode
        self._results: dict[bytes, Value] = {}
        self._variables = [_VariableParts(self, index) for index in range(variables)]

    def state(self, state: State) -> tuple[State, int]:
        """The state made of the values that were met first, and its key."""
        key, values = 0, list[Value]()
        for variable, value in zip(self._variables, state, strict=True):
            part, part_key = variable.part(value)
            values.append(part)
            key ^= part_key
        return tuple(values), key

    def variable(self, index: int) -> _VariableParts:
        """The values of the variable at that position."""
        return self._variables[index]

    def first(self, value: Value) -> tuple[Value, bytes]:
        """Of equal results the one that was met first, and its encoding."""
        encoded = self._encode(value)
        return self._results.setdefault(encoded, value), encoded

    def encoding(self, value: Value) -> bytes:
        """A prefix-free encoding."""
        return self._encode(value)


class _VariableParts:
    """The values of one variable."""

    def __init__(self, parts: StateParts, index: int) -> None:
        self._parts = parts
        self._index = index
        self._prefix = b"%d" % index
        self._values: dict[int, Value] = {}
        self._keys: dict[int, int] = {}
        """By the identity of these values, which live as long as we do."""
        self._equal: dict[int, tuple[Value, Value, int]] = {}
        """By identity: a value, the one that was met first, its key."""
        self._results: dict[tuple[int, int], tuple[Value, int, Value, Value]] = {}

    def part(self, value: Value) -> tuple[Value, int]:
        """Of equal values the one that was met first, and its key."""
        key = self._keys.get(id(value))
        if key is not None:
            return value, key
        known = self._equal.get(id(value))
        if known is None:
            if len(self._equal) >= _REMEMBERED:
                self._equal.clear()
            known = self._equal[id(value)] = (value, *self._first(value))
        return known[1], known[2]

    def _first(self, value: Value) -> tuple[Value, int]:
        if isinstance(value, Fn):
            if has_boolean_argument(value):
                self._parts.with_booleans |= {self._index}
            mapping, key = dict[Value, Value](), 0
            for argument, result in value.mapping.items():
                mapping[argument], element = self.result(argument, result)
                key ^= element
            return self._kept(key, Fn(mapping))
        if isinstance(value, tuple) and value:
            items, key = list[Value](), 0
            for argument, result in enumerate(value, 1):
                item, element = self.result(argument, result)
                items.append(item)
                key ^= element
            return self._kept(key, tuple(items))
        first, encoded = self._parts.first(value)
        return self._kept(self._digest(b"=", encoded), first)

    def _kept(self, key: int, value: Value) -> tuple[Value, int]:
        first = self._values.setdefault(key, value)
        self._keys[id(first)] = key
        return first, key

    def _digest(self, tag: bytes, encoded: bytes) -> int:
        return int.from_bytes(blake2b(self._prefix + tag + encoded, digest_size=8).digest())

    def result(self, argument: Value, result: Value) -> tuple[Value, int]:
        """Of equal results the one that was met first, and the key of argument and result."""
        known = self._results.get((id(argument), id(result)))
        if known is None:
            if len(self._results) >= _REMEMBERED:
                self._results.clear()
            first, encoded = self._parts.first(result)
            key = self._digest(b":", self._parts.encoding(argument) + encoded)
            known = self._results[id(argument), id(result)] = (first, key, argument, result)
        return known[0], known[1]

    def changed(self, old: Value, results: Mapping[Value, Value], change: int) -> Value:
        """`old` with these results, by argument; its key is that of `old` xor `change`."""
        key = self._keys[id(old)] ^ change
        known = self._values.get(key)
        if known is not None:
            return known
        if isinstance(old, Fn):
            return self._kept(key, Fn({**old.mapping, **results}))[0]
        assert isinstance(old, tuple)
        items = [results.get(argument, item) for argument, item in enumerate(old, 1)]
        return self._kept(key, tuple(items))[0]
