"""The fetcher thread of a follower: copies from the leader's broker into the local log."""

from __future__ import annotations

import logging

from ..errors import IllegalStateException
from ..metrics import BrokerTopicStats
from ..network import FetchConfig
from ..types import (
    FetchPartitionData,
    LogAppendInfo,
    OffsetAndEpoch,
    OffsetTruncationState,
    TopicPartition,
)
from .abstract_fetcher_thread import AbstractFetcherThread, FetcherRuntime
from .failed_partitions import FailedPartitions
from .remote_leader_endpoint import RemoteLeaderEndPoint
from .replicas import (
    AlterLogDirsManager,
    FollowerLog,
    FollowerPartition,
    FollowerReplicas,
    ReplicaQuota,
)

_log = logging.getLogger(__name__)


class ReplicaFetcherThread(AbstractFetcherThread):
    """Follows partitions of one remote leader (kafka.server.ReplicaFetcherThread).

    A driver that carries the requests itself finds them at `remote_leader`.
    """

    def __init__(
        self,
        name: str,
        leader: RemoteLeaderEndPoint,
        config: FetchConfig,
        failed_partitions: FailedPartitions,
        replicas: FollowerReplicas,
        quota: ReplicaQuota,
        topic_stats: BrokerTopicStats,
        runtime: FetcherRuntime,
        fetch_back_off_ms: int = 1_000,
        alter_log_dirs_manager: AlterLogDirsManager | None = None,
    ) -> None:
        super().__init__(name, name, leader, failed_partitions, runtime, fetch_back_off_ms)
        self.remote_leader = leader
        self._replica_id = config.replica_id
        self._leader_epoch_request_supported = config.protocol.leader_epoch_request_supported
        self._replicas = replicas
        self._quota = quota
        self._topic_stats = topic_stats
        self._alter_log_dirs_manager = alter_log_dirs_manager
        self._partitions_with_new_high_watermark: list[TopicPartition] = []

    @property
    def is_offset_for_leader_epoch_supported(self) -> bool:
        """The protocol's switch (KIP-101)."""
        return self._leader_epoch_request_supported

    def latest_epoch(self, partition: TopicPartition) -> int | None:
        """The local log's latest leader epoch."""
        return self._replicas.local_log_or_exception(partition).latest_epoch

    def log_start_offset(self, partition: TopicPartition) -> int:
        """The local log's first offset."""
        return self._replicas.local_log_or_exception(partition).log_start_offset

    def log_end_offset(self, partition: TopicPartition) -> int:
        """The offset that the next local record gets."""
        return self._replicas.local_log_or_exception(partition).log_end_offset

    def end_offset_for_epoch(self, partition: TopicPartition, epoch: int) -> OffsetAndEpoch | None:
        """The greatest local epoch at most `epoch` and its end."""
        return self._replicas.local_log_or_exception(partition).end_offset_for_epoch(epoch)

    def do_work(self) -> None:
        """One round, then answer the fetches that waited for a new high watermark."""
        super().do_work()
        self.complete_delayed_fetch_requests()

    def complete_delayed_fetch_requests(self) -> None:
        """Complete consumers' fetches of the partitions whose high watermark has changed."""
        if self._partitions_with_new_high_watermark:
            partitions, self._partitions_with_new_high_watermark = (
                self._partitions_with_new_high_watermark,
                [],
            )
            self._replicas.complete_delayed_fetch_requests(partitions)

    def initiate_shutdown(self) -> bool:
        """Stop after the current round; a request in flight is cut off."""
        first = super().initiate_shutdown()
        if first:
            try:
                self.leader.initiate_close()
            except Exception as error:  # noqa: BLE001 - closing must not keep the thread from ending
                _log.info("[%s]: Failed to initiate close", self.name, exc_info=error)
        return first

    def await_shutdown(self) -> None:
        """Wait for the current round, then close the connection."""
        super().await_shutdown()
        try:
            self.leader.close()
        except Exception as error:  # noqa: BLE001 - the thread has ended, nothing is left to do
            _log.info("[%s]: Failed to close", self.name, exc_info=error)

    def process_partition_data(
        self, partition: TopicPartition, fetch_offset: int, data: FetchPartitionData
    ) -> LogAppendInfo | None:
        """Append first, then take over the leader's high watermark and log start offset.

        The order matters: the high watermark is bounded by the log end, so it becomes
        min(the leader's, own log end). Raises IllegalStateException if the log end is not
        `fetch_offset`, and whatever the log raises.
        """
        follower = self._replicas.get_partition_or_exception(partition)
        log = follower.local_log_or_exception()
        records = self.to_memory_records(data.records)
        if fetch_offset != log.log_end_offset:
            raise IllegalStateException(
                f"Offset mismatch for partition {partition}: fetched offset = {fetch_offset},"
                f" log end offset = {log.log_end_offset}."
            )
        info = follower.append_records_to_follower_or_future_replica(records, False)
        self._follow_leader_offsets(partition, log, data)
        size_in_bytes = records.size_in_bytes
        if self._quota.is_throttled(partition):
            self._quota.record(size_in_bytes)
        self._count_bytes(follower, size_in_bytes)
        return info

    def _follow_leader_offsets(
        self, partition: TopicPartition, log: FollowerLog, data: FetchPartitionData
    ) -> None:
        if log.maybe_update_high_watermark(data.high_watermark) is not None:
            self._partitions_with_new_high_watermark.append(partition)
        log.maybe_increment_log_start_offset(data.log_start_offset)

    def _count_bytes(self, follower: FollowerPartition, size_in_bytes: int) -> None:
        if follower.is_reassigning and follower.is_adding_local_replica:
            self._topic_stats.reassignment_bytes_in.mark(size_in_bytes)
        self._topic_stats.replication_bytes_in.mark(size_in_bytes)

    def truncate(self, partition: TopicPartition, state: OffsetTruncationState) -> None:
        """Cut the local log, and when that is final tell the copy in another directory."""
        follower = self._replicas.get_partition_or_exception(partition)
        high_watermark = follower.local_log_or_exception().high_watermark
        follower.truncate_to(state.offset, False)
        if state.offset < high_watermark:  # as it was: truncating lowers it
            _log.info(
                "Truncating %s to offset %d below high watermark %d",
                partition,
                state.offset,
                high_watermark,
            )
        if state.truncation_completed and self._alter_log_dirs_manager is not None:
            self._alter_log_dirs_manager.mark_partitions_for_truncation(
                self._replica_id, partition, state.offset
            )

    def truncate_fully_and_start_at(self, partition: TopicPartition, offset: int) -> None:
        """Empty the local log and start it at the offset."""
        follower = self._replicas.get_partition_or_exception(partition)
        follower.truncate_fully_and_start_at(offset, False)
