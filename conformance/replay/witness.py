"""Of the states that were possible after each action, a behaviour that leads to the last one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.tla import Action, State, fingerprint


def witness(
    levels: Sequence[Sequence[State]],
    actions: Sequence[Action],
    last: State,
    after: Callable[[State, Action], Sequence[State]],
) -> list[State]:
    """A state of each level, each a successor of the one before, then `last`.

    `actions[n]` leads on from `levels[n]`. Chosen backwards, because not every state that was
    possible leads to the end; of several the one of the smallest fingerprint.
    """
    states = [last]
    for level, action in zip(reversed(levels), reversed(actions), strict=True):
        leads = (state for state in level if states[-1] in after(state, action))
        states.append(min(leads, key=fingerprint))
    return states[::-1]
