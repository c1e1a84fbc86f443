"""Symmetry: groups of permutations, and states that count as one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations, product
from pathlib import Path

import pytest

from conformance.tla import Fn, ModelValue, SpecError, UnsupportedError, Value
from conformance.tla.search import problem_of, search
from conformance.tla.search.symmetry import Orbits, permutations_of
from tests.unit.tla.small import spec

A, B, C, D = map(ModelValue, "ABCD")
BITS = tuple(product((False, True), repeat=3))


def every(*values: ModelValue) -> frozenset[Value]:
    """Permutations(values)."""
    return frozenset(Fn(dict(zip(values, images, strict=True))) for images in permutations(values))


def swap(first: ModelValue, second: ModelValue) -> Fn:
    return Fn({first: second, second: first})


@pytest.mark.parametrize(
    ("functions", "size"),
    [
        (frozenset(), 1),
        (every(A), 1),
        (every(A, B, C), 6),
        (every(A, B) | every(C, D), 4),
        (frozenset([swap(A, B), swap(B, C)]), 6),
    ],
)
def test_functions_generate_a_group(functions: Value, size: int) -> None:
    assert len(permutations_of(functions)) == size


@pytest.mark.parametrize(
    "value",
    [1, frozenset([1]), frozenset([Fn({A: B})]), frozenset([Fn({A: B, B: B})]), frozenset([(A,)])],
)
def test_other_values_are_refused(value: Value) -> None:
    with pytest.raises(SpecError, match="SYMMETRY needs a set of permutations of model values"):
        permutations_of(value)


def test_states_that_a_permutation_makes_of_one_another_are_one() -> None:
    orbit = Orbits(permutations_of(every(A, B, C)))
    one = (A, Fn({A: 1, B: 2, C: 2}), (frozenset([A]), B))
    assert orbit(one) == orbit((B, Fn({B: 1, C: 2, A: 2}), (frozenset([B]), C)))
    assert orbit(one) != orbit((B, Fn({A: 1, B: 2, C: 2}), (frozenset([A]), B)))
    assert orbit((D, A)) == orbit((D, B)) != orbit((A, D))


def test_as_many_fingerprints_as_orbits() -> None:
    permutations_ = permutations_of(every(A, B, C) | every(D, ModelValue("E")))
    nodes, values = (A, B, C), (D, ModelValue("E"))
    subsets = [frozenset(n for n, bit in zip(nodes, bits, strict=True) if bit) for bits in BITS]
    states = [
        (Fn({A: x, B: y, C: z}), voted, frozenset([(x, voted)]))
        for x, y, z in product(values, repeat=3)
        for voted in subsets
    ]

    def renamed(permutation: Mapping[ModelValue, ModelValue], value: Value) -> Value:
        if isinstance(value, ModelValue):
            return permutation.get(value, value)
        if isinstance(value, Fn):
            pairs = value.mapping.items()
            return Fn({renamed(permutation, k): renamed(permutation, v) for k, v in pairs})
        assert isinstance(value, tuple | frozenset)
        return type(value)(renamed(permutation, item) for item in value)

    orbits = {frozenset(renamed(one, state) for one in permutations_) for state in states}
    orbit = Orbits(permutations_)
    assert len({orbit(state) for state in states}) == len(orbits)


VOTES = r"""
CONSTANT Nodes
VARIABLE votes
Init == votes = [n \in Nodes |-> 0]
Next == \E n \in Nodes : votes[n] < 2 /\ votes' = [votes EXCEPT ![n] = @ + 1]
Renaming == Permutations(Nodes)
Wrong == {[n \in Nodes |-> m] : m \in Nodes}
Total == <<votes>>
"""
CONFIG = "CONSTANT Nodes = {n1, n2, n3}\nINIT Init\nNEXT Next\n"


@pytest.mark.tlc
def test_a_search_counts_classes(tmp_path: Path) -> None:
    votes = spec(tmp_path, VOTES, f"{CONFIG}SYMMETRY Renaming\n")
    assert len(search(problem_of(votes)).states) == 10  # multisets of three numbers below three
    plain = spec(tmp_path, VOTES, CONFIG)
    assert len(search(problem_of(plain)).states) == 27


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("SYMMETRY Wrong\n", SpecError, "is no such permutation"),
        ("SYMMETRY Renaming\nVIEW Total\n", UnsupportedError, "both SYMMETRY Renaming and VIEW"),
    ],
)
def test_what_cannot_be_followed_is_an_error(
    line: str, error: type[SpecError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        problem_of(spec(tmp_path, VOTES, CONFIG + line))
