"""Steps along a recorded trace: what was seen stands in the place of the implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.replay.engine import Divergence, Driver, Kind, PathResult, run_path
from conformance.replay.oracle import Oracle
from conformance.tla import Action, State, Value
from conformance.traces.model import PartialState, Trace


class RecordedSystem:
    """Shows what a trace shows, step by step: the variables that were seen in all of its states."""

    def __init__(self, variables: Sequence[str], states: Sequence[PartialState]) -> None:
        seen = [
            (index, name)
            for index, name in enumerate(variables)
            if all(state[index] is not None for state in states)
        ]
        self._shown = [
            {name: value for index, name in seen if (value := state[index]) is not None}
            for state in states
        ]
        self._at = 0

    @property
    def variables(self) -> tuple[str, ...]:
        """What every state of the trace shows."""
        return tuple(self._shown[0])

    def reset(self, _initial: Mapping[str, Value]) -> None:
        """Go to the beginning."""
        self._at = 0

    def apply(self, _action: Action) -> None:
        """Go on by a step."""
        self._at += 1

    def observe(self) -> Mapping[str, Value]:
        """What was seen here."""
        return self._shown[self._at]


def judge(oracle: Oracle, trace: Trace) -> Divergence | None:
    """The first step at which the trace leaves the spec; None if the spec allows all of it.

    What was not seen may be anything: the initial state counts from which it goes on longest.
    """
    ways = [_follow(oracle, trace, initial) for initial in oracle.initial_states()]
    best = max(ways, key=lambda way: (way.divergence is None, way.steps))
    return best.divergence


def _follow(oracle: Oracle, trace: Trace, initial: State) -> PathResult:
    """From one initial state on; an action that is not enabled is a divergence here."""
    driver = Driver(RecordedSystem(oracle.variables, trace.states), oracle)
    actions = tuple(step.action for step in trace.steps)
    result = run_path(driver, initial, actions)
    if not result.disabled:
        return result
    taken = actions[: result.steps + 1]
    return PathResult(
        result.steps, Divergence(Kind.NOT_ENABLED, initial, taken, driver.candidates, (), {})
    )
