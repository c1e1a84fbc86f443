"""Shortens a failing path: the diverging step, reached the shortest way that the spec knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.replay.engine import Divergence
from conformance.replay.oracle import Oracle
from conformance.tla import Action, State

Attempt = Callable[[State, Sequence[Action]], Divergence | None]
"""Drives a fresh run along a path; the divergence, or None when the path passes or is disabled."""

Parents = dict[State, tuple[State, Action] | None]
"""How each state was first reached; None for an initial state."""


def shortest_failure(
    oracle: Oracle, divergence: Divergence, attempt: Attempt, *, limit: int = 200_000
) -> Divergence:
    """A divergence that is as short as detours through the spec's states allow.

    Replaces the way to the diverging step by the shortest one and drives it again; as long
    as that fails, possibly earlier, it is taken. The search looks at `limit` states at most.
    The result always was reproduced: it is the given divergence or one that `attempt` gave.
    """
    best = divergence
    while True:
        path = _shortest_path(oracle, best, limit)
        if path is None:
            return best
        again = attempt(*path)
        if again is None or len(again.actions) >= len(best.actions):
            return best
        best = again


def _shortest_path(
    oracle: Oracle, divergence: Divergence, limit: int
) -> tuple[State, tuple[Action, ...]] | None:
    """A way to a state before the divergence that is shorter than the present one, if any."""
    action = divergence.action
    if action is None:
        return None
    targets = frozenset(divergence.before)
    parents: Parents = dict.fromkeys(oracle.initial_states())
    level = list(parents)
    for _ in range(len(divergence.actions) - 1):
        result = next((state for state in level if state in targets), None)
        if result is not None:
            initial, before = way(parents, result)
            return initial, (*before, action)
        if len(parents) > limit:
            return None
        level = next_level(oracle, parents, level)
    return None


def next_level(oracle: Oracle, parents: Parents, level: Sequence[State]) -> list[State]:
    """The states one step from `level` that are in no earlier level; entered into `parents`."""
    following: list[State] = []
    for state in level:
        for action in oracle.enabled(state):
            for successor in oracle.successors(state, action):
                if successor not in parents:
                    parents[successor] = (state, action)
                    following.append(successor)
    return following


def way(parents: Parents, state: State) -> tuple[State, tuple[Action, ...]]:
    """The initial state and the actions that lead to `state`."""
    actions: list[Action] = []
    while True:
        link = parents[state]
        if link is None:
            return state, tuple(reversed(actions))
        state, action = link
        actions.append(action)
