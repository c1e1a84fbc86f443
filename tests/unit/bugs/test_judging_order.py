"""Which tests a mutant meets first: those that run what few others run behind its statement."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from conformance.bugs.judge import _MutantBench, _rarest_first
from conformance.bugs.mutants import Mutant
from conformance.bugs.reach import Statement, StatementReach

STARTS = [0, 10, 20, 30, 40, 50]
NUMBERS = {Statement("file.py", start): number for number, start in enumerate(STARTS)}


def bench(name: str, *tests: str) -> _MutantBench:
    """A model whose tests run these statements: `x` where one runs the statement in that place."""
    rows = np.array([[place == "x" for place in test] for test in tests], np.uint8)
    suite = SimpleNamespace(tests=[range(len(tests) - number) for number in range(len(tests))])
    reach = StatementReach(np.packbits(rows, axis=1))
    none = cast("Any", None)
    return _MutantBench(name, none, cast("Any", suite), none, NUMBERS, reach)


def mutant(start: int) -> Mutant:
    return Mutant("file.py", 1, "comparison", start, start + 1, "<", ">", start)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        # Of what follows, the return at 20 is common, and what stands at 30 is rare.
        (10, [("large", [1, 0]), ("small", [0, 1])]),
        (50, [("large", [0])]),
        (0, []),
    ],
)
def test_the_rare_branch_goes_first(start: int, expected: list[tuple[str, list[int]]]) -> None:
    small = bench("small", ".xx...", ".xx...")
    large = bench("large", ".xx..x", ".x.x..")
    order = _rarest_first(mutant(start), [small, large], STARTS)
    assert [(model.name, tests) for model, tests in order] == expected
