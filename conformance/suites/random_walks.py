"""How many random walks of a state graph take every action."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from conformance.modelcheck.graph import StateGraph

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
