from __future__ import annotations

import numpy as np
import pytest

from conformance.suites.walks import random_walks
from tests.unit.suites.graphs import graph_of

# A long corridor beside a tempting loop: a uniform walk seldom gets through.
CORRIDOR = [(0, 0, f"loop{i}") for i in range(9)] + [(i, i + 1, "on") for i in range(6)]


def test_walks_are_paths_of_at_most_the_length_asked_for() -> None:
    graph = graph_of(7, CORRIDOR)
    suite = random_walks(graph, 200, 10, seed=1)
    suite.require(graph)
    assert len(suite) == 200
    assert all(len(test) == 10 or graph.target[test.edges[-1]] == 6 for test in suite)


def test_a_walk_depends_on_seed_and_number_alone() -> None:
    graph = graph_of(7, CORRIDOR)
    whole = random_walks(graph, 50, 12, seed=7)
    parts = [random_walks(graph, 10, 12, seed=7, first=first) for first in range(0, 50, 10)]
    assert [t.edges.tolist() for t in whole] == [t.edges.tolist() for p in parts for t in p]
    other = random_walks(graph, 50, 12, seed=8)
    assert [t.edges.tolist() for t in whole] != [t.edges.tolist() for t in other]


def test_steps_are_uniform_over_the_transitions_of_a_state() -> None:
    graph = graph_of(1, [(0, 0, f"a{i}") for i in range(5)])
    edges = np.concatenate([test.edges for test in random_walks(graph, 1000, 20, seed=3)])
    shares = np.bincount(edges, minlength=5) / len(edges)
    assert shares == pytest.approx([0.2] * 5, abs=0.02)


def test_initial_states_are_all_used() -> None:
    graph = graph_of(3, [(0, 2, "a"), (1, 2, "a")], initial=[0, 1])
    starts = [test.initial for test in random_walks(graph, 100, 1, seed=5)]
    assert min(starts.count(0), starts.count(1)) > 20


def test_a_graph_without_transitions_gives_walks_without_steps() -> None:
    suite = random_walks(graph_of(1, []), 3, 5, seed=0)
    assert [len(test) for test in suite] == [0, 0, 0]
