"""A judged recording as a trace of a store: the longest behaviour that explains its events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.judge.verdict import Blocker, Judgement
from conformance.tla import Fn, ObservedPart, Value, parse_action
from conformance.traces.model import PartialState, Trace, TraceEnd, TraceStep
from conformance.verdict import Verdict

__all__ = ["seen_after", "stored_trace"]


def stored_trace(number: int, judgement: Judgement, variables: Sequence[str]) -> Trace:
    """The explanation, unseen steps included.

    A failing trace ends with the event that nothing explains and what was seen at it; one that
    is inconclusive has the reason as its problem.
    """
    source = f"{judgement.source} {judgement.name}"
    problem = None if judgement.verdict is Verdict.PASS else judgement.reason
    explanation = judgement.explanation
    if explanation is None:
        return Trace(number, 0, (), (), TraceEnd.IMPORTED, problem or "", source)
    pairs = zip(explanation.actions, explanation.states, strict=True)
    steps = [TraceStep(action, state) for action, state in pairs]
    end = TraceEnd.IMPORTED
    if judgement.verdict is Verdict.FAIL:
        end = TraceEnd.DIVERGED if judgement.failure is not None else TraceEnd.IMPORTED
        problem = problem if judgement.failure is not None else None
        last = _failing_step(judgement, variables)
        if last is not None:
            steps.append(last)
    return Trace(number, 0, explanation.initial, tuple(steps), end, problem, source)


def _failing_step(judgement: Judgement, variables: Sequence[str]) -> TraceStep | None:
    """The event as a step: None for a snapshot, or where no action is known."""
    failure = judgement.failure
    if failure is None or not failure.action or not failure.blockers:
        return None
    nearest = failure.blockers[0]
    action = parse_action(nearest.action or failure.action)
    return TraceStep(action, seen_after(failure.seen, nearest, variables))


def seen_after(
    parts: Sequence[ObservedPart], nearest: Blocker, variables: Sequence[str]
) -> PartialState:
    """What was seen after the event; of a variable of which entries were seen, the nearest state's
    value with those entries."""
    values: dict[str, Value] = {}
    state = nearest.allowed or nearest.state
    around: Mapping[str, Value] = dict(zip(variables, state, strict=True))
    for part in parts:
        if part.place.aspect is not None:
            continue  # a length or a member is no value that could stand there
        name = part.place.variable
        base = values.get(name, around[name])
        values[name] = _with(base, part.place.path, part)
    return tuple(values.get(name) for name in variables)


def _with(value: Value, path: Sequence[Value], part: ObservedPart) -> Value:
    """The value, with the observed entries put in."""
    if not path:
        return part.value
    key, rest = path[0], path[1:]
    if isinstance(value, Fn):
        return Fn({**value.mapping, key: _with(value.get(key, part.value), rest, part)})
    if isinstance(value, tuple) and type(key) is int and 1 <= key <= len(value):
        return (*value[: key - 1], _with(value[key - 1], rest, part), *value[key:])
    return part.value
