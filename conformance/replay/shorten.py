"""Shortens a failing path: the shortest prefix that still fails, reached the shortest way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.modelcheck.graph import StateGraph
from conformance.replay.engine import Divergence
from conformance.tla.values import Action, State

Attempt = Callable[[State, Sequence[Action]], Divergence | None]
"""Drives a fresh run along a path; the divergence, or None when the path passes or is disabled."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """A breadth-first tree of the graph: how each state was first reached."""

    parent: dict[int, tuple[int, int]]
    ids: dict[State, int]


def shortest_failure(graph: StateGraph, divergence: Divergence, attempt: Attempt) -> Divergence:
    """A divergence that is as short as detours through the spec's state graph allow.

    Replaces the way to the diverging step by the shortest one in the graph and drives it
    again; as long as that fails, possibly earlier, it is taken. The result always was
    reproduced: it is the given divergence or one that `attempt` returned.
    """
    best = divergence
    tree = _breadth_first(graph)
    while True:
        path = _shortest_path(graph, tree, best)
        if path is None or len(path[1]) >= len(best.actions):
            return best
        again = attempt(path[0], path[1])
        if again is None or len(again.actions) >= len(best.actions):
            return best
        best = again


def _breadth_first(graph: StateGraph) -> _Tree:
    ids = {state: index for index, state in enumerate(graph.states)}
    parent: dict[int, tuple[int, int]] = {int(root): (-1, -1) for root in graph.initial}
    queue = deque(parent)
    while queue:
        node = queue.popleft()
        for edge in range(int(graph.offsets[node]), int(graph.offsets[node + 1])):
            target = int(graph.target[edge])
            if target not in parent:
                parent[target] = (node, edge)
                queue.append(target)
    return _Tree(parent, ids)


def _shortest_path(
    graph: StateGraph, tree: _Tree, divergence: Divergence
) -> tuple[State, tuple[Action, ...]] | None:
    """The shortest way to a state before the divergence, and the diverging action."""
    action = divergence.action
    reachable = [tree.ids[state] for state in divergence.before if state in tree.ids]
    if action is None or not reachable:
        return None
    ways = (_way(graph, tree, index) for index in reachable)
    initial, actions = min(ways, key=lambda way: len(way[1]))
    return initial, (*actions, action)


def _way(graph: StateGraph, tree: _Tree, node: int) -> tuple[State, tuple[Action, ...]]:
    actions: list[Action] = []
    while True:
        source, edge = tree.parent[node]
        if source < 0:
            return graph.states[node], tuple(reversed(actions))
        actions.append(graph.actions[int(graph.action[edge])])
        node = source
