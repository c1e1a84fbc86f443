"""What the client was given: partitions with each generation, and records of them.

A consumer fetches what it is assigned, and commits the offset of the next record to read of it
(SubscriptionState.allConsumed): never one behind the records that it has been given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from conformance.client.breaches import Breach
from conformance.client.clock import LoopClock
from conformance.client.logs import RecordLogs
from conformance.client.requests import MemberRequest
from conformance.client.subject import assigned
from conformance.kafka.entities import Entity

Membership = tuple[str, int]
"""A member id and a generation."""


@dataclass(slots=True)
class GivenAnswers:
    """Of one example."""

    clock: LoopClock
    logs: RecordLogs = field(default_factory=lambda: RecordLogs(1))
    generation: int = -1
    """That of the last assignment."""
    _assigned: dict[Membership, frozenset[int]] = field(default_factory=dict)
    _now: frozenset[int] | None = None
    """What the client holds; None while it joins, or if its answer may be lost."""
    _since: float = 0.0

    def note(self, request: MemberRequest, answer: Entity) -> None:
        """An answer was given: an assignment is kept."""
        if request.api != "sync_group" or answer.error_code:
            return
        self._now, self._since = assigned(bytes(answer.assignment)), self.clock.now()
        self.generation = request.generation_id
        self._assigned[request.member_id, request.generation_id] = self._now

    def forget(self) -> None:
        """The client gives up what it holds, or has perhaps not read it."""
        self._now = None

    def committed(self, request: MemberRequest) -> Iterator[Breach]:
        """What a commit asks for and the client was not given."""
        for topic, partition, offset in request.committed():
            given = self._assigned.get((request.member_id, request.generation_id))
            end = self.logs.end((topic, partition))
            if not 0 <= offset <= end:
                yield Breach(
                    "commits a position behind all records that it was given",
                    "A commit names the offset of the next record to read "
                    "(SubscriptionState.allConsumed)",
                    f"{topic}-{partition}, offset {offset}, where the last record given is "
                    f"{end - 1}",
                )
            if given is not None and partition not in given:
                yield Breach(
                    "commits a position of a partition that it was not assigned",
                    "A member commits what its assignment of that generation has: all else is "
                    "another member's (ConsumerCoordinator.onJoinPrepare gives it up)",
                    f"{topic}-{partition} in generation {request.generation_id}, assigned: "
                    f"{_shown(given)}",
                )

    def fetched(self, body: Entity, reads: float) -> Iterator[Breach]:
        """What a Fetch asks for and the client does not hold, `reads` s after its assignment."""
        if self._now is None or self.clock.now() - self._since <= reads:
            return
        asked = {partition.partition for topic in body.topics for partition in topic.partitions}
        if not asked <= self._now:
            yield Breach(
                "fetches a partition that it was not assigned",
                "A member fetches what its assignment has (SubscriptionState.fetchablePartitions)",
                f"partitions {_shown(frozenset(asked))}, assigned: {_shown(self._now)}",
            )


def _shown(numbers: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "none"
