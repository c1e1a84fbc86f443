"""The specification as the search asks it: what an event may have been, what may happen unseen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from conformance.tla import Action, ActionPattern, Selection, Spec, State

Step = tuple[Action, State]


class Steps(Protocol):
    """A next-state relation. Either raises EvaluationError where it has no value."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables, in the order of a state's values."""

    def taken(self, state: State, patterns: Sequence[ActionPattern]) -> Sequence[Step]:
        """Every step by one of these actions."""

    def silent(self, state: State) -> Sequence[Step]:
        """Every step that may happen unseen."""


class SpecSteps:
    """The steps of a bound spec, its actions found by their patterns, once for each pattern."""

    def __init__(self, spec: Spec, silent: Sequence[ActionPattern]) -> None:
        self._spec = spec
        self._silent = spec.select(silent)
        self._selections: dict[tuple[str, ...], Selection] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        return self._spec.variables

    def taken(self, state: State, patterns: Sequence[ActionPattern]) -> Sequence[Step]:
        return self._spec.successors_in(self.selection(patterns), state)

    def selection(self, patterns: Sequence[ActionPattern]) -> Selection:
        """The instances of these patterns; SpecError and TooManyInstances as of `Spec.select`."""
        key = tuple(map(str, patterns))
        found = self._selections.get(key)
        if found is None:
            found = self._selections[key] = self._spec.select(patterns)
        return found

    def silent(self, state: State) -> Sequence[Step]:
        return self._spec.successors_in(self._silent, state)
