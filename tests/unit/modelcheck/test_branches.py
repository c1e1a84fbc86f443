"""Steps along a graph, counted by the disjuncts that they take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conformance.modelcheck.branches import BranchCounts, EdgeBranches
from conformance.modelcheck.graph import Edges, StateGraph, StateTable, build_graph
from conformance.tla import Action, Spec
from tests.unit.tla.small import spec

pytestmark = pytest.mark.tlc

BODY = r"""
VARIABLE x
Move ==
  \/ x < 2 /\ x' = x + 1
  \/ x > 0 /\ x' = x - 1
  \/ x > 7 /\ x' = 0
Stay == x' = x
Odd == (x[1] = 1 \/ x = 0) /\ x' = x
Init == x = 0
Next == Move \/ Stay \/ Odd
"""
MOVE, STAY = Action("Move"), Action("Stay")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return spec(tmp_path_factory.mktemp("branches"), BODY)


@pytest.fixture(scope="module")
def graph() -> StateGraph:
    """0 to 2: up, down and staying."""
    edges = [(0, 1, 0), (1, 2, 0), (2, 1, 0), (1, 0, 0), (0, 0, 1)]
    source, target, action = (np.array(one, np.int32) for one in zip(*edges, strict=True))
    table = StateTable(((0, 1, 2),), np.arange(3, dtype=np.int32).reshape(3, 1))
    return build_graph(("x",), table, [0], [MOVE, STAY], Edges(source, target, action))


def counts_of(found: Spec, graph: StateGraph, visits: dict[tuple[int, int], int]) -> dict[int, int]:
    """Steps by the line of the disjunct, given steps by source and target."""
    pairs = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    counts = BranchCounts(found)
    went = np.array([visits.get(pair, 0) for pair in pairs], np.int64)
    EdgeBranches.of(counts, graph, went > 0).count(counts, graph, went)
    return {int(place.split(":")[1]): steps for place, steps in counts.by_place().items()}


def test_a_step_counts_as_often_as_it_was_taken(found: Spec, graph: StateGraph) -> None:
    visits = {(0, 1): 5, (1, 2): 2, (2, 1): 10, (0, 0): 99}
    assert counts_of(found, graph, visits) == {6: 7, 7: 10}


def test_what_was_not_gone_along_is_not_counted(found: Spec, graph: StateGraph) -> None:
    assert counts_of(found, graph, {(1, 0): 1}) == {7: 1}
    assert counts_of(found, graph, {}) == {}


def test_only_actions_with_disjuncts_are_asked(found: Spec) -> None:
    counts = BranchCounts(found)
    assert counts.asks("Move")
    assert not counts.asks("Stay")
    counts.count((0,), STAY, (0,))
    assert counts.by_place() == {}


def test_what_has_no_value_and_what_is_no_step_counts_nowhere(found: Spec) -> None:
    counts = BranchCounts(found)
    counts.count((0,), Action("Odd"), (0,))  # the first disjunct has no value, the second holds
    counts.count((5,), Action("Odd"), (5,))  # neither
    counts.count((0,), MOVE, (2,))
    assert list(counts.by_place().values()) == [1]


def test_places_tell_nested_disjuncts_apart(tmp_path: Path) -> None:
    action = "A == IF x = 0 THEN x' = 1 \\/ x' = 2 ELSE x' = 0"
    body = f"VARIABLE x\n{action}\nInit == x = 0\nNext == A"
    counts = BranchCounts(spec(tmp_path, body))
    counts.count((0,), Action("A"), (1,))
    assert counts.by_place() == {"Small:4:20-4:35": 1, "Small:4:20-4:25": 1}


def test_the_disjuncts_of_edges_are_kept(found: Spec, graph: StateGraph) -> None:
    counts = BranchCounts(found)
    places = counts.places(("Move", "Stay"))
    every = EdgeBranches.of(counts, graph, np.ones(len(graph.source), bool))
    blob = every.to_bytes(places)
    again = EdgeBranches.from_bytes(blob, places, len(graph.source))
    assert again is not None
    again.count(counts, graph, np.ones(len(graph.source), np.int64))
    assert list(counts.by_place().values()) == [2, 2]


def test_what_is_kept_of_other_disjuncts_is_not_taken(found: Spec, graph: StateGraph) -> None:
    counts, edges = BranchCounts(found), len(graph.source)
    places = counts.places(("Move", "Stay"))
    blob = EdgeBranches.of(counts, graph, np.ones(edges, bool)).to_bytes(places)
    assert EdgeBranches.from_bytes(blob, {**places, "Stay": ["Small:1:1-1:2"]}, edges) is None
    assert EdgeBranches.from_bytes(blob, places, edges + 1) is None
    assert EdgeBranches.from_bytes(b"torn" + blob[4:], places, edges) is None
