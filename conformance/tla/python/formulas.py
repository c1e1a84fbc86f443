"""Formulas of a specification, compiled: of states, of steps, and the disjuncts of an action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.tla.front import syntax as s
from conformance.tla.python.explain import Explanation
from conformance.tla.values import State, Value


@dataclass(frozen=True, slots=True)
class StateFormula:
    """A formula of one state: `formula(state)` is its truth, EvaluationError where undefined."""

    name: str
    definition: s.Definition
    _call: Callable[[State], bool]
    _explain: Callable[[State], Explanation]

    @property
    def location(self) -> s.Location:
        """Where the formula stands."""
        return self.definition.location

    def __call__(self, state: State) -> bool:
        return self._call(state)

    def explain(self, state: State) -> Explanation:
        """Why the formula has the value that it has."""
        return self._explain(state)


@dataclass(frozen=True, slots=True)
class ActionFormula:
    """A formula of a state and its successor: `formula(state, next_state)`."""

    name: str
    args: tuple[Value, ...]
    definition: s.Definition
    _call: Callable[..., bool]
    _explain: Callable[[State, State], Explanation]

    @property
    def location(self) -> s.Location:
        """Where the formula stands."""
        return self.definition.location

    def __call__(self, state: State, next_state: State) -> bool:
        return self._call(state, next_state, *self.args)

    def explain(self, state: State, next_state: State) -> Explanation:
        """Why the formula has the value that it has."""
        return self._explain(state, next_state)


@dataclass(frozen=True, slots=True)
class ActionBranches:
    """The disjuncts of an action instance: `branches(state, next_state)` are those of a step.

    Bit n of the result stands for `places[n]`; -1 if the step is none of the action.
    """

    places: tuple[s.Location, ...]
    args: tuple[Value, ...]
    _call: Callable[..., int]

    def __call__(self, state: State, next_state: State) -> int:
        return self._call(state, next_state, *self.args)


@dataclass(frozen=True, slots=True)
class Property:
    """A temporal property as a search meets it: of initial states, of all states, of steps.

    `unchecked` are the places of the conjuncts that take a whole behaviour to judge.
    """

    name: str
    location: s.Location
    initial: StateFormula | None
    always: StateFormula | None
    step: ActionFormula | None
    unchecked: tuple[s.Location, ...]
