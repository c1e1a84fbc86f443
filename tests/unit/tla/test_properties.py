"""Temporal formulas are taken apart once, and a search checks of them what it can."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import UnsupportedError, infer_schema
from conformance.tla.search import FormulaKind, Verdict, problem_of, search
from conformance.tla.spark import compile_action_formulas
from conformance.tla.spark.formulas import conjoin
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

CLOCK = r"""
VARIABLE h
Init == h = 0
Next == h' = (h + 1) % 3
Fair == WF_h(Next)
Spec == Init /\ [][Next]_h /\ Fair
Ticks == [][h' # h]_h /\ []<>(h = 0)
Abstract == h \in {0, 7} /\ [](h < 3) /\ [][h' = h + 1 \/ h' = 0]_h
Starts == h = 1
Everywhere == \A n \in 0 .. 2 : <>(h = n)
Enabled == [](ENABLED Next)
Small == [](h < 3)
Grows == [][h' # h]_h
Both == Small /\ Grows
"""


def results(tmp_path: Path, properties: str) -> dict[tuple[str, str], str]:
    bound = spec(tmp_path, CLOCK, f"SPECIFICATION Spec\nPROPERTIES {properties}\n")
    found = search(problem_of(bound)).formulas
    return {(one.name, str(one.kind)): str(one.verdict) for one in found if one.name != "deadlock"}


def test_each_part_is_held_against_what_it_speaks_of(tmp_path: Path) -> None:
    assert results(tmp_path, "Abstract") == {
        ("Abstract", "invariant"): "pass",
        ("Abstract", "initial property"): "pass",
        ("Abstract", "action property"): "pass",
    }


def test_an_initial_part_is_no_invariant(tmp_path: Path) -> None:
    assert results(tmp_path, "Starts") == {("Starts", "initial property"): "fail"}


def test_what_takes_a_whole_behaviour_stays_open_and_the_rest_is_checked(tmp_path: Path) -> None:
    assert results(tmp_path, "Ticks Everywhere") == {
        ("Ticks", "action property"): "pass",
        ("Ticks", "temporal property"): "inconclusive",
        ("Everywhere", "temporal property"): "inconclusive",
    }


def test_enabled_is_a_formula_of_one_state(tmp_path: Path) -> None:
    assert results(tmp_path, "Enabled") == {("Enabled", "invariant"): "pass"}


def test_the_place_of_what_is_unchecked_is_told(tmp_path: Path) -> None:
    bound = spec(tmp_path, CLOCK, "SPECIFICATION Spec\nPROPERTY Ticks\n")
    (place,) = bound.property_of("Ticks").unchecked
    assert (place.line, place.column) == (9, 26)


def test_a_property_of_initial_states_is_no_formula_of_a_step(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="Abstract is a temporal formula"):
        spec(tmp_path, CLOCK, "SPECIFICATION Spec").action_formula("Abstract")


def test_both_back_ends_take_a_property_of_steps_apart_alike(tmp_path: Path) -> None:
    bound = spec(tmp_path, CLOCK, "SPECIFICATION Spec")
    schema = infer_schema(bound.variables, bound.initial_states())

    both, small, grows = compile_action_formulas(bound.program, ["Both", "Small", "Grows"], schema)

    assert both.formula == conjoin([small.formula, grows.formula])
    holds = bound.action_formula("Both")
    assert [holds((now,), (then,)) for now, then in [(0, 1), (0, 0), (0, 5), (7, 8)]] == [
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("name", ["Abstract", "Ticks", "Spec", "Everywhere"])
def test_both_back_ends_refuse_what_says_more_than_steps(tmp_path: Path, name: str) -> None:
    bound = spec(tmp_path, CLOCK, "SPECIFICATION Spec")
    schema = infer_schema(bound.variables, bound.initial_states())

    with pytest.raises(UnsupportedError) as by_python:
        bound.action_formula(name)
    with pytest.raises(UnsupportedError) as by_spark:
        compile_action_formulas(bound.program, [name], schema)

    told = str(by_python.value)
    assert f"{name} is a temporal formula that is not of the form [][A]_v" in told
    assert str(by_spark.value) == told.replace("the Python evaluator", "the Spark back end")


def test_a_module_that_only_assumes_has_no_states(tmp_path: Path) -> None:
    found = search(problem_of(spec(tmp_path, "ASSUME 1 + 1 = 2")))
    assert (found.states, found.generated) == ((), 0)
    assert {one.verdict for one in found.formulas} == {Verdict.INCONCLUSIVE}
    assert {one.kind for one in found.formulas} == {FormulaKind.DEADLOCK}
