"""The spec as a report asks it: what was allowed, and why a formula is false."""

from __future__ import annotations

import pytest

from conformance.audit.explain import EvaluatedSpec
from conformance.tla import Action, parse_action
from tests.spark.audit import lock
from tests.spark.audit.lock import INITIAL

pytestmark = pytest.mark.tlc

TAKEN, FREED = ("a", 1, ("a",)), ("nobody", 1, ("a",))


@pytest.fixture
def view() -> EvaluatedSpec:
    return EvaluatedSpec(lock.spec())


def test_what_is_allowed(view: EvaluatedSpec) -> None:
    assert list(view.initial_states()) == [INITIAL]
    assert list(view.successors(INITIAL, Action("Take", ("a",)))) == [TAKEN]
    assert list(view.successors(INITIAL, Action("Drop"))) == []


def test_where_an_action_has_no_value_nothing_is_allowed(view: EvaluatedSpec) -> None:
    assert list(view.successors(("nobody", "many", ()), Action("Take", ("a",)))) == []


def test_an_invariant_is_explained_in_the_state_after_the_step(view: EvaluatedSpec) -> None:
    wrong = ("nobody", 2, ("a",))
    formula = lock.spec().state_formula("CountIsLength")
    told = list(view.explain("CountIsLength", FREED, wrong))
    assert told == formula.explain(wrong).render().splitlines()
    assert told != formula.explain(FREED).render().splitlines()


@pytest.mark.parametrize("formula", ["CountNeverFalls", 'Take("a")', "Drop"])
def test_a_step_is_explained_as_the_evaluator_does(view: EvaluatedSpec, formula: str) -> None:
    step = lock.spec().action_formula(parse_action(formula))
    assert list(view.explain(formula, TAKEN, INITIAL)) == (
        step.explain(TAKEN, INITIAL).render().splitlines()
    )


def test_a_step_is_explained_by_both_of_its_states(view: EvaluatedSpec) -> None:
    steps = [(TAKEN, INITIAL), (("a", 2, ("a",)), INITIAL), (("a", 2, ("a",)), FREED)]
    told = {tuple(view.explain("CountNeverFalls", *step)) for step in steps}
    assert len(told) == 3
