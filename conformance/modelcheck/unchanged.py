"""Which overrides of a model change nothing: no state and no step is another without them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import cast

from conformance.errors import SpecError
from conformance.modelcheck.cache import Cache
from conformance.modelcheck.form import Check
from conformance.modelcheck.inheritance import inherited_overrides
from conformance.modelcheck.manifest import Model
from conformance.modelcheck.prepare import PreparedModel, bound_again
from conformance.story.behaviour import Step
from conformance.tla import ActionPattern, Spec, State
from conformance.tla.search import ObservedProblem, PairResult, SearchLimits, compare, problem_of

MOST_STATES = 5_000
"""Of both sides and all overrides together: a search that comes to no end here says nothing."""

_KIND = "idle-own-overrides"


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


def idle_overrides(
    prepared: PreparedModel,
    counterexample: Sequence[Step] = (),
    *,
    known_states: int = 0,
) -> tuple[str, ...]:
    """The overrides without which, one at a time, the model has the same states and steps.

    An override that a checked formula depends on is none of them, nor is one without which a step
    of the counterexample is not taken. Of a mutant the mutated operator alone is looked at, and of
    any other model what it does not inherit: that is looked at in the model that it extends. The
    search ends at the first difference; all searches together meet MOST_STATES, and what comes
    later is not named. The model has at least `known_states`: equal sides have as many each, so no
    search begins for which both are too many.
    """
    most = MOST_STATES
    overridden = overridden_operators(prepared)
    mutated = {prepared.model.mutant}.intersection(overridden)
    inherited = _inherited(prepared.model)
    own = [name for name in overridden if name not in inherited]
    with_all = cache(lambda: bound_again(bounds_only(prepared.model), prepared.module).spec)
    names: list[str] = []
    for name in mutated or own:
        if most <= 0 or 2 * known_states > most:
            break
        result = _with_and_without(prepared, name, with_all, counterexample, most)
        if result is None:
            continue
        most -= sum(result.states)
        if result.equal:
            names.append(name)
    return tuple(names)


def _inherited(model: Model) -> frozenset[str]:
    return inherited_overrides(model.origin) if model.origin.suffix == ".toml" else frozenset()


def known_idle_overrides(
    kept: Cache | None,
    key: str,
    prepared: Callable[[], PreparedModel],
    counterexample: Callable[[Sequence[str]], Sequence[Step]],
    known_states: int,
) -> tuple[str, ...]:
    """The same of the model with this key, from the cache if it has it."""
    if 2 * known_states > MOST_STATES:
        return ()
    blob = None if kept is None else kept.load(_KIND, key)
    if blob is not None:
        return tuple(blob.decode().split())
    model = prepared()
    names = idle_overrides(model, counterexample(model.spec.variables), known_states=known_states)
    if kept is not None:
        kept.store(_KIND, key, " ".join(names).encode())
    return names


def _with_and_without(
    prepared: PreparedModel,
    name: str,
    with_all: Callable[[], Spec],
    counterexample: Sequence[Step],
    most: int,
) -> PairResult | None:
    """The model beside itself without an override; None if that says nothing, or they differ.

    `with_all` is the specification with every override, bound once for all comparisons.
    """
    model, check = bounds_only(prepared.model), prepared.model.check
    try:
        without = bound_again(without_overrides(model, [name]), prepared.module).spec
        if without.formulas_use((*check.invariants, *check.properties), name):
            return None
        # What a step depends on is asked last: it takes the whole next-state relation.
        if _lacks_a_step(without, counterexample, name) or without.depends_on_search:
            return None
        if with_all().depends_on_search:
            return None
        old, new = (
            ObservedProblem(problem_of(side), side.variables, lambda state: state)
            for side in (without, with_all())
        )
        return compare(old, new, SearchLimits(states=most))
    except SpecError:  # the evaluator has no answer where one of the two has no value
        return None


def _lacks_a_step(spec: Spec, counterexample: Sequence[Step], name: str) -> bool:
    """Whether a step is none of the specification's, which lacks the override of `name`. This is
    much cheaper than two searches: only actions of the counterexample that use the operator are
    compiled. The last steps come first, since an error is mostly made shortly before it shows.

    The search compares an action whose name the specification lacks, as when an override replaces
    the whole action.
    """
    kinds = {*spec.kinds}
    for before, step in reversed([*pairwise(counterexample)]):
        if step.action is None or step.action.name not in kinds:
            continue
        if spec.module.operator(step.action.name) and not spec.formulas_use(
            (step.action.name,), name
        ):
            continue
        action = spec.select([ActionPattern(step.action.name, step.action.args)])
        state = cast("State", before.state)  # a counterexample has no unknown values
        if all(after != step.state for _, after in spec.successors_in(action, state)):
            return True
    return bool(counterexample) and counterexample[0].state not in spec.initial_states()
