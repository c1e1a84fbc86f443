"""Which overrides of a model change nothing: no state and no step is another without them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from conformance.modelcheck.form import Check
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import PreparedModel, bound_again
from conformance.tla.search import ObservedProblem, SearchEnd, SearchLimits, compare, problem_of

MOST_STATES = 100_000
"""Of both sides together: a search that comes to no end here says nothing."""


def bounds_only(model: Model) -> Model:
    """The model with what bounds it, and without what judges it or merges states."""
    check = model.check
    bounds = Check(
        specification=check.specification,
        init=check.init,
        next=check.next,
        constraints=check.constraints,
        action_constraints=check.action_constraints,
    )
    return replace(model, check=bounds, expect=None, feeds_suite=False, situations=())


def without_overrides(model: Model, names: Iterable[str]) -> Model:
    """The model with these operators as its specification defines them."""
    left = {name: other for name, other in model.overrides.items() if name not in {*names}}
    return replace(model, overrides=left, feeds_suite=False)


def overridden_operators(prepared: PreparedModel) -> tuple[str, ...]:
    """The overrides that can be left out: those of constants cannot, which need a value."""
    constants = {constant.name for constant in prepared.module.constants}
    return tuple(name for name in prepared.model.overrides if name not in constants)


def idle_overrides(prepared: PreparedModel, most: int = MOST_STATES) -> tuple[str, ...]:
    """The overrides without which, one at a time, the model has the same states and steps.

    The search ends at the first difference. An override for which it came to no end is not named.
    """
    return tuple(name for name in overridden_operators(prepared) if _is_idle(prepared, name, most))


def _is_idle(prepared: PreparedModel, name: str, most: int) -> bool:
    model = bounds_only(prepared.model)
    sides = (without_overrides(model, [name]), model)
    specs = [bound_again(side, prepared.module).spec for side in sides]
    if any(spec.depends_on_search for spec in specs):
        return False
    old, new = (
        ObservedProblem(problem_of(spec), spec.variables, lambda state: state) for spec in specs
    )
    result = compare(old, new, SearchLimits(states=most))
    return result.end is SearchEnd.EXHAUSTED and result.equal
