"""A recorded trace up to its first bad step, as a behaviour that can be told and drawn."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.audit.findings import SpecView
from conformance.story.behaviour import Behaviour, Seen, Step
from conformance.story.comparison import nearest
from conformance.tla import State, Value, differing
from conformance.traces.model import Trace, complete, is_complete


def behaviour_of(variables: Sequence[str], trace: Trace, step: int, spec: SpecView) -> Behaviour:
    """What was recorded until `step`; where the spec allows no such state, the nearest beside it.

    The states are those that were recorded: what was not observed in them is unknown.
    """
    names, states = tuple(variables), trace.states[: step + 1]
    actions = [None, *(one.action for one in trace.steps[:step])]
    steps = tuple(map(Step, actions, states))
    last = states[-1]
    observed: dict[str, Value] = {
        name: value for name, value in zip(names, last, strict=True) if value is not None
    }
    allowed = _allowed(trace, step, spec)
    if allowed is None or any(not differing(names, state, observed) for state in allowed):
        return Behaviour(names, steps, ending=_ending(trace, step))
    expected: Seen = nearest(names, allowed, observed) or (None,) * len(names)
    steps = (*steps[:-1], Step(steps[-1].action, expected))
    return Behaviour(names, steps, observed, _ending(trace, step), departs=True)


def _allowed(trace: Trace, step: int, spec: SpecView) -> Sequence[State] | None:
    """The states that the spec allows at the step; None where the one before is not whole."""
    if step == 0:
        return spec.initial_states()
    before = trace.states[step - 1]
    if not is_complete(before):
        return None
    return spec.successors(complete(before), trace.steps[step - 1].action)


def _ending(trace: Trace, step: int) -> str:
    return trace.problem or "" if step == len(trace.steps) else ""
