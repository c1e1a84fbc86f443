"""Small state graphs made by hand, for tests of suites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformance.modelcheck.graph import Edges, StateGraph, StateTable, build_graph
from conformance.tla import Action

Edge = tuple[int, int, str]


def graph_of(states: int, edges: Sequence[Edge], initial: Sequence[int] = (0,)) -> StateGraph:
    """A graph whose states are the numbers 0.. as the value of one variable `x`."""
    names = list(dict.fromkeys(name for _, _, name in edges))
    columns = np.arange(states, dtype=np.int32).reshape(states, 1)
    arrays = np.array(
        [(source, target, names.index(name)) for source, target, name in edges], np.int32
    ).reshape(len(edges), 3)
    return build_graph(
        ["x"],
        StateTable((tuple(range(states)),), columns),
        initial,
        [Action(name) for name in names],
        Edges(arrays[:, 0], arrays[:, 1], arrays[:, 2]),
    )
