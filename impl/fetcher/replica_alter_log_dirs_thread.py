"""The fetcher thread that moves a log to another directory by following it (KIP-113)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

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
from .promotion_state import PromotionState, ReassignmentState
from .replicas import DirectoryEventHandler, FollowerPartition, FollowerReplicas, ReplicaQuota
from .state import PartitionFetchState

PROMOTION = "Future replica promotion"
"""Why a directory is assigned for whose sake a move waits."""


def _nothing_to_do() -> None:
    """An assignment that goes back is waited for by nobody."""


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
        directory_event_handler: DirectoryEventHandler | None = None,
    ) -> None:
        super().__init__(name, name, leader, failed_partitions, runtime, fetch_back_off_ms)
        self._replicas = replicas
        self._quota = quota
        self._directory_event_handler = directory_event_handler
        self.promotion_states: dict[TopicPartition, PromotionState] = {}
        """Of the partitions that are followed. Without a handler, as with ZooKeeper, they stay as
        they are."""

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
            for partition in still_moving:
                self._revert(partition)
                follower = self._replicas.get_partition_or_exception(partition)
                self.promotion_states[partition] = PromotionState(
                    ReassignmentState.NONE, follower.log_directory()
                )
            return super().add_partitions(still_moving)

    def remove_partitions(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, PartitionFetchState]:
        """Stop following; what was asked for a move that was not finished goes back."""
        removed = tuple(partitions)
        with self._lock:
            for partition in removed:
                self._revert(partition)
                self.promotion_states.pop(partition, None)
            return super().remove_partitions(removed)

    def _revert(self, partition: TopicPartition) -> None:
        """The controller hears where the log lies, if it was asked for elsewhere (KAFKA-16297).

        Kafka's addPartitions overwrites the state without this: if the move is given up next, the
        controller takes the replica for one of the other directory.
        """
        state, handler = self.promotion_states.get(partition), self._directory_event_handler
        if state is not None and handler is not None and state.maybe_inconsistent_metadata:
            handler.handle_assignment(
                partition,
                state.current_directory,
                "Reverting reassignment for canceled future replica",
                _nothing_to_do,
            )

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
        self._maybe_promote_future_replica(partition, follower)
        self._quota.record(records.size_in_bytes)
        return info

    def _maybe_promote_future_replica(
        self, partition: TopicPartition, follower: FollowerPartition
    ) -> None:
        """Swap the logs; in KRaft once the controller has agreed, which is asked first."""
        if self._directory_event_handler is None:
            if follower.maybe_replace_current_with_future_replica():
                self.remove_partitions((partition,))
            return
        match self.promotion_states[partition].reassignment_state:
            case ReassignmentState.NONE:
                follower.run_callback_if_future_replica_caught_up(
                    partial(self._ask, partition, follower)
                )
            case ReassignmentState.ACCEPTED:
                if follower.maybe_replace_current_with_future_replica():
                    self._update_reassignment_state(partition, ReassignmentState.EFFECTIVE)
                    self.remove_partitions((partition,))
            case ReassignmentState.QUEUED:
                pass
            case ReassignmentState.EFFECTIVE:
                raise IllegalStateException("BUG: trying to promote a future replica twice")

    def _ask(self, partition: TopicPartition, follower: FollowerPartition) -> None:
        asking = self._update_reassignment_state(partition, ReassignmentState.QUEUED)
        handler = self._directory_event_handler
        if handler is not None:
            handler.handle_assignment(
                partition,
                follower.future_replica_directory(),
                PROMOTION,
                partial(self._accept, partition, asking),
            )

    def _accept(self, partition: TopicPartition, asking: PromotionState) -> None:
        """The controller has agreed.

        A move that was given up or registered again since has not asked. In Kafka the answer counts
        for whatever move is under way now.
        """
        with self._lock:
            if self.promotion_states.get(partition) is asking:
                self._update_reassignment_state(partition, ReassignmentState.ACCEPTED)

    def _update_reassignment_state(
        self, partition: TopicPartition, state: ReassignmentState
    ) -> PromotionState:
        updated = self.promotion_states[partition].with_assignment(state)
        self.promotion_states[partition] = updated
        return updated

    def truncate(self, partition: TopicPartition, state: OffsetTruncationState) -> None:
        """Cut the future log."""
        self._replicas.get_partition_or_exception(partition).truncate_to(state.offset, True)

    def truncate_fully_and_start_at(self, partition: TopicPartition, offset: int) -> None:
        """Empty the future log and start it at the offset."""
        follower = self._replicas.get_partition_or_exception(partition)
        follower.truncate_fully_and_start_at(offset, True)
