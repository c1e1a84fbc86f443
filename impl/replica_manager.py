"""A broker's partitions, and the handlers of what other brokers and the controller ask of it.

Source: ReplicaManager. The fetcher managers, the controller, time and disk are constructor
arguments. Nothing here waits: a fetch is answered at once with what there is. What waits at the
leader is in `impl.delayed`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from .checkpoint import OffsetCheckpointFile
from .clock import Clock
from .concurrency import Concurrency
from .control_requests import (
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from .disk import parent
from .errors import (
    ApiException,
    Errors,
    KafkaException,
    KafkaStorageException,
    UnknownTopicOrPartitionException,
)
from .fetch_session import FetchContext, FetchSessionCache
from .fetcher.replicas import DirectoryEventHandler, ReplicaQuota, UnboundedQuota
from .log import Log
from .log_manager import LogManager
from .log_types import FetchIsolation
from .metadata_cache import ZkMetadataCache
from .network import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from .partition import FetchParams, Partition
from .partition_state import (
    NOBODY_COUNTS,
    AlterPartitionListener,
    AlterPartitionManager,
    LeaderAndIsrPartitionState,
)
from .records import MemoryRecords
from .replica import MetadataCache
from .replica_requests import (
    EPOCH_DURING_DELETE,
    NO_EPOCH,
    FetcherManager,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ReplicaManagerConfig,
    StopReplicaPartitionState,
)
from .types import (
    FUTURE_LOCAL_REPLICA_ID,
    UNDEFINED_EPOCH,
    UNKNOWN_BROKER_EPOCH,
    UNKNOWN_OFFSET,
    UNKNOWN_OFFSET_METADATA,
    ZERO_UUID,
    BrokerEndPoint,
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    InitialFetchState,
    LogAppendInfo,
    LogOffsetMetadata,
    TopicPartition,
)

_log = logging.getLogger(__name__)

_INVALID_HIGH_WATERMARK = -1


class LogReadResult(NamedTuple):
    """One partition's read: what is answered, and where the read began."""

    data: FetchPartitionData
    fetch_offset_metadata: LogOffsetMetadata


