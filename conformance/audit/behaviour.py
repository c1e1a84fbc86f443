"""A recorded trace up to its first bad step, as a behaviour that can be told and drawn."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.audit.findings import SpecView
from conformance.events import Reason
from conformance.story.behaviour import Behaviour, Seen, Step
from conformance.story.comparison import nearest
from conformance.story.key import NOT_ENABLED, VIOLATED, kind_of, offered_in, subjects_of
from conformance.story.why import why_disabled, why_false
from conformance.tla import Spec, State, Value, differing, parse_action
from conformance.traces.model import Trace, complete, is_complete


def behaviour_of(variables: Sequence[str], trace: Trace, step: int, spec: SpecView) -> Behaviour:
    """What was recorded until `step`; where the spec allows no such state, the nearest beside it.

    The states are those that were recorded: what was not observed in them is unknown.
    """
    names, states = tuple(variables), trace.states[: step + 1]
    actions = [None, *(step.action for step in trace.steps[:step])]
    steps = tuple(map(Step, actions, states))
    last = states[-1]
    observed: dict[str, Value] = {
        name: value for name, value in zip(names, last, strict=True) if value is not None
    }
    allowed = _allowed(trace, step, spec)
    unseen = not observed and bool(allowed)  # an exception, or a step on offer: nothing was kept
    if allowed is None or (
        not unseen and any(not differing(names, state, observed) for state in allowed)
    ):
        return Behaviour(names, steps, ending=_ending(trace, step))
    expected: Seen = nearest(names, allowed, observed) or (None,) * len(names)
    steps = (*steps[:-1], Step(steps[-1].action, expected))
    return Behaviour(names, steps, observed, _ending(trace, step), departs=True)


def reasons_of(spec: Spec, trace: Trace, step: int, key: str, expected: Seen) -> tuple[Reason, ...]:
    """Why the step is what the finding of this key says, in the specification's words.

    Nothing where the states are not known whole, or where the difference says it all. `expected`
    is the state that the specification has after the step.
    """
    states = trace.states[max(step - 1, 0) : step + 1]
    before, after = states[0], states[-1]
    offered = offered_in(_ending(trace, step))
    if offered and is_complete(expected):
        result = (why_disabled(spec, parse_action(name), complete(expected)) for name in offered)
        return tuple(reason for reasons in result for reason in reasons)
    if not is_complete(before):
        return ()
    if kind_of(key) == NOT_ENABLED and step:
        return why_disabled(spec, trace.steps[step - 1].action, complete(before))
    if kind_of(key) == VIOLATED and is_complete(after):
        return why_false(spec, subjects_of(key)[0], complete(before), complete(after))
    return ()


def _allowed(trace: Trace, step: int, spec: SpecView) -> Sequence[State] | None:
    """The states that the spec allows at the step; None where the one before is not whole."""
    if step == 0:
        return spec.initial_states()
    before = trace.states[step - 1]
    if not is_complete(before):
        return None
    return spec.successors(complete(before), trace.steps[step - 1].action)


def _ending(trace: Trace, step: int) -> str:
    """What was said of the trace's last step, where it ended with a divergence."""
    return trace.problem or "" if step == len(trace.steps) else ""
