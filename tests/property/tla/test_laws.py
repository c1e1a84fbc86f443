"""Laws of sets, functions and sequences hold for what the evaluator computes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.tla import ModelConfig, bind, load_module, make_function

pytestmark = pytest.mark.tlc

small = st.integers(-4, 6)
sets = st.frozensets(small, max_size=5)
keys = st.sampled_from(["p", "q", "r"])
functions = st.dictionaries(keys, small, min_size=1, max_size=3).map(make_function)
sequences = st.lists(small, max_size=5).map(tuple)
states = st.tuples(sets, sets, sets, small, small, functions, keys, sequences, sequences)


@pytest.fixture(scope="module")
def laws():
    module = load_module(Path(__file__).parent / "modules" / "Laws.tla")
    spec = bind(module, ModelConfig(init="Init", next="Next"))
    assert spec.variables == ("a", "b", "c", "x", "y", "f", "k", "s", "t")
    names = [name for name in module.operators if name.startswith("Law_")]
    assert len(names) > 40
    return spec, {name: spec.state_formula(name) for name in names}


@given(states)
def test_every_law_holds(laws, state):
    broken = [name for name, holds in laws[1].items() if not holds(state)]
    assert broken == []


def test_what_is_no_law_is_broken(laws):
    state = (frozenset({1}), frozenset(), frozenset(), 1, 0, make_function({"p": 1}), "p", (1,), ())
    wrong = laws[0].state_formula
    assert [wrong(name)(state) for name in ("Wrong_Subset", "Wrong_Except", "Wrong_Length")] == [
        False
    ] * 3
