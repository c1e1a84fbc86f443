"""One shortest path to each named situation, and shortest paths in general."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from conformance.suites.suite import Suite, Test
from conformance.tla import State

if TYPE_CHECKING:
    from conformance.modelcheck.graph import StateGraph

StatePredicate = Callable[[State], bool]


@dataclass(frozen=True, slots=True)
class Situations:
    """A suite of one test per situation reached, and the names of those that no state shows."""

    suite: Suite
    unreached: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ShortestPaths:
    """A breadth-first forest from the initial states.

    `order`: reachable states by distance; `entered_by`: int64[states], the last edge of a
    shortest path, -1 for initial and unreachable states; `depth`: int64[states], steps from an
    initial state, -1 if unreachable.
    """

    order: npt.NDArray[np.int64]
    entered_by: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int64]

    def path(self, graph: StateGraph, state: int) -> Test:
        """The shortest test that ends in `state`."""
        edges: list[int] = []
        while (edge := int(self.entered_by[state])) >= 0:
            edges.append(edge)
            state = int(graph.source[edge])
        return Test(state, np.array(edges[::-1], np.int32))


def shortest_paths(graph: StateGraph) -> ShortestPaths:
    """Breadth-first search from all initial states at once, one level at a time."""
    count = len(graph.offsets) - 1
    depth = np.full(count, -1, np.int64)
    entered_by = np.full(count, -1, np.int64)
    level = np.unique(graph.initial).astype(np.int64)
    depth[level] = 0
    levels = [level]
    while len(level):
        edges = edges_from(graph, level)
        edges = edges[depth[graph.target[edges]] < 0]
        level, first = np.unique(graph.target[edges], return_index=True)
        entered_by[level] = edges[first]
        depth[level] = len(levels)
        levels.append(level.astype(np.int64))
    return ShortestPaths(np.concatenate(levels), entered_by, depth)


def edges_from(graph: StateGraph, states: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The ids of all edges that leave `states`, in the order of `states`."""
    low: npt.NDArray[np.int64] = graph.offsets[states]
    degree: npt.NDArray[np.int64] = graph.offsets[states + 1] - low
    shift: npt.NDArray[np.int64] = low - (np.cumsum(degree) - degree)
    positions = np.arange(int(degree.sum()), dtype=np.int64)
    return positions + np.repeat(shift, degree)


def situations(graph: StateGraph, predicates: Mapping[str, StatePredicate]) -> Situations:
    """For each name, a shortest path to a state in which its predicate holds.

    States are tried by their distance, so that the first hit is a nearest one.
    """
    paths = shortest_paths(graph)
    order = paths.order.tolist()
    tests: list[Test] = []
    unreached: list[str] = []
    for name, holds in predicates.items():
        state = next((state for state in order if holds(graph.states[state])), None)
        if state is None:
            unreached.append(name)
        else:
            test = paths.path(graph, state)
            tests.append(Test(test.initial, test.edges, name))
    return Situations(Suite("situations", tuple(tests), graph.digest), tuple(unreached))
