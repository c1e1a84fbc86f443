"""Finds a shortest way to each action that random choice did not meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conformance.replay.oracle import Oracle
from conformance.replay.shorten import Parents, next_level, way
from conformance.tla import Action, State


@dataclass(frozen=True, slots=True)
class Path:
    """Where an example goes: the initial state and the actions."""

    initial: State
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class ReachResult:
    """The ways that were found, each ending with the action that it is to.

    `exhausted`: every reachable state was looked at, so that no other way exists.
    """

    ways: Mapping[str, Path]
    exhausted: bool


def ways_to(oracle: Oracle, names: Iterable[str], limit: int) -> ReachResult:
    """Breadth-first search through `limit` states at most, for the actions of these names."""
    missing = set(names)
    paths: dict[str, Path] = {}
    parents: Parents = dict.fromkeys(oracle.initial_states())
    level = list(parents)
    while level and missing and len(parents) <= limit:
        for state in level:
            for action in oracle.enabled(state):
                if action.name in missing:
                    missing.discard(action.name)
                    initial, actions = way(parents, state)
                    paths[action.name] = Path(initial, (*actions, action))
        level = next_level(oracle, parents, level)
    return ReachResult(paths, not level)
