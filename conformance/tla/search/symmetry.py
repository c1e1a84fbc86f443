"""Symmetry of states: the permutations of model values under which states count as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.tla.errors import SpecError
from conformance.tla.values import Fingerprinter, Fn, ModelValue, State, Value, format_value, tagged

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
    """A fingerprint that is the same for all states that a permutation makes of one another."""

    def __init__(self, permutations: Sequence[Permutation]) -> None:
        self._fingerprints = [_Renaming(permutation) for permutation in permutations]

    def __call__(self, state: State) -> int:
        """The least fingerprint of the states that are the same as this one."""
        return min(fingerprint(state) for fingerprint in self._fingerprints)


class _Renaming(Fingerprinter):
    """The fingerprint of a value in which model values have changed places."""

    __slots__ = ("_permutation",)

    def __init__(self, permutation: Permutation) -> None:
        super().__init__(limit=200_000)
        self._permutation = permutation

    def _encode(self, value: Value) -> bytes:
        if not isinstance(value, ModelValue):
            return super()._encode(value)
        # Model values live for ever, so that their identity is a key.
        return self._encodings.setdefault(
            id(value), tagged(self._permutation.get(value, value), ())
        )
