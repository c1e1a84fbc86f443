"""Replays a recorded trace: its observations take the place of the implementation's."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.replay.engine import Divergence
from conformance.replay.oracle import Oracle
from conformance.story.kind import BehaviourKind
from conformance.tla import Action, State, shows
from conformance.traces.model import PartialState, Trace, complete, is_complete, values_of


def judge(oracle: Oracle, trace: Trace, *, anywhere: bool = False) -> Divergence | None:
    """The first step at which the trace leaves the spec; None if the spec allows all of it.

    `anywhere`: it may begin in any state, if that was seen whole.

    What was not seen, in any state, may be anything: every state of the spec that shows what was
    seen so far remains a candidate.
    """
    begin = anywhere and is_complete(trace.initial)
    first = (complete(trace.initial),) if begin else tuple(oracle.initial_states())
    path = [tuple(state for state in first if shows(state, trace.initial))]
    if not path[0]:
        seen = values_of(oracle.variables, trace.initial)
        return Divergence(BehaviourKind.WRONG_INITIAL, first[0], (), (), first, seen)
    actions = [step.action for step in trace.steps]
    for number, step in enumerate(trace.steps, 1):
        allowed = _after(oracle, path[-1], step.action)
        candidates = tuple(state for state in allowed if shows(state, step.state))
        if not candidates:
            return _divergence(oracle, path, actions[:number], allowed, step.state)
        path.append(candidates)
    return None


def _after(oracle: Oracle, states: Sequence[State], action: Action) -> tuple[State, ...]:
    return tuple(dict.fromkeys(t for state in states for t in oracle.successors(state, action)))


def _divergence(
    oracle: Oracle,
    path: Sequence[tuple[State, ...]],
    actions: Sequence[Action],
    allowed: tuple[State, ...],
    observed: PartialState,
) -> Divergence:
    """The last observation; the initial state is one from which the trace is possible so far."""
    possible = path[-1]
    for candidates, action in zip(reversed(path[:-1]), reversed(actions[:-1]), strict=True):
        after = frozenset(possible)
        possible = tuple(
            state for state in candidates if after.intersection(oracle.successors(state, action))
        )
    seen = values_of(oracle.variables, observed) if allowed else {}
    kind = BehaviourKind.NOT_ALLOWED if allowed else BehaviourKind.NOT_ENABLED
    return Divergence(kind, possible[0], tuple(actions), path[-1], allowed, seen)
