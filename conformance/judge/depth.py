"""Looks for one behaviour that explains a recording, depth first, with a memory of dead ends.

A *node* is a cut of the order and the state after it. From a node, every event that may be next is
tried after 0, 1, 2, ... unseen steps; of the events that can follow after equally many steps, the
one with the fewest ways comes first. A node is entered once: whatever is possible from it depends
on the node alone, so a node that led nowhere is a dead end for ever.

**Unseen steps that matter come first.** An unseen step without which an event can happen all the
same can nearly always happen later as well; so a search that takes every step as late as it can
finds an explanation soon. A search has one of three reaches:

- `NEEDED`: unseen steps that name a value that the next event names; then also the steps of a
  process that the last blocked events asked for. An event is *blocked* where no unseen steps that
  name its values make it possible. It asks for what it names, and for every value that its actions,
  or unseen ones that name the same, read of the states in which it is not possible: the owner of a
  lock, the head of a queue.
- `ONE_MORE`: the same with the steps of any other process, of one at a time.
- `ALL`: then all unseen steps.

In the first two, a state that unseen steps lead to at a cut is entered as well: whatever follows it
follows the node before these steps, too, apart from bounds. What these searches find is a behaviour
of the specification within the bound. What they do not find proves nothing: only a search with the
reach `ALL`, for which the first steps are an order and no restriction, may say that there is no
explanation. So the reduction is sound.

**The bound is deepened.** A search with a reach and a bound of b unseen steps has a purse of its
own, whatever the largest bound is: first a small one for each b from 0 on, then a larger one. A
search that ended without having spent its purse need not be made again; if it had all steps and was
never held up by its bound, there is no explanation at all. After the searches with one purse,
`judge.absence` has the same purse to show that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from conformance.judge.absence import Absence
from conformance.judge.budget import Budget, JudgeLimits, LimitReached, MemorySpent
from conformance.judge.candidates import NO_LOAD, Candidate, Candidates, Load, Origin, Sight
from conformance.judge.order import Cut, Order
from conformance.tla import Action, PartialRecord, State, Value

__all__ = ["DepthFirstResult", "Move", "explanation"]


class Reach(Enum):
    """Which unseen steps a search tries before an event, in the order of the searches."""

    NEEDED = "needed"
    ONE_MORE = "one more"
    ALL = "all"


class Move(NamedTuple):
    """An event, how it came about, and the node after it."""

    event: int
    cut: Cut
    after: Candidate
    origin: Origin


@dataclass(frozen=True, slots=True)
class DepthFirstResult:
    """The result of a depth-first search."""

    start: tuple[Cut, Candidate]
    path: tuple[Move, ...] | None
    """The moves that explain the events, from the start; None if none were found."""
    most: int | None
    """The number of events beyond which no behaviour goes, as was shown; else None."""
    tried: int


_ASKED_STATES = 12
"""The maximum number of states in which it is asked why an event is blocked."""
_FIRST_PURSE = 2_000
_PER_EVENT = 20
"""States that a search may look at first, and for each event."""
_GROWTH = 8
"""The factor from one allowance of the search to the next."""


def explanation(
    candidates: Candidates,
    sights: Sequence[Sight],
    order: Order,
    initial: Sequence[State],
    base: int,
    tell: Callable[[int], None],
    total: int | None = None,
) -> DepthFirstResult:
    """Look for one explanation; `base` are the bytes that the process held before.

    `total`: of so many events; it is known then that nothing shows the absence of that but a
    search of this module.
    """
    limits, start = candidates.limits, candidates.start(initial)
    ask, may_ask = None, total is None
    wanted = len(sights) if total is None else total
    reaches = Reach if any(map(_named_by, sights)) else (Reach.ALL,)
    bounds = range(limits.silent + 1)
    left = {(reach, bound): limits.seconds for reach in reaches for bound in bounds}
    nowhere = DepthFirstResult((order.start, start.members[0]), None, None, 0)
    tried = 0
    for number, states in enumerate(_purses(limits, len(sights))):
        for reach, bound in list(left):
            if reach is not Reach.ALL and number and states == limits.states:
                continue  # the largest purse is for searches that can show that there is none
            seconds = left[reach, bound]
            budget = Budget(limits, states, 0, base=base, tell=tell, seconds=seconds)
            attempt = _DepthFirst(candidates, sights, order, budget, reach, bound, wanted)
            try:
                path = attempt.path(start.members)
            except MemorySpent:
                candidates.crowded = True
                return replace(nowhere, tried=tried)
            except LimitReached:
                path = None
            tried += budget.tried
            left[reach, bound] = budget.left
            if path is not None:
                first = path[0].origin.candidate if path else start.members[0]
                return DepthFirstResult((order.start, first), tuple(path), None, tried)
            if attempt.exhausted:
                if attempt.proves_absence(bound == limits.silent):
                    return replace(nowhere, most=attempt.deepest, tried=tried)
                del left[reach, bound]
            elif left[reach, bound] <= 0:
                del left[reach, bound]
        if may_ask:  # what actions read and change is found out where a first search found nothing
            ask = ask or Absence.of(candidates, sights, order)
        if ask is not None and may_ask:
            budget = Budget(limits, states, 0, base=base)
            most = ask.most(initial, budget)
            tried += budget.tried
            if most is not None:
                return replace(nowhere, most=most, tried=tried)
        may_ask = may_ask and ask is not None and not ask.ended
    return replace(nowhere, tried=tried)


def _purses(limits: JudgeLimits, events: int) -> Iterator[int]:
    states = _FIRST_PURSE + _PER_EVENT * events
    while states < limits.states:
        yield states
        states *= _GROWTH
    yield limits.states


Ahead = dict[tuple[Candidate, Load], tuple[tuple[Action, Candidate], ...]]
"""States that unseen steps lead to, and by which steps."""


@dataclass(slots=True)
class _Layer:
    """What equally many unseen steps lead to, before the events of one owner."""

    owner: str | None
    events: tuple[int, ...]
    ahead: Ahead
    known: set[tuple[Candidate, Load]]


@dataclass(slots=True)
class _SearchNode:
    """A node whose moves are made."""

    cut: Cut
    candidate: Candidate
    ready: Sequence[int]
    known: set[tuple[int, Candidate]] = field(default_factory=set)
    """The moves that were made: events, and the states after them."""
    between: dict[Candidate, None] = field(default_factory=dict)
    """The states in which the events were tried."""


@dataclass(slots=True)
class _DepthFirst:
    """One search, with at most `bound` unseen steps in a row; whether all was tried."""

    candidates: Candidates
    sights: Sequence[Sight]
    order: Order
    budget: Budget
    reach: Reach
    bound: int
    total: int
    """The number of events to explain."""
    exhausted: bool = False
    deepest: int = 0
    """The largest number of events that were explained."""
    bounded: bool = False
    """Whether one step more might have led further."""
    problems: dict[str, None] = field(default_factory=dict)
    """Why steps may be missing."""
    _entered: set[tuple[Cut, Candidate]] = field(default_factory=set)
    _names: dict[int, frozenset[Value]] = field(default_factory=dict)
    _asked: tuple[frozenset[Value], frozenset[Value]] = (frozenset(), frozenset())
    """What the last blocked events asked for, and what those before them did."""

    def proves_absence(self, widest: bool) -> bool:
        """Whether an exhausted search shows that no behaviour explains all events.

        `widest`: its bound is the largest that is asked for.
        """
        everything = self.reach is Reach.ALL and (widest or not self.bounded)
        return everything and not self.problems

    def path(self, start: Iterable[Candidate]) -> list[Move] | None:
        """The moves that explain all events, None if there are none. Spent as of `Budget`."""
        total, cut = self.total, self.order.start
        for candidate in start:
            self._entered.add((cut, candidate))
            moves, ahead = list[Move](), [self._moves(cut, candidate)]
            while ahead and len(moves) < total:
                move = next(ahead[-1], None)
                if move is None:
                    ahead.pop()
                    if moves:
                        moves.pop()
                elif (move.cut, move.after) not in self._entered:
                    self._entered.add((move.cut, move.after))
                    moves.append(move)
                    self.deepest = max(self.deepest, len(moves))
                    ahead.append(self._moves(move.cut, move.after))
                    self.budget.tell(len(moves))
            if len(moves) == total:
                return moves
        self.exhausted = True
        return None

    def _moves(self, cut: Cut, candidate: Candidate) -> Iterator[Move]:
        """The nodes that may follow a node, in the order in which they are tried."""
        node = _SearchNode(cut, candidate, self.order.ready(cut))
        near = self._named(node.ready) if self.bound else None
        if near:
            yield from self._ways(node, near)
            if not node.known:
                self._blocked(node, near)
            for value in self._others(node, near):
                yield from self._ways(node, near | {value})
            if self.reach is Reach.NEEDED:
                if not node.known:
                    self._blocked(node, near)
                yield from self._ways(node, near | self._asked[0])
        if not near or self.reach is Reach.ALL:
            yield from self._ways(node, None)

    def _blocked(self, node: _SearchNode, near: frozenset[Value]) -> None:
        """Note what the events of a node ask for that are not possible."""
        states = list(node.between)[:_ASKED_STATES]
        sights = [self.sights[event] for event in node.ready]
        read = (self.candidates.read(state, sight, near) for state in states for sight in sights)
        asked = near.union(*read)
        if asked != self._asked[0]:
            self._asked = asked, self._asked[0]

    def _others(self, node: _SearchNode, near: frozenset[Value]) -> list[Value]:
        """The first arguments of other steps that may happen unseen now, the most wanted first."""
        owners = dict.fromkeys(self.sights[event].owner for event in node.ready)
        steps = (
            step for owner in owners for step in self.candidates.unseen(node.candidate, owner).steps
        )
        others = dict.fromkeys(action.args[0] for action, _ in steps if action.args)
        last, before = self._asked
        ranks = {value: (value not in last, value not in before) for value in others}
        return sorted(
            (
                value
                for value in others
                if value not in near and (self.reach is not Reach.NEEDED or not all(ranks[value]))
            ),
            key=ranks.__getitem__,
        )

    def _ways(self, node: _SearchNode, near: frozenset[Value] | None) -> Iterator[Move]:
        """The moves that are not known yet, those after few unseen steps first.

        With `near`, only by unseen steps that name one of these values.
        """
        layers = self._layers(node.candidate, node.ready)
        for depth in range(self.bound + 1):
            ways: dict[int, list[Move]] = {}
            for layer in layers:
                self._arrive(node, layer, ways)
            for event in sorted(ways, key=lambda event: len(ways[event])):
                yield from ways[event]
            if depth < self.bound:
                for layer in layers:
                    self._advance(node, layer, near)
                layers = [layer for layer in layers if layer.ahead]
        self.bounded |= near is None and bool(layers)

    def _layers(self, candidate: Candidate, ready: Sequence[int]) -> list[_Layer]:
        owners: dict[str | None, list[int]] = {}
        for event in ready:
            owners.setdefault(self.sights[event].owner, []).append(event)
        begin = candidate, NO_LOAD
        return [
            _Layer(owner, tuple(events), {begin: ()}, {begin}) for owner, events in owners.items()
        ]

    def _arrive(self, node: _SearchNode, layer: _Layer, result: dict[int, list[Move]]) -> None:
        """Add the moves from the layer's states."""
        self.budget.tries(len(layer.ahead))
        for (before, _), unseen in layer.ahead.items():
            self.budget.in_time()
            node.between[before] = None
            for event in layer.events:
                for action, after in self.candidates.taken(
                    before, self.sights[event], self.problems
                ):
                    if (event, after) not in node.known:
                        node.known.add((event, after))
                        move = Move(
                            event,
                            self.order.after(node.cut, event),
                            after,
                            Origin(node.candidate, unseen, action),
                        )
                        result.setdefault(event, []).append(move)

    def _advance(self, node: _SearchNode, layer: _Layer, near: frozenset[Value] | None) -> None:
        """Take one unseen step more."""
        following: Ahead = {}
        for (before, load), unseen in layer.ahead.items():
            self.budget.in_time()
            ways = self.candidates.unseen(before, layer.owner)
            if ways.problem:
                self.problems[ways.problem] = None
            for step in ways.steps:
                args = step[0].args
                if near is not None and args and near.isdisjoint(args):
                    continue
                heavier = self.candidates.heavier(load, step[0])
                if heavier is not None and (step[1], heavier) not in layer.known:
                    layer.known.add((step[1], heavier))
                    if self.reach is not Reach.ALL:
                        self._entered.add((node.cut, step[1]))
                    following[step[1], heavier] = (*unseen, step)
        layer.ahead = following

    def _named(self, events: Sequence[int]) -> frozenset[Value]:
        """The values that events name; none if one of them names nothing."""
        each = [self._named_by(event) for event in events]
        return frozenset[Value]().union(*each) if all(each) else frozenset()

    def _named_by(self, event: int) -> frozenset[Value]:
        entry = self._names.get(event)
        if entry is None:
            entry = self._names[event] = _named_by(self.sights[event])
        return entry


def _named_by(sight: Sight) -> frozenset[Value]:
    """The arguments of an event's actions that were seen as a whole."""
    args = [arg for action in sight.actions for arg in action.args or ()]
    return frozenset(arg for arg in args if arg is not None and not isinstance(arg, PartialRecord))
