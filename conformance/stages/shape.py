"""A model's states at a glance: how far they lie from the start, and in which situations."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from conformance.events import JsonValue
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.prepare import PreparedModel
from conformance.suites.situations import shortest_paths

SAMPLE = 400
"""States of a model in which its situations are asked for."""
EXAMPLES = 10
"""Unvisited transitions that are told in full."""


def shape(graph: StateGraph, prepared: PreparedModel, seed: int) -> dict[str, JsonValue]:
    """States by their distance from an initial one; of a sample, how many are in each situation.

    A model of at most `SAMPLE` states is asked whole.
    """
    depth = shortest_paths(graph).depth
    depths: list[JsonValue] = [*np.bincount(depth[depth >= 0]).tolist()]
    names = prepared.model.situations
    count = len(graph.states)
    chosen = random.Random(seed).sample(range(count), min(SAMPLE, count)) if names else []
    result: dict[str, JsonValue] = {}
    for name in names:
        holds = prepared.spec.state_formula(name)
        result[name] = sum(holds(graph.states[state]) for state in chosen)
    return {"states": count, "depths": depths, "sampled": len(chosen), "situations": result}


def unvisited(graph: StateGraph, visited: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> JsonValue:
    """Transitions that no test has driven: by action, and the nearest with the way to them."""
    left = np.flatnonzero(~visited)
    names = Counter(graph.actions[code].name for code in graph.action[left].tolist())
    if not len(left):
        return {"transitions": 0, "actions": {}, "examples": []}
    paths = shortest_paths(graph)
    nearest = left[np.argsort(paths.depth[graph.source[left]], kind="stable")][:EXAMPLES]
    examples: list[JsonValue] = []
    for edge in nearest.tolist():
        way = paths.path(graph, int(graph.source[edge])).edges.tolist()
        steps = [str(graph.actions[graph.action[edge]]) for edge in (*way, edge)]
        examples.append(", ".join(steps))
    return {"transitions": len(left), "actions": {**names}, "examples": examples}
