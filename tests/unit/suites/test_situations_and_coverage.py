from __future__ import annotations

from conformance.suites.coverage import coverage
from conformance.suites.situations import situations
from tests.unit.suites.graphs import graph_of

EDGES = [(0, 1, "right"), (1, 2, "right"), (0, 2, "jump"), (2, 3, "right"), (3, 0, "home")]


def test_a_situation_is_reached_by_a_shortest_path() -> None:
    graph = graph_of(4, EDGES)
    found = situations(graph, {"far": lambda s: s == (3,), "start": lambda s: s == (0,)})
    far, start = found.suite.tests
    assert [str(graph.actions[graph.action[e]]) for e in far.edges] == ["jump", "right"]
    assert (far.name, start.name, len(start)) == ("far", "start", 0)
    found.suite.require(graph)


def test_a_situation_that_no_state_shows_is_named() -> None:
    graph = graph_of(4, EDGES)
    found = situations(graph, {"never": lambda s: s == (99,), "far": lambda s: s == (3,)})
    assert found.unreached == ("never",)
    assert [test.name for test in found.suite] == ["far"]


def test_the_nearest_of_several_initial_states_is_where_the_path_begins() -> None:
    graph = graph_of(4, EDGES, initial=[0, 2])
    (test,) = situations(graph, {"far": lambda s: s == (3,)}).suite.tests
    assert (test.initial, len(test)) == (2, 1)


def test_coverage_counts_states_transitions_and_actions() -> None:
    graph = graph_of(4, EDGES)
    suite = situations(graph, {"far": lambda s: s == (3,)}).suite
    seen = coverage(graph, suite)
    assert (seen.covered_states, seen.states) == (3, 4)
    assert (seen.covered_transitions, seen.transitions) == (2, 5)
    assert seen.actions["right"].covered == 1
    assert seen.actions["right"].transitions == 3
    assert seen.missing_actions == ("home",)


def test_of_nothing_nothing_is_covered() -> None:
    graph = graph_of(4, EDGES)
    suite = situations(graph, {}).suite
    seen = coverage(graph, suite)
    assert (seen.covered_states, seen.covered_transitions) == (0, 0)
    assert seen.missing_actions == ("right", "jump", "home")
