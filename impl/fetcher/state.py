"""What a fetcher thread knows of one partition that it follows."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from ..types import ZERO_UUID


class ReplicaState(Enum):
    """Whether the follower's log is known to agree with the leader's (ReplicaState)."""

    TRUNCATING = "Truncating"
    FETCHING = "Fetching"


class PartitionFetchState(NamedTuple):
    """The state of one partition in its fetcher thread; a tuple, as every answer makes one.

    `delay` is a deadline in ms of the thread's clock, None when no error is being waited out.
    `lag` is in records, None before the first processed answer. `last_fetched_epoch` is the leader
    epoch of the last local record; only truncation on fetch (KIP-595) uses it.
    """

    topic_id: str | None
    fetch_offset: int
    lag: int | None
    current_leader_epoch: int
    delay: int | None
    state: ReplicaState
    last_fetched_epoch: int | None

    def is_delayed(self, now_ms: int) -> bool:
        """Whether the back-off after an error still runs."""
        return self.delay is not None and self.delay > now_ms

    def is_ready_for_fetch(self, now_ms: int) -> bool:
        """Fetching and not delayed."""
        return self.state is ReplicaState.FETCHING and not self.is_delayed(now_ms)

    def is_truncating(self, now_ms: int) -> bool:
        """Truncating and not delayed."""
        return self.state is ReplicaState.TRUNCATING and not self.is_delayed(now_ms)

    @property
    def is_replica_in_sync(self) -> bool:
        """Whether the last answer left nothing to fetch; such a replica is never throttled."""
        return self.lag is not None and self.lag <= 0

    @property
    def topic_id_or_zero(self) -> str:
        """The topic id as requests carry it."""
        return ZERO_UUID if self.topic_id is None else self.topic_id

    def delayed_until(self, deadline_ms: int) -> PartitionFetchState:
        """The same state, waiting out an error."""
        return self._replace(delay=deadline_ms)

    def with_topic_id(self, topic_id: str | None) -> PartitionFetchState:
        """The same state with another topic id."""
        return self._replace(topic_id=topic_id)

    def marked_for_truncation(self, truncation_offset: int) -> PartitionFetchState:
        """Truncating again, from at most `truncation_offset`."""
        return self._replace(
            fetch_offset=min(truncation_offset, self.fetch_offset),
            state=ReplicaState.TRUNCATING,
            last_fetched_epoch=None,
        )
