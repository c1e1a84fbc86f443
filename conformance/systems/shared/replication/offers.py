"""What brokers start by themselves, named as a model names it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from conformance.systems.shared.replication.controller import Controller, ProposedIsr
from conformance.systems.shared.replication.model import PartitionModel
from conformance.tla import Action

_ROUND_TRIPS = {"SendEpochRequest": "EpochRoundTrip", "SendFetch": "FetchRoundTrip"}
"""What a request is called where the whole round trip is one step."""


class IsrProposal(NamedTuple):
    """ExpandIsr or ShrinkIsr that a leader would propose, of which follower."""

    change: str
    leader: int
    follower: int
    proposed: ProposedIsr


@dataclass(frozen=True, slots=True)
class OfferedSteps:
    """What brokers start by themselves, as a model's actions."""

    model: PartitionModel
    controller: Controller

    @property
    def kinds(self) -> frozenset[str]:
        """ISR changes and the fetchers' next requests."""
        requests = _ROUND_TRIPS.keys() if self.model.fine else _ROUND_TRIPS.values()
        changes = (self._named("ExpandIsr"), self._named("ShrinkIsr"))
        return frozenset(("TruncateToHighWatermark", *requests, *changes))

    def _named(self, change: str) -> str:
        return f"Submit{change}" if self.model.two_step else change

    def isr_changes(self, proposals: Iterable[IsrProposal]) -> list[Action]:
        """Changes that are sent or, if that is one step, sent and accepted."""
        names = self.model.names
        return [
            Action(self._named(change), (names[leader - 1], names[follower - 1]))
            for change, leader, follower, proposed in proposals
            if self.model.two_step or self.controller.accepts(proposed)
        ]

    def requests(
        self, broker: int, steps: Sequence[str], leader: int | None, *, leader_runs: bool
    ) -> list[Action]:
        """A fetcher's next steps; a round trip only if the leader is there to answer."""
        name = self.model.names[broker - 1]
        if self.model.fine or leader is None:
            return [Action(step, (name,)) for step in steps]
        return [
            Action(_ROUND_TRIPS[step], (self.model.names[leader - 1], name))
            if step in _ROUND_TRIPS
            else Action(step, (name,))
            for step in steps
            if step not in _ROUND_TRIPS or leader_runs
        ]
