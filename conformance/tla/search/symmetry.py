"""Symmetry of states: the permutations of model values under which states count as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.tla.errors import SpecError
from conformance.tla.values import (
    Fingerprinter,
    Fn,
    ModelValue,
    Sharing,
    State,
    Value,
    format_value,
    tagged,
)

Permutation = Mapping[ModelValue, ModelValue]
"""Model values that change places; others stay."""


def permutations_of(value: Value) -> tuple[Permutation, ...]:
    """The group that a set of functions generates, the identity among it.

    SpecError for what is no set of permutations of model values. As in TLC, `Permutations(S)
    \\union Permutations(T)` gives those that permute both S and T.
    """
    if not isinstance(value, frozenset):
        raise _no_permutation(value)
    generators = [_permutation(item) for item in value]
    identity: dict[ModelValue, ModelValue] = {}
    group = {frozenset[tuple[ModelValue, ModelValue]](): identity}
    queue = [identity]
    for known in queue:
        for generator in generators:
            made = _composed(known, generator)
            key = frozenset(made.items())
            if key not in group:
                group[key] = made
                queue.append(made)
    return tuple(queue)


def _permutation(value: Value) -> Permutation:
    if not isinstance(value, Fn):
        raise _no_permutation(value)
    pairs = {k: v for k, v in value.items() if isinstance(k, ModelValue)}
    images = {v for v in pairs.values() if isinstance(v, ModelValue)}
    if len(pairs) < len(value) or images != pairs.keys():
        raise _no_permutation(value)
    return {k: v for k, v in pairs.items() if isinstance(v, ModelValue) and k is not v}


def _no_permutation(value: Value) -> SpecError:
    return SpecError(
        f"SYMMETRY needs a set of permutations of model values, such as Permutations(S) of a set "
        f"of model values S; {format_value(value)[:200]} is no such permutation."
    )


def _composed(first: Permutation, then: Permutation) -> dict[ModelValue, ModelValue]:
    images = {x: then.get(first.get(x, x), first.get(x, x)) for x in {*first, *then}}
    return {x: image for x, image in images.items() if image is not x}


class Orbits:
    """A fingerprint that is the same for all states that a permutation makes of one another.

    It is that of the least state of the orbit, where the variables count one after the other, the
    smallest values first: whatever makes a small value least is tried on the next, so that large
    values meet few permutations. Equal values are made one object, by which what was found of them
    is remembered.
    """

    def __init__(self, permutations: Sequence[Permutation]) -> None:
        self._shared = Sharing()
        self._sizes: dict[int, int] = {}
        self._every = _Candidates(tuple(map(_SymmetryRenaming, permutations)), {})

    def __call__(self, state: State) -> int:
        """The orbit's fingerprint."""
        state = self._shared(state)
        sizes = [self._sizes.get(id(value)) or self._size(value) for value in state]
        least, left = [b""] * len(state), self._every
        for variable in sorted(range(len(state)), key=sizes.__getitem__):
            least[variable], left = left.least(state[variable])
        return int.from_bytes(tagged(state, least)[1:9], "big", signed=True)

    def _size(self, value: Value) -> int:
        """How many values it is made of; the same in all states of an orbit."""
        size = self._sizes[id(value)] = _size(value)
        return size


def _size(value: Value) -> int:
    if isinstance(value, Fn):
        return 1 + sum(_size(key) + _size(item) for key, item in value.mapping.items())
    return 1 + sum(map(_size, value)) if isinstance(value, tuple | frozenset) else 1


class _Candidates:
    """Permutations that make the values so far least; `family` has one object for each set."""

    __slots__ = ("_family", "_known", "_renamings")

    def __init__(
        self,
        renamings: tuple[_SymmetryRenaming, ...],
        family: dict[tuple[_SymmetryRenaming, ...], _Candidates],
    ) -> None:
        self._renamings = renamings
        self._family = family
        self._known: dict[int, tuple[bytes, _Candidates]] = {}

    def least(self, value: Value) -> tuple[bytes, _Candidates]:
        """The least encoding that they make of the value, and those that make it."""
        entry = self._known.get(id(value))
        if entry is None:
            entry = self._known[id(value)] = self._of(value)
        return entry

    def _of(self, value: Value) -> tuple[bytes, _Candidates]:
        encodings = [renaming.encoding(value) for renaming in self._renamings]
        least = min(encodings)
        pairs = zip(self._renamings, encodings, strict=True)
        left = tuple(renaming for renaming, encoding in pairs if encoding == least)
        return least, self._family.setdefault(left, _Candidates(left, self._family))


class _SymmetryRenaming(Fingerprinter):
    """The encoding of a value in which model values have changed places."""

    __slots__ = ("_permutation",)

    def __init__(self, permutation: Permutation) -> None:
        super().__init__(limit=200_000)
        self._permutation = permutation

    def encoding(self, value: Value) -> bytes:
        """What this permutation makes of a value that nobody gives up."""
        return self._encode(value)

    def _encode(self, value: Value) -> bytes:
        if not isinstance(value, ModelValue):
            return super()._encode(value)
        # Model values live for ever, so that their identity is a key.
        return self._encodings.setdefault(
            id(value), tagged(self._permutation.get(value, value), ())
        )
