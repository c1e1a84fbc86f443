"""A recording of whole steps as the states and steps of a trace, to compare it with one."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.judge.events import Recording
from conformance.tla import Action
from conformance.traces.model import PartialState, TraceStep


def path_of(
    recording: Recording, variables: Sequence[str]
) -> tuple[tuple[PartialState, ...], tuple[TraceStep, ...]]:
    """Its states and steps; every step names one action with all arguments."""
    states: list[PartialState] = []
    for event in recording.events:
        seen = {part.place.variable: part.value for part in event.after}
        states.append(tuple(seen.get(name) for name in variables))
    steps = []
    for event, state in zip(recording.events[1:], states[1:], strict=True):
        (pattern,) = event.actions
        args = tuple(value for value in pattern.args or () if value is not None)
        steps.append(TraceStep(Action(pattern.name, args), state))
    return tuple(states), tuple(steps)
