"""The transition cover against networkx's independent optimum, on random reachable graphs."""

from __future__ import annotations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.modelcheck.graph import StateGraph
from conformance.suites.coverage import coverage
from conformance.suites.greedy import greedy_cover
from conformance.suites.postman import transition_cover
from conformance.suites.walks import random_walks
from tests.unit.suites.graphs import Edge, graph_of


@st.composite
def reachable_graphs(draw: st.DrawFn) -> StateGraph:
    """Digraphs in which a tree reaches every state; the rest is loops, parallels, back edges."""
    states = draw(st.integers(1, 25))
    roots = draw(st.integers(1, min(3, states)))
    node = st.integers(0, states - 1)
    action = st.sampled_from(["a", "b", "c"])
    edges: list[Edge] = [
        (draw(st.integers(0, state - 1)), state, draw(action)) for state in range(roots, states)
    ]
    edges += draw(st.lists(st.tuples(node, node, action), max_size=60))
    return graph_of(states, edges, initial=range(roots))


def optimum(graph: StateGraph) -> int:
    """Steps plus resets of the cheapest cover, by networkx's network simplex.

    Formulated apart from the code under test: lower bounds of one on every transition, a source
    that must enter every weakly connected component at least once.
    """
    flow = nx.MultiDiGraph()
    bound = 0
    demand: dict[object, int] = dict.fromkeys(range(len(graph.states)), 0)
    demand["reset"] = 0
    for source, target in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        demand[source] += 1
        demand[target] -= 1
        bound += 1
        flow.add_edge(source, target, weight=1)
    for state in range(len(graph.states)):
        flow.add_edge(state, "reset", weight=1)
    for component in nx.weakly_connected_components(_plain(graph)):
        gate = ("gate", min(component))
        demand[gate] = -1
        demand["reset"] += 1
        flow.add_edge("reset", gate, weight=0)
        for state in component & set(graph.initial.tolist()):
            flow.add_edge(gate, state, weight=0)
    nx.set_node_attributes(flow, demand, "demand")
    cost, _ = nx.network_simplex(flow)
    return bound + int(cost)


def _plain(graph: StateGraph) -> nx.MultiDiGraph:
    plain = nx.MultiDiGraph()
    plain.add_nodes_from(range(len(graph.states)))
    plain.add_edges_from(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    return plain


@given(reachable_graphs())
@settings(max_examples=150)
def test_the_cover_takes_every_transition_at_the_optimal_cost(graph: StateGraph) -> None:
    suite = transition_cover(graph)
    suite.require(graph)
    assert coverage(graph, suite).covered_transitions == len(graph.source)
    assert coverage(graph, suite).covered_states == len(graph.states)
    assert suite.steps + len(suite) == optimum(graph)


@given(reachable_graphs())
@settings(max_examples=100)
def test_the_greedy_cover_covers_too_and_is_never_cheaper(graph: StateGraph) -> None:
    greedy, cover = greedy_cover(graph), transition_cover(graph)
    greedy.require(graph)
    assert coverage(graph, greedy).covered_transitions == len(graph.source)
    empty_starts = sum(1 for test in cover if not len(test))
    assert greedy.steps + len(greedy) >= cover.steps + len(cover) - empty_starts


@given(reachable_graphs(), st.integers(0, 2**64), st.integers(0, 2**40))
@settings(max_examples=50)
def test_random_walks_are_paths(graph: StateGraph, seed: int, first: int) -> None:
    random_walks(graph, 5, 6, seed=seed % 2**63, first=first).require(graph)


def test_a_larger_graph_reaches_the_optimum_of_network_simplex_too() -> None:
    states = 1200
    edges: list[Edge] = [(state // 2, state, "tree") for state in range(1, states)]
    edges += [(state, (state * 37 + 11) % states, "jump") for state in range(0, states, 2)]
    edges += [(state, (state * 91 + 5) % states, "leap") for state in range(0, states, 5)]
    graph = graph_of(states, edges)
    suite = transition_cover(graph)
    suite.require(graph)
    assert suite.steps + len(suite) == optimum(graph)
