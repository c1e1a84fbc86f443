"""A judged recording as a behaviour for stories and pictures: its explanation, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conformance.events import Reason
from conformance.judge.stored import seen_after
from conformance.judge.verdict import Blocker, Judgement
from conformance.story.behaviour import TOLD_STEPS, Behaviour, Seen, Step
from conformance.story.why import why_false
from conformance.tla import Spec, State, Value, parse_action

__all__ = ["behaviour_of", "why_not"]

_UNSEEN = "  (not seen)"


def behaviour_of(judgement: Judgement, spec: Spec) -> Behaviour | None:
    """The end of the explained part; then the event that nothing explains, beside the nearest
    state that the specification allows. None where there is nothing to tell."""
    explanation = judgement.explanation
    if explanation is None:
        return None
    earlier = max(len(explanation.actions) - TOLD_STEPS, 0)
    states = (explanation.initial, *explanation.states)[earlier:]
    actions = (None, *explanation.actions[earlier:])
    notes = ("", *(_UNSEEN if event is None else "" for event in explanation.events[earlier:]))
    steps = tuple(map(Step, actions, states, notes))
    ending = "\n".join(why_not(judgement))
    last = _last(judgement, spec.variables)
    if last is None:
        reasons = _reasons(judgement, states, spec)
        return Behaviour(spec.variables, steps, ending=ending, reasons=reasons, earlier=earlier)
    step, observed = last
    return Behaviour(
        spec.variables, (*steps, step), observed, ending, departs=True, earlier=earlier
    )


def _last(
    judgement: Judgement, variables: Sequence[str]
) -> tuple[Step, Mapping[str, Value]] | None:
    """The event as a step: the expected state after it, and the observed one."""
    failure = judgement.failure
    if failure is None or not failure.action or not failure.blockers:
        return None
    nearest = failure.blockers[0]
    action = parse_action(nearest.action or failure.action)
    seen = zip(variables, seen_after(failure.seen, nearest, variables), strict=True)
    observed = {name: value for name, value in seen if value is not None}
    nothing: Seen = (None,) * len(variables)
    return Step(action, nothing if nearest.allowed is None else nearest.allowed), observed


def _reasons(judgement: Judgement, states: Sequence[State], spec: Spec) -> tuple[Reason, ...]:
    """Why a violated formula is false at the end."""
    violated = [
        formula for formula in judgement.formulas if formula.violated_at == judgement.explained
    ]
    if judgement.failure is not None or not violated:
        return ()
    name = violated[0].name
    return why_false(spec, name, states[-2:][0], states[-1])


def why_not(judgement: Judgement) -> Iterator[str]:
    """Why the event that nothing explains cannot have happened, for each kind of state."""
    failure = judgement.failure
    for number, blocker in enumerate(failure.blockers if failure else (), 1):
        yield f"Why not, in the {_ordinal(number)} of the states that were possible:"
        yield from (f"  {line}" for line in _why(blocker))


def _why(blocker: Blocker) -> Iterator[str]:
    if blocker.differences and blocker.action:
        yield f"{blocker.action} leads to a state that shows something else:"
    for difference in blocker.differences:
        yield f"{difference.variable}: {difference.expected}, seen {difference.actual}"
    yield from blocker.lines


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
