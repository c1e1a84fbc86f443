"""A partition on one broker, as leader or follower.

Source: Partition. What it holds is in `partition_core`, the ISR in `partition_isr`.
"""

from __future__ import annotations

from dataclasses import dataclass

from impl.errors import Errors, NotEnoughReplicasException, OffsetOutOfRangeException
from impl.log import Log
from impl.log_types import FetchIsolation, UnexpectedAppendOffsetException
from impl.partition_isr import PartitionIsr
from impl.partition_state import CommittedPartitionState, LeaderAndIsrPartitionState
from impl.records import MemoryRecords
from impl.replica import Replica
from impl.types import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_TIMESTAMP,
    UNDEFINED_EPOCH,
    UNDEFINED_EPOCH_OFFSET,
    UNKNOWN_BROKER_EPOCH,
    EpochEndOffset,
    FetchPartitionRequest,
    FileTimestampAndOffset,
    LogAppendInfo,
    LogOffsetMetadata,
)

HIGH_WATERMARK = -1
"""DeleteRecords: delete up to the high watermark."""
ACKS_ALL = -1


@dataclass(frozen=True, slots=True)
class FetchParams:
    """What all partitions of a fetch share; `replica_id` < 0 is a consumer."""

    replica_id: int
    replica_epoch: int = UNKNOWN_BROKER_EPOCH
    isolation: FetchIsolation = FetchIsolation.LOG_END
    fetch_only_leader: bool = True

    @property
    def is_from_follower(self) -> bool:
        """Whether a replica fetches."""
        return self.replica_id >= 0


@dataclass(frozen=True, slots=True)
class LogReadInfo:
    """A read; the offsets are those of before the read and before the follower's state changed."""

    records: MemoryRecords
    fetch_offset_metadata: LogOffsetMetadata
    diverging_epoch: EpochEndOffset | None
    high_watermark: int
    log_start_offset: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class LogOffsetSnapshot:
    """The offsets of a log at one moment."""

    log_start_offset: int
    log_end_offset: LogOffsetMetadata
    high_watermark: LogOffsetMetadata


@dataclass(frozen=True, slots=True)
class LogDeleteRecordsResult:
    """A deletion at the leader: up to where, and the least log start of the live replicas."""

    requested_offset: int
    low_watermark: int


