"""Systems and graphs of one variable `x`, given as tables of moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conformance.modelcheck.graph import StateGraph
from conformance.replay.oracle import SpecOracle
from conformance.systems.protocol import ActionRefused
from conformance.tla import Action, State, Value
from tests.unit.suites.graphs import Edge, graph_of

Moves = Mapping[tuple[int, str], int]


class Table:
    """Goes where its table says; refuses what the table lacks."""

    variables = ("x",)

    def __init__(self, moves: Moves, start: int | None = None) -> None:
        self.moves, self.start, self.x = moves, start, -1
        self.closed = 0

    def reset(self, initial: Mapping[str, Value]) -> None:
        start = initial["x"] if self.start is None else self.start
        assert isinstance(start, int)
        self.x = start

    def apply(self, action: Action) -> None:
        if (self.x, action.name) not in self.moves:
            raise ActionRefused(f"no {action} from {self.x}")
        self.x = self.moves[self.x, action.name]

    def observe(self) -> Mapping[str, Value]:
        return {"x": self.x}

    def close(self) -> None:
        self.closed += 1


def moves(edges: Sequence[Edge], **changed: int) -> dict[tuple[int, str], int]:
    """What the graph says, but for actions that lead elsewhere, whatever they start from."""
    return {(source, name): changed.get(name, target) for source, target, name in edges}


def graph(edges: Sequence[Edge], initial: Sequence[int] = (0,)) -> StateGraph:
    return graph_of(1 + max(max(a, b) for a, b, _ in edges), edges, initial)


def oracle_of(edges: Sequence[Edge], initial: Sequence[int] = (0,)) -> SpecOracle:
    def successors(state: State) -> list[tuple[Action, State]]:
        return [(Action(name), (target,)) for source, target, name in edges if (source,) == state]

    return SpecOracle(("x",), [(number,) for number in initial], successors)


def actions(names: str) -> tuple[Action, ...]:
    """One action per word."""
    return tuple(Action(name) for name in names.split())
