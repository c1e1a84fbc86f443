"""Explains events while they happen, for callers that act on the states that are possible now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from conformance.judge.budget import Budget, JudgeLimits
from conformance.judge.candidates import Candidates
from conformance.judge.events import Event
from conformance.judge.steps import BoundSpecSteps, Step
from conformance.tla import ActionPattern, Spec, State

__all__ = ["FollowedRecording"]


class FollowedRecording:
    """One recording that goes on: what explains its events so far, in their order.

    It finds what `search` finds of the same events; a `Judge` may go through them again, with the
    formulas. `Spent` and errors of the specification are raised as they come.
    """

    def __init__(
        self,
        spec: Spec,
        silent: Sequence[ActionPattern],
        limits: JudgeLimits,
        initial: Iterable[State] | None = None,
    ) -> None:
        self._steps = BoundSpecSteps(spec, silent)
        self._candidates = Candidates(self._steps, limits)
        self._budget = Budget.of(limits)
        begin = spec.initial_states() if initial is None else initial
        self._now = self._before = self._candidates.of(begin)
        self.events: list[Event] = []

    @property
    def states(self) -> tuple[State, ...]:
        """The states that explain all events so far, before any further unseen step."""
        return self._now.states

    def see(self, event: Event) -> bool:
        """Take an event; False if nothing explains it: then it is the last."""
        self.events.append(event)
        arrived = self._candidates.arrival(self._now, self._candidates.sight(event), self._budget)
        self._before, self._now = self._now, arrived.candidates
        return bool(self._now.members)

    def explains(self, event: Event) -> bool:
        """Whether something would explain an event; it is not taken."""
        sight = self._candidates.sight(event)
        return bool(self._candidates.arrival(self._now, sight, self._budget).candidates.members)

    def states_after(
        self, event: Event, among: Callable[[State], bool] = lambda _: True
    ) -> tuple[State, ...]:
        """The states that would explain an event too, from some of those that are possible now; it
        is not taken."""
        now = self._candidates.of(filter(among, self._now.states))
        sight = self._candidates.sight(event)
        return self._candidates.arrival(now, sight, self._budget).candidates.states

    def instead(self, patterns: Sequence[ActionPattern]) -> tuple[Step, ...]:
        """What such actions might have come to in place of the last event, unseen steps before."""
        closure = self._candidates.closure(self._before, self._budget)
        result = {
            step: None
            for candidate in closure.reached
            for step in self._steps.taken(candidate.state, patterns)
        }
        return tuple(result)
