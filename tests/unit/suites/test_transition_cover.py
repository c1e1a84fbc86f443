from __future__ import annotations

import pytest

from conformance.errors import DataError
from conformance.suites.coverage import coverage
from conformance.suites.greedy import greedy_cover
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite
from tests.unit.suites.graphs import Edge, graph_of


def cost(suite: Suite) -> int:
    return suite.steps + len(suite)


@pytest.mark.parametrize(
    ("story", "states", "edges", "tests", "steps"),
    [
        ("a cycle is one test", 3, [(0, 1, "a"), (1, 2, "b"), (2, 0, "c")], 1, 3),
        ("a fork needs a reset", 3, [(0, 1, "a"), (0, 2, "b")], 2, 2),
        ("parallel transitions are both taken", 2, [(0, 1, "a"), (0, 1, "b")], 2, 2),
        ("going back is as good as a reset", 2, [(0, 1, "a"), (0, 1, "b"), (1, 0, "c")], 1, 3),
        ("a self-loop costs its step only", 2, [(0, 0, "a"), (0, 1, "b"), (1, 1, "c")], 1, 3),
        ("the shared stem is walked twice", 4, [(0, 1, "a"), (1, 2, "b"), (1, 3, "c")], 2, 4),
    ],
)
def test_the_cover_is_minimal(
    story: str, states: int, edges: list[Edge], tests: int, steps: int
) -> None:
    graph = graph_of(states, edges)
    suite = transition_cover(graph)
    suite.require(graph)
    assert (len(suite), suite.steps) == (tests, steps), story
    assert coverage(graph, suite).covered_transitions == len(edges)


def test_a_dead_end_is_entered_before_resetting_where_the_greedy_walk_must_come_back() -> None:
    # The greedy walk takes the loop last or the stem twice; the postman knows better.
    edges = [(0, 1, "out"), (1, 2, "dead end"), (1, 0, "home"), (0, 3, "aside"), (3, 1, "in")]
    graph = graph_of(4, edges)
    assert cost(transition_cover(graph)) <= cost(greedy_cover(graph))
    assert coverage(graph, greedy_cover(graph)).covered_transitions == len(edges)


def test_every_component_of_several_initial_states_is_entered() -> None:
    graph = graph_of(4, [(0, 1, "a"), (1, 0, "b"), (2, 3, "a")], initial=[0, 2])
    suite = transition_cover(graph)
    suite.require(graph)
    assert sorted(test.initial for test in suite) == [0, 2]
    assert (len(suite), suite.steps) == (2, 3)


def test_two_initial_states_of_one_component_are_used_where_each_saves_steps() -> None:
    graph = graph_of(4, [(0, 1, "a"), (1, 2, "b"), (2, 3, "c"), (2, 3, "d")], initial=[0, 2])
    suite = transition_cover(graph)
    assert sorted((test.initial, len(test)) for test in suite) == [(0, 3), (2, 1)]


def test_an_initial_state_without_transitions_still_gets_its_test() -> None:
    graph = graph_of(1, [])
    suite = transition_cover(graph)
    suite.require(graph)
    assert [(test.initial, len(test)) for test in suite] == [(0, 0)]


def test_an_unreachable_transition_is_the_graphs_fault() -> None:
    graph = graph_of(3, [(1, 2, "a"), (1, 2, "b"), (2, 1, "c")])
    with pytest.raises(DataError, match="no path from an initial state"):
        transition_cover(graph)


def test_a_graph_without_initial_state_is_refused() -> None:
    with pytest.raises(DataError, match="no initial state"):
        transition_cover(graph_of(1, [], initial=[]))


def test_the_same_graph_gives_the_same_suite() -> None:
    edges = [(i, (i * 7 + k) % 20, f"a{k}") for i in range(20) for k in range(3)]
    first, second = transition_cover(graph_of(20, edges)), transition_cover(graph_of(20, edges))
    assert [test.edges.tolist() for test in first] == [test.edges.tolist() for test in second]
