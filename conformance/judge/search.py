"""Looks for the behaviours of a specification that explain the events of a recording.

`search` says in which order it looks. Here is the search for all behaviours. A *level* is what is
possible after so many events: for each cut of the order, the set of states in which the
specification may be, having shown all events of the cut. From level to level every event that may
be next is tried from every state that at most `silent` unseen steps lead to. So the search is
exhaustive, unless a limit cuts it short; it then says so, and no failure follows.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from conformance.judge.budget import Budget, LimitReached, MemorySpent, resident
from conformance.judge.candidates import (
    Arrival,
    Candidate,
    Candidates,
    CandidateSet,
    Origin,
    Sight,
)
from conformance.judge.depth import DepthFirstResult, explanation
from conformance.judge.order import Cut, Order
from conformance.judge.verdict import ExplainingBehaviour
from conformance.tla import Action, State, canonical_key

__all__ = [
    "BlockedEvent",
    "CutCandidates",
    "EventSearchResult",
    "Level",
    "Trail",
    "search",
    "survivors",
]


class CutArrival(NamedTuple):
    """A set of candidates, as one event led to it from a cut of the level before."""

    cut: Cut
    event: int
    arrival: Arrival


class CutCandidates(NamedTuple):
    """The candidates at a cut, and all arrivals that led to them."""

    candidates: CandidateSet
    ways: tuple[CutArrival, ...]


Level = Mapping[Cut, CutCandidates]
"""The possible states after a number of events, by cut."""


class Trail(Protocol):
    """The candidates after each number of events, beginning with zero."""

    def __len__(self) -> int:
        """The number of levels."""

    def level(self, done: int) -> Level:
        """The level after a number of events."""

    def arrivals(self) -> Sequence[Arrival]:
        """Of a total order, where each event led; nothing of another order."""

    def largest(self) -> int:
        """The largest number of states that were possible at once."""

    def back(self, done: int) -> Iterator[tuple[int, Candidate, Origin]]:
        """A behaviour that explains so many events, from its end to its begin: each event, the
        state after it and how that was reached."""


@dataclass(frozen=True, slots=True)
class _LinearTrail:
    """The trail of a total order, where each level has one cut: the arrivals say it all."""

    start: CandidateSet
    ways: Sequence[Arrival]
    most: int
    """The largest number of candidates among them."""

    def __len__(self) -> int:
        return len(self.ways) + 1

    def arrivals(self) -> Sequence[Arrival]:
        return self.ways

    def level(self, done: int) -> Level:
        if not done:
            return {(0,): CutCandidates(self.start, ())}
        arrival = self.ways[done - 1]
        return {
            (done,): CutCandidates(
                arrival.candidates, (CutArrival((done - 1,), done - 1, arrival),)
            )
        }

    def largest(self) -> int:
        return self.most

    def back(self, done: int) -> Iterator[tuple[int, Candidate, Origin]]:
        arrivals = self.ways
        candidate = (arrivals[done - 1].candidates if done else self.start).members[0]
        for number in range(done - 1, -1, -1):
            origin = arrivals[number].origins[candidate]
            yield number, candidate, origin
            candidate = origin[0]


@dataclass(frozen=True, slots=True)
class _Levels:
    """The trail of a partial order."""

    levels: Sequence[Level]

    def __len__(self) -> int:
        return len(self.levels)

    def level(self, done: int) -> Level:
        return self.levels[done]

    def arrivals(self) -> Sequence[Arrival]:
        return ()

    def largest(self) -> int:
        return max(map(_size, self.levels))

    def back(self, done: int) -> Iterator[tuple[int, Candidate, Origin]]:
        cut, reached = next(iter(self.levels[done].items()))
        candidate = reached.candidates.members[0]
        for number in range(done, 0, -1):
            ways = self.levels[number][cut].ways
            way = next(way for way in ways if candidate in way.arrival.origins)
            origin = way.arrival.origins[candidate]
            yield way.event, candidate, origin
            candidate, cut = origin.candidate, way.cut


@dataclass(frozen=True, slots=True)
class BlockedEvent:
    """An event that no candidate explains, and the states from which it was tried."""

    event: int
    states: tuple[State, ...]
    """Those without an unseen step first."""
    tried: int


@dataclass(frozen=True, slots=True)
class EventSearchResult:
    """The result of a search."""

    trail: Trail
    explained: bool
    blocked: tuple[BlockedEvent, ...] = ()
    limits: tuple[str, ...] = ()
    """Why it is not exhaustive."""
    tried: int = 0
    """Candidates and states between them that were looked at."""

    @property
    def exhaustive(self) -> bool:
        """Whether no limit cut the search short."""
        return not self.limits

    @property
    def done(self) -> int:
        """The number of events, from the first, that can be explained."""
        return len(self.trail) - 1

    @property
    def most_candidates(self) -> int:
        """The largest number of states that were possible at once."""
        return self.trail.largest()

    def states_after(self, done: int) -> tuple[State, ...]:
        """The states that are possible after a number of events."""
        reached = self.trail.level(done).values()
        return tuple(state for pair in reached for state in pair.candidates.states)

    def taken(self, done: int) -> tuple[Counter[str], int]:
        """The steps of that behaviour by action name, and the number of silent steps."""
        names: list[str] = []
        silent = 0
        for _, _, (_, unseen, action) in self.trail.back(done):
            if action is not None:
                names.append(action.name)
            if unseen:
                silent += len(unseen)
                names += [step[0].name for step in unseen]
        return Counter(names), silent

    def explanation(self, done: int) -> ExplainingBehaviour:
        """The behaviour that leads to the first of the states after a number of events."""
        actions: list[Action] = []
        states: list[State] = []
        events: list[int | None] = []
        origin = None
        for event, candidate, origin in self.trail.back(done):
            _, unseen, action = origin
            if action is not None:
                actions.append(action)
                states.append(candidate.state)
                events.append(event)
            if unseen:
                for steps, after in reversed(unseen):
                    actions.append(steps)
                    states.append(after.state)
                    events.append(None)
        if origin is None:
            first = next(iter(self.trail.level(done).values())).candidates.members[0]
        else:
            first = origin.candidate
        return ExplainingBehaviour(
            first.state, tuple(actions[::-1]), tuple(states[::-1]), tuple(events[::-1])
        )


def search(
    candidates: Candidates,
    sights: Sequence[Sight],
    order: Order,
    initial: Sequence[State],
    accepts: Callable[[Trail], bool] = lambda _: True,
    tell: Callable[[int], None] = lambda _: None,
) -> EventSearchResult:
    """Explain what the events show from these states on, within the limits of `candidates`.

    Three searches, until one decides:

    1. All behaviours, as long as they are few. Recordings of one system share what it computes.
    2. One explanation, depth first (`judge.depth`). `accepts` may refuse it, if more has to be
       known of all behaviours. Where it is shown that no behaviour explains more than some of the
       events, one behaviour that explains these is the end of the search.
    3. All behaviours, within the limits. If it is known that none explains all, without a bound on
       candidates: it shows where they end.

    No search takes anything from what another one may spend. The second tries each bound on unseen
    steps from 0 up by itself, so a larger bound loses nothing that a smaller one finds.
    """
    limits = candidates.limits
    base = resident()

    def all_of(asked: Candidates, shown: Sequence[Sight], budget: Budget) -> EventSearchResult:
        return _EventSearch(asked, shown, order, budget).run(initial)

    few = Budget(
        limits,
        min(limits.states, _FEW_STATES),
        min(limits.candidates, _FEW),
        strict=True,
        base=base,
    )
    result = all_of(candidates, sights, few)
    if result.exhaustive:
        return result
    chosen = explanation(candidates, sights, order, initial, base, tell)
    item = None if chosen.path is None else _chosen(candidates, chosen, result)
    if item is not None and accepts(item.trail):
        return item
    absent = chosen.path is None and chosen.most is not None
    tried = result.tried + chosen.tried
    while chosen.path is None and chosen.most is not None:
        total = chosen.most
        chosen = explanation(candidates, sights, order, initial, base, tell, total)
        tried += chosen.tried
    if absent and chosen.path is not None:
        ending = _ending(candidates, replace(chosen, tried=tried), order, sights, base)
        if accepts(ending.trail):
            return ending
    if absent:
        unbounded = replace(limits, candidates=sys.maxsize)
        candidates = candidates.apart(unbounded)
        sights = [candidates.again(sight) for sight in sights]
    whole = Budget(limits, limits.states, candidates.limits.candidates, base=base, tell=tell)
    result = all_of(candidates, sights, whole)
    return result if item is None or result.exhaustive else item


_FEW = 1_000
"""Up to this many candidates the search follows all; beyond it, it looks for one explanation."""
_FEW_STATES = 50_000
"""The number of states that are visited before."""

_KEPT = 200
"""The maximum number of states that are kept as tried for an event."""


def _chosen(
    candidates: Candidates, chosen: DepthFirstResult, few: EventSearchResult
) -> EventSearchResult:
    """One explanation as a trail, with the reason why not all of them were looked at."""
    trail = _trail(candidates, chosen)
    return EventSearchResult(trail, True, (), few.limits, few.tried + chosen.tried)


def _ending(
    candidates: Candidates,
    chosen: DepthFirstResult,
    order: Order,
    sights: Sequence[Sight],
    base: int,
) -> EventSearchResult:
    """An explanation of as many events as any behaviour explains, and the events after it."""
    trail = _trail(candidates, chosen)
    end = trail.level(len(trail) - 1)
    budget = Budget(candidates.limits, _FEW_STATES, _FEW, strict=True, base=base)
    with suppress(LimitReached):  # the closures only say more of why the events are blocked
        for cut, reached in end.items():
            for event in order.ready(cut):
                candidates.closure(reached.candidates, budget, sights[event].owner)
    return EventSearchResult(trail, False, _blocked(end, order, sights), (), chosen.tried)


def _trail(candidates: Candidates, chosen: DepthFirstResult) -> Trail:
    cut, first = chosen.start
    levels: list[Level] = [{cut: CutCandidates(candidates.among((first,)), ())}]
    for move in chosen.path or ():
        origin = move.origin
        before = origin.unseen[-1][1] if origin.unseen else origin.candidate
        here = candidates.among((move.after,))
        arrival = Arrival(here, {move.after: origin}, {move.after: (before,)}, 1)
        levels.append({move.cut: CutCandidates(here, (CutArrival(cut, move.event, arrival),))})
        cut = move.cut
    return _Levels(levels)


def _blocked(level: Level, order: Order, sights: Sequence[Sight]) -> tuple[BlockedEvent, ...]:
    """The events that might have been next. Where time ran out, they were not all tried."""
    states: dict[int, list[State]] = {}
    for cut, reached in level.items():
        for event in order.ready(cut):
            closure = reached.candidates.closures.get(sights[event].owner)
            tried: Iterable[Candidate] = closure.reached if closure else reached.candidates.members
            states.setdefault(event, []).extend(candidate.state for candidate in tried)
    return tuple(
        BlockedEvent(event, tuple(tried[:_KEPT]), len(tried)) for event, tried in states.items()
    )


class _EventSearch:
    """The search for all behaviours that explain one recording."""

    def __init__(
        self, candidates: Candidates, sights: Sequence[Sight], order: Order, budget: Budget
    ) -> None:
        self._most = budget.most
        self._candidates = candidates
        self._sights = sights
        self._order = order
        self._budget = budget

    def run(self, initial: Sequence[State]) -> EventSearchResult:
        start = self._candidates.start(initial)
        if len(self._order.chains) == 1 and len(start.members) <= self._most:
            line = self._along(start)
            if line is not None:
                return line
            self._budget = replace(self._budget, tried=0, reasons={}, seconds=self._budget.left)
        return self._across(start)

    def _along(self, start: CandidateSet) -> EventSearchResult | None:
        """A total order's search; None if a level has more candidates than may be kept.

        It says what `_across` says of such an order. Nearly all that it asks was asked before.
        """
        budget, most = self._budget, self._most
        arrivals: list[Arrival] = []
        candidates, largest = start, len(start.members)
        try:
            for sight in self._sights:
                arrived = self._candidates.arrival(candidates, sight, budget)
                budget.tries(arrived.tried)
                if arrived.problems:
                    budget.falls_short(arrived.problems)
                candidates = arrived.candidates
                size = len(candidates.members)
                if not size:
                    break
                if size > largest:
                    budget.holds(size, f"after {len(arrivals) + 1} events")
                    if size > most:
                        return None
                    largest = size
                arrivals.append(arrived)
                if not budget.strict:
                    budget.tell(len(arrivals))
        except LimitReached as spent:
            self._ended(spent)
        line = _LinearTrail(start, arrivals, largest)
        explained = len(arrivals) == len(self._sights)
        return self._found(line, () if explained else self._blocked(line.level(len(arrivals))))

    def _ended(self, spent: LimitReached) -> None:
        self._budget.falls_short([str(spent)])
        self._candidates.crowded |= isinstance(spent, MemorySpent)

    def _across(self, start: CandidateSet) -> EventSearchResult:
        """The search of any order, cut by cut."""
        levels: list[Level] = [{self._order.start: CutCandidates(start, ())}]
        for done in range(1, len(self._sights) + 1):
            try:
                following = self._within_limit(self._following(levels[-1]), done)
            except LimitReached as spent:
                self._ended(spent)
                following = {}
            if not following:
                return self._found(_Levels(levels), self._blocked(levels[-1]))
            levels.append(following)
            self._budget.tell(done)
        return self._found(_Levels(levels), ())

    def _found(self, trail: Trail, blocked: tuple[BlockedEvent, ...]) -> EventSearchResult:
        budget = self._budget
        return EventSearchResult(trail, not blocked, blocked, tuple(budget.reasons), budget.tried)

    def _following(self, level: Level) -> Level:
        """The level after one more event."""
        order, budget, arrival = self._order, self._budget, self._candidates.arrival
        ways: dict[Cut, list[CutArrival]] = {}
        for cut, reached in level.items():
            for event in order.ready(cut):
                budget.in_time()
                arrived = arrival(reached.candidates, self._sights[event], budget)
                budget.tries(arrived.tried)
                if arrived.problems:
                    budget.falls_short(arrived.problems)
                if arrived.candidates.members:
                    ways.setdefault(order.after(cut, event), []).append(
                        CutArrival(cut, event, arrived)
                    )
        return {cut: self._reached(way) for cut, way in ways.items()}

    def _reached(self, ways: Sequence[CutArrival]) -> CutCandidates:
        if len(ways) == 1:
            return CutCandidates(ways[0].arrival.candidates, tuple(ways))
        each = [member for way in ways for member in way.arrival.candidates.members]
        return CutCandidates(self._candidates.among(dict.fromkeys(each)), tuple(ways))

    def _blocked(self, level: Level) -> tuple[BlockedEvent, ...]:
        return _blocked(level, self._order, self._sights)

    def _within_limit(self, level: Level, done: int) -> Level:
        """The level itself, or as much of it as may be kept: what needed fewest unseen steps."""
        most = self._most
        if _size(level) <= most:
            return level
        self._budget.holds(_size(level), f"after {done} events")
        self._budget.falls_short([f"more than {most:,} candidates after {done} events"])
        ranked = sorted(
            (len(_origin(reached, member).unseen), canonical_key(member.state), cut, member)
            for cut, reached in level.items()
            for member in reached.candidates.members
        )[:most]
        kept: dict[Cut, list[Candidate]] = {}
        for _, _, cut, candidate in ranked:
            kept.setdefault(cut, []).append(candidate)
        return {
            cut: CutCandidates(self._candidates.among(members), level[cut].ways)
            for cut, members in kept.items()
        }


def _size(level: Level) -> int:
    size = 0
    for reached in level.values():
        size += len(reached.candidates.members)
    return size


def _origin(reached: CutCandidates, candidate: Candidate) -> Origin:
    way = next(way for way in reached.ways if candidate in way.arrival.origins)
    return way.arrival.origins[candidate]


def survivors(result: EventSearchResult, candidates: Candidates) -> Trail:
    """The trail without the states from which the later events cannot be explained.

    Every behaviour that explains all explained events is in these states; the trail itself,
    if it would take too long to say which these are.
    """
    budget = Budget.of(candidates.limits)
    levels: list[Level] = [result.trail.level(result.done)]
    try:
        for number in range(result.done, 0, -1):
            levels.append(_alive(result.trail.level(number - 1), levels[-1], candidates, budget))
    except LimitReached:
        return result.trail
    return _Levels(levels[::-1])


def _alive(level: Level, later: Level, candidates: Candidates, budget: Budget) -> Level:
    """The candidates of a level from which some candidate of the later one is reached."""
    befores: dict[Cut, dict[str | None, set[Candidate]]] = {}
    for reached in later.values():
        for way in reached.ways:
            arrived = [
                member for member in reached.candidates.members if member in way.arrival.sources
            ]
            wanted = befores.setdefault(way.cut, {}).setdefault(way.arrival.owner, set())
            for candidate in arrived:
                wanted.update(way.arrival.sources[candidate])
    alive: dict[Cut, CutCandidates] = {}
    for cut, by_owner in befores.items():
        members = level[cut].candidates.members
        if len(members) > 1:
            members = tuple(
                member for member in members if _leads(member, by_owner, candidates, budget)
            )
        alive[cut] = CutCandidates(candidates.among(members), level[cut].ways)
    return alive


def _leads(
    candidate: Candidate,
    wanted: Mapping[str | None, set[Candidate]],
    candidates: Candidates,
    budget: Budget,
) -> bool:
    alone = candidates.among([candidate])
    return any(
        not befores.isdisjoint(candidates.closure(alone, budget, owner).reached)
        for owner, befores in wanted.items()
    )
