"""One partition on one broker: its logs and roles, its followers, the ISR, the high watermark.

Source: kafka.cluster.Partition (KIP-320, KIP-497, KIP-841, KIP-903). Lock order: partition, then
log manager, then log, then epoch cache. Requests to the controller are sent without the lock, as
their completion takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .clock import Clock
from .concurrency import Concurrency
from .disk import parent
from .errors import (
    Errors,
    NotEnoughReplicasException,
    NotLeaderOrFollowerException,
    OffsetOutOfRangeException,
)
from .log import Log
from .log_manager import LogManager
from .log_types import FetchIsolation, UnexpectedAppendOffsetException
from .partition_state import (
    NOBODY_COUNTS,
    AlterPartitionListener,
    AlterPartitionManager,
    CommittedPartitionState,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    PartitionState,
    PendingExpandIsr,
    PendingPartitionChange,
    PendingShrinkIsr,
)
from .records import MemoryRecords
from .replica import MetadataCache, Replica
from .types import (
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
    TopicPartition,
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


class Partition:
    """Becomes leader or follower, and serves in either role.

    The constructor's time is replica.lag.time.max.ms.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        broker_id: int,
        clock: Clock,
        log_manager: LogManager,
        alter_partition_manager: AlterPartitionManager,
        metadata_cache: MetadataCache,
        concurrency: Concurrency,
        *,
        replica_lag_time_max_ms: int = 30_000,
        local_broker_epoch: Callable[[], int] = lambda: UNKNOWN_BROKER_EPOCH,
        high_watermark_checkpoint: Callable[[Log], int] = lambda _: 0,
        try_complete_delayed_requests: Callable[[TopicPartition], None] = lambda _: None,
        alter_partition_listener: AlterPartitionListener = NOBODY_COUNTS,
    ) -> None:
        self._alter_partition_listener = alter_partition_listener
        self.topic_partition = topic_partition
        self.broker_id = broker_id
        self.topic_id: str | None = None
        self.log: Log | None = None
        self.future_log: Log | None = None
        self.leader_replica_id: int | None = None
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.partition_epoch = -1
        self.partition_state: PartitionState = CommittedPartitionState(frozenset())
        self.assignment: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self._remote_replicas: dict[int, Replica] = {}
        self._clock = clock
        self._log_manager = log_manager
        self._alter_partition_manager = alter_partition_manager
        self._metadata_cache = metadata_cache
        self._replica_lag_time_max_ms = replica_lag_time_max_ms
        self._local_broker_epoch = local_broker_epoch
        self._high_watermark_checkpoint = high_watermark_checkpoint
        self._try_complete_delayed_requests = try_complete_delayed_requests
        self._lock = concurrency.lock(f"leader-isr-update-{topic_partition}")
        self._checkpoint = concurrency.checkpoint

    # ---- who is who ------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads."""
        return self.leader_replica_id == self.broker_id

    @property
    def in_sync_replica_ids(self) -> frozenset[int]:
        """The committed ISR as this leader knows it; empty on a follower."""
        return self.partition_state.isr

    @property
    def is_reassigning(self) -> bool:
        """Whether the replicas are being changed."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def is_adding_local_replica(self) -> bool:
        """Whether this broker is being added."""
        return self.broker_id in self.adding_replicas

    def get_replica(self, broker_id: int) -> Replica | None:
        """The follower, if it is assigned and this broker leads."""
        return self._remote_replicas.get(broker_id)

    def remote_replicas(self) -> tuple[Replica, ...]:
        """All followers, while this broker leads."""
        return tuple(self._remote_replicas.values())

    def local_log_or_exception(self) -> Log:
        """The log. Raises `NotLeaderOrFollowerException` if this broker has none."""
        if self.log is None:
            raise NotLeaderOrFollowerException(f"no log of {self.topic_partition} here")
        return self.log

    def future_local_log_or_exception(self) -> Log:
        """The future log. Raises `NotLeaderOrFollowerException` if there is none."""
        if self.future_log is None:
            raise NotLeaderOrFollowerException(f"no future log of {self.topic_partition} here")
        return self.future_log

    def leader_log_if_local(self) -> Log | None:
        """The log if this broker leads."""
        return self.log if self.is_leader else None

    def create_log_if_not_exists(self, directory: str | None = None) -> Log:
        """Load or make the log; its high watermark comes from the checkpoint, within the log."""
        with self._lock:
            if self.log is None:
                log = self._log_manager.get_or_create_log(self.topic_partition, directory)
                log.update_high_watermark(self._high_watermark_checkpoint(log))
                self.log = log
            return self.log

    # ---- epoch check -----------------------------------------------------------------------

    def _check_current_leader_epoch(self, current_leader_epoch: int | None) -> Errors:
        if current_leader_epoch is None:
            return Errors.NONE
        if current_leader_epoch < self.leader_epoch:
            return Errors.FENCED_LEADER_EPOCH
        if current_leader_epoch > self.leader_epoch:
            return Errors.UNKNOWN_LEADER_EPOCH
        return Errors.NONE

    def _get_local_log(
        self, current_leader_epoch: int | None, require_leader: bool
    ) -> Log | Errors:
        """Epoch errors come before NOT_LEADER_OR_FOLLOWER (KIP-320)."""
        error = self._check_current_leader_epoch(current_leader_epoch)
        if error is not Errors.NONE:
            return error
        if require_leader and not self.is_leader:
            return Errors.NOT_LEADER_OR_FOLLOWER
        return Errors.NOT_LEADER_OR_FOLLOWER if self.log is None else self.log

    def local_log_with_epoch_or_throw(
        self, current_leader_epoch: int | None, require_leader: bool
    ) -> Log:
        """The log, if the request's epoch is this broker's. Raises the error's exception."""
        log = self._get_local_log(current_leader_epoch, require_leader)
        if isinstance(log, Errors):
            raise log.exception(
                f"{self.topic_partition}: request with epoch {current_leader_epoch},"
                f" leader {self.leader_replica_id} with epoch {self.leader_epoch}"
            )
        return log

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
            self._checkpoint("records read")
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

        KAFKA-6975: an empty log whose start lies inside the first batch starts again with it.
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
        """Begin a copy in another log directory, or go on with the one that was loaded from there.

        False if that has been done, or the log itself lies there.
        """
        with self._lock:
            log = self.local_log_or_exception()
            if self.future_log is not None or self._log_manager.is_in(log, directory):
                return False
            future = self._log_manager.get_or_create_future_log(self.topic_partition, directory)
            future.update_high_watermark(self._high_watermark_checkpoint(future))
            self.future_log = future
            return True

    def maybe_replace_current_with_future_replica(self) -> bool:
        """Swap the logs if both end at the same offset (KAFKA-8002); True iff that was done."""
        return self.run_callback_if_future_replica_caught_up(self._replace_current)

    def _replace_current(self) -> None:
        log, future = self.local_log_or_exception(), self.future_local_log_or_exception()
        self._log_manager.replace_current_with_future_log(log, future)
        self.log, self.future_log = future, None

    def run_callback_if_future_replica_caught_up(self, callback: Callable[[], None]) -> bool:
        """Run it, with the logs as they are, if both end at the same offset; True iff it ran."""
        with self._lock:
            log, future = self.log, self.future_log
            if log is None or future is None or log.log_end_offset != future.log_end_offset:
                return False
            callback()
            return True

    def log_directory(self) -> str:
        """Where the log lies. Raises as `local_log_or_exception`."""
        return parent(self.local_log_or_exception().directory)

    def future_replica_directory(self) -> str:
        """Where the future log lies. Raises as `future_local_log_or_exception`."""
        return parent(self.future_local_log_or_exception().directory)

    def remove_future_local_replica(self, delete_from_log_dir: bool = True) -> None:
        """Give the move up and delete the copy, unless its directory has failed."""
        with self._lock:
            future, self.future_log = self.future_log, None
            if future is not None and delete_from_log_dir:
                self._log_manager.delete_log(future)

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

    # ---- leader: followers, ISR, high watermark --------------------------------------------

    def update_follower_fetch_state(
        self,
        replica: Replica,
        fetch_offset_metadata: LogOffsetMetadata,
        follower_start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        broker_epoch: int = UNKNOWN_BROKER_EPOCH,
        read_in_epoch: int | None = None,
    ) -> None:
        """Note where a follower is; it may join the ISR, and the high watermark may rise.

        A read of an earlier leader epoch says nothing of this one (stricter than Kafka, where
        a new epoch may begin between the read and this call).
        """
        with self._lock:
            if read_in_epoch not in (None, self.leader_epoch):
                return
            previous_end_offset = replica.state.log_end_offset
            # Only for a deletion that waits for this follower: KIP-107.
            deletes = follower_start_offset > replica.state.log_start_offset and self.is_leader
            low_watermark = self.low_watermark_if_leader() if deletes else 0
            replica.update_fetch_state_or_throw(
                fetch_offset_metadata,
                follower_start_offset,
                fetch_time_ms,
                leader_end_offset,
                broker_epoch,
            )
        self.maybe_expand_isr(replica)
        incremented = False
        with self._lock:
            log = self.leader_log_if_local()
            if log is not None and previous_end_offset != replica.state.log_end_offset:
                incremented = self._maybe_increment_leader_hw(log, fetch_time_ms)
            if log is not None and deletes and self.low_watermark_if_leader() > low_watermark:
                incremented = True
        if incremented:
            self._try_complete_delayed_requests(self.topic_partition)

    def low_watermark_if_leader(self) -> int:
        """The smallest log start offset of the live replicas; unknown ones count as -1."""
        starts = [
            replica.state.log_start_offset
            for replica in self._remote_replicas.values()
            if self._metadata_cache.get_alive_broker_epoch(replica.broker_id) is not None
        ]
        return min([self.local_log_or_exception().log_start_offset, *starts])

    def maybe_expand_isr(self, replica: Replica) -> None:
        """Propose the follower for the ISR if it may and has caught up."""
        with self._lock:
            proposed = self.isr_expansion(replica)
            if proposed is None:
                return
            self.partition_state = proposed
        self._submit_alter_partition(proposed)

    def isr_expansion(self, replica: Replica) -> PendingExpandIsr | None:
        """What `maybe_expand_isr` would propose now, None if nothing; it changes nothing.

        Source: needsExpandIsr and prepareIsrExpand, which in Kafka also enters the new state.
        """
        with self._lock:
            state = self.partition_state
            if not isinstance(state, CommittedPartitionState) or not self._needs_expand_isr(
                replica
            ):
                return None
            isr = state.isr | {replica.broker_id}
            return PendingExpandIsr(replica.broker_id, self._leader_and_isr(isr), state, isr)

    def _needs_expand_isr(self, replica: Replica) -> bool:
        return self._can_add_replica_to_isr(replica.broker_id) and self._is_follower_in_sync(
            replica
        )

    def _can_add_replica_to_isr(self, broker_id: int) -> bool:
        return broker_id not in self.partition_state.isr and self._is_replica_isr_eligible(
            broker_id
        )

    def _is_follower_in_sync(self, replica: Replica) -> bool:
        log = self.leader_log_if_local()
        end_offset = replica.state.log_end_offset
        return (
            log is not None
            and end_offset >= log.high_watermark
            # KAFKA-7128: it must also have reached this leader's epoch.
            and self.leader_epoch_start_offset is not None
            and end_offset >= self.leader_epoch_start_offset
        )

    def _is_replica_isr_eligible(self, broker_id: int) -> bool:
        replica = self._remote_replicas.get(broker_id)
        return (
            replica is not None
            and not self._metadata_cache.is_broker_fenced(broker_id)
            and not self._metadata_cache.is_broker_shutting_down(broker_id)
            and self._is_broker_epoch_isr_eligible(replica)
        )

    def _is_broker_epoch_isr_eligible(self, replica: Replica) -> bool:
        """KIP-903: what is known of the follower must stem from its present life."""
        stored = replica.state.broker_epoch
        current = self._metadata_cache.get_alive_broker_epoch(replica.broker_id)
        if stored is None or current is None:
            return False
        return stored in (UNKNOWN_BROKER_EPOCH, current)

    def maybe_shrink_isr(self) -> None:
        """Propose to drop the ISR members that lag too long."""
        with self._lock:
            out_of_sync = self.get_out_of_sync_replicas(self._replica_lag_time_max_ms)
            proposed = self.isr_shrink(out_of_sync)
            if proposed is None:
                return
            self.partition_state = proposed
        self._submit_alter_partition(proposed)

    def isr_shrink(self, out_of_sync: frozenset[int]) -> PendingShrinkIsr | None:
        """What `maybe_shrink_isr` would propose if these members lagged; it changes nothing.

        None if there are none, or a change is in flight. Source: prepareIsrShrink, which in Kafka
        also enters the new state.
        """
        with self._lock:
            state = self.partition_state
            if not isinstance(state, CommittedPartitionState) or not out_of_sync:
                return None
            remaining = self._leader_and_isr(state.isr - out_of_sync)
            return PendingShrinkIsr(out_of_sync, remaining, state)

    def get_out_of_sync_replicas(self, max_lag_ms: int) -> frozenset[int]:
        """ISR members not at the log end now and not within `max_lag_ms`; none on a follower."""
        log = self.leader_log_if_local()
        if log is None or self.partition_state.is_inflight:
            return frozenset()
        now_ms = self._clock.milliseconds()
        end_offset = log.log_end_offset
        members = self.partition_state.isr - {self.broker_id}
        return frozenset(
            id_
            for id_ in members
            if self._is_follower_out_of_sync(id_, end_offset, now_ms, max_lag_ms)
        )

    def _is_follower_out_of_sync(
        self, broker_id: int, leader_end_offset: int, now_ms: int, max_lag_ms: int
    ) -> bool:
        replica = self._remote_replicas.get(broker_id)
        return replica is None or not replica.state.is_caught_up(
            leader_end_offset, now_ms, max_lag_ms
        )

    def _maybe_increment_leader_hw(self, log: Log, now_ms: int) -> bool:
        """High watermark := least log end offset of all that are, or may soon be, in sync."""
        if len(self.partition_state.isr) < self._effective_min_isr(log):
            return False
        leader_end_offset = log.log_end_offset
        new_high_watermark = log.convert_to_offset_metadata(leader_end_offset)
        for replica in self._remote_replicas.values():
            position = replica.state.log_end_offset_metadata
            if position.message_offset < new_high_watermark.message_offset and (
                replica.broker_id in self.partition_state.maximal_isr
                or self._should_wait_for_replica_to_join_isr(replica, leader_end_offset, now_ms)
            ):
                new_high_watermark = position
        return log.maybe_increment_high_watermark(new_high_watermark) is not None

    def _should_wait_for_replica_to_join_isr(
        self, replica: Replica, leader_end_offset: int, now_ms: int
    ) -> bool:
        return replica.state.is_caught_up(
            leader_end_offset, now_ms, self._replica_lag_time_max_ms
        ) and self._is_replica_isr_eligible(replica.broker_id)

    def _effective_min_isr(self, log: Log) -> int:
        return min(log.config.min_insync_replicas, len(self.assignment))

    # ---- leader: ISR changes in flight -----------------------------------------------------

    def _leader_and_isr(self, isr: frozenset[int]) -> LeaderAndIsr:
        members = tuple((id_, self._broker_epoch_of(id_)) for id_ in sorted(isr))
        return LeaderAndIsr(self.broker_id, self.leader_epoch, members, self.partition_epoch)

    def _broker_epoch_of(self, broker_id: int) -> int:
        if broker_id == self.broker_id:
            return self._local_broker_epoch()
        replica = self._remote_replicas.get(broker_id)
        stored = None if replica is None else replica.state.broker_epoch
        return UNKNOWN_BROKER_EPOCH if stored is None else stored

    def _submit_alter_partition(self, proposed: PendingPartitionChange) -> None:
        self._alter_partition_manager.submit(
            self.topic_partition,
            proposed.sent_leader_and_isr,
            lambda decision: self._complete_alter_partition(proposed, decision),
        )

    def _complete_alter_partition(
        self, proposed: PendingPartitionChange, decision: LeaderAndIsr | Errors
    ) -> None:
        incremented = retry = False
        with self._lock:
            if self.partition_state is not proposed:
                return  # a LeaderAndIsr came first; this answer is out of date
            if isinstance(decision, Errors):
                retry = self._handle_alter_partition_error(proposed, decision)
            else:
                incremented = self._handle_alter_partition_update(proposed, decision)
        if incremented:
            self._try_complete_delayed_requests(self.topic_partition)
        if retry:
            self._submit_alter_partition(proposed)

    def _handle_alter_partition_error(
        self, proposed: PendingPartitionChange, error: Errors
    ) -> bool:
        """Whether to send the same change again.

        Only of two errors it is certain that the change was not made. After the others that
        are final the change stays pending until the controller's next LeaderAndIsr.
        """
        self._alter_partition_listener.mark_failed()
        if error in (Errors.OPERATION_NOT_ATTEMPTED, Errors.INELIGIBLE_REPLICA):
            self.partition_state = proposed.last_committed_state
            return False
        return error not in _FINAL_ALTER_PARTITION_ERRORS

    def _handle_alter_partition_update(
        self, proposed: PendingPartitionChange, decision: LeaderAndIsr
    ) -> bool:
        """Take the controller's decision over; True iff the high watermark rose."""
        if (
            decision.leader_epoch != self.leader_epoch
            or decision.partition_epoch < self.partition_epoch
        ):
            self._alter_partition_listener.mark_failed()
            return False
        self.partition_state = CommittedPartitionState(decision.isr)
        self.partition_epoch = decision.partition_epoch
        proposed.notify_listener(self._alter_partition_listener)
        # KAFKA-13091: the ISR may be smaller now, the high watermark free to rise.
        log = self.leader_log_if_local()
        return log is not None and self._maybe_increment_leader_hw(log, self._clock.milliseconds())


_FINAL_ALTER_PARTITION_ERRORS = frozenset(
    {
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.FENCED_LEADER_EPOCH,
        Errors.INVALID_UPDATE_VERSION,
        Errors.INVALID_REQUEST,
        Errors.NEW_LEADER_ELECTED,
    }
)
