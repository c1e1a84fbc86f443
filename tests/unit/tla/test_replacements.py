"""EXCEPT in generated code remembers what it made, and never gives another function."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import Fn, bind, load_module, parse_config
from conformance.tla.python.runtime import Replacements, replaced
from conformance.tla.values import equal

MODULE = r"""---- MODULE Swaps ----
EXTENDS Integers
VARIABLE f
Init == f = [i \in 0..3 |-> 0]
Next == \E i \in 0..3, v \in {1, 2} : f' = [f EXCEPT ![i] = v]
====
"""


def test_the_same_parts_give_the_same_object(tmp_path: Path) -> None:
    module = tmp_path / "Swaps.tla"
    module.write_text(MODULE)
    spec = bind(load_module(module), parse_config("INIT Init NEXT Next"))
    (initial,) = spec.initial_states()
    first, second = ([s[0] for _, s in spec.successors(initial)] for _ in range(2))
    assert first
    assert all(a is b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("limit", [1, 2, 1_000])
def test_every_result_is_that_of_replaced(limit: int) -> None:
    replacements = Replacements(limit)
    functions = [Fn({0: 0, "a": x}) for x in (0, 1, True)] + [(0, 1), (False, True)]
    for _ in range(3):
        for f in functions:
            for x in (0, "a") if isinstance(f, Fn) else (1, 2):
                for value in (0, False, 1, True, "b"):
                    assert equal(replacements(f, x, value), replaced(f, x, value))


def test_a_memory_that_is_of_no_use_ends() -> None:
    replacements, f = Replacements(limit=4), Fn({0: 0})
    for value in range(1_000, 1_010):
        replacements(f, 0, value)
    value = 2_000
    assert replacements(f, 0, value) is not replacements(f, 0, value)


def test_a_memory_of_use_starts_again_at_its_limit() -> None:
    replacements, f = Replacements(limit=4), Fn({0: 0})
    for value in range(1_000, 1_010):
        made = replacements(f, 0, value)
        assert replacements(f, 0, value) is made
        assert replacements(f, 0, value) is made
    assert len(replacements._known) <= 4
