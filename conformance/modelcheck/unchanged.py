"""Which overrides of a model change nothing: no state and no step is another without them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from conformance.errors import SpecError
from conformance.modelcheck.cache import Cache
from conformance.modelcheck.form import Check
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import PreparedModel, bound_again
from conformance.tla.search import ObservedProblem, PairResult, SearchLimits, compare, problem_of

MOST_STATES = 5_000
"""Of both sides and all overrides together: a search that comes to no end here says nothing."""

_KIND = "idle-overrides"


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

    An override that a checked formula depends on is none of them. The search ends at the first
    difference; all searches together meet `most` states, and what comes later is not named.
    """
    names: list[str] = []
    for name in overridden_operators(prepared):
        result = _with_and_without(prepared, name, most)
        if result is None:
            continue
        most -= sum(result.states)
        if result.equal:
            names.append(name)
        if most <= 0:
            break
    return tuple(names)


def known_idle_overrides(
    cache: Cache | None, key: str, prepared: Callable[[], PreparedModel]
) -> tuple[str, ...]:
    """The same of the model with this key, from the cache if it has it."""
    blob = None if cache is None else cache.load(_KIND, key)
    if blob is not None:
        return tuple(blob.decode().split())
    names = idle_overrides(prepared())
    if cache is not None:
        cache.store(_KIND, key, " ".join(names).encode())
    return names


def _with_and_without(prepared: PreparedModel, name: str, most: int) -> PairResult | None:
    """The model beside itself without an override; None where that says nothing."""
    model, check = bounds_only(prepared.model), prepared.model.check
    try:
        specs = [
            bound_again(side, prepared.module).spec
            for side in (without_overrides(model, [name]), model)
        ]
        if specs[0].formulas_use((*check.invariants, *check.properties), name):
            return None
        if any(spec.depends_on_search for spec in specs):
            return None
        old, new = (
            ObservedProblem(problem_of(spec), spec.variables, lambda state: state) for spec in specs
        )
        return compare(old, new, SearchLimits(states=most))
    except SpecError:  # the evaluator has no answer where one of the two has no value
        return None
