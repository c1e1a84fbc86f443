"""The spec as a report asks it: what was allowed, and why a formula is false."""

from __future__ import annotations

import pytest

from conformance.audit.explain import EvaluatedSpec
from conformance.tla.values import Action
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
    lines = "\n".join(view.explain("CountIsLength", FREED, ("nobody", 2, ("a",))))
    assert "count" in lines
    assert "2" in lines


@pytest.mark.parametrize(
    ("formula", "words"),
    [("CountNeverFalls", "count'"), ('Take("a")', "holder"), ("Drop", "holder")],
)
def test_a_step_is_explained_by_both_of_its_states(
    view: EvaluatedSpec, formula: str, words: str
) -> None:
    lines = view.explain(formula, TAKEN, INITIAL)
    assert any(words in line for line in lines)
    assert len(lines) > 1
