"""A cover of what a system can be driven along, and the count of what it cannot."""

from __future__ import annotations

import numpy as np

from conformance.suites.restricted import SuiteLimits, cover_within
from conformance.tla import State
from tests.unit.suites.graphs import graph_of

# 0 -A-> 1 -B-> 2 -A-> 0, and 1 -Far-> 3 -A-> 0.
EDGES = [(0, 1, "A"), (1, 2, "B"), (2, 0, "A"), (1, 3, "Far"), (3, 0, "A")]


def stays(_state: State) -> str:
    return ""


def test_nothing_is_left_out_without_limits() -> None:
    graph = graph_of(4, EDGES)
    found = cover_within(graph, SuiteLimits({}, stays))
    assert found.reachable.all()
    assert not found.left_out
    found.suite.require(graph)


def test_what_follows_an_action_beyond_reach_is_cut_off() -> None:
    graph = graph_of(4, EDGES)
    found = cover_within(graph, SuiteLimits({"Far": "too far", "Absent": "no matter"}, stays))
    names = [graph.actions[code].name for code in graph.action[found.reachable]]
    assert names == ["A", "B", "A"]
    assert dict(found.left_out) == {
        "Far: too far": 1,
        "only what comes before them leads there": 1,
    }
    found.suite.require(graph)
    taken = np.concatenate([test.edges for test in found.suite])
    assert set(taken.tolist()) == set(np.flatnonzero(found.reachable).tolist())


def test_no_test_passes_through_a_state_that_does_not_stay() -> None:
    graph = graph_of(4, EDGES)
    third = graph.states[3]
    found = cover_within(graph, SuiteLimits({}, lambda state: "gone" if state == third else ""))
    assert dict(found.left_out) == {"gone": 1, "only what comes before them leads there": 1}


# 0 -Ask-> 1, which goes on by Do to 2 and by Write to 3; others could come between.
HASTY = [
    (0, 1, "Ask"),
    (1, 2, "Do"),
    (1, 4, "Wait"),
    (2, 3, "Write"),
    (2, 4, "Wait"),
    (3, 0, "Back"),
    (4, 0, "Back"),
    (3, 1, "Ask"),
]


def test_no_test_takes_another_step_where_the_system_goes_on() -> None:
    graph = graph_of(5, HASTY)
    steps = {1: frozenset({"Do"}), 2: frozenset({"Write"})}
    found = cover_within(
        graph, SuiteLimits({}, stays, lambda state: steps.get(int(str(state[0])), frozenset()))
    )

    assert dict(found.left_out) == {
        "Do comes first: the system does not wait with it": 1,
        "Write comes first: the system does not wait with it": 1,
        "only what comes before them leads there": 1,
    }
    found.suite.require(graph)


def test_no_test_ends_where_the_system_goes_on() -> None:
    graph = graph_of(5, [edge for edge in HASTY if edge[2] != "Back"])
    steps = {1: frozenset({"Do"}), 2: frozenset({"Write"})}
    found = cover_within(
        graph, SuiteLimits({}, stays, lambda state: steps.get(int(str(state[0])), frozenset()))
    )

    ends = [int(graph.target[test.edges[-1]]) for test in found.suite]
    assert ends
    assert {*ends} == {3}
    found.suite.require(graph)


def test_where_the_model_ends_while_the_system_goes_on_no_test_goes() -> None:
    graph = graph_of(4, [(0, 1, "Ask"), (1, 2, "Do"), (0, 3, "Rest")])
    steps = {1: frozenset({"Do"}), 2: frozenset({"Write"})}
    found = cover_within(
        graph, SuiteLimits({}, stays, lambda state: steps.get(int(str(state[0])), frozenset()))
    )

    names = [graph.actions[code].name for code in graph.action[found.reachable]]
    assert names == ["Rest"]
    assert dict(found.left_out) == {"the system goes on there, and the model ends": 2}