class Partition(PartitionIsr):
    """One partition: becoming leader or follower, and serving in either role."""

    # ---- becoming leader or follower -------------------------------------------------------

    def make_leader(self, state: LeaderAndIsrPartitionState) -> bool:
        """Lead. True iff this broker did not lead before; an older partition epoch is ignored."""
        with self._lock:
            if state.partition_epoch < self.partition_epoch:
                return False
            now_ms = self._clock.milliseconds()
            is_new_leader = not self.is_leader
            is_new_leader_epoch = state.leader_epoch > self.leader_epoch
            self._update_assignment_and_isr(state, is_leader=True)
            log = self.create_log_if_not_exists()
            if is_new_leader_epoch:
                self._start_leader_epoch(log, state, now_ms)
            self.partition_epoch = state.partition_epoch
            self.leader_replica_id = self.broker_id
            # The ISR may be down to this broker.
            incremented = self._maybe_increment_leader_hw(log, now_ms)
        if incremented:
            self._try_complete_delayed_requests(self.topic_partition)
        return is_new_leader

    def _start_leader_epoch(self, log: Log, state: LeaderAndIsrPartitionState, now_ms: int) -> None:
        start_offset = log.log_end_offset
        # KAFKA-7415: a follower may hold records of a later epoch than any of ours; only if our
        # epoch is known to begin here can it find out where to truncate.
        log.maybe_assign_epoch_start_offset(state.leader_epoch, start_offset)
        for replica in self._remote_replicas.values():
            replica.reset_replica_state(now_ms, replica.broker_id in state.isr)
        self.leader_epoch = state.leader_epoch
        self.leader_epoch_start_offset = start_offset

    def make_follower(self, state: LeaderAndIsrPartitionState) -> bool:
        """Follow. True iff the leader epoch is new; an older partition epoch is ignored."""
        with self._lock:
            if state.partition_epoch < self.partition_epoch:
                return False
            is_new_leader_epoch = state.leader_epoch > self.leader_epoch
            self.leader_replica_id = state.leader
            self.leader_epoch = state.leader_epoch
            self.leader_epoch_start_offset = None
            self.partition_epoch = state.partition_epoch
            self._update_assignment_and_isr(state, is_leader=False)
            self.create_log_if_not_exists()
            return is_new_leader_epoch

    def _update_assignment_and_isr(
        self, state: LeaderAndIsrPartitionState, is_leader: bool
    ) -> None:
        followers = [id_ for id_ in state.replicas if is_leader and id_ != self.broker_id]
        # KAFKA-10301: add, then remove; in between nobody may see too few replicas.
        for broker_id in followers:
            if broker_id not in self._remote_replicas:
                self._remote_replicas[broker_id] = self._new_replica(broker_id)
        for broker_id in [id_ for id_ in self._remote_replicas if id_ not in followers]:
            del self._remote_replicas[broker_id]
        self.assignment = state.replicas
        self.adding_replicas = state.adding_replicas
        self.removing_replicas = state.removing_replicas
        isr = frozenset(state.isr) if is_leader else frozenset()
        self.partition_state = CommittedPartitionState(isr)
        if state.topic_id is not None:
            self.topic_id = state.topic_id

    def _new_replica(self, broker_id: int) -> Replica:
        return Replica(broker_id, self.topic_partition, self._metadata_cache)

    # ---- leader: appends and reads ---------------------------------------------------------

    def append_records_to_leader(
        self, records: MemoryRecords, required_acks: int = 1
    ) -> LogAppendInfo:
        """Append in this leader's epoch.

        Raises `NotLeaderOrFollowerException` on a follower, `NotEnoughReplicasException` if
        all in-sync replicas shall acknowledge and they are too few.
        """
        with self._lock:
            log = self.local_log_with_epoch_or_throw(None, require_leader=True)
            in_sync = len(self.partition_state.isr)
            if required_acks == ACKS_ALL and in_sync < self._effective_min_isr(log):
                raise NotEnoughReplicasException(f"{self.topic_partition} has {in_sync} in sync")
            info = log.append_as_leader(records, self.leader_epoch)
            # The ISR may be down to this broker.
            incremented = self._maybe_increment_leader_hw(log, self._clock.milliseconds())
        if incremented:
            self._try_complete_delayed_requests(self.topic_partition)
        return info

    def last_offset_for_leader_epoch(
        self,
        current_leader_epoch: int | None,
        leader_epoch: int,
        fetch_only_from_leader: bool,
    ) -> EpochEndOffset:
        """Where `leader_epoch` ends in this log; errors come as codes."""
        with self._lock:
            log = self._get_local_log(current_leader_epoch, fetch_only_from_leader)
            if isinstance(log, Errors):
                return EpochEndOffset(log)
            found = log.end_offset_for_epoch(leader_epoch)
            if found is None:
                return EpochEndOffset()
            return EpochEndOffset(Errors.NONE, found.leader_epoch, found.offset)

    def fetch_offset_snapshot(
        self, current_leader_epoch: int | None, fetch_only_from_leader: bool
    ) -> LogOffsetSnapshot:
        """The log's offsets. Raises the epoch check's exceptions."""
        with self._lock:
            log = self.local_log_with_epoch_or_throw(current_leader_epoch, fetch_only_from_leader)
            return LogOffsetSnapshot(
                log.log_start_offset,
                log.convert_to_offset_metadata(log.log_end_offset),
                log.high_watermark_metadata,
            )

    def fetch_records(
        self,
        params: FetchParams,
        data: FetchPartitionRequest,
        fetch_time_ms: int,
        max_bytes: int,
        min_one_message: bool = True,
        update_fetch_state: bool = True,
    ) -> LogReadInfo:
        """Read; a follower's read also updates what is known of it, unless it diverged or failed.

        Raises the epoch check's exceptions, `OffsetOutOfRangeException`, and for a fetch of a
        broker without a replica UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER (KAFKA-13837).
        """
        if not params.is_from_follower:
            with self._lock:
                log = self.local_log_with_epoch_or_throw(
                    data.current_leader_epoch, params.fetch_only_leader
                )
                return self._read_records(log, params, data, max_bytes, min_one_message)
        with self._lock:
            # KAFKA-14078: the epoch is checked before the membership.
            log = self.local_log_with_epoch_or_throw(
                data.current_leader_epoch, params.fetch_only_leader
            )
            replica = self._follower_replica_or_throw(params.replica_id, data)
            read = self._read_records(log, params, data, max_bytes, min_one_message)
            read_in_epoch = self.leader_epoch
        if update_fetch_state and read.diverging_epoch is None:
            self.update_follower_fetch_state(
                replica,
                read.fetch_offset_metadata,
                data.log_start_offset,
                fetch_time_ms,
                read.log_end_offset,
                params.replica_epoch,
                read_in_epoch,
            )
        return read

    def _follower_replica_or_throw(self, replica_id: int, data: FetchPartitionRequest) -> Replica:
        replica = self._remote_replicas.get(replica_id)
        if replica is None:
            # With the right epoch but unknown here: this leader has not yet heard of the replica.
            has_epoch = data.current_leader_epoch is not None
            error = Errors.UNKNOWN_LEADER_EPOCH if has_epoch else Errors.NOT_LEADER_OR_FOLLOWER
            raise error.exception(f"{replica_id} is no replica of {self.topic_partition}")
        return replica

    def _read_records(
        self,
        log: Log,
        params: FetchParams,
        data: FetchPartitionRequest,
        max_bytes: int,
        min_one_message: bool,
    ) -> LogReadInfo:
        high_watermark = log.high_watermark
        log_start_offset = log.log_start_offset
        log_end_offset = log.log_end_offset
        diverging = self._diverging_epoch(data, log_start_offset)
        if diverging is not None:
            records, metadata = MemoryRecords.EMPTY, LogOffsetMetadata(data.fetch_offset)
        else:
            found = log.read(data.fetch_offset, max_bytes, params.isolation, min_one_message)
            records, metadata = found.records, found.fetch_offset_metadata
        return LogReadInfo(
            records, metadata, diverging, high_watermark, log_start_offset, log_end_offset
        )

    def _diverging_epoch(
        self, data: FetchPartitionRequest, log_start_offset: int
    ) -> EpochEndOffset | None:
        """Where this log and the follower's part, if its last fetched record is not in this log."""
        last_fetched_epoch = data.last_fetched_epoch
        if last_fetched_epoch is None:
            return None
        end = self.last_offset_for_leader_epoch(
            data.current_leader_epoch, last_fetched_epoch, fetch_only_from_leader=False
        )
        if end.error is not Errors.NONE:
            raise end.error.exception()
        if end.end_offset == UNDEFINED_EPOCH_OFFSET or end.leader_epoch == UNDEFINED_EPOCH:
            raise OffsetOutOfRangeException(f"the end of epoch {last_fetched_epoch} is unknown")
        # KAFKA-12996: below the log start nothing can be said about divergence.
        if data.fetch_offset < log_start_offset:
            raise OffsetOutOfRangeException(
                f"offset {data.fetch_offset} is below log start {log_start_offset}"
            )
        if end.leader_epoch < last_fetched_epoch or end.end_offset < data.fetch_offset:
            return end
        return None

    def fetch_offset_for_timestamp(
        self,
        timestamp: int,
        isolation: FetchIsolation | None,
        current_leader_epoch: int | None,
        fetch_only_from_leader: bool,
    ) -> FileTimestampAndOffset | None:
        """The offset for a time in ms or one of the `*_TIMESTAMP`; replicas give no isolation.

        Raises OFFSET_NOT_AVAILABLE to clients while the high watermark is below the start of
        this leader's epoch (KIP-207).
        """
        with self._lock:
            log = self.local_log_with_epoch_or_throw(current_leader_epoch, fetch_only_from_leader)
            is_client = isolation is not None
            last_fetchable = log.high_watermark if is_client else log.log_end_offset
            if timestamp == LATEST_TIMESTAMP:
                self._ensure_high_watermark_available(log, is_client)
                return FileTimestampAndOffset(NO_TIMESTAMP, last_fetchable, self.leader_epoch)
            found = log.fetch_offset_by_timestamp(timestamp)
            if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
                return found
            if found is None or found.offset >= last_fetchable:
                self._ensure_high_watermark_available(log, is_client)
                return None
            return found

    def _ensure_high_watermark_available(self, log: Log, is_client: bool) -> None:
        start = self.leader_epoch_start_offset
        if is_client and start is not None and start > log.high_watermark:
            raise Errors.OFFSET_NOT_AVAILABLE.exception(
                f"high watermark {log.high_watermark} is below the epoch's start {start}"
            )

    def check_enough_replicas_reach_offset(self, required_offset: int) -> Errors | None:
        """How a produce up to `required_offset` with acks=all is answered; None: not yet.

        NOT_ENOUGH_REPLICAS_AFTER_APPEND if the replicas are there, but have become too few for
        min.insync.replicas; NOT_LEADER_OR_FOLLOWER if this broker cannot know any more.
        """
        with self._lock:
            log = self.leader_log_if_local()
            if log is None:
                return Errors.NOT_LEADER_OR_FOLLOWER
            if log.high_watermark < required_offset:
                return None
            if len(self.partition_state.maximal_isr) < self._effective_min_isr(log):
                return Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            return Errors.NONE

    def delete_records_on_leader(self, offset: int) -> int:
        """As `delete_records`; returns the low watermark."""
        return self.delete_records(offset).low_watermark

    def delete_records(self, offset: int) -> LogDeleteRecordsResult:
        """Move the log start to `offset`, or to the high watermark for `HIGH_WATERMARK`.

        Raises `OffsetOutOfRangeException` above the high watermark or below zero.
        """
        with self._lock:
            log = self.local_log_with_epoch_or_throw(None, require_leader=True)
            target = log.high_watermark if offset == HIGH_WATERMARK else offset
            if target < 0:
                raise OffsetOutOfRangeException(f"cannot delete records before {target}")
            log.maybe_increment_log_start_offset(target)
            return LogDeleteRecordsResult(target, self.low_watermark_if_leader())

    def low_watermark_of_leader(self) -> int:
        """As `low_watermark_if_leader`. Raises `NotLeaderOrFollowerException` on a follower."""
        with self._lock:
            self.local_log_with_epoch_or_throw(None, require_leader=True)
            return self.low_watermark_if_leader()

    # ---- follower --------------------------------------------------------------------------

    def append_records_to_follower_or_future_replica(
        self, records: MemoryRecords, is_future: bool
    ) -> LogAppendInfo | None:
        """Append what the leader sent; None if the future log was removed meanwhile.

        KAFKA-6975: an empty log whose start lies inside the first batch begins anew with it.
        """
        with self._lock:
            log = self.future_log if is_future else self.local_log_or_exception()
            if log is None:
                return None
            try:
                return log.append_as_follower(records)
            except UnexpectedAppendOffsetException as error:
                is_empty = log.log_end_offset == log.log_start_offset
                if not (is_empty and error.first_offset < log.log_end_offset <= error.last_offset):
                    raise
                self.truncate_fully_and_start_at(error.first_offset, is_future)
                return log.append_as_follower(records)

    def truncate_to(self, offset: int, is_future: bool) -> None:
        """Truncate the log, or the future log."""
        with self._lock:
            log = (
                self.future_local_log_or_exception() if is_future else self.local_log_or_exception()
            )
            self._log_manager.truncate_to(log, offset)

    def truncate_fully_and_start_at(self, offset: int, is_future: bool) -> None:
        """Empty the log, or the future log; its next record gets `offset`."""
        with self._lock:
            log = (
                self.future_local_log_or_exception() if is_future else self.local_log_or_exception()
            )
            self._log_manager.truncate_fully_and_start_at(log, offset)

    # ---- moving to another directory -------------------------------------------------------

    def maybe_create_future_replica(self, directory: str) -> bool:
        """Begin a copy in another log directory; False if there is one or the log lies there."""
        with self._lock:
            log = self.local_log_or_exception()
            if self.future_log is not None or self._log_manager.is_in(log, directory):
                return False
            self.future_log = self._log_manager.create_future_log(self.topic_partition, directory)
            self.future_log.update_high_watermark(log.log_start_offset)
            return True

    def maybe_replace_current_with_future_replica(self) -> bool:
        """Swap the logs if both end at the same offset (KAFKA-8002); True iff that was done."""
        with self._lock:
            log, future = self.log, self.future_log
            if log is None or future is None or log.log_end_offset != future.log_end_offset:
                return False
            self._log_manager.replace_current_with_future_log(log, future)
            self.log, self.future_log = future, None
            return True

    def remove_future_local_replica(self) -> None:
        """Give the move up and delete the copy."""
        with self._lock:
            if self.future_log is not None:
                self._log_manager.delete_log(self.future_log)
                self.future_log = None

    def delete(self) -> None:
        """Delete the logs; this broker is no replica any more."""
        with self._lock:
            self.remove_future_local_replica()
            if self.log is not None:
                self._log_manager.delete_log(self.log)
            self.log = None
            self.leader_replica_id = None
            self.leader_epoch_start_offset = None
            self._remote_replicas.clear()
            self.partition_state = CommittedPartitionState(frozenset())
