"""The steps that the spec allows, from a model's state graph or from the spec's evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from conformance.modelcheck.graph import StateGraph
from conformance.tla import Action, Spec, State, Value

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
    """The oracle of a model's complete state graph: fast, and bounded as the model is.

    It gives one object per state, and finds these again by identity: hashing a state would cost
    more than a step of an implementation. An equal state of other origin is found by its value.
    """

    __slots__ = ("_by_value", "_graph", "_memo", "_numbers", "_states")

    def __init__(self, graph: StateGraph) -> None:
        self._graph = graph
        self._states: list[State] = list(graph.states)
        self._numbers = {id(state): number for number, state in enumerate(self._states)}
        self._by_value: dict[tuple[Value | None, ...], int] | None = None
        self._memo: dict[int, Mapping[Action, tuple[State, ...]]] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        return self._graph.variables

    def initial_states(self) -> Sequence[State]:
        return [self._states[number] for number in self._graph.initial.tolist()]

    def successors(self, state: State, action: Action) -> Successors:
        return self._outgoing(state).get(action, ())

    def enabled(self, state: State) -> Sequence[Action]:
        return tuple(self._outgoing(state))

    def state(self, number: int) -> State:
        """The one object of this state of the graph."""
        return self._states[number]

    def number(self, state: tuple[Value | None, ...]) -> int | None:
        """The state's number in the graph, None if it is not one of its states."""
        known = self._numbers.get(id(state))
        if known is not None:
            return known
        if self._by_value is None:
            self._by_value = {member: number for number, member in enumerate(self._states)}
        return self._by_value.get(state)

    def _outgoing(self, state: State) -> Mapping[Action, tuple[State, ...]]:
        number = self.number(state)
        if number is None:
            return {}
        known = self._memo.get(number)
        if known is None:
            known = self._memo[number] = self._read(number)
        return known

    def _read(self, number: int) -> Mapping[Action, tuple[State, ...]]:
        graph = self._graph
        first, last = int(graph.offsets[number]), int(graph.offsets[number + 1])
        result: dict[Action, tuple[State, ...]] = {}
        for code, target in sorted(
            zip(graph.action[first:last].tolist(), graph.target[first:last].tolist(), strict=True)
        ):
            action = graph.actions[code]
            result[action] = (*result.get(action, ()), self._states[target])
        return result


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
    result: dict[Action, dict[State, None]] = {}
    for action, state in successors:
        result.setdefault(action, {})[state] = None
    return {action: tuple(states) for action, states in result.items()}


def oracle_of(spec: Spec) -> SpecOracle:
    """The bound specification as an oracle."""

    def successors(state: State) -> list[tuple[Action, State]]:
        return list(spec.successors(state))

    return SpecOracle(tuple(spec.variables), list(spec.initial_states()), successors)


def allows(oracle: Oracle, initial: State, actions: Iterable[Action]) -> bool:
    """Whether the spec has the path, whatever an implementation shows on the way."""
    states: tuple[State, ...] = (initial,)
    for action in actions:
        states = tuple(dict.fromkeys(t for s in states for t in oracle.successors(s, action)))
    return bool(states)
