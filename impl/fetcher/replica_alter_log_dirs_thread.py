"""The fetcher thread that moves a log to another directory by following it (KIP-113)."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import IllegalStateException
from ..types import (
    FetchPartitionData,
    InitialFetchState,
    LogAppendInfo,
    OffsetAndEpoch,
    OffsetTruncationState,
    TopicPartition,
)
from .abstract_fetcher_thread import AbstractFetcherThread, FetcherRuntime
from .failed_partitions import FailedPartitions
from .leader_endpoint import LeaderEndPoint
from .replicas import FollowerReplicas, ReplicaQuota


class ReplicaAlterLogDirsThread(AbstractFetcherThread):
    """Follows current logs with their future copies (kafka.server.ReplicaAlterLogDirsThread)."""

    def __init__(
        self,
        name: str,
        leader: LeaderEndPoint,
        failed_partitions: FailedPartitions,
        replicas: FollowerReplicas,
        quota: ReplicaQuota,
        runtime: FetcherRuntime,
        fetch_back_off_ms: int = 1_000,
    ) -> None:
        super().__init__(name, name, leader, failed_partitions, runtime, fetch_back_off_ms)
        self._replicas = replicas
        self._quota = quota

    @property
    def is_offset_for_leader_epoch_supported(self) -> bool:
        """Always: the leader is this broker."""
        return True

    def latest_epoch(self, partition: TopicPartition) -> int | None:
        """The future log's latest leader epoch."""
        return self._replicas.future_local_log_or_exception(partition).latest_epoch

    def log_start_offset(self, partition: TopicPartition) -> int:
        """The future log's first offset."""
        return self._replicas.future_local_log_or_exception(partition).log_start_offset

    def log_end_offset(self, partition: TopicPartition) -> int:
        """The offset that the future log's next record gets."""
        return self._replicas.future_local_log_or_exception(partition).log_end_offset

    def end_offset_for_epoch(self, partition: TopicPartition, epoch: int) -> OffsetAndEpoch | None:
        """The future log's greatest epoch at most `epoch` and its end."""
        return self._replicas.future_local_log_or_exception(partition).end_offset_for_epoch(epoch)

    def add_partitions(
        self, initial_fetch_states: Mapping[TopicPartition, InitialFetchState]
    ) -> frozenset[TopicPartition]:
        """Follow the partitions that still have a future log.

        A move may complete between the decision to start this thread and this call (KAFKA-9750).
        """
        with self._lock:
            still_moving = {
                partition: initial
                for partition, initial in initial_fetch_states.items()
                if self._replicas.future_log_exists(partition)
            }
            return super().add_partitions(still_moving)

    def process_partition_data(
        self, partition: TopicPartition, fetch_offset: int, data: FetchPartitionData
    ) -> LogAppendInfo | None:
        """Append to the future log; once it has caught up, it replaces the current one."""
        follower = self._replicas.get_partition_or_exception(partition)
        future_log = follower.future_local_log_or_exception()
        records = self.to_memory_records(data.records)
        if fetch_offset != future_log.log_end_offset:
            raise IllegalStateException(
                f"Offset mismatch for the future replica {partition}: fetched offset ="
                f" {fetch_offset}, log end offset = {future_log.log_end_offset}."
            )
        info = None
        if records.size_in_bytes > 0:
            info = follower.append_records_to_follower_or_future_replica(records, True)
        future_log.maybe_update_high_watermark(data.high_watermark)
        future_log.maybe_increment_log_start_offset(data.log_start_offset)
        if follower.maybe_replace_current_with_future_replica():
            self.remove_partitions((partition,))
        self._quota.record(records.size_in_bytes)
        return info

    def truncate(self, partition: TopicPartition, state: OffsetTruncationState) -> None:
        """Cut the future log."""
        self._replicas.get_partition_or_exception(partition).truncate_to(state.offset, True)

    def truncate_fully_and_start_at(self, partition: TopicPartition, offset: int) -> None:
        """Empty the future log and start it at the offset."""
        follower = self._replicas.get_partition_or_exception(partition)
        follower.truncate_fully_and_start_at(offset, True)