class ReplicaManager:
    """The broker. `end_points` finds a live leader's address, None while it is not alive."""

    def __init__(
        self,
        config: ReplicaManagerConfig,
        clock: Clock,
        log_manager: LogManager,
        alter_partition_manager: AlterPartitionManager,
        metadata_cache: MetadataCache,
        concurrency: Concurrency,
        end_points: Callable[[int], BrokerEndPoint | None],
        fetcher_manager: Callable[[ReplicaManager], FetcherManager],
        alter_log_dirs_manager: Callable[[ReplicaManager], FetcherManager] | None = None,
        *,
        leader_quota: ReplicaQuota | None = None,
        directory_event_handler: DirectoryEventHandler | None = None,
        try_complete_delayed_requests: Callable[[TopicPartition], None] = lambda _: None,
        alter_partition_listener: AlterPartitionListener = NOBODY_COUNTS,
    ) -> None:
        self.config = config
        self.broker_id = config.broker_id
        self.log_manager = log_manager
        self.controller_epoch = 0
        self._clock = clock
        self._alter_partition_manager = alter_partition_manager
        self._metadata_cache = metadata_cache
        self._concurrency = concurrency
        self._end_points = end_points
        self._leader_quota = leader_quota or UnboundedQuota()
        self.directory_event_handler = directory_event_handler
        self._try_complete_delayed_requests = try_complete_delayed_requests
        self._alter_partition_listener = alter_partition_listener
        self._partitions: dict[TopicPartition, Partition] = {}
        self._offline: set[TopicPartition] = set()
        self._replica_state_change_lock = concurrency.lock("replica-state-change")
        self._sessions = FetchSessionCache(concurrency.lock("fetch-sessions"), clock)
        self._high_watermarks = {
            directory: log_manager.checkpoint_file(directory, OffsetCheckpointFile.HIGH_WATERMARK)
            for directory in log_manager.log_directories
        }
        # Last, as the managers may look at this broker.
        self.alter_log_dirs_manager = (
            None if alter_log_dirs_manager is None else alter_log_dirs_manager(self)
        )
        self.fetcher_manager = fetcher_manager(self)

    # ---- partitions ------------------------------------------------------------------------

    def partitions(self) -> tuple[Partition, ...]:
        """All partitions that this broker hosts."""
        return tuple(self._partitions.values())

    def get_partition(self, topic_partition: TopicPartition) -> Partition | None:
        """The partition, if this broker hosts it."""
        return self._partitions.get(topic_partition)

    def get_partition_or_exception(self, topic_partition: TopicPartition) -> Partition:
        """The partition. Raises `UnknownTopicOrPartitionException`, or `KafkaStorageException` if
        its log directory has failed.
        """
        if topic_partition in self._offline:
            raise KafkaStorageException(f"the log directory of {topic_partition} is offline")
        partition = self._partitions.get(topic_partition)
        if partition is None:
            raise UnknownTopicOrPartitionException(f"{topic_partition} is not on this broker")
        return partition

    def local_log_or_exception(self, topic_partition: TopicPartition) -> Log:
        """The partition's log; raises also `NotLeaderOrFollowerException`."""
        return self.get_partition_or_exception(topic_partition).local_log_or_exception()

    def future_local_log_or_exception(self, topic_partition: TopicPartition) -> Log:
        """The partition's future log. Raises as `local_log_or_exception`."""
        return self.get_partition_or_exception(topic_partition).future_local_log_or_exception()

    def future_log_exists(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition is moving to another directory."""
        partition = self._partitions.get(topic_partition)
        return partition is not None and partition.future_log is not None

    def complete_delayed_fetch_requests(self, partitions: Iterable[TopicPartition]) -> None:
        """High watermarks of the partitions have changed."""
        for topic_partition in partitions:
            self._try_complete_delayed_requests(topic_partition)

    def _get_or_create_partition(self, topic_partition: TopicPartition) -> Partition:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            partition = self._partitions[topic_partition] = Partition(
                topic_partition,
                self.broker_id,
                self._clock,
                self.log_manager,
                self._alter_partition_manager,
                self._metadata_cache,
                self._concurrency,
                replica_lag_time_max_ms=self.config.replica_lag_time_max_ms,
                local_broker_epoch=lambda: self.config.broker_epoch,
                high_watermark_checkpoint=self._checkpointed_high_watermark,
                try_complete_delayed_requests=self._try_complete_delayed_requests,
                alter_partition_listener=self._alter_partition_listener,
            )
        return partition

    def _checkpointed_high_watermark(self, log: Log) -> int:
        return self._high_watermarks[parent(log.directory)].read().get(log.topic_partition, 0)

    # ---- from the controller ---------------------------------------------------------------

    def become_leader_or_follower(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        """Take over the decisions that are not older than what this broker knows."""
        with self._replica_state_change_lock:
            error = self._validate_epochs(request.broker_epoch, request.controller_epoch)
            if error is not Errors.NONE:
                return LeaderAndIsrResponse(error, {})
            self.controller_epoch = request.controller_epoch
            errors = {
                state.topic_partition: self._validate_leader_and_isr(state)
                for state in request.partition_states
            }
            accepted = [
                state
                for state in request.partition_states
                if errors[state.topic_partition] is Errors.NONE
            ]
            leads = [state for state in accepted if state.leader == self.broker_id]
            follows = [state for state in accepted if state.leader != self.broker_id]
            self._make_leaders(leads, errors)
            self._make_followers(follows, errors)
            self._maybe_add_log_dir_fetchers([state.topic_partition for state in accepted])
            for state in accepted:
                self._maybe_update_topic_assignment(state)
            return LeaderAndIsrResponse(Errors.NONE, errors)

    def _is_stale_broker_epoch(self, broker_epoch: int) -> bool:
        return broker_epoch != UNKNOWN_BROKER_EPOCH and broker_epoch < self.config.broker_epoch

    def _validate_leader_and_isr(self, state: LeaderAndIsrPartitionState) -> Errors:
        """NONE if the decision is news to this broker.

        An equal leader epoch is news only with a newer partition epoch, as in KRaft's deltas.
        """
        if self.broker_id not in state.replicas:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        if state.topic_partition in self._offline:
            return Errors.KAFKA_STORAGE_ERROR
        partition = self._partitions.get(state.topic_partition)
        if partition is None:
            return Errors.NONE
        if not _is_consistent_topic_id(state.topic_id, partition.topic_id):
            return Errors.INCONSISTENT_TOPIC_ID
        if state.leader_epoch < partition.leader_epoch:
            return Errors.STALE_CONTROLLER_EPOCH
        same_epoch = state.leader_epoch == partition.leader_epoch
        if same_epoch and state.partition_epoch <= partition.partition_epoch:
            return Errors.STALE_CONTROLLER_EPOCH
        return Errors.NONE

    def _make_leaders(
        self, states: list[LeaderAndIsrPartitionState], errors: dict[TopicPartition, Errors]
    ) -> None:
        # Before the epoch changes nobody may append to the logs any more.
        self.fetcher_manager.remove_fetcher_for_partitions(
            [state.topic_partition for state in states]
        )
        for state in states:
            try:
                self._get_or_create_partition(state.topic_partition).make_leader(state)
            except KafkaException as error:
                errors[state.topic_partition] = self._failed(state.topic_partition, error)

    def _failed(self, topic_partition: TopicPartition, error: KafkaException) -> Errors:
        """What is answered. A partition without a log already has the new epoch: it goes offline,
        or the same decision would be refused as old (ReplicaManager.markPartitionOffline).
        """
        if isinstance(error, KafkaStorageException):
            self._handle_storage_error(topic_partition)
        return Errors.for_exception(error)

    def _make_followers(
        self, states: list[LeaderAndIsrPartitionState], errors: dict[TopicPartition, Errors]
    ) -> None:
        restarted: list[Partition] = []
        for state in states:
            try:
                partition = self._get_or_create_partition(state.topic_partition)
                if partition.make_follower(state):
                    restarted.append(partition)
            except KafkaException as error:
                errors[state.topic_partition] = self._failed(state.topic_partition, error)
        self.fetcher_manager.remove_fetcher_for_partitions(
            [partition.topic_partition for partition in restarted]
        )
        for partition in restarted:
            self._try_complete_delayed_requests(partition.topic_partition)
        self.fetcher_manager.add_fetcher_for_partitions(self._initial_fetch_states(restarted))

    def _initial_fetch_states(
        self, partitions: list[Partition]
    ) -> dict[TopicPartition, InitialFetchState]:
        states = {}
        for partition in partitions:
            leader_id = partition.leader_replica_id
            leader = None if leader_id is None else self._end_points(leader_id)
            if leader is not None:
                log = partition.local_log_or_exception()
                states[partition.topic_partition] = InitialFetchState(
                    partition.topic_id,
                    leader,
                    partition.leader_epoch,
                    self.initial_fetch_offset(log),
                )
        return states

    def initial_fetch_offset(self, log: Log) -> int:
        """Where a new follower begins: at its log end if fetching finds divergence, else at HW."""
        if self.config.protocol.truncation_on_fetch and log.latest_epoch is not None:
            return log.log_end_offset
        return log.high_watermark

    def handle_stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        """Stop replicas unless the controller or the broker epoch of the request is old."""
        with self._replica_state_change_lock:
            error = self._validate_epochs(request.broker_epoch, request.controller_epoch)
            if error is not Errors.NONE:
                return StopReplicaResponse(error, {})
            self.controller_epoch = request.controller_epoch
            return StopReplicaResponse(Errors.NONE, self.stop_replicas(request.partition_states))

    def maybe_update_metadata_cache(
        self, request: UpdateMetadataRequest, metadata_cache: ZkMetadataCache
    ) -> UpdateMetadataResponse:
        """Hand the request to the cache unless its controller or broker epoch is old."""
        with self._replica_state_change_lock:
            error = self._validate_epochs(request.broker_epoch, request.controller_epoch)
            if error is Errors.NONE:
                metadata_cache.update_metadata(request)
                self.controller_epoch = request.controller_epoch
            return UpdateMetadataResponse(error)

    def _validate_epochs(self, broker_epoch: int, controller_epoch: int) -> Errors:
        """The broker epoch comes first: a request to a former life says nothing (KIP-380)."""
        if self._is_stale_broker_epoch(broker_epoch):
            return Errors.STALE_BROKER_EPOCH
        stale = controller_epoch < self.controller_epoch
        return Errors.STALE_CONTROLLER_EPOCH if stale else Errors.NONE

    def stop_replicas(
        self, states: Mapping[TopicPartition, StopReplicaPartitionState]
    ) -> dict[TopicPartition, Errors]:
        """Stop following or leading, delete where asked; FENCED_LEADER_EPOCH for older epochs."""
        with self._replica_state_change_lock:
            errors = {tp: self._validate_stop(tp, state) for tp, state in states.items()}
            stopped = [tp for tp, error in errors.items() if error is Errors.NONE]
            self.fetcher_manager.remove_fetcher_for_partitions(stopped)
            if self.alter_log_dirs_manager is not None:
                self.alter_log_dirs_manager.remove_fetcher_for_partitions(stopped)
            for topic_partition in stopped:
                if states[topic_partition].delete_partition:
                    self._delete_replica(topic_partition)
                self._try_complete_delayed_requests(topic_partition)
            return errors

    def _delete_replica(self, topic_partition: TopicPartition) -> None:
        """Delete the logs; also of a partition of which only they are left after a restart."""
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            partition.delete()
        log = self.log_manager.get_log(topic_partition)
        if log is not None:
            self.log_manager.delete_log(log)
        self._forget_high_watermark(topic_partition)

    def _forget_high_watermark(self, topic_partition: TopicPartition) -> None:
        """A later log of the partition must not be taken for committed up to the old mark."""
        for checkpoint in self._high_watermarks.values():
            offsets = checkpoint.read()
            if offsets.pop(topic_partition, None) is not None:
                checkpoint.write(offsets)

    def _validate_stop(
        self, topic_partition: TopicPartition, state: StopReplicaPartitionState
    ) -> Errors:
        if topic_partition in self._offline:
            return Errors.KAFKA_STORAGE_ERROR
        partition = self._partitions.get(topic_partition)
        if partition is None or state.leader_epoch in (NO_EPOCH, EPOCH_DURING_DELETE):
            return Errors.NONE
        stale = state.leader_epoch < partition.leader_epoch
        return Errors.FENCED_LEADER_EPOCH if stale else Errors.NONE

    # ---- from followers and clients --------------------------------------------------------

    def append_records(
        self, topic_partition: TopicPartition, records: MemoryRecords, required_acks: int = 1
    ) -> LogAppendInfo:
        """Append as leader; raises as `Partition.append_records_to_leader`."""
        partition = self.get_partition_or_exception(topic_partition)
        with self._offline_if_it_fails(topic_partition):
            return partition.append_records_to_leader(records, required_acks)

    def fetch(self, request: FetchRequest) -> FetchResponse:
        """Answer a Fetch request at once, with what there is."""
        context = self.new_fetch_context(request)
        if isinstance(context, Errors):
            return FetchResponse({}, context)
        params = fetch_params(request)
        return context.respond(self.read_from_log(params, context.partitions, request.max_bytes))

    def new_fetch_context(self, request: FetchRequest) -> FetchContext | Errors:
        """The request's view of its session."""
        return self._sessions.new_context(request)

    def fetch_for_future_replica(
        self, request: FetchRequest
    ) -> dict[TopicPartition, FetchPartitionData]:
        """This broker reads its own logs, whether or not it leads, to move them."""
        params = FetchParams(FUTURE_LOCAL_REPLICA_ID, fetch_only_leader=False)
        return self.read_from_log(params, request.to_send, request.max_bytes)

    def read_from_log(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartitionRequest],
        max_bytes: int,
        update_fetch_state: bool = True,
    ) -> dict[TopicPartition, FetchPartitionData]:
        """As `read_partitions`: what is answered."""
        reads = self.read_partitions(params, partitions, max_bytes, update_fetch_state)
        return {topic_partition: read.data for topic_partition, read in reads.items()}

    def read_partitions(
        self,
        params: FetchParams,
        partitions: Mapping[TopicPartition, FetchPartitionRequest],
        max_bytes: int,
        update_fetch_state: bool = True,
    ) -> dict[TopicPartition, LogReadResult]:
        """Read each partition in order, at most `max_bytes` in all, but at least one batch."""
        answer = {}
        remaining = max_bytes
        min_one_message = True
        for topic_partition, data in partitions.items():
            read = self._read(
                topic_partition, params, data, remaining, min_one_message, update_fetch_state
            )
            size = read.data.records.size_in_bytes
            if size > 0:
                min_one_message = False
                remaining = max(0, remaining - size)
            answer[topic_partition] = read
        return answer

    def _read(
        self,
        topic_partition: TopicPartition,
        params: FetchParams,
        data: FetchPartitionRequest,
        max_bytes: int,
        min_one_message: bool,
        update_fetch_state: bool,
    ) -> LogReadResult:
        try:
            partition = self.get_partition_or_exception(topic_partition)
            if not _is_consistent_topic_id(data.topic_id, partition.topic_id):
                return _error_data(Errors.INCONSISTENT_TOPIC_ID)
            now_ms = self._clock.milliseconds()
            limit = min(max_bytes, data.max_bytes)
            with self._offline_if_it_fails(topic_partition):
                read = partition.fetch_records(
                    params, data, now_ms, limit, min_one_message, update_fetch_state
                )
        except ApiException as error:
            return _error_data(error.error)
        records = read.records
        if params.is_from_follower and self._throttles(partition, params.replica_id, records):
            records = MemoryRecords.EMPTY
        answer = FetchPartitionData(
            Errors.NONE, read.high_watermark, read.log_start_offset, records, read.diverging_epoch
        )
        return LogReadResult(answer, read.fetch_offset_metadata)

    def should_leader_throttle(self, partition: Partition, replica_id: int) -> bool:
        """Whether the quota holds back what a follower fetches; never of one in sync."""
        quota = self._leader_quota
        return (
            quota.is_throttled(partition.topic_partition)
            and replica_id not in partition.in_sync_replica_ids
            and quota.is_quota_exceeded()
        )

    def _throttles(self, partition: Partition, replica_id: int, records: MemoryRecords) -> bool:
        """Whether the quota holds the records back; in-sync replicas never wait (KAFKA-4313)."""
        quota = self._leader_quota
        if not quota.is_throttled(partition.topic_partition):
            return False
        if replica_id not in partition.in_sync_replica_ids and quota.is_quota_exceeded():
            return True
        quota.record(records.size_in_bytes)
        return False

    def offsets_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest
    ) -> OffsetsForLeaderEpochResponse:
        """Answer an OffsetsForLeaderEpoch request; version 0 knows no epochs (before KIP-279)."""
        answers = {
            topic_partition: self._last_offset_for_leader_epoch(topic_partition, data)
            for topic_partition, data in request.partitions.items()
        }
        if self.config.protocol.old_epoch_response or request.version == 0:
            answers = {
                topic_partition: EpochEndOffset(end.error, UNDEFINED_EPOCH, end.end_offset)
                for topic_partition, end in answers.items()
            }
        return OffsetsForLeaderEpochResponse(answers)

    def _last_offset_for_leader_epoch(
        self, topic_partition: TopicPartition, data: EpochData
    ) -> EpochEndOffset:
        try:
            partition = self.get_partition_or_exception(topic_partition)
        except ApiException as error:
            return EpochEndOffset(error.error)
        return partition.last_offset_for_leader_epoch(
            _epoch_or_none(data.current_leader_epoch),
            data.leader_epoch,
            fetch_only_from_leader=True,
        )

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        """Answer a ListOffsets request for one partition; replicas see up to the log end."""
        isolation = None if request.replica_id >= 0 else FetchIsolation.HIGH_WATERMARK
        try:
            found = self.get_partition_or_exception(request.partition).fetch_offset_for_timestamp(
                request.timestamp,
                isolation,
                _epoch_or_none(request.current_leader_epoch),
                fetch_only_from_leader=True,
            )
        except ApiException as error:
            return ListOffsetsResponse(error.error)
        if found is None:
            return ListOffsetsResponse()
        epoch = UNDEFINED_EPOCH if found.leader_epoch is None else found.leader_epoch
        return ListOffsetsResponse(Errors.NONE, found.offset, epoch)

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, Errors]:
        """Move log start offsets forward."""
        errors = {}
        for topic_partition, offset in offsets.items():
            try:
                partition = self.get_partition_or_exception(topic_partition)
                with self._offline_if_it_fails(topic_partition):
                    partition.delete_records_on_leader(offset)
                errors[topic_partition] = Errors.NONE
            except ApiException as error:
                errors[topic_partition] = error.error
        return errors

    # ---- failing disks ---------------------------------------------------------------------

    @contextmanager
    def _offline_if_it_fails(self, topic_partition: TopicPartition) -> Iterator[None]:
        try:
            yield
        except KafkaStorageException:
            self._handle_storage_error(topic_partition)
            raise

    def _handle_storage_error(self, topic_partition: TopicPartition) -> None:
        """The directory of the partition's log has failed, or the one where it was to be made."""
        with self._replica_state_change_lock:
            partition = self._partitions.get(topic_partition)
            if partition is not None and partition.log is not None:
                self.handle_log_dir_failure(parent(partition.log.directory))
                return
            self._handle_failed_directories()
            if topic_partition not in self._offline:
                self._mark_partitions_offline([topic_partition])

    def _handle_failed_directories(self) -> None:
        """Where a log could not be made, nothing else is written either (LogDirFailureHandler)."""
        for directory in sorted(self.log_manager.failed_directories):
            self.handle_log_dir_failure(directory)

    def handle_log_dir_failure(self, directory: str) -> None:
        """Nothing in this log directory is read or written any more until the next start.

        Its partitions answer KAFKA_STORAGE_ERROR; a move to it ends
        (ReplicaManager.handleLogDirFailure).
        """
        with self._replica_state_change_lock:
            logs = {one.topic_partition: one.log for one in self.partitions()}
            self._mark_partitions_offline(
                [tp for tp, log in logs.items() if log and self.log_manager.is_in(log, directory)]
            )
            for partition in self.partitions():
                future = partition.future_log
                if future is not None and self.log_manager.is_in(future, directory):
                    self._end_move(partition, delete_from_log_dir=False)
            self._high_watermarks.pop(directory, None)
            self.log_manager.handle_log_dir_failure(directory)

    def _mark_partitions_offline(self, topic_partitions: list[TopicPartition]) -> None:
        self.fetcher_manager.remove_fetcher_for_partitions(topic_partitions)
        if self.alter_log_dirs_manager is not None:
            self.alter_log_dirs_manager.remove_fetcher_for_partitions(topic_partitions)
        for topic_partition in topic_partitions:
            self._offline.add(topic_partition)
            self._partitions.pop(topic_partition, None)
            self._try_complete_delayed_requests(topic_partition)

    # ---- moves between directories ---------------------------------------------------------

    def alter_replica_log_dir(self, topic_partition: TopicPartition, directory: str) -> None:
        """Begin to move the log to another of the broker's directories.

        A move to yet another directory is given up; asked for the directory of the log, that is
        all. Raises LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR while a directory is offline, or as
        `get_partition_or_exception`.
        """
        with self._replica_state_change_lock:
            if not self.log_manager.is_log_dir_online(directory):
                raise KafkaStorageException(f"the log directory {directory} is offline")
            partition = self.get_partition_or_exception(topic_partition)
            future = partition.future_log
            if future is not None and not self.log_manager.is_in(future, directory):
                self._end_move(partition)
            try:
                created = partition.maybe_create_future_replica(directory)
            except KafkaStorageException:
                self._handle_failed_directories()
                raise
            if created:
                self._maybe_add_log_dir_fetchers([topic_partition])

    def _end_move(self, partition: Partition, *, delete_from_log_dir: bool = True) -> None:
        if self.alter_log_dirs_manager is not None:
            self.alter_log_dirs_manager.remove_fetcher_for_partitions([partition.topic_partition])
        partition.remove_future_local_replica(delete_from_log_dir)

    def _maybe_add_log_dir_fetchers(self, topic_partitions: list[TopicPartition]) -> None:
        """Follow the logs that move; also those whose move began before this process did."""
        leader = self._end_points(self.broker_id) or BrokerEndPoint(self.broker_id)
        states = {}
        for topic_partition in topic_partitions:
            partition = self._partitions.get(topic_partition)
            future = self.log_manager.get_log(topic_partition, is_future=True)
            if partition is not None and partition.log is not None and future is not None:
                partition.maybe_create_future_replica(parent(future.directory))
                states[topic_partition] = InitialFetchState(
                    partition.topic_id, leader, partition.leader_epoch, future.high_watermark
                )
        if states and self.alter_log_dirs_manager is not None:
            self.alter_log_dirs_manager.add_fetcher_for_partitions(states)

    def _maybe_update_topic_assignment(self, state: LeaderAndIsrPartitionState) -> None:
        """Tell the controller where the log lies, if the metadata say otherwise."""
        handler, log = self.directory_event_handler, self.log_manager.get_log(state.topic_partition)
        if handler is None or log is None or state.directory is None:
            return
        directory = parent(log.directory)
        if directory != state.directory:
            handler.handle_assignment(
                state.topic_partition, directory, "Applying metadata delta", _nothing_to_do
            )

    # ---- periodic work, shutdown -----------------------------------------------------------

    def maybe_shrink_isr(self) -> None:
        """Drop lagging followers; runs every half of replica.lag.time.max.ms."""
        for partition in self.partitions():
            partition.maybe_shrink_isr()

    def checkpoint_high_watermarks(self) -> None:
        """Write `replication-offset-checkpoint`; runs every 5 s and at shutdown."""
        offsets: dict[str, dict[TopicPartition, int]] = {
            directory: {} for directory in self._high_watermarks
        }
        for partition in self.partitions():
            for log in (partition.log, partition.future_log):
                if log is not None:
                    offsets[parent(log.directory)][log.topic_partition] = log.high_watermark
        for directory, of_directory in offsets.items():
            try:
                self._high_watermarks[directory].write(of_directory)
            except KafkaStorageException as error:
                _log.error("the high watermarks of %s are not written", directory, exc_info=error)
                self.handle_log_dir_failure(directory)

    def shutdown(self) -> None:
        """Stop fetching, write the checkpoints, flush and close the logs."""
        self.fetcher_manager.shutdown()
        if self.alter_log_dirs_manager is not None:
            self.alter_log_dirs_manager.shutdown()
        self.checkpoint_high_watermarks()
        self.log_manager.shutdown()


def _nothing_to_do() -> None:
    """An assignment that is corrected waits for nothing."""


def fetch_params(request: FetchRequest) -> FetchParams:
    """What all partitions of a Fetch request share: replica ids below 0 are clients."""
    is_replica = request.replica_id >= 0
    return FetchParams(
        request.replica_id,
        request.broker_epoch,
        FetchIsolation.LOG_END if is_replica else FetchIsolation.HIGH_WATERMARK,
    )


def _is_consistent_topic_id(requested: str | None, known: str | None) -> bool:
    return requested in (None, ZERO_UUID, known) or known is None


def _epoch_or_none(epoch: int | None) -> int | None:
    return None if epoch == NO_EPOCH else epoch


def _error_data(error: Errors) -> LogReadResult:
    answer = FetchPartitionData(error, _INVALID_HIGH_WATERMARK, UNKNOWN_OFFSET)
    return LogReadResult(answer, UNKNOWN_OFFSET_METADATA)
