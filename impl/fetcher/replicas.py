"""What fetcher threads need of the broker's logs, partitions and quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ..records import MemoryRecords
from ..types import EpochEndOffset, LogAppendInfo, OffsetAndEpoch, TopicPartition


class FollowerLog(Protocol):
    """A follower's log; offsets in records (UnifiedLog)."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def latest_epoch(self) -> int | None: ...

    def end_offset_for_epoch(self, leader_epoch: int, /) -> OffsetAndEpoch | None:
        """The greatest local epoch at most `leader_epoch`, and where it ends."""
        ...

    def maybe_update_high_watermark(self, high_watermark: int, /) -> int | None:
        """Set the high watermark, kept within the log; the new value if it changed."""
        ...

    def maybe_increment_log_start_offset(self, log_start_offset: int, /) -> bool:
        """Move the log start forward. Raises OffsetOutOfRangeException above the high watermark."""
        ...


class FollowerPartition(Protocol):
    """One partition of this broker in its follower role (Partition)."""

    @property
    def is_reassigning(self) -> bool: ...

    @property
    def is_adding_local_replica(self) -> bool: ...

    def local_log_or_exception(self) -> FollowerLog: ...

    def future_local_log_or_exception(self) -> FollowerLog: ...

    def append_records_to_follower_or_future_replica(
        self, records: MemoryRecords, is_future: bool, /
    ) -> LogAppendInfo | None: ...

    def truncate_to(self, offset: int, is_future: bool, /) -> None: ...

    def truncate_fully_and_start_at(self, offset: int, is_future: bool, /) -> None: ...

    def maybe_replace_current_with_future_replica(self) -> bool:
        """Swap the logs if both end at the same offset (KAFKA-8002); True if that was done."""
        ...

    def run_callback_if_future_replica_caught_up(self, callback: Callable[[], None], /) -> bool:
        """Run it under the partition's lock if both logs end at the same offset; True if so."""
        ...

    def log_directory(self) -> str:
        """Where the log lies (Partition.logDirectoryId)."""
        ...

    def future_replica_directory(self) -> str:
        """Where the future log lies (Partition.futureReplicaDirectoryId)."""
        ...

    def last_offset_for_leader_epoch(
        self,
        current_leader_epoch: int | None,
        leader_epoch: int,
        fetch_only_from_leader: bool,
        /,
    ) -> EpochEndOffset: ...


class FollowerReplicas(Protocol):
    """This broker's partitions, by name (ReplicaManager). Lookups raise ApiException."""

    def get_partition_or_exception(self, partition: TopicPartition, /) -> FollowerPartition: ...

    def local_log_or_exception(self, partition: TopicPartition, /) -> FollowerLog: ...

    def future_local_log_or_exception(self, partition: TopicPartition, /) -> FollowerLog: ...

    def future_log_exists(self, partition: TopicPartition, /) -> bool: ...

    def complete_delayed_fetch_requests(self, partitions: Iterable[TopicPartition], /) -> None: ...


class AlterLogDirsManager(Protocol):
    """The manager that must hear of a truncation, as future replicas copy the truncated log."""

    def mark_partitions_for_truncation(
        self, broker_id: int, partition: TopicPartition, truncation_offset: int, /
    ) -> None: ...


class DirectoryEventHandler(Protocol):
    """Whoever tells the controller of log directories (DirectoryEventHandler, KIP-858)."""

    def handle_assignment(
        self,
        partition: TopicPartition,
        directory: str,
        reason: str,
        callback: Callable[[], None],
        /,
    ) -> None:
        """The replica lies, or shall lie, in this directory. The call-back runs once the
        controller has agreed.
        """
        ...


class ReplicaQuota(Protocol):
    """Replication quota of a follower (ReplicationQuotaManager)."""

    def is_throttled(self, partition: TopicPartition, /) -> bool: ...

    def is_quota_exceeded(self) -> bool: ...

    def record(self, size_in_bytes: int, /) -> None: ...


class UnboundedQuota:
    """A quota that is never exceeded (QuotaFactory.UnboundedQuota)."""

    __slots__ = ()

    def is_throttled(self, _partition: TopicPartition, /) -> bool:
        """Never."""
        return False

    def is_quota_exceeded(self) -> bool:
        """Never."""
        return False

    def record(self, _size_in_bytes: int, /) -> None:
        """Nothing to count."""
