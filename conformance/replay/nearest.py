"""Looks for a shorter counterexample: the spec's states breadth first, every step out of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.replay.engine import Divergence, Driver, StepTrail, run_path
from conformance.replay.oracle import Oracle
from conformance.tla import Action, State


@dataclass(frozen=True, slots=True)
class _Way:
    """How a state was first reached."""

    state: State
    initial: State
    actions: tuple[Action, ...]


def nearest_failure(
    driver: Driver, oracle: Oracle, divergence: Divergence, budget: int
) -> Divergence:
    """The first divergence, breadth first, on the shortest way to each state and one step on.

    First only steps by the action that showed the fault are tried, as it will show there again,
    then all; each time with about `budget` steps at most. A fault of the implementation's hidden
    state may need a detour through states that were seen before; only ways without one are tried,
    which is why the given divergence stands where nothing shorter turns up.
    """
    if divergence.action is None:
        return divergence
    alike = _search(driver, oracle, divergence, budget, divergence.action.name)
    return _search(driver, oracle, alike, budget)


def _search(
    driver: Driver, oracle: Oracle, divergence: Divergence, budget: int, name: str | None = None
) -> Divergence:
    """Only along paths that end with an action of this name, if one is given."""
    steps = 0
    trail = StepTrail() if driver.repeats else None
    for initial, actions in _paths(oracle, divergence.step - 1):
        if name is not None and actions[-1].name != name:
            continue
        if steps >= budget:
            return divergence
        # All steps out of a state come one after the other.
        result = run_path(driver, initial, actions, trail, {0, len(actions) - 1})
        steps += result.steps
        if result.divergence is not None:
            afresh = run_path(driver, initial, actions).divergence if trail else result.divergence
            if afresh is not None:
                return afresh
    return divergence


def _paths(oracle: Oracle, longest: int) -> Iterator[tuple[State, tuple[Action, ...]]]:
    """Every step out of every state within `longest` steps, on a shortest way, shortest first."""
    level = [_Way(state, state, ()) for state in oracle.initial_states()]
    seen = {way.state for way in level}
    for _ in range(longest):
        following: list[_Way] = []
        for way in level:
            for action in oracle.enabled(way.state):
                actions = (*way.actions, action)
                yield way.initial, actions
                for state in oracle.successors(way.state, action):
                    if state not in seen:
                        seen.add(state)
                        following.append(_Way(state, way.initial, actions))
        level = following
