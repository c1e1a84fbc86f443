"""What the spec allows next: from a model's state graph, or from the spec's evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

from conformance.modelcheck.graph import StateGraph
from conformance.tla.values import Action, State

Successors: TypeAlias = Sequence[State]


class Oracle(Protocol):
    """The spec as a function; pure, so that answers may be remembered."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The spec's variables, in the order of a state's values."""

    def initial_states(self) -> Sequence[State]:
        """The states that Init allows."""

    def successors(self, state: State, action: Action) -> Successors:
        """The states that the spec allows after this action; empty when it is not enabled."""

    def enabled(self, state: State) -> Sequence[Action]:
        """The actions that have a successor, each once, in a stable order."""


class GraphOracle:
    """The oracle of a model's complete state graph: fast, and bounded as the model is."""

    __slots__ = ("_graph", "_ids", "_memo")

    def __init__(self, graph: StateGraph) -> None:
        self._graph = graph
        self._ids: dict[State, int] = {state: index for index, state in enumerate(graph.states)}
        self._memo: dict[State, Mapping[Action, tuple[State, ...]]] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        return self._graph.variables

    def initial_states(self) -> Sequence[State]:
        return [self._graph.states[index] for index in self._graph.initial.tolist()]

    def successors(self, state: State, action: Action) -> Successors:
        return self._outgoing(state).get(action, ())

    def enabled(self, state: State) -> Sequence[Action]:
        return tuple(self._outgoing(state))

    def _outgoing(self, state: State) -> Mapping[Action, tuple[State, ...]]:
        known = self._memo.get(state)
        if known is None:
            known = self._memo[state] = self._read(state)
        return known

    def _read(self, state: State) -> Mapping[Action, tuple[State, ...]]:
        index = self._ids.get(state)
        if index is None:
            return {}
        graph = self._graph
        first, last = int(graph.offsets[index]), int(graph.offsets[index + 1])
        found: dict[Action, tuple[State, ...]] = {}
        for code, target in sorted(
            zip(graph.action[first:last].tolist(), graph.target[first:last].tolist(), strict=True)
        ):
            action = graph.actions[code]
            found[action] = (*found.get(action, ()), graph.states[target])
        return found


SuccessorFunction: TypeAlias = Callable[[State], Sequence[tuple[Action, State]]]


class SpecOracle:
    """The oracle of the evaluator: unbounded by any model's CONSTRAINT, remembers its answers.

    `remember` bounds the number of states whose successors are kept.
    """

    __slots__ = ("_initial", "_memo", "_remember", "_successors", "_variables")

    def __init__(
        self,
        variables: tuple[str, ...],
        initial: Sequence[State],
        successors: SuccessorFunction,
        *,
        remember: int = 200_000,
    ) -> None:
        self._variables = variables
        self._initial = tuple(initial)
        self._successors = successors
        self._remember = remember
        self._memo: dict[State, Mapping[Action, tuple[State, ...]]] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        return self._variables

    def initial_states(self) -> Sequence[State]:
        return self._initial

    def successors(self, state: State, action: Action) -> Successors:
        return self._outgoing(state).get(action, ())

    def enabled(self, state: State) -> Sequence[Action]:
        return tuple(self._outgoing(state))

    def _outgoing(self, state: State) -> Mapping[Action, tuple[State, ...]]:
        known = self._memo.get(state)
        if known is None:
            if len(self._memo) >= self._remember:
                self._memo.clear()
            known = self._memo[state] = _group(self._successors(state))
        return known


def _group(successors: Sequence[tuple[Action, State]]) -> Mapping[Action, tuple[State, ...]]:
    """Successors by action, each once, in the order in which the evaluator finds them."""
    found: dict[Action, dict[State, None]] = {}
    for action, state in successors:
        found.setdefault(action, {})[state] = None
    return {action: tuple(states) for action, states in found.items()}
