"""The greedy transition cover that published tools use, as the yardstick of the minimal one."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from conformance.suites.situations import shortest_paths
from conformance.suites.suite import Suite, Test

if TYPE_CHECKING:
    from conformance.modelcheck.graph import StateGraph


_SIGHT = 1000
"""States that a walk looks at in search of a new transition, before it rather resets."""


def greedy_cover(graph: StateGraph) -> Suite:
    """Cover every transition by always walking to the nearest one not yet taken.

    From a state without a new transition the walk follows a shortest path to a state that has
    one; where that is farther than a reset and the path from there, or out of sight, it resets.
    """
    walker = _Walker(graph)
    tests: list[Test] = []
    while (start := walker.restart()) is not None:
        tests.append(_walk(walker, start))
    return Suite("greedy-cover", tuple(tests), graph.digest)


def _walk(walker: _Walker, start: Test) -> Test:
    edges = start.edges.tolist()
    state = walker.follow(edges, start.initial)
    while True:
        while (edge := walker.untaken(state)) is not None:
            edges.append(edge)
            state = walker.follow([edge], state)
        path = walker.nearest(state)
        if path is None:
            return Test(start.initial, np.array(edges, np.int32))
        edges.extend(path)
        state = walker.follow(path, state)


class _Walker:
    """What is taken so far, and the way to what is not."""

    def __init__(self, graph: StateGraph) -> None:
        self._graph = graph
        self._low = graph.offsets.tolist()
        self._target = graph.target.tolist()
        self._source = graph.source.tolist()
        self._visited = bytearray(len(self._source))
        self._next = self._low[:-1].copy()  # first edge of each state that may be untaken
        self._exhausted = bytearray(len(self._next))  # nothing untaken is reachable: for good
        self._paths = shortest_paths(graph)
        self._order = self._paths.order.tolist()
        self._depth = self._paths.depth.tolist()
        self._front = 0  # states of _order before this one have nothing untaken

    def untaken(self, state: int) -> int | None:
        """An edge of `state` not yet taken, in the graph's order."""
        edge, end = self._next[state], self._low[state + 1]
        while edge < end and self._visited[edge]:
            edge += 1
        self._next[state] = edge
        return edge if edge < end else None

    def follow(self, edges: list[int], state: int) -> int:
        """Mark the edges as taken and return the state they lead to from `state`."""
        for edge in edges:
            self._visited[edge] = 1
            state = self._target[edge]
        return state

    def restart(self) -> Test | None:
        """The shortest way from an initial state to one with an untaken edge."""
        state = self._shallowest()
        return None if state is None else self._paths.path(self._graph, state)

    def _shallowest(self) -> int | None:
        while self._front < len(self._order):
            if self.untaken(self._order[self._front]) is not None:
                return int(self._order[self._front])
            self._front += 1
        return None

    def nearest(self, state: int) -> list[int] | None:
        """The shortest path to a state with an untaken edge, None if a reset is no worse."""
        shallowest = self._shallowest()
        if shallowest is None:
            return None
        entered_by: dict[int, int] = {state: -1}
        queue = deque([(state, 0)])
        limit = self._depth[shallowest] + 1
        complete = True
        while queue:
            here, distance = queue.popleft()
            if self._next[here] < self._low[here + 1] and self.untaken(here) is not None:
                return self._back(entered_by, here)
            if distance >= limit or len(entered_by) > _SIGHT:
                complete = False
                continue
            for edge in range(self._low[here], self._low[here + 1]):
                there = self._target[edge]
                if there not in entered_by and not self._exhausted[there]:
                    entered_by[there] = edge
                    queue.append((there, distance + 1))
        if complete:
            for seen in entered_by:
                self._exhausted[seen] = 1
        return None

    def _back(self, entered_by: dict[int, int], state: int) -> list[int]:
        path: list[int] = []
        while (edge := entered_by[state]) >= 0:
            path.append(edge)
            state = self._source[edge]
        return path[::-1]
