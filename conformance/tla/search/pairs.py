"""Two specifications side by side: which behaviours one has and the other has not, as observed.

The search goes like this:

1. Of a state both specifications show an *observation*, the values that they have in common.
   A step that leaves the observation as it is, is hidden.
2. A node is a pair of sets: all states of the old specification, and all of the new one, that a
   behaviour may be in after the same sequence of observations. Sets are closed under hidden steps.
   This is the subset construction, of both at once.
3. From a node each next observation leads on. If only one of the two can show it, the behaviour
   up to there belongs to that one alone: a *distinction*. Nothing behind it is looked at.
4. If no node is left and there was no distinction, both have the same behaviours: the finite
   sequences of observations are equal. Fairness, deadlocks and endless hidden steps are not
   compared.

With everything observed the sets are single states, and the work is that of a usual search. Hidden
variables may make it exponential, so a limit counts the states of all sets.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.tla.search.breadth_first import (
    Counterexample,
    SearchEnd,
    SearchError,
    SearchLimits,
    SearchProblem,
)
from conformance.tla.search.parts import StateParts
from conformance.tla.search.remembered import RememberedSteps
from conformance.tla.semantics.errors import EvaluationError
from conformance.tla.values import Action, State, Value

__all__ = ["Distinction", "ObservedProblem", "PairResult", "PairSide", "compare"]


class PairSide(StrEnum):
    """Which of the two specifications has a behaviour that the other has not."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class ObservedProblem:
    """A state space, and what is seen of a state; both sides show values in the same order."""

    problem: SearchProblem
    observed: tuple[str, ...]
    """The names of these values."""
    observe: Callable[[State], tuple[Value, ...]]
    label: Callable[[Action, State, State], Hashable] = lambda action, _state, _after: action.name
    """By what distinguishing steps are counted together."""


@dataclass(frozen=True, slots=True)
class Distinction:
    """A shortest behaviour of `side` whose observations the other side cannot show.

    Its last step is the first that the other cannot follow; `elsewhere` are states in which the
    other may be before that step (none if not even the initial state can be shown).
    """

    side: PairSide
    label: Hashable
    """None for an initial state."""
    path: Counterexample
    elsewhere: tuple[State, ...]
    steps: int
    """Distinguishing steps of this label, in all nodes together."""


@dataclass(frozen=True, slots=True)
class PairResult:
    """What was found; only with EXHAUSTED is it all that there is."""

    end: SearchEnd
    distinctions: tuple[Distinction, ...]
    """Shortest first."""
    states: tuple[int, int]
    """Distinct states that were met, of the old and of the new specification."""
    nodes: int
    """Distinct pairs of sets."""
    seconds: float

    @property
    def equal(self) -> bool:
        """Whether the two have the same behaviours; nothing to compare is not equal."""
        return self.end is SearchEnd.EXHAUSTED and not self.distinctions and self.nodes > 0

    def of(self, side: PairSide) -> tuple[Distinction, ...]:
        """The distinctions of one side."""
        return tuple(item for item in self.distinctions if item.side is side)


def compare(
    old: ObservedProblem,
    new: ObservedProblem,
    limits: SearchLimits | None = None,
    progress: Callable[[int, int], None] = lambda _nodes, _states: None,
) -> PairResult:
    """Search until all nodes are known, or a limit: of the states in all sets, or of seconds.

    `stop_at_violation` ends it at the first node with a distinction. A formula without a value
    raises SearchError.
    """
    return _PairSearch(old, new, limits or SearchLimits(stop_at_violation=False), progress).run()


class _LimitReached(Exception):
    """Ends the search from wherever it is."""


_Set = tuple[int, ...]
"""Numbers of states, sorted."""
_Edge = tuple[int, Action, int]
_Moves = dict[int, list[_Edge]]
"""Steps by the key of the observation to which they lead."""


