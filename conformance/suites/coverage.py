"""What a suite covers of its graph: states, transitions and actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from conformance.modelcheck.graph import StateGraph
    from conformance.suites.suite import Suite


@dataclass(frozen=True, slots=True)
class ActionCoverage:
    """How one named action fares: transitions in the graph, covered ones, steps that took it."""

    transitions: int
    covered: int
    steps: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of what is in the graph and what the suite visits.

    `actions` is keyed by the action's name without arguments, in order of first appearance;
    `action_instances` and `covered_action_instances` count it with its arguments.
    """

    states: int
    covered_states: int
    transitions: int
    covered_transitions: int
    action_instances: int
    covered_action_instances: int
    actions: dict[str, ActionCoverage]

    @property
    def missing_actions(self) -> tuple[str, ...]:
        """Names of actions that the graph has and no test takes."""
        return tuple(name for name, action in self.actions.items() if not action.steps)


def coverage(graph: StateGraph, suite: Suite) -> Coverage:
    """Count, in arrays, what the tests of `suite` visit in `graph`."""
    empty = np.zeros(0, np.int32)
    steps = np.concatenate([empty, *(test.edges for test in suite.tests)])
    visits = np.bincount(steps, minlength=len(graph.source))
    covered = visits > 0
    seen = np.zeros(len(graph.states), bool)
    seen[[test.initial for test in suite.tests]] = True
    seen[graph.target[covered]] = True
    instances = len(graph.actions)
    per_instance = _Counts(
        np.bincount(graph.action, minlength=instances).tolist(),
        np.bincount(graph.action[covered], minlength=instances).tolist(),
        np.bincount(graph.action, weights=visits, minlength=instances).astype(int).tolist(),
    )
    return Coverage(
        states=len(seen),
        covered_states=int(seen.sum()),
        transitions=len(visits),
        covered_transitions=int(covered.sum()),
        action_instances=sum(1 for number in per_instance.transitions if number),
        covered_action_instances=sum(1 for number in per_instance.covered if number),
        actions=_by_name(graph, per_instance),
    )


@dataclass(frozen=True, slots=True)
class _Counts:
    transitions: list[int]
    covered: list[int]
    steps: list[int]


def _by_name(graph: StateGraph, counts: _Counts) -> dict[str, ActionCoverage]:
    totals: dict[str, list[int]] = {}
    for code, action in enumerate(graph.actions):
        total = totals.setdefault(action.name, [0, 0, 0])
        total[0] += counts.transitions[code]
        total[1] += counts.covered[code]
        total[2] += counts.steps[code]
    return {name: ActionCoverage(*total) for name, total in totals.items() if total[0]}
