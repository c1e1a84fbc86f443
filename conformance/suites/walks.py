"""Random walks over a state graph: seeded, vectorised, uniform over the transitions of a state."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from conformance.suites.suite import Suite, Test, make_tests

if TYPE_CHECKING:
    from conformance.modelcheck.graph import StateGraph


def random_walks(graph: StateGraph, count: int, length: int, seed: int, first: int = 0) -> Suite:
    """Walks number `first` to `first + count - 1` of the seed, of at most `length` steps each.

    Each step is uniform over the state's transitions; a walk ends early where there are none.
    A walk depends on its seed and number alone, so that any split of the numbers over workers
    gives the same walks.
    """
    walks = _Walks(graph, count, length)
    numbers = np.arange(first, first + count, dtype=np.uint64)
    walks.start(graph.initial, _uniform(seed, numbers, 0))
    for step in range(length):
        low, degree = walks.choices()
        draw = _uniform(seed, numbers[walks.alive], step + 1)
        walks.take(low + np.minimum((draw * degree).astype(np.int64), degree - 1))
    return Suite("random-walks", walks.tests(), graph.digest, seed)


class _Walks:
    """Many walks that step together; `alive` are the positions of those not yet ended."""

    def __init__(self, graph: StateGraph, count: int, length: int) -> None:
        self._graph = graph
        self._edges = np.full((count, length), -1, np.int32)
        self._steps = np.zeros(count, np.int64)
        self._initial = np.zeros(count, np.int32)
        self._state = self._initial
        self.alive = np.arange(count)

    def start(self, initial: npt.NDArray[np.int32], draw: npt.NDArray[np.float64]) -> None:
        """Put each walk into one of the initial states."""
        self._initial = initial[np.minimum((draw * len(initial)).astype(int), len(initial) - 1)]
        self._state = self._initial.copy()

    def choices(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First edge and number of edges per walk still alive; ends those that have none."""
        offsets = self._graph.offsets
        state = self._state[self.alive]
        degree = offsets[state + 1] - offsets[state]
        self.alive = self.alive[degree > 0]
        return offsets[state][degree > 0], degree[degree > 0]

    def take(self, edge: npt.NDArray[np.int64]) -> None:
        """Move every living walk along its edge."""
        self._edges[self.alive, self._steps[self.alive]] = edge
        self._steps[self.alive] += 1
        self._state[self.alive] = self._graph.target[edge]

    def edges(self) -> npt.NDArray[np.int32]:
        """All edges taken, walk after walk."""
        return self._edges[self._edges >= 0]

    def tests(self) -> tuple[Test, ...]:
        """The walks as tests."""
        offsets = np.concatenate([[0], np.cumsum(self._steps)]).astype(np.int64)
        return make_tests(self._initial, self.edges(), offsets)


def _uniform(seed: int, number: npt.NDArray[np.uint64], step: int) -> npt.NDArray[np.float64]:
    """A number in [0, 1) per walk, a pure function of seed, walk and step.

    SplitMix64's finaliser (Steele, Lea and Flood, 2014) over the three, as in counter-based
    generators: no state to carry between workers.
    """
    mixed = _mix(np.array([seed % 2**64], np.uint64))
    mixed = _mix(mixed ^ _mix(number + np.uint64(0x632BE59BD9B4E019)))
    mixed = _mix(mixed + np.uint64(step * 0x9E3779B97F4A7C15 % 2**64))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(value: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


MISSED = 0.001
"""The chance that the rarest action is taken by none of the walks."""


def walks_that_take_all(graph: StateGraph, length: int) -> int:
    """Walks of at most `length` steps of which some takes each action, but for `MISSED`.

    A walk draws as `Walker` does: an initial state, an enabled action, and one of its results,
    each uniformly. The system chooses the results of a recording, so that this is an estimate.
    """
    chances = _chances_to_miss(graph, length)
    # No walk of this length reaches an action whose chance is 1: more walks do not help.
    most = chances[chances < 1].max(initial=0)
    return max(1, math.ceil(math.log(MISSED) / math.log(most))) if most > 0 else 1


def _chances_to_miss(graph: StateGraph, length: int) -> npt.NDArray[np.float64]:
    """By action name, in no order: the chance that one walk does not take it."""
    numbers = {name: number for number, name in enumerate(sorted({a.name for a in graph.actions}))}
    name_of_action = np.array([numbers[action.name] for action in graph.actions], np.int64)
    named, weights = name_of_action[graph.action], _weights(graph)[:, None]
    moving = graph.offsets[:-1] < graph.offsets[1:]
    first_edges, edges = graph.offsets[:-1][moving], np.arange(len(graph.source))
    missed = np.ones((len(graph.states), len(numbers)))
    for _ in range(length):
        through = missed[graph.target] * weights
        through[edges, named] = 0
        missed[moving] = np.add.reduceat(through, first_edges, axis=0)
    chances: npt.NDArray[np.float64] = missed[graph.initial].mean(axis=0)
    return chances


def _weights(graph: StateGraph) -> npt.NDArray[np.float64]:
    """The chance of each edge at its source."""
    # The edges of a state are sorted by action: its results stand together.
    begins = np.ones(len(graph.source), np.bool_)
    begins[1:] = (np.diff(graph.source) != 0) | (np.diff(graph.action) != 0)
    choice = np.cumsum(begins) - 1
    results = np.bincount(choice)[choice]
    choices = np.bincount(graph.source[begins], minlength=len(graph.states))[graph.source]
    weights: npt.NDArray[np.float64] = 1 / (choices * results)
    return weights
