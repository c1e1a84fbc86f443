"""TLCGet("level"), which only a search of states can answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import EvaluationError, Spec, UnsupportedError
from conformance.tla.search import problem_of, search
from tests.unit.tla.small import spec

COUNTER = """
VARIABLE n
Init == n = 0
Next == n' = n + 1
Bound == TLCGet("level") < 4
Shallow == TLCGet("level") < 3
Register(i) == TLCGet(i) = 0
Elsewhere == Register(n)
"""


@pytest.fixture
def counter(tmp_path: Path) -> Spec:
    return spec(tmp_path, COUNTER, "INIT Init\nNEXT Next\nCONSTRAINT Bound\nINVARIANT Shallow\n")


def test_a_constraint_bounds_the_depth_of_a_search(tmp_path: Path) -> None:
    bounded = spec(tmp_path, COUNTER, "INIT Init\nNEXT Next\nCONSTRAINT Bound\n")
    # The successors of a state are asked at its own level: those of the third are kept.
    assert [n for (n,) in search(problem_of(bounded)).states] == [0, 1, 2, 3]


def test_an_invariant_is_asked_of_a_successor_at_the_level_of_its_source(counter: Spec) -> None:
    violated = search(problem_of(counter)).violated
    assert violated is not None
    assert violated.counterexample is not None
    assert violated.counterexample.states == ((0,), (1,), (2,), (3,))


def test_outside_of_a_search_it_has_no_value(counter: Spec) -> None:
    search(problem_of(counter))
    with pytest.raises(EvaluationError, match="in a search of states only"):
        counter.state_formula("Shallow")((0,))


def test_a_register_that_nobody_set_has_no_value(counter: Spec) -> None:
    with pytest.raises(EvaluationError, match=r"TLCGet\(5\) is read before"):
        counter.state_formula("Elsewhere")((5,))


def test_what_tlc_tells_of_itself_is_refused(tmp_path: Path) -> None:
    other = spec(tmp_path, 'VARIABLE n\nFull == TLCGet("spec") = 0')
    with pytest.raises(UnsupportedError, match=r'TLCGet\("spec"\) is not supported'):
        other.state_formula("Full")((0,))
