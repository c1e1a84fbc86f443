"""The bound spec as what the audit asks of it for the few steps that a report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.modelcheck.branches import BranchCounts
from conformance.tla import Action, EvaluationError, Spec, State


@dataclass(frozen=True, slots=True)
class EvaluatedSpec:
    """A `SpecView` by the Python evaluator."""

    spec: Spec

    def initial_states(self) -> Sequence[State]:
        """The states that Init allows."""
        return list(self.spec.initial_states())

    def successors(self, state: State, action: Action) -> Sequence[State]:
        """The states that the action leads to; none where it is not enabled or undefined."""
        try:
            return self.spec.successors_by(action, state)
        except EvaluationError:
            return []

    def explain(self, formula: str, state: State, next_state: State) -> Sequence[str]:
        """The evaluator's account of why the formula is false."""
        return self.spec.explain(formula, state, next_state).render().splitlines()

    def branches(self, frequencies: Mapping[tuple[str, int], int]) -> Mapping[str, int]:
        """Steps by disjunct, given steps by an action's name and the disjuncts that they took."""
        counts = BranchCounts(self.spec)
        for (name, together), steps in frequencies.items():
            counts.add(name, together, steps)
        return counts.by_place()
