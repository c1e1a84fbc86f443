"""A fetch that waits for bytes, at most for its max wait (DelayedFetch)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from ..concurrency import Concurrency
from ..errors import (
    Errors,
    FencedLeaderEpochException,
    KafkaStorageException,
    NotLeaderOrFollowerException,
    UnknownTopicOrPartitionException,
)
from ..log_types import FetchIsolation
from ..partition import FetchParams, LogOffsetSnapshot, Partition
from ..purgatory.delayed_operation import DelayedOperation
from ..types import (
    UNDEFINED_EPOCH,
    UNDEFINED_EPOCH_OFFSET,
    UNKNOWN_OFFSET,
    FetchPartitionData,
    FetchPartitionRequest,
    LogOffsetMetadata,
    TopicPartition,
)

FetchCallback = Callable[[dict[TopicPartition, FetchPartitionData]], None]


class Cause(Enum):
    """Why a waiting fetch is answered; the letters are those of DelayedFetch's source."""

    NOT_LEADER = "A"
    PARTITION_UNKNOWN = "C"
    LOG_DIRECTORY_OFFLINE = "D"
    EPOCH_FENCED = "E"
    OTHER_SEGMENT = "F"
    ENOUGH_BYTES = "G"
    DIVERGED = "H"


_CAUSES: Mapping[type[Exception], Cause] = {
    NotLeaderOrFollowerException: Cause.NOT_LEADER,
    UnknownTopicOrPartitionException: Cause.PARTITION_UNKNOWN,
    KafkaStorageException: Cause.LOG_DIRECTORY_OFFLINE,
    FencedLeaderEpochException: Cause.EPOCH_FENCED,
}


@dataclass(frozen=True, slots=True)
class FetchWait:
    """How long a fetch may wait (ms), and for how many bytes."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchPartitionStatus:
    """One partition of a waiting fetch: where its first read began, and what it asked for."""

    start_offset_metadata: LogOffsetMetadata
    request: FetchPartitionRequest


class FetchedReplicas(Protocol):
    """What a waiting fetch needs of the replica manager."""

    def get_partition_or_exception(self, topic_partition: TopicPartition, /) -> Partition:
        """The partition. Raises `UnknownTopicOrPartitionException`."""

    def should_leader_throttle(self, partition: Partition, replica_id: int, /) -> bool:
        """Whether the quota holds this follower's bytes back."""

    def read_from_log(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartitionRequest],
        max_bytes: int,
        update_fetch_state: bool = True,
    ) -> dict[TopicPartition, FetchPartitionData]:
        """Read all partitions."""


class DelayedFetch(DelayedOperation):
    """Answered, by a second read, as soon as one partition has something to tell or all together
    have enough bytes. `on_expired` is told whether a follower's or a consumer's fetch timed out.
    """

    __slots__ = ("_callback", "_on_expired", "_params", "_replicas", "_statuses", "_wait")

    def __init__(
        self,
        params: FetchParams,
        wait: FetchWait,
        statuses: Mapping[TopicPartition, FetchPartitionStatus],
        replicas: FetchedReplicas,
        callback: FetchCallback,
        concurrency: Concurrency,
        on_expired: Callable[[bool], None] = lambda _: None,
    ) -> None:
        super().__init__(wait.max_wait_ms, concurrency, name="delayed fetch")
        self._params = params
        self._wait = wait
        self._statuses = statuses
        self._replicas = replicas
        self._callback = callback
        self._on_expired = on_expired

    def try_complete(self) -> bool:
        """See `DelayedOperation.try_complete`."""
        return self.cause() is not None and self.force_complete()

    def cause(self) -> Cause | None:
        """Why it has to be answered now; None while it has to wait."""
        accumulated = 0
        for topic_partition, status in self._statuses.items():
            try:
                found = self._look_at(topic_partition, status)
            except tuple(_CAUSES) as error:
                return _CAUSES[type(error)]
            if isinstance(found, Cause):
                return found
            accumulated += found
        return Cause.ENOUGH_BYTES if accumulated >= self._wait.min_bytes else None

    def _look_at(
        self, topic_partition: TopicPartition, status: FetchPartitionStatus
    ) -> Cause | int:
        """Why the fetch has to be answered, or the bytes that this partition has for it."""
        start = status.start_offset_metadata
        if start.message_offset == UNKNOWN_OFFSET:
            return 0
        partition = self._replicas.get_partition_or_exception(topic_partition)
        snapshot = partition.fetch_offset_snapshot(
            status.request.current_leader_epoch, self._params.fetch_only_leader
        )
        found = self._available(partition, status, self._end(snapshot))
        if isinstance(found, int) and _has_diverged(partition, status.request):
            return Cause.DIVERGED
        return found

    def _end(self, snapshot: LogOffsetSnapshot) -> LogOffsetMetadata:
        to_log_end = self._params.isolation is FetchIsolation.LOG_END
        return snapshot.log_end_offset if to_log_end else snapshot.high_watermark

    def _available(
        self, partition: Partition, status: FetchPartitionStatus, end: LogOffsetMetadata
    ) -> Cause | int:
        start = status.start_offset_metadata
        # KAFKA-3159: at equal offsets there is nothing to read, however the log has rolled.
        if end.message_offset == start.message_offset:
            return 0
        if end.message_offset < start.message_offset:
            return Cause.OTHER_SEGMENT  # The leader has truncated.
        if self._is_throttled(partition) or not (_is_located(start) and _is_located(end)):
            return 0
        if start.segment_base_offset < end.segment_base_offset:
            return Cause.OTHER_SEGMENT
        distance = end.relative_position_in_segment - start.relative_position_in_segment
        return min(distance, status.request.max_bytes)

    def _is_throttled(self, partition: Partition) -> bool:
        """Consumers never are, nor in-sync followers (KAFKA-6937)."""
        return self._params.is_from_follower and self._replicas.should_leader_throttle(
            partition, self._params.replica_id
        )

    def on_expiration(self) -> None:
        """See `DelayedOperation.on_expiration`."""
        self._on_expired(self._params.is_from_follower)

    def on_complete(self) -> None:
        """Read again, with the isolation of the first read (KAFKA-5355), and answer.

        An error comes out of this read. What is known of the follower changed with the first one.
        """
        requests = {tp: status.request for tp, status in self._statuses.items()}
        self._callback(
            self._replicas.read_from_log(
                self._params, requests, self._wait.max_bytes, update_fetch_state=False
            )
        )


def _is_located(metadata: LogOffsetMetadata) -> bool:
    """Whether it says where the offset lies; the high watermark may lie below the local log."""
    return metadata.segment_base_offset != UNKNOWN_OFFSET


def _has_diverged(partition: Partition, request: FetchPartitionRequest) -> bool:
    """Whether the follower's last record is no longer on this log (KIP-595)."""
    last_fetched_epoch = request.last_fetched_epoch
    if last_fetched_epoch is None:
        return False
    end = partition.last_offset_for_leader_epoch(
        request.current_leader_epoch, last_fetched_epoch, fetch_only_from_leader=False
    )
    return (
        end.error is not Errors.NONE
        or end.end_offset == UNDEFINED_EPOCH_OFFSET
        or end.leader_epoch == UNDEFINED_EPOCH
        or end.leader_epoch < last_fetched_epoch
        or end.end_offset < request.fetch_offset
    )
