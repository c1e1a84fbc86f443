"""What a leader remembers of one follower.

Source: Replica and ReplicaState.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .errors import NotLeaderOrFollowerException
from .types import (
    UNKNOWN_BROKER_EPOCH,
    UNKNOWN_OFFSET,
    UNKNOWN_OFFSET_METADATA,
    LogOffsetMetadata,
    TopicPartition,
)


class MetadataCache(Protocol):
    """What a broker knows of the other brokers from the controller (KRaftMetadataCache)."""

    def is_broker_fenced(self, broker_id: int, /) -> bool:
        """Whether the controller has fenced the broker."""
        ...

    def is_broker_shutting_down(self, broker_id: int, /) -> bool:
        """Whether the broker is in controlled shutdown."""
        ...

    def get_alive_broker_epoch(self, broker_id: int, /) -> int | None:
        """The epoch of the broker's present registration, None if it is not alive (KIP-903)."""
        ...


class StaticMetadataCache:
    """All brokers are alive; the epochs given are current, others unknown to everybody (-1)."""

    def __init__(self, broker_epochs: dict[int, int] | None = None) -> None:
        self._epochs = dict(broker_epochs or {})

    def is_broker_fenced(self, _broker_id: int, /) -> bool:
        """Never."""
        return False

    def is_broker_shutting_down(self, _broker_id: int, /) -> bool:
        """Never."""
        return False

    def get_alive_broker_epoch(self, broker_id: int, /) -> int | None:
        """The epoch given or set."""
        return self._epochs.get(broker_id, UNKNOWN_BROKER_EPOCH)

    def set_broker_epoch(self, broker_id: int, broker_epoch: int) -> None:
        """The broker registered again."""
        self._epochs[broker_id] = broker_epoch


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A follower's progress; times in ms. `log_end_offset` is where it last fetched."""

    log_start_offset: int = UNKNOWN_OFFSET
    log_end_offset_metadata: LogOffsetMetadata = UNKNOWN_OFFSET_METADATA
    last_fetch_leader_log_end_offset: int = UNKNOWN_OFFSET
    last_fetch_time_ms: int = 0
    last_caught_up_time_ms: int = 0
    broker_epoch: int | None = None

    @property
    def log_end_offset(self) -> int:
        """The follower's log end offset, -1 if unknown."""
        return self.log_end_offset_metadata.message_offset

    def is_caught_up(self, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """At the leader's log end (KAFKA-7152), or there not longer than `max_lag_ms` ago."""
        return (
            leader_end_offset == self.log_end_offset
            or now_ms - self.last_caught_up_time_ms <= max_lag_ms
        )


class Replica:
    """A follower as its leader sees it; `state` is replaced as a whole."""

    __slots__ = ("_metadata_cache", "_topic_partition", "broker_id", "state")

    def __init__(
        self, broker_id: int, topic_partition: TopicPartition, metadata_cache: MetadataCache
    ) -> None:
        self.broker_id = broker_id
        self._topic_partition = topic_partition
        self._metadata_cache = metadata_cache
        self.state = ReplicaState()

    def update_fetch_state_or_throw(
        self,
        fetch_offset_metadata: LogOffsetMetadata,
        follower_start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        broker_epoch: int,
    ) -> None:
        """Note a fetch. `leader_end_offset` is the leader's log end at the time of the read.

        Raises `NotLeaderOrFollowerException` for a fetch of an earlier life of the follower.
        """
        self._fence_stale_broker_epoch(broker_epoch)
        old = self.state
        self.state = ReplicaState(
            follower_start_offset,
            fetch_offset_metadata,
            max(leader_end_offset, old.last_fetch_leader_log_end_offset),
            fetch_time_ms,
            _last_caught_up(
                old, fetch_offset_metadata.message_offset, fetch_time_ms, leader_end_offset
            ),
            broker_epoch,
        )

    def _fence_stale_broker_epoch(self, broker_epoch: int) -> None:
        current = self._metadata_cache.get_alive_broker_epoch(self.broker_id)
        if broker_epoch != UNKNOWN_BROKER_EPOCH and current is not None and current > broker_epoch:
            raise NotLeaderOrFollowerException(
                f"broker {self.broker_id} fetched {self._topic_partition} with broker epoch"
                f" {broker_epoch}, current is {current}"
            )

    def reset_replica_state(self, now_ms: int, is_follower_in_sync: bool) -> None:
        """Forget the follower's progress: a new leader epoch begins.

        ISR members get the full lag time to fetch from the new leader. Stricter than Kafka 3.8,
        whose Replica.resetReplicaState keeps the position if the same broker is elected again:
        a leader that missed an epoch in between would trust what another leader truncated.
        """
        self.state = ReplicaState(last_caught_up_time_ms=now_ms if is_follower_in_sync else 0)


def _last_caught_up(
    old: ReplicaState, fetch_offset: int, fetch_time_ms: int, leader_end_offset: int
) -> int:
    if fetch_offset >= leader_end_offset:
        return max(old.last_caught_up_time_ms, fetch_time_ms)
    # KAFKA-4485: under load a follower always lags the present log end a little.
    if fetch_offset >= old.last_fetch_leader_log_end_offset:
        return max(old.last_caught_up_time_ms, old.last_fetch_time_ms)
    return old.last_caught_up_time_ms
