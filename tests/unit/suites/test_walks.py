from __future__ import annotations

import numpy as np
import pytest

from conformance.suites import coverage, random_walks, rare_walks
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


def test_walks_drawn_to_the_rare_see_more_of_a_graph_with_a_crowded_corner() -> None:
    # Nine of ten first steps lead into one crowded state; the wide part lies behind the tenth.
    edges = [(0, 1, f"crowd{i}") for i in range(9)] + [(0, 2, "aside")]
    edges += [(2, 3 + i, f"wide{i}") for i in range(200)]
    graph = graph_of(203, edges)
    uniform = coverage(graph, random_walks(graph, 3000, 2, seed=2))
    suite = rare_walks(graph, 3000, 2, seed=2)
    suite.require(graph)
    rare = coverage(graph, suite)
    assert uniform.covered_transitions < 180
    assert rare.covered_transitions > 1.1 * uniform.covered_transitions


def test_a_graph_without_transitions_gives_walks_without_steps() -> None:
    graph = graph_of(1, [])
    for suite in (random_walks(graph, 3, 5, seed=0), rare_walks(graph, 3, 5, seed=0)):
        assert [len(test) for test in suite] == [0, 0, 0]
