"""Shows that no behaviour explains more than some of a recording's events, with few unseen steps.

Of the unseen steps that are possible in a state only those are taken that matter to the next events
(`judge.independence`). What is left out may happen after the next event instead. So a bound on the
unseen steps *in a row* would lose behaviours here, and the search has a cumulative one: where at
most k steps in a row are unseen, at most k * n are before the n-th event. Every behaviour within
the bound in a row is within the cumulative one, and stays within it when a step is taken later. So
what is not found here does not exist. What is found proves nothing: it may have too many unseen
steps in a row, or those of another process directly before an event.

A level is what is possible after so many events: of each cut and state, the fewest unseen steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from conformance.judge.budget import Budget, LimitReached, MemorySpent
from conformance.judge.candidates import Candidate, Candidates, Sight
from conformance.judge.independence import Independence, NextEvent
from conformance.judge.order import Cut, Order
from conformance.tla import State

__all__ = ["Absence"]

_Node = tuple[Cut, Candidate]
_Level = dict[_Node, int]


@dataclass(slots=True)
class Absence:
    """The search for an end that no behaviour goes beyond."""

    candidates: Candidates
    sights: Sequence[Sight]
    order: Order
    independence: Independence
    ended: bool = False
    """Whether a search came to its end: another one says nothing else."""
    _events: dict[Sight, NextEvent | None] = field(default_factory=dict)

    @classmethod
    def of(cls, candidates: Candidates, sights: Sequence[Sight], order: Order) -> Absence | None:
        """The search for these events; None where nothing may be left out."""
        independence = candidates.independence if candidates.limits.silent else None
        return None if independence is None else cls(candidates, sights, order, independence)

    def most(self, initial: Sequence[State], budget: Budget) -> int | None:
        """The number of events after which every behaviour ends; None if that is not shown."""
        try:
            most = self._most(initial, budget)
        except LimitReached as spent:
            self.candidates.crowded |= isinstance(spent, MemorySpent)
            return None
        self.ended = True
        return most

    def _most(self, initial: Sequence[State], budget: Budget) -> int | None:
        start = self.candidates.start(initial).members
        level: _Level = {(self.order.start, member): 0 for member in start}
        for done in range(len(self.sights)):
            following = self._following(level, done, budget)
            if not following:
                return None if following is None else done
            level = following
        return None

    def _following(self, level: _Level, done: int, budget: Budget) -> _Level | None:
        """The next level; None if steps may be missing. Nodes with few unseen steps come first."""
        most = self.candidates.limits.silent * (done + 1)
        following: _Level = {}
        ahead: dict[int, list[_Node]] = {}
        for node, unseen in level.items():
            ahead.setdefault(unseen, []).append(node)
        known: set[_Node] = set()
        while ahead:
            unseen = min(ahead)
            for node in ahead.pop(unseen):
                if node in known:
                    continue
                known.add(node)
                budget.in_time()
                budget.tries(1)
                steps = self._steps(node, unseen, following)
                if steps is None:
                    return None
                if unseen < most:
                    ahead.setdefault(unseen + 1, []).extend(
                        (node[0], after) for after in steps if (node[0], after) not in known
                    )
        return following

    def _steps(self, node: _Node, unseen: int, following: _Level) -> list[Candidate] | None:
        """The states after unseen steps that matter; None if steps may be missing.

        Adds the nodes after events to the next level.
        """
        cut, candidate = node
        ways = self.candidates.unseen(candidate, None)
        problems = dict.fromkeys([ways.problem] if ways.problem else [])
        events: list[tuple[NextEvent, bool]] = []
        for number in self.order.ready(cut):
            sight = self.sights[number]
            steps = self.candidates.taken(candidate, sight, problems)
            for _, after in steps:
                later = self.order.after(cut, number), after
                following[later] = min(unseen, following.get(later, unseen))
            event = self._event(sight)
            if event is None or problems:
                return None
            events.append((event, bool(steps)))
        enabled = {action for action, _ in ways.steps}
        if not enabled:
            return []
        matter = self.independence.matter(candidate.state, events, enabled)
        return [after for action, after in ways.steps if action in matter]

    def _event(self, sight: Sight) -> NextEvent | None:
        if sight not in self._events:
            parts = (*sight.before, *sight.after)
            self._events[sight] = self.independence.event(sight.actions, parts)
        return self._events[sight]
