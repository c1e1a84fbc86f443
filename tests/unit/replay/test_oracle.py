"""Both oracles say the same of a small graph, however its states are handed to them."""

from __future__ import annotations

import pytest

from conformance.replay.oracle import GraphOracle, Oracle, SpecOracle
from conformance.tla import Action, State
from tests.unit.replay.machines import graph, oracle_of

# Fork leads to two states, by two edges; Back joins Twin as a second way from 1 to 0.
EDGES = [
    (0, 1, "Fork"),
    (0, 2, "Fork"),
    (1, 0, "Back"),
    (1, 0, "Twin"),
    (2, 2, "Stay"),
    (3, 0, "Back"),
]
FORK, BACK, TWIN, STAY = (Action(name) for name in ("Fork", "Back", "Twin", "Stay"))
INITIAL = (0, 3)
ORACLES = [GraphOracle(graph(EDGES, INITIAL)), oracle_of(EDGES, INITIAL)]


@pytest.mark.parametrize("oracle", ORACLES, ids=["graph", "spec"])
def test_the_graph_is_told_state_by_state(oracle: Oracle) -> None:
    assert oracle.variables == ("x",)
    assert list(oracle.initial_states()) == [(0,), (3,)]
    for _ in range(2):  # the second answer is the remembered one
        assert list(oracle.enabled((0,))) == [FORK]
        assert list(oracle.successors((0,), FORK)) == [(1,), (2,)]
        assert list(oracle.enabled((1,))) == [BACK, TWIN]
        assert list(oracle.successors((1,), TWIN)) == [(0,)]
        assert list(oracle.enabled((2,))) == [STAY]
        assert list(oracle.enabled((3,))) == [BACK]
    assert list(oracle.successors((2,), FORK)) == []


@pytest.mark.parametrize("oracle", ORACLES, ids=["graph", "spec"])
def test_a_state_that_is_not_reachable_enables_nothing(oracle: Oracle) -> None:
    assert list(oracle.enabled((9,))) == []
    assert list(oracle.successors((9,), FORK)) == []


def test_a_graph_finds_its_states_by_identity_and_by_value() -> None:
    oracle = GraphOracle(graph(EDGES, INITIAL))
    assert [oracle.number(oracle.state(number)) for number in range(4)] == [0, 1, 2, 3]
    assert oracle.number((int("2"),)) == 2
    assert oracle.number((3,)) == 3
    assert oracle.number((4,)) is None
    assert oracle.initial_states()[1] is oracle.state(3)
    assert oracle.successors((0,), FORK)[1] is oracle.state(2)


def test_a_successor_that_the_evaluator_finds_twice_is_one() -> None:
    twice = SpecOracle(("x",), [(0,)], lambda state: [(FORK, (1,)), (FORK, (2,)), (FORK, (1,))])
    assert twice.successors((0,), FORK) == ((1,), (2,))


def test_the_evaluator_is_asked_once_for_each_state_that_is_remembered() -> None:
    asked: list[State] = []

    def successors(state: State) -> list[tuple[Action, State]]:
        asked.append(state)
        return [(STAY, state)]

    oracle = SpecOracle(("x",), [(0,)], successors, remember=2)
    for number in (0, 1, 0, 1):
        oracle.enabled((number,))
    assert asked == [(0,), (1,)]
    oracle.enabled((2,))  # no room: what was known is forgotten
    oracle.enabled((2,))
    oracle.enabled((0,))
    assert asked == [(0,), (1,), (2,), (0,)]