class _StateSpace:
    """The states of one side as far as they are known, with their steps and observations."""

    def __init__(self, side: ObservedProblem, views: StateParts) -> None:
        self.side = side
        self._problem = side.problem
        self._views = views
        self._parts = StateParts(len(self._problem.variables))
        self._remembered = RememberedSteps(
            self._problem.successors, self._problem.traced_actions, self._parts
        )
        self._numbers: dict[int, int] = {}
        self._keys: list[int] = []
        self.states: list[State] = []
        self.view: list[int] = []
        """By state: the key of its observation."""
        self._reached_by: list[tuple[int, Action] | None] = []
        self._steps: dict[int, tuple[tuple[Action, int], ...]] = {}

    def initial(self) -> list[int]:
        """The initial states within the constraints."""
        self._problem.search_at(0)
        return [
            self._number(*self._parts.state(state), None)
            for state in self._problem.initial()
            if all(constraint(state) for constraint in self._problem.constraints)
        ]

    def steps(self, number: int) -> tuple[tuple[Action, int], ...]:
        """The steps from a state within the constraints."""
        known = self._steps.get(number)
        if known is None:
            try:
                known = self._steps[number] = tuple(self._successors(number))
            except EvaluationError as error:
                raise SearchError(error, self._problem, self._way(number)) from error
        return known

    def _successors(self, number: int) -> Iterator[tuple[Action, int]]:
        state = self.states[number]
        for step in self._remembered.of(state):
            key = self._keys[number] ^ step.key
            target = self._numbers.get(key)
            if target is None or self._problem.action_constraints:
                successor = self._remembered.successor(state, step)
                if self._is_outside(state, successor):
                    continue
                target = self._number(successor, key, (number, step.action))
            yield step.action, target

    def _is_outside(self, state: State, successor: State) -> bool:
        problem = self._problem
        return not all(holds(successor) for holds in problem.constraints) or not all(
            holds(state, successor) for holds in problem.action_constraints
        )

    def _number(self, state: State, key: int, reached_by: tuple[int, Action] | None) -> int:
        number = self._numbers.setdefault(key, len(self.states))
        if number == len(self.states):
            self.states.append(self._parts.state(state)[0])
            self._keys.append(key)
            self.view.append(self._views.state(self.side.observe(state))[1])
            self._reached_by.append(reached_by)
        return number

    def _way(self, number: int) -> Counterexample:
        steps: list[tuple[Action, State]] = []
        while (reached := self._reached_by[number]) is not None:
            steps.append((reached[1], self.states[number]))
            number = reached[0]
        return Counterexample(self.states[number], tuple(reversed(steps)))

    def closed(self, numbers: Iterable[int], most: int) -> _Set:
        """The states and those that hidden steps lead to. _LimitReached if there are too many."""
        seen = dict.fromkeys(numbers)
        queue = list(seen)
        for number in queue:
            for _, target in self.steps(number):
                if self.view[target] == self.view[number] and target not in seen:
                    seen[target] = None
                    queue.append(target)
            if len(seen) > most:
                raise _LimitReached
        return tuple(sorted(seen))

    def moves(self, numbers: _Set) -> _Moves:
        """The steps from these states that can be seen, by what is seen after them."""
        moves: _Moves = {}
        for number in numbers:
            for action, target in self.steps(number):
                if self.view[target] != self.view[number]:
                    moves.setdefault(self.view[target], []).append((number, action, target))
        return moves

    def path(self, views: Sequence[int], goals: Sequence[_Edge]) -> Counterexample:
        """A behaviour with as few steps as these observations need, and one of the last steps."""
        last = {source: (action, target) for source, action, target in reversed(goals)}
        start = [(0, number) for number in dict.fromkeys(self.initial())]
        parents: dict[tuple[int, int], tuple[tuple[int, int], Action] | None] = {
            place: None for place in start if self.view[place[1]] == views[0]
        }
        queue = deque(parents)
        while queue:
            place = layer, number = queue.popleft()
            if layer == len(views) - 1 and number in last:
                return self._counterexample(parents, place, last[number])
            for action, target in self.steps(number):
                ahead = layer + (self.view[target] != self.view[number])
                following = ahead, target
                fits = ahead < len(views) and self.view[target] == views[ahead]
                if fits and following not in parents:
                    parents[following] = place, action
                    queue.append(following)
        raise AssertionError("no behaviour shows the observations that led to a node")

    def _counterexample(
        self,
        parents: dict[tuple[int, int], tuple[tuple[int, int], Action] | None],
        place: tuple[int, int],
        last: tuple[Action, int],
    ) -> Counterexample:
        steps = [(last[0], self.states[last[1]])]
        while (parent := parents[place]) is not None:
            steps.append((parent[1], self.states[place[1]]))
            place = parent[0]
        return Counterexample(self.states[place[1]], tuple(reversed(steps)))


@dataclass(slots=True)
class _GroupOfSteps:
    """The distinguishing steps of one side and one label."""

    node: int
    """Where they were met first."""
    edges: list[_Edge]
    """There."""
    steps: int


@dataclass(slots=True)
class _NodeOfPair:
    """What both sides may be in after the same observations."""

    sets: tuple[_Set, _Set]
    view: int
    parent: int | None


