"""Counts how often steps took each disjunct of a specification's actions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from conformance.errors import SpecError
from conformance.modelcheck.graph import StateGraph
from conformance.tla import Action, Location, Spec, State


class BranchCounts:
    """Steps by the disjuncts that they took. What has no value counts nowhere."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._taken: Counter[tuple[str, int]] = Counter()

    def asks(self, name: str) -> bool:
        """Whether an action has disjuncts: of the others nothing needs to be asked."""
        return bool(self._spec.branch_places(name))

    def taken(self, action: Action, state: State, next_state: State) -> int:
        """The disjuncts that a step takes, as `ActionBranches` gives them."""
        if not self.asks(action.name):
            return 0
        try:
            return max(0, self._spec.branches(action)(state, next_state))
        except SpecError:
            return 0

    def add(self, name: str, taken: int, steps: int = 1) -> None:
        """Count steps of an action that took these disjuncts."""
        if taken:
            self._taken[name, taken] += steps

    def count(self, state: State, action: Action, next_state: State) -> None:
        """Count one step."""
        self.add(action.name, self.taken(action, state, next_state))

    def by_place(self) -> dict[str, int]:
        """Steps by the disjunct's `key`; what was never taken is left out."""
        found: Counter[str] = Counter()
        for (name, taken), steps in self._taken.items():
            for number, place in enumerate(self._spec.branch_places(name)):
                if taken >> number & 1:
                    found[key(place)] += steps
        return dict(found)


def key(place: Location) -> str:
    """A disjunct's name in reports: its place, with its end, since disjuncts may be nested."""
    return f"{place}-{place.end_line}:{place.end_column}"


def count_edges(counts: BranchCounts, graph: StateGraph, visits: npt.NDArray[np.int64]) -> None:
    """Count the steps along a graph; `visits` says for each edge how many there were."""
    asked = np.array([counts.asks(action.name) for action in graph.actions], bool)
    chosen = np.flatnonzero((visits > 0) & asked[graph.action])
    states = list(graph.states) if len(chosen) else []
    columns = graph.action, graph.source, graph.target, visits
    for code, source, target, steps in zip(*(one[chosen].tolist() for one in columns), strict=True):
        action = graph.actions[code]
        counts.add(action.name, counts.taken(action, states[source], states[target]), steps)
