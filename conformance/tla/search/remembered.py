"""The steps of a state; those of an action instance are remembered by what it reads.

Most action instances of a large model read little of a state: a guard that fails, or one process's
part of a few functions. What an instance reads is a path in its decision tree:

    pc[3] --"a1"--> x[3] --{0}--> x[3] := {0, 1}, pc[3] := "a2"
          --"a2"--> ...
          --"b"---> no step

A step is known by what it changes, so that the key of a successor that was met before is found
without the successor. A tree is only as good as its hits: a node that is passed through on the way
to ever new paths ends the tree, and the instance's code runs there as it always would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from conformance.tla.python.selection import TracedAction
from conformance.tla.python.traced import (
    UNDEFINED,
    ChangedVariable,
    Read,
    Reads,
    TracedVariable,
    result_at,
)
from conformance.tla.search.parts import StateParts
from conformance.tla.values import Action, Fn, State, Value

__all__ = ["RememberedSteps", "StateStep"]

WORTH_IT = 1_000
"""States from which on the code that notes its reads is worth its compilation."""
_TRIED = 200
"""New paths through a node before its hits count."""
_MOST_STEPS = 200_000
"""Paths that are remembered at once; then all trees begin again."""
_MOST_RESULTS = 4
"""Results of one function in a path; an instance that reads more reads it as a whole."""


class StepChange(NamedTuple):
    """Of a variable: its new value, or the results of its function that are new, by argument."""

    variable: int
    value: Value | None
    results: Mapping[Value, Value] | None
    key: int
    """By which the keys of the old and the new value differ."""


class StateStep(NamedTuple):
    """A step from any state that has what was read."""

    action: Action
    key: int
    """By which the keys of the state and its successor differ."""
    changes: tuple[StepChange, ...]


_Leaf = tuple[StateStep, ...]


class _Unknown:
    """Where a path is new."""

    __slots__ = ()


_UNKNOWN = _Unknown()


@dataclass(slots=True, eq=False)
class _Decision:
    """What is read next, and where each value leads."""

    variable: int
    argument: Value | None
    following: dict[int, _Node] = field(default_factory=dict)
    """By the identity of the value."""
    passed: int = 0
    new: int = 0
    """How often the path went on to something new."""


_Node = _Decision | _Leaf | _Unknown | None
"""None where a tree is of no use."""


@dataclass(slots=True, eq=False)
class _Tree:
    """What is remembered of one action instance."""

    action: TracedAction
    coarse: frozenset[int] = frozenset()
    root: _Node = _UNKNOWN

    def add(self, reads: Sequence[Read], state: State, leaf: _Leaf) -> None:
        """A path that is new."""
        passed: list[_Decision] = []
        node = self.root
        for variable, argument in reads:
            if node is _UNKNOWN:
                node = _Decision(variable, argument, passed=1)
                self._put(passed, state, node)
            assert isinstance(node, _Decision)
            node.new += 1
            passed.append(node)
            node = node.following.get(id(_read(node, state)), _UNKNOWN)
        self._put(passed, state, leaf)
        for number, decision in enumerate(passed):
            if decision.new >= _TRIED and 2 * decision.new > decision.passed:
                self._put(passed[:number], state, None)
                return

    def _put(self, passed: Sequence[_Decision], state: State, node: _Node) -> None:
        """The node where the path leads that has passed these decisions."""
        if passed:
            passed[-1].following[id(_read(passed[-1], state))] = node
        else:
            self.root = node


def _read(decision: _Decision, state: State) -> Value | None:
    value = state[decision.variable]
    return value if decision.argument is None else result_at(value, decision.argument)


class RememberedSteps:
    """The steps of states that are made of `parts`."""

    def __init__(
        self,
        successors: Callable[[State], Iterable[tuple[Action, State]]],
        actions: Callable[[], Sequence[TracedAction]],
        parts: StateParts,
    ) -> None:
        self._successors = successors
        self._actions = actions
        self._parts = parts
        self._asked = 0
        self._known = 0
        self._trees: list[_Tree] = []
        self._booleans = frozenset[int]()

    def of(self, state: State) -> Iterable[StateStep]:
        """The steps, in the order of `successors`; its errors where a formula has no value."""
        self._asked += 1
        if self._booleans != self._parts.with_booleans:
            self._booleans = self._parts.with_booleans
            self._begin_again()
        if self._asked == WORTH_IT:
            self._trees = list(map(_Tree, self._actions()))
        if not self._trees:
            return self._compared(state, self._successors(state))
        try:
            return self._remembered(state)
        except UNDEFINED:  # which only the usual search tells apart from a bug
            return self._compared(state, self._successors(state))

    def _remembered(self, state: State) -> list[StateStep]:
        steps: list[StateStep] = []
        for tree in self._trees:
            node = tree.root
            while node.__class__ is _Decision:
                node.passed += 1
                value, argument = state[node.variable], node.argument
                if argument is None:
                    read = id(value)
                elif value.__class__ is Fn:
                    read = id(value.mapping.get(argument))
                else:
                    read = id(result_at(value, argument))
                node = node.following.get(read, _UNKNOWN)
            if node.__class__ is tuple:
                steps += node
            elif node is None:
                steps += self._compared(state, tree.action.successors(state))
            else:
                steps += self._learnt(tree, state)
        return steps

    def _compared(self, state: State, result: Iterable[tuple[Action, State]]) -> list[StateStep]:
        """The steps to states that the usual code has made."""
        return [StateStep(action, *self._changes(state, after)) for action, after in result]

    def _changes(self, state: State, after: State) -> tuple[int, tuple[StepChange, ...]]:
        key, changes = 0, list[StepChange]()
        for index, (old, value) in enumerate(zip(state, after, strict=True)):
            if value is not old:
                key ^= self._change(index, old, value, changes)
        return key, tuple(changes)

    def _change(self, index: int, old: Value, value: Value, changes: list[StepChange]) -> int:
        """Notes that a variable has another value, if it has; by which its key changes."""
        variable = self._parts.variable(index)
        part, key = variable.part(value)
        if part is old:
            return 0
        key ^= variable.part(old)[1]
        changes.append(StepChange(index, part, None, key))
        return key

    def _learnt(self, tree: _Tree, state: State) -> _Leaf:
        """What a run finds, from now on remembered."""
        reads = Reads(state, tree.coarse | self._booleans)
        result = tree.action.trace(reads)
        leaf = tuple([self._traced(action, made, reads) for action, made in result])
        if self._known >= _MOST_STEPS:
            self._begin_again()
        many = _read_often(reads.order)
        if many:
            tree.coarse |= many
            tree.root = _UNKNOWN
        else:
            tree.add(tuple(reads.order), state, leaf)
            self._known += 1
        return leaf

    def _begin_again(self) -> None:
        self._known = 0
        for tree in self._trees:
            tree.root = _UNKNOWN

    def _traced(
        self,
        action: Action,
        made: Iterable[Value | TracedVariable | ChangedVariable],
        reads: Reads,
    ) -> StateStep:
        """The step; that a variable gets another value reads it, since its key changes."""
        key, changes = 0, list[StepChange]()
        for index, value in enumerate(made):
            if isinstance(value, ChangedVariable):
                key ^= self._change_in_part(index, value, reads.state, changes)
            elif not isinstance(value, TracedVariable):
                key ^= self._change(index, reads.whole(index), value, changes)
        return StateStep(action, key, tuple(changes))

    def _change_in_part(
        self, index: int, changed: ChangedVariable, state: State, changes: list[StepChange]
    ) -> int:
        variable, key, results = self._parts.variable(index), 0, dict[Value, Value]()
        for argument, value in changed.results.items():
            old = result_at(state[index], argument)
            assert old is not None
            result, result_key = variable.result(argument, value)
            if result is not old:
                results[argument] = result
                key ^= result_key ^ variable.result(argument, old)[1]
        if results:
            changes.append(StepChange(index, None, results, key))
        return key

    def successor(self, state: State, step: StateStep) -> State:
        """The state after the step."""
        values = list(state)
        for index, value, results, key in step.changes:
            if results is not None:
                value = self._parts.variable(index).changed(values[index], results, key)
            assert value is not None
            values[index] = value
        return tuple(values)


def _read_often(reads: Iterable[Read]) -> frozenset[int]:
    """The variables of which more results are read than a path is to hold."""
    counts = Counter(variable for variable, argument in reads if argument is not None)
    return frozenset(variable for variable, count in counts.items() if count > _MOST_RESULTS)
