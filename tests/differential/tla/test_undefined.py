"""Where TLC cannot evaluate a formula, neither can we; where it can, nor do we give up."""

from __future__ import annotations

import pytest

from conformance.errors import SpecError
from conformance.tla import bind, load_module, parse_config
from conformance.tla.search import problem_of
from tests.differential.tla.undefined import (
    CONFIG,
    INVARIANTS,
    LAX,
    STEPS,
    tlc_outcome,
    write,
)

pytestmark = pytest.mark.tlc


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    formulas = {**INVARIANTS, **LAX}
    definitions = [f"Inv{i} == {text}" for i, (text, _) in enumerate(formulas.values())]
    definitions += [f"Next{i} == {text}" for i, (text, _) in enumerate(STEPS.values())]
    workspace = write(tmp_path_factory.mktemp("undefined"), definitions, "NEXT Next0\n")
    return load_module(workspace.module)


def bound(module, next_name):
    return bind(module, parse_config(f"{CONFIG}NEXT {next_name}\n"))


@pytest.mark.parametrize("name", INVARIANTS)
def test_a_formula_has_a_value_where_tlc_finds_one(name, module):
    spec = bound(module, "Next3")
    (state,) = spec.initial_states()
    holds = spec.state_formula(f"Inv{list(INVARIANTS).index(name)}")
    expected = INVARIANTS[name][1]
    if expected == "error":
        with pytest.raises(SpecError, match="Formulas:"):
            holds(state)
    else:
        assert holds(state) == (expected == "pass")


@pytest.mark.parametrize("name", STEPS)
def test_a_step_exists_where_tlc_finds_one(name, module):
    if STEPS[name][1] == "error":
        with pytest.raises(SpecError, match="Formulas:"):
            _successors(module, name)
    else:
        assert _successors(module, name) == []


def _successors(module, name):
    spec = bound(module, f"Next{list(STEPS).index(name)}")
    (state,) = spec.initial_states()
    return list(spec.successors(state))


def test_a_false_assumption_ends_the_search_before_it_begins(tmp_path):
    definitions = ["ASSUME Small == 2 < 1", "Next == UNCHANGED <<x, s, f>>"]
    workspace = write(tmp_path, definitions, "NEXT Next\n")
    with pytest.raises(SpecError, match=r"Formulas:6:.* assumption Small is false"):
        problem_of(workspace.spec())


@pytest.mark.parametrize("name", LAX)
def test_where_tlc_refuses_we_may_find_a_value(name, module):
    spec = bound(module, "Next3")
    (state,) = spec.initial_states()
    number = len(INVARIANTS) + list(LAX).index(name)
    assert spec.state_formula(f"Inv{number}")(state) is LAX[name][1]


@pytest.mark.parametrize("name", ["the same the other way round", "EXCEPT outside the domain"])
def test_the_table_is_tlcs(name):
    formula, expected = INVARIANTS[name]
    assert tlc_outcome(formula) == expected