class _PairSearch:
    """The state of one search: a queue of nodes, explored in order."""

    def __init__(
        self,
        old: ObservedProblem,
        new: ObservedProblem,
        limits: SearchLimits,
        progress: Callable[[int, int], None],
    ) -> None:
        self._limits = limits
        self._progress = progress
        self._started = time.monotonic()
        views = StateParts(len(old.observed))
        self._spaces = (_StateSpace(old, views), _StateSpace(new, views))
        self._sides = (PairSide.OLD, PairSide.NEW)
        self._nodes: list[_NodeOfPair] = []
        self._known: set[tuple[_Set, _Set]] = set()
        self._size = 0
        self._groups: dict[tuple[int, Hashable], _GroupOfSteps] = {}
        self._initial: list[Distinction] = []

    def run(self) -> PairResult:
        try:
            end = self._explore()
        except _LimitReached:
            end = SearchEnd.LIMIT
        finally:
            for space in self._spaces:
                space.side.problem.search_at(None)
        distinctions = [*self._initial, *map(self._distinction, self._groups)]
        return PairResult(
            end=end,
            distinctions=tuple(sorted(distinctions, key=lambda item: len(item.path))),
            states=(len(self._spaces[0].states), len(self._spaces[1].states)),
            nodes=len(self._nodes),
            seconds=time.monotonic() - self._started,
        )

    def _explore(self) -> SearchEnd:
        self._start()
        for number, node in enumerate(self._nodes):
            if self._limits.stop_at_violation and (self._groups or self._initial):
                return SearchEnd.VIOLATION
            self._expand(number, node)
            self._progress(number + 1, self._size)
        stopped = self._limits.stop_at_violation and (self._groups or self._initial)
        return SearchEnd.VIOLATION if stopped else SearchEnd.EXHAUSTED

    def _start(self) -> None:
        by_view = [self._by_view(space, space.initial()) for space in self._spaces]
        for view in dict.fromkeys([*by_view[0], *by_view[1]]):
            if view in by_view[0] and view in by_view[1]:
                self._add(view, None, (by_view[0][view], by_view[1][view]))
                continue
            side = 0 if view in by_view[0] else 1
            states = self._spaces[side].states
            path = Counterexample(states[by_view[side][view][0]])
            count = len(by_view[side][view])
            self._initial.append(Distinction(self._sides[side], None, path, (), count))

    def _by_view(self, space: _StateSpace, numbers: Iterable[int]) -> dict[int, list[int]]:
        result: dict[int, list[int]] = {}
        for number in dict.fromkeys(numbers):
            result.setdefault(space.view[number], []).append(number)
        return result

    def _expand(self, number: int, node: _NodeOfPair) -> None:
        old, new = (space.moves(part) for space, part in zip(self._spaces, node.sets, strict=True))
        for view in dict.fromkeys([*old, *new]):
            if view in old and view in new:
                targets = tuple([target for _, _, target in moves[view]] for moves in (old, new))
                self._add(view, number, (targets[0], targets[1]))
            else:
                side, moves = (0, old) if view in old else (1, new)
                self._distinguish(number, side, moves[view])

    def _add(self, view: int, parent: int | None, begun: tuple[list[int], list[int]]) -> None:
        most = self._most()
        sets = (self._spaces[0].closed(begun[0], most), self._spaces[1].closed(begun[1], most))
        if sets in self._known:
            return
        self._known.add(sets)
        self._size += len(sets[0]) + len(sets[1])
        self._nodes.append(_NodeOfPair(sets, view, parent))
        self._most()

    def _most(self) -> int:
        """How many states more the sets may have. _LimitReached if there is a limit and no room."""
        limits = self._limits
        late = limits.seconds is not None and time.monotonic() - self._started > limits.seconds
        room = 2**62 if limits.states is None else limits.states - self._size
        if late or room < 0:
            raise _LimitReached
        return room

    def _distinguish(self, number: int, side: int, edges: Sequence[_Edge]) -> None:
        space = self._spaces[side]
        for edge in edges:
            source, action, target = edge
            label = space.side.label(action, space.states[source], space.states[target])
            group = self._groups.setdefault((side, label), _GroupOfSteps(number, [], 0))
            group.steps += 1
            if group.node == number:
                group.edges.append(edge)

    def _distinction(self, key: tuple[int, Hashable]) -> Distinction:
        side, label = key
        group = self._groups[key]
        views: list[int] = []
        number: int | None = group.node
        while number is not None:
            views.append(self._nodes[number].view)
            number = self._nodes[number].parent
        path = self._spaces[side].path(views[::-1], group.edges)
        other = self._spaces[1 - side].states
        elsewhere = tuple(other[number] for number in self._nodes[group.node].sets[1 - side])
        return Distinction(self._sides[side], label, path, elsewhere, group.steps)
