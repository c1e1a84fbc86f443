"""Temporal formulas are taken apart once, and a search checks of them what it can."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.tla import SpecError, UnsupportedError, infer_schema
from conformance.tla.search import FormulaKind, SearchLimits, SearchVerdict, problem_of, search
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


def test_what_takes_a_whole_behaviour_is_judged_beside_the_rest(tmp_path: Path) -> None:
    assert results(tmp_path, "Ticks Everywhere") == {
        ("Ticks", "action property"): "pass",
        ("Ticks", "temporal property"): "pass",
        ("Everywhere", "temporal property"): "pass",
    }


COUNTERS = r"""
VARIABLES x, y
vars == <<x, y>>
Init == x = 0 /\ y = 0
Up == x < 2 /\ x' = x + 1 /\ y' = y
Down == x = 1 /\ x' = 0 /\ y' = y
Flip == x = 0 /\ y' = 1 - y /\ x' = x
Next == Up \/ Down \/ Flip
Free == Init /\ [][Next]_vars
Weak == Free /\ WF_vars(Next)
WeakUp == Free /\ WF_vars(Up)
StrongUp == Free /\ \A n \in 0 .. 1 : SF_vars(Up /\ x = n)
Both == StrongUp /\ SF_vars(Flip)
Top == <>(x = 2)
Stays == <>[](x = 2)
Often == []<>(x = 0)
Leads == (x = 1) ~> (x # 1)
Quiet == []<><<Flip>>_vars => <>[](x = 0)
Chosen == LET Is(n) == x = n IN \A n \in {1, 2} : Is(n) ~> (Is(0) \/ Is(2))
Named(P) == <>P
NamedTop == Named(x = 2)
Implied == IF x = 0 THEN Top ELSE []FALSE
Moving == <>[][Up]_vars
Same == Top <=> Stays
"""


@pytest.mark.parametrize(
    ("specification", "holds", "violated"),
    [
        ("Free", "Same", "Top Stays Often Leads NamedTop Implied Quiet Moving"),
        ("Weak", "Leads Chosen Same", "Top Stays Often Quiet Moving"),
        ("WeakUp", "Leads Chosen Same", "Top Stays NamedTop Implied Moving Often"),
        ("StrongUp", "Top Stays NamedTop Leads Moving Same Implied Quiet", "Often"),
        ("Both", "Top Stays Leads Quiet", "Often"),
    ],
)
def test_properties_of_whole_behaviours(
    tmp_path: Path, specification: str, holds: str, violated: str
) -> None:
    names = [*holds.split(), *violated.split()]
    config = f"SPECIFICATION {specification}\nPROPERTIES {' '.join(names)}\n"
    problem = problem_of(spec(tmp_path, COUNTERS, f"{config}CHECK_DEADLOCK FALSE\n"))
    found = search(problem, SearchLimits(stop_at_violation=False))
    assert {one.name: str(one.verdict) for one in found.formulas} == {
        name: "pass" if name in holds.split() else "fail" for name in names
    }
    assert all(
        one.counterexample is not None and one.counterexample.back_to is not None
        for one in found.formulas
        if one.verdict is SearchVerdict.FAIL
    )


def test_a_counterexample_goes_round_for_ever(tmp_path: Path) -> None:
    config = "SPECIFICATION Weak\nPROPERTY Top\nCHECK_DEADLOCK FALSE\n"
    found = search(problem_of(spec(tmp_path, COUNTERS, config))).violated
    assert found is not None
    path = found.counterexample
    assert path is not None
    assert path.back_to is not None
    assert path.states[path.back_to] == path.states[-1]
    assert path.back_to < len(path.steps)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ("SPECIFICATION Weak\nPROPERTY Top\nVIEW Seen\n", "Seen merges states"),
        ("SPECIFICATION Weak\nPROPERTY Mixed\n", "of this form is not supported"),
    ],
)
def test_what_is_not_judged_says_why(tmp_path: Path, config: str, why: str) -> None:
    text = COUNTERS + "Seen == x\nMixed == \\A n \\in {x} : <>(y = n)\n"
    problem = problem_of(spec(tmp_path, text, config))
    ((name, reason),) = problem.unchecked.items()
    assert why in reason
    found = search(problem).formulas
    assert [str(one.verdict) for one in found if one.name == name] == ["inconclusive"]


def test_a_property_that_is_always_true_is_refused(tmp_path: Path) -> None:
    text = COUNTERS + "Always == <>[]TRUE => TRUE\n"
    with pytest.raises(SpecError, match="Always says of whole behaviours is always true"):
        problem_of(spec(tmp_path, text, "SPECIFICATION Weak\nPROPERTY Always\n"))


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
    assert {one.verdict for one in found.formulas} == {SearchVerdict.INCONCLUSIVE}
    assert {one.kind for one in found.formulas} == {FormulaKind.DEADLOCK}
