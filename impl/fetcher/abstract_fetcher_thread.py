"""A thread that copies partitions from one leader: truncate what diverges, fetch, append.

Source: kafka.server.AbstractFetcherThread; KIP-101, 279, 320 and 595 for how a follower cuts its
log back to what it shares with the leader.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..clock import Clock
from ..concurrency import Concurrency
from ..errors import (
    CorruptRecordException,
    Errors,
    FencedLeaderEpochException,
    IllegalStateException,
    InvalidRecordException,
)
from ..metrics import FetcherLagStats, FetcherStats, MetricsRegistry
from ..network import FetchRequest
from ..records import FileRecords, MemoryRecords, Records
from ..types import (
    UNDEFINED_EPOCH,
    UNDEFINED_EPOCH_OFFSET,
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    InitialFetchState,
    LogAppendInfo,
    OffsetAndEpoch,
    OffsetTruncationState,
    TopicPartition,
)
from .failed_partitions import FailedPartitions
from .leader_endpoint import LeaderEndPoint, ReplicaFetch
from .partition_states import PartitionStates
from .shutdownable_thread import ShutdownableThread
from .state import PartitionFetchState, ReplicaState

_log = logging.getLogger(__name__)

SessionPartitions = Mapping[TopicPartition, FetchPartitionRequest]
"""What a fetch asked for, by partition."""

_NOTHING_REQUESTED: Mapping[TopicPartition, EpochData] = {}
_NOTHING_FETCHED: SessionPartitions = {}
_TOLD_OF_A_LOG = frozenset({Errors.NONE, Errors.OFFSET_OUT_OF_RANGE})


class TruncatingPartitions(NamedTuple):
    """Truncating partitions: the question to ask for each, or that there is none to ask."""

    with_epoch: dict[TopicPartition, EpochData]
    without_epoch: tuple[TopicPartition, ...]


class TruncationResult(NamedTuple):
    """Where logs were truncated, and which partitions must ask again after a back-off."""

    offsets: dict[TopicPartition, OffsetTruncationState]
    partitions_with_error: tuple[TopicPartition, ...]


class TierStateMachine(Protocol):
    """Rebuilds a follower whose fetch offset is only in tiered storage (TierStateMachine)."""

    def start(
        self,
        partition: TopicPartition,
        current_fetch_state: PartitionFetchState,
        fetch_partition_data: FetchPartitionData,
        /,
    ) -> PartitionFetchState: ...


@dataclass(frozen=True, slots=True)
class FetcherRuntime:
    """The world in which fetcher threads live."""

    clock: Clock
    concurrency: Concurrency
    metrics: MetricsRegistry


class AbstractFetcherThread(ShutdownableThread):
    """Follows partitions of one leader (kafka.server.AbstractFetcherThread).

    Every public method takes the thread's lock; times are ms of the runtime's clock. Requests are
    sent without the lock, so each answer is checked against the state that the partition has by
    then. A driver that steps the thread itself calls, in place of `do_work`:
    `fetch_truncating_partitions` and `process_epoch_end_offsets`, or `build_fetch` and
    `process_fetch_response` (`handle_fetch_failure` if no answer came).
    """

    tier_state_machine: TierStateMachine | None = None

    def __init__(
        self,
        name: str,
        client_id: str,
        leader: LeaderEndPoint,
        failed_partitions: FailedPartitions,
        runtime: FetcherRuntime,
        fetch_back_off_ms: int = 0,
    ) -> None:
        super().__init__(name, runtime.concurrency)
        endpoint = leader.broker_end_point()
        self.leader = leader
        self._truncation_on_fetch = leader.is_truncation_on_fetch_supported
        self._failed_partitions = failed_partitions
        self._fetch_back_off_ms = fetch_back_off_ms
        self._clock = runtime.clock
        self._checkpoint: Callable[[str], None] = runtime.concurrency.checkpoint
        self._lock = runtime.concurrency.lock("partition-map")
        self._partitions_changed = self._lock.new_condition()
        self._partition_states: PartitionStates[PartitionFetchState] = PartitionStates()
        self._marked_since_asked: set[TopicPartition] = set()
        self.fetcher_stats = FetcherStats(runtime.metrics, client_id, endpoint.host, endpoint.port)
        self.fetcher_lag_stats = FetcherLagStats(runtime.metrics, client_id)

    # The follower's log, as the kind of replica defines it.

    @property
    @abstractmethod
    def is_offset_for_leader_epoch_supported(self) -> bool:
        """Whether the leader can be asked where epochs end (KIP-101)."""

    @abstractmethod
    def latest_epoch(self, partition: TopicPartition) -> int | None:
        """The local log's latest leader epoch."""

    @abstractmethod
    def log_start_offset(self, partition: TopicPartition) -> int:
        """The local log's first offset."""

    @abstractmethod
    def log_end_offset(self, partition: TopicPartition) -> int:
        """The offset that the next local record gets."""

    @abstractmethod
    def end_offset_for_epoch(self, partition: TopicPartition, epoch: int) -> OffsetAndEpoch | None:
        """The greatest local epoch at most `epoch` and its end."""

    @abstractmethod
    def truncate(self, partition: TopicPartition, state: OffsetTruncationState) -> None:
        """Cut the local log at the offset."""

    @abstractmethod
    def truncate_fully_and_start_at(self, partition: TopicPartition, offset: int) -> None:
        """Empty the local log and start it at the offset."""

    @abstractmethod
    def process_partition_data(
        self, partition: TopicPartition, fetch_offset: int, data: FetchPartitionData
    ) -> LogAppendInfo | None:
        """Append fetched records to the local log; None leaves the fetch state as it is."""

    # One round.

    def do_work(self) -> None:
        """One round: truncate, then fetch."""
        self.maybe_truncate()
        self.maybe_fetch()

    def shutdown(self) -> None:
        """Stop after the current round and remove this thread's metrics; may be called again."""
        self.initiate_shutdown()
        with self._lock:
            self._partitions_changed.notify_all()
        self.await_shutdown()
        self.fetcher_stats.unregister()
        self.fetcher_lag_stats.unregister_all()

    # Adding partitions.

    def add_partitions(
        self, initial_fetch_states: Mapping[TopicPartition, InitialFetchState]
    ) -> frozenset[TopicPartition]:
        """Follow partitions from their initial states; returns them.

        A partition that is followed in the same leader epoch keeps its state; in any other epoch
        it starts over. A failed partition is no longer failed.
        """
        with self._lock:
            self._failed_partitions.remove_all(initial_fetch_states)
            for partition, initial in initial_fetch_states.items():
                current = self._partition_states.state_value(partition)
                self._partition_states.update_and_move_to_end(
                    partition, self.partition_fetch_state(partition, initial, current)
                )
            self._partitions_changed.notify_all()
        return frozenset(initial_fetch_states)

    def partition_fetch_state(
        self,
        partition: TopicPartition,
        initial: InitialFetchState,
        current: PartitionFetchState | None,
    ) -> PartitionFetchState:
        """The state with which an added partition starts. Asks the leader if the offset is < 0."""
        epoch = initial.current_leader_epoch
        if current is not None and current.current_leader_epoch == epoch:
            return current
        if initial.init_offset < 0:
            return self.fetch_offset_and_truncate(partition, initial.topic_id, epoch)
        # Without truncation on fetch, or without epochs (old message format), truncate first.
        last_fetched_epoch = self.latest_epoch(partition) if self._truncation_on_fetch else None
        state = ReplicaState.TRUNCATING if last_fetched_epoch is None else ReplicaState.FETCHING
        return PartitionFetchState(
            initial.topic_id, initial.init_offset, None, epoch, None, state, last_fetched_epoch
        )

    # Snapshots.

    def fetch_state(self, partition: TopicPartition) -> PartitionFetchState | None:
        """The partition's state, None if this thread does not follow it."""
        with self._lock:
            return self._partition_states.state_value(partition)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """The followed partitions, in the order of the next fetch."""
        with self._lock:
            return tuple(self._partition_states.partition_set())

    @property
    def partition_count(self) -> int:
        """The number of followed partitions."""
        with self._lock:
            return self._partition_states.size()

    # Changes from outside.

    def mark_partitions_for_truncation(
        self, partition: TopicPartition, truncation_offset: int
    ) -> None:
        """Make a followed partition truncate again, from at most `truncation_offset`.

        An epoch request under way may be answered from the log as it was before it was truncated;
        its answer is dropped. Kafka (3.8 and 4.4) compares the leader epoch only: such an answer
        leaves a future log longer than the current one, which another log may replace then.
        """
        with self._lock:
            state = self._partition_states.state_value(partition)
            if state is not None:
                self._marked_since_asked.add(partition)
                self._partition_states.update_and_move_to_end(
                    partition, state.marked_for_truncation(truncation_offset)
                )
                self._partitions_changed.notify_all()

    def is_marked_since_asked(self, partition: TopicPartition) -> bool:
        """Whether the answer to the epoch request under way will be dropped."""
        with self._lock:
            return partition in self._marked_since_asked

    def delay_partitions(self, partitions: Iterable[TopicPartition], delay_ms: int) -> None:
        """Keep partitions out of requests for `delay_ms`; a running delay is not extended."""
        with self._lock:
            now_ms = self._clock.milliseconds()
            for partition in partitions:
                state = self._partition_states.state_value(partition)
                if state is not None and not state.is_delayed(now_ms):
                    self._partition_states.update_and_move_to_end(
                        partition, state.delayed_until(now_ms + delay_ms)
                    )
            self._partitions_changed.notify_all()

    def remove_partitions(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, PartitionFetchState]:
        """Stop following; returns the last states of those that were followed."""
        with self._lock:
            removed = {}
            for partition in partitions:
                state = self._partition_states.remove(partition)
                self.fetcher_lag_stats.unregister(partition)
                if state is not None:
                    removed[partition] = state
            return removed

    def remove_all_partitions(self) -> dict[TopicPartition, PartitionFetchState]:
        """Stop following everything; returns the last states."""
        with self._lock:
            return self.remove_partitions(self.partitions())

    def maybe_update_topic_ids(
        self, partitions: Iterable[TopicPartition], topic_ids: Callable[[str], str | None]
    ) -> None:
        """Set the topic ids of followed partitions in place (KIP-516)."""
        with self._lock:
            for partition in partitions:
                state = self._partition_states.state_value(partition)
                if state is not None:
                    self._partition_states.update(
                        partition, state.with_topic_id(topic_ids(partition.topic))
                    )
            self._partitions_changed.notify_all()

    # Truncating.

    def maybe_truncate(self) -> None:
        """Truncate what needs it: by the leader's epochs where possible, else to the watermark."""
        partitions = self.fetch_truncating_partitions()
        if partitions.with_epoch:
            self.truncate_to_epoch_end_offsets(partitions.with_epoch)
        if partitions.without_epoch:
            self.truncate_to_high_watermark(partitions.without_epoch)

    def fetch_truncating_partitions(self) -> TruncatingPartitions:
        """What has to be asked for the truncating partitions that are not delayed."""
        with_epoch: dict[TopicPartition, EpochData] = {}
        without_epoch: list[TopicPartition] = []
        with self._lock:
            now_ms = self._clock.milliseconds()
            for partition, state in self._partition_states.items():
                if not state.is_truncating(now_ms):
                    continue
                latest_epoch = self.latest_epoch(partition)
                if latest_epoch is not None and self.is_offset_for_leader_epoch_supported:
                    with_epoch[partition] = EpochData(state.current_leader_epoch, latest_epoch)
                else:
                    without_epoch.append(partition)
            self._marked_since_asked.difference_update(with_epoch)
        return TruncatingPartitions(with_epoch, tuple(without_epoch))

    def truncate_to_epoch_end_offsets(self, requests: Mapping[TopicPartition, EpochData]) -> None:
        """Ask the leader where the followers' latest epochs end, and truncate accordingly."""
        self._checkpoint("epoch request sent")
        answers = self.leader.fetch_epoch_end_offsets(requests)
        self._checkpoint("epoch request answered")
        self.process_epoch_end_offsets(requests, answers)

    def process_epoch_end_offsets(
        self,
        requests: Mapping[TopicPartition, EpochData],
        answers: Mapping[TopicPartition, EpochEndOffset],
    ) -> None:
        """Truncate by the answers to `requests`; a dropped answer leaves its partition truncating.

        Raises IllegalStateException for an answer that nobody asked for.
        """
        with self._lock:
            current = self._answers_of_current_epoch(requests, answers)
            result = self.maybe_truncate_to_epoch_end_offsets(current, requests)
            self.handle_partitions_with_errors(result.partitions_with_error)
            self.update_fetch_offset_and_maybe_mark_truncation_complete(result.offsets)

    def _answers_of_current_epoch(
        self,
        requests: Mapping[TopicPartition, EpochData],
        answers: Mapping[TopicPartition, EpochEndOffset],
    ) -> dict[TopicPartition, EpochEndOffset]:
        current = {}
        for partition, answer in answers.items():
            request = requests.get(partition)
            if request is None:
                raise IllegalStateException(f"an answer for {partition}, which was not asked for")
            state = self._partition_states.state_value(partition)
            if self.is_marked_since_asked(partition):
                continue
            if state is not None and state.current_leader_epoch == request.current_leader_epoch:
                current[partition] = answer
        return current

    def truncate_on_fetch_response(
        self,
        epoch_end_offsets: Mapping[TopicPartition, EpochEndOffset],
        session_partitions: Mapping[TopicPartition, FetchPartitionRequest] = _NOTHING_FETCHED,
    ) -> None:
        """Truncate by the diverging epochs of a fetch answer (KIP-595).

        `session_partitions` is what was asked: an answer to another leader epoch is dropped.
        """
        with self._lock:
            current = {
                partition: answer
                for partition, answer in epoch_end_offsets.items()
                if not self._has_another_epoch(partition, session_partitions.get(partition))
            }
            result = self.maybe_truncate_to_epoch_end_offsets(current, _NOTHING_REQUESTED)
            self.handle_partitions_with_errors(result.partitions_with_error)
            self.update_fetch_offset_and_maybe_mark_truncation_complete(result.offsets)

    def _has_another_epoch(
        self, partition: TopicPartition, requested: FetchPartitionRequest | None
    ) -> bool:
        state = self._partition_states.state_value(partition)
        if state is None or requested is None:
            return False
        return state.current_leader_epoch != requested.current_leader_epoch

    def maybe_truncate_to_epoch_end_offsets(
        self,
        answers: Mapping[TopicPartition, EpochEndOffset],
        requests: Mapping[TopicPartition, EpochData],
    ) -> TruncationResult:
        """Truncate the partitions that are still followed (KAFKA-13207). Called under the lock."""
        offsets: dict[TopicPartition, OffsetTruncationState] = {}
        with_error: list[TopicPartition] = []
        for partition, answer in answers.items():
            if not self._partition_states.contains(partition):
                continue
            if answer.error is Errors.NONE:
                truncation = self.get_offset_truncation_state(partition, answer)
                if self.do_truncate(partition, truncation):
                    offsets[partition] = truncation
            elif answer.error is Errors.FENCED_LEADER_EPOCH:
                request = requests.get(partition)
                epoch = None if request is None else request.current_leader_epoch
                if self.on_partition_fenced(partition, epoch):
                    with_error.append(partition)
            else:
                with_error.append(partition)
        return TruncationResult(offsets, tuple(with_error))

    def truncate_to_high_watermark(self, partitions: Collection[TopicPartition]) -> None:
        """Truncate to the fetch offset, which is the high watermark since the partition was added.

        The way of before KIP-101: loses committed records (KAFKA-3410) where epochs are missing.
        """
        with self._lock:
            offsets: dict[TopicPartition, OffsetTruncationState] = {}
            for partition in partitions:
                state = self._partition_states.state_value(partition)
                if state is None:  # removed meanwhile (KAFKA-8012)
                    continue
                truncation = OffsetTruncationState(state.fetch_offset, truncation_completed=True)
                if self.do_truncate(partition, truncation):
                    offsets[partition] = truncation
            self.update_fetch_offset_and_maybe_mark_truncation_complete(offsets)

    def do_truncate(self, partition: TopicPartition, truncation: OffsetTruncationState) -> bool:
        """Truncate; a failure fails the partition, not the thread (KIP-461). True on success."""
        try:
            self.truncate(partition, truncation)
        except Exception as error:  # noqa: BLE001 - kept as the failed partition's cause
            self.mark_partition_failed(partition, error)
            return False
        return True

    def get_offset_truncation_state(
        self, partition: TopicPartition, leader: EpochEndOffset
    ) -> OffsetTruncationState:
        """Where to truncate, given the leader's answer to the follower's latest epoch (KIP-279).

        Never beyond the local log end, except when the leader knows nothing: then the initial
        fetch offset is used as it is. Called under the lock, for a followed partition.
        """
        if leader.end_offset == UNDEFINED_EPOCH_OFFSET:
            return self._truncate_to_initial_offset(partition)
        log_end_offset = self.log_end_offset(partition)
        if leader.leader_epoch == UNDEFINED_EPOCH:  # an answer of before KIP-279
            return OffsetTruncationState(min(leader.end_offset, log_end_offset))
        local = self.end_offset_for_epoch(partition, leader.leader_epoch)
        if local is None:
            return OffsetTruncationState(min(leader.end_offset, log_end_offset))
        if local.leader_epoch != leader.leader_epoch:
            # The leader's epoch is unknown here: ask again, with the epoch that is latest then.
            offset = min(local.offset, log_end_offset)
            return OffsetTruncationState(offset, truncation_completed=False)
        return OffsetTruncationState(min(local.offset, leader.end_offset, log_end_offset))

    def _truncate_to_initial_offset(self, partition: TopicPartition) -> OffsetTruncationState:
        state = self._partition_states.state_value(partition)
        if state is None:
            raise IllegalStateException(f"{partition} is truncated but not followed")
        return OffsetTruncationState(state.fetch_offset)

    # Fetching.

    def maybe_fetch(self) -> None:
        """Fetch what is ready; if nothing is, wait one back-off or until partitions change."""
        with self._lock:
            replica_fetch = self.build_fetch()
            if replica_fetch is None:
                self._partitions_changed.wait(self._fetch_back_off_ms)
        if replica_fetch is not None:
            self.process_fetch_request(replica_fetch.partition_data, replica_fetch.request)

    def build_fetch(self) -> ReplicaFetch | None:
        """The next fetch, None if no partition is ready; unreadable partitions are delayed."""
        with self._lock:
            built = self.leader.build_fetch(self._partition_states.partition_state_map())
            self.handle_partitions_with_errors(built.partitions_with_error)
            return built.replica_fetch

    def process_fetch_request(
        self, session_partitions: SessionPartitions, fetch_request: FetchRequest
    ) -> None:
        """Send a fetch, wait without the lock, and process the answer."""
        self._checkpoint("fetch request sent")
        try:
            response = self.leader.fetch(fetch_request)
        except Exception as error:  # noqa: BLE001 - no failure of the network ends the thread
            self.handle_fetch_failure(error)
            return
        self._checkpoint("fetch request answered")
        self.process_fetch_response(session_partitions, response)

    def handle_fetch_failure(self, error: BaseException) -> None:
        """No answer came: every partition backs off, unless the thread is shutting down."""
        self.fetcher_stats.request_rate.mark()
        if self.is_running:
            _log.info("[%s]: Error in response for fetch request", self.name, exc_info=error)
            self.handle_partitions_with_errors(self.partitions())

    def process_fetch_response(
        self,
        session_partitions: SessionPartitions,
        response: Mapping[TopicPartition, FetchPartitionData],
    ) -> None:
        """Apply an answer to the partitions whose state still fits what was asked."""
        self.fetcher_stats.request_rate.mark()
        diverging: dict[TopicPartition, EpochEndOffset] = {}
        with_error: list[TopicPartition] = []
        with self._lock:
            now_ms = self._clock.milliseconds()
            for partition, data in response.items():
                requested = session_partitions.get(partition)
                state = self._partition_states.state_value(partition)
                if requested is None or state is None:
                    continue
                if not _still_expected(state, requested, now_ms):
                    continue
                if self._process_partition_response(partition, state, requested, data, diverging):
                    with_error.append(partition)
        if diverging:
            self.truncate_on_fetch_response(diverging, session_partitions)
        self.handle_partitions_with_errors(with_error)

    def _process_partition_response(
        self,
        partition: TopicPartition,
        state: PartitionFetchState,
        requested: FetchPartitionRequest,
        data: FetchPartitionData,
        diverging: dict[TopicPartition, EpochEndOffset],
    ) -> bool:
        """True iff the partition must back off; a divergence is added to `diverging`."""
        error = data.error
        if error in _TOLD_OF_A_LOG and not _is_of_current_epoch(state, requested):
            return False
        if error is Errors.NONE:
            end_offset = data.diverging_epoch
            if end_offset is not None and self._truncation_on_fetch and _is_defined(end_offset):
                diverging[partition] = end_offset
                return False
            return self._process_fetched_data(partition, state, data)
        if error is Errors.OFFSET_OUT_OF_RANGE:
            epoch = requested.current_leader_epoch
            return not self.handle_out_of_range_error(partition, state, epoch)
        if error is Errors.FENCED_LEADER_EPOCH:
            return self.on_partition_fenced(partition, requested.current_leader_epoch)
        if error is Errors.OFFSET_MOVED_TO_TIERED_STORAGE:
            epoch = requested.current_leader_epoch
            return not self.handle_offsets_moved_to_tiered_storage(partition, state, data, epoch)
        # UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER, unknown topics and all others: the leader
        # or this broker has not caught up with the controller yet.
        return True

    def _process_fetched_data(
        self, partition: TopicPartition, state: PartitionFetchState, data: FetchPartitionData
    ) -> bool:
        """Append and advance; True iff the partition must back off at the same offset."""
        try:
            info = self.process_partition_data(partition, state.fetch_offset, data)
        except (CorruptRecordException, InvalidRecordException) as error:
            # The next answer may be whole (KAFKA-4384).
            _log.info("Found invalid messages during fetch for %s", partition, exc_info=error)
            return True
        except Exception as error:  # noqa: BLE001 - fails this partition only (KIP-461)
            self.mark_partition_failed(partition, error)
            return False
        if info is not None:
            self._advance(partition, state, data, info)
        return False

    def _advance(
        self,
        partition: TopicPartition,
        state: PartitionFetchState,
        data: FetchPartitionData,
        info: LogAppendInfo,
    ) -> None:
        if not self._partition_states.contains(partition):  # removed by processing its data
            return
        valid_bytes = info.valid_bytes
        next_offset = info.last_offset + 1 if valid_bytes > 0 else state.fetch_offset
        lag = max(0, data.high_watermark - next_offset)
        self.fetcher_lag_stats.set_lag(partition, lag)
        last_fetched_epoch = info.last_leader_epoch
        if last_fetched_epoch is None:  # an empty append says nothing of the epoch (KAFKA-15510)
            last_fetched_epoch = state.last_fetched_epoch
        # An idle partition needs its first lag too, or it counts as out of sync (KAFKA-15080).
        if valid_bytes > 0 or state.lag is None:
            new_state = PartitionFetchState(
                state.topic_id,
                next_offset,
                lag,
                state.current_leader_epoch,
                None,
                ReplicaState.FETCHING,
                last_fetched_epoch,
            )
            self._partition_states.update_and_move_to_end(partition, new_state)
        if valid_bytes > 0:
            self.fetcher_stats.byte_rate.mark(valid_bytes)

    def handle_offsets_moved_to_tiered_storage(
        self,
        partition: TopicPartition,
        state: PartitionFetchState,
        data: FetchPartitionData,
        request_epoch: int | None,
    ) -> bool:
        """Let the tier state machine rebuild the log (KIP-405); False iff it must be retried."""
        if self.tier_state_machine is None:
            return False
        try:
            new_state = self.tier_state_machine.start(partition, state, data)
        except FencedLeaderEpochException:
            return not self.on_partition_fenced(partition, request_epoch)
        except Exception as error:  # noqa: BLE001 - whatever failed, it is tried again later
            _log.info("Error building remote log state for %s", partition, exc_info=error)
            return False
        self._partition_states.update_and_move_to_end(partition, new_state)
        return True

    @staticmethod
    def to_memory_records(records: Records) -> MemoryRecords:
        """Fetched records in memory: file records are read into a buffer of their size.

        Raises TypeError for any other kind of records.
        """
        if isinstance(records, MemoryRecords):
            return records
        if isinstance(records, FileRecords):
            return records.read_into_memory()
        raise TypeError(f"records must be in memory or in a file, not {type(records).__name__}")

    # A fetch offset outside the leader's log.

    def handle_out_of_range_error(
        self, partition: TopicPartition, state: PartitionFetchState, request_epoch: int | None
    ) -> bool:
        """Reset the fetch offset; True iff handled, False iff the partition must back off.

        Fenced although the local epoch has moved on counts as not handled. Kafka since 3.5
        retries that case without back-off (a side effect of KAFKA-13369).
        """
        try:
            new_state = self.fetch_offset_and_truncate(
                partition, state.topic_id, state.current_leader_epoch
            )
        except FencedLeaderEpochException:
            return not self.on_partition_fenced(partition, request_epoch)
        except Exception as error:  # noqa: BLE001 - whatever failed, it is tried again later
            _log.info("Error getting offset for partition %s", partition, exc_info=error)
            return False
        self._partition_states.update_and_move_to_end(partition, new_state)
        return True

    def fetch_offset_and_truncate(
        self, partition: TopicPartition, topic_id: str | None, current_leader_epoch: int
    ) -> PartitionFetchState:
        """A state that lies inside the leader's log, the local log truncated to fit it.

        The leader's log ends before ours: an unclean election; cut ours there. Otherwise ours is
        too old: go on at our end, or start over where the leader's log starts.
        Raises what the leader answers.
        """
        self._checkpoint("latest offset asked")
        leader_end = self.leader.fetch_latest_offset(partition, current_leader_epoch).offset
        log_end = self.log_end_offset(partition)
        if leader_end < log_end:
            self.truncate(partition, OffsetTruncationState(leader_end))
            return self._reset_state(partition, topic_id, current_leader_epoch, leader_end, 0)
        self._checkpoint("earliest offset asked")
        leader_start = self.leader.fetch_earliest_offset(partition, current_leader_epoch).offset
        if leader_start > log_end:
            self.truncate_fully_and_start_at(partition, leader_start)
        offset = max(leader_start, log_end)
        lag = leader_end - offset
        return self._reset_state(partition, topic_id, current_leader_epoch, offset, lag)

    def _reset_state(
        self,
        partition: TopicPartition,
        topic_id: str | None,
        current_leader_epoch: int,
        offset: int,
        lag: int,
    ) -> PartitionFetchState:
        self.fetcher_lag_stats.set_lag(partition, lag)
        return PartitionFetchState(
            topic_id,
            offset,
            lag,
            current_leader_epoch,
            None,
            ReplicaState.FETCHING,
            self.latest_epoch(partition),
        )

    # Outcomes of requests.

    def handle_partitions_with_errors(self, partitions: Collection[TopicPartition]) -> None:
        """Let partitions wait one back-off before they are tried again."""
        if partitions:
            _log.debug("[%s]: Handling errors for partitions %s", self.name, partitions)
            self.delay_partitions(partitions, self._fetch_back_off_ms)

    def mark_partition_failed(
        self, partition: TopicPartition, cause: BaseException | None = None
    ) -> None:
        """Give the partition up until somebody adds it again (KIP-461)."""
        with self._lock:
            self._failed_partitions.add(partition, cause)
            self.remove_partitions((partition,))
        _log.info("[%s]: Partition %s marked as failed", self.name, partition, exc_info=cause)

    def on_partition_fenced(self, partition: TopicPartition, request_epoch: int | None) -> bool:
        """Judge a FENCED_LEADER_EPOCH answer; True iff it is to be retried.

        Asked with the epoch that the follower still has, the follower is stale and the partition
        failed. Otherwise the follower has learnt another epoch while the request was in flight.
        """
        with self._lock:
            state = self._partition_states.state_value(partition)
            if state is None:
                return False
            if request_epoch is not None and request_epoch == state.current_leader_epoch:
                self.mark_partition_failed(partition)
                return False
            return True

    def update_fetch_offset_and_maybe_mark_truncation_complete(
        self, fetch_offsets: Mapping[TopicPartition, OffsetTruncationState]
    ) -> None:
        """Fetch from where the logs were truncated; partitions not in the map stay as they are."""
        with self._lock:
            states = dict(self._partition_states.items())
            for partition, truncated in fetch_offsets.items():
                state = states.get(partition)
                if state is not None:
                    states[partition] = self._truncated_state(partition, state, truncated)
            self._partition_states.set(states)

    def _truncated_state(
        self,
        partition: TopicPartition,
        state: PartitionFetchState,
        truncated: OffsetTruncationState,
    ) -> PartitionFetchState:
        # With truncation on fetch the next answer tells whether the logs still diverge.
        completed = truncated.truncation_completed or self._truncation_on_fetch
        return PartitionFetchState(
            state.topic_id,
            truncated.offset,
            state.lag,
            state.current_leader_epoch,
            state.delay,
            ReplicaState.FETCHING if completed else ReplicaState.TRUNCATING,
            self.latest_epoch(partition),
        )


def _still_expected(
    state: PartitionFetchState, requested: FetchPartitionRequest, now_ms: int
) -> bool:
    """The partition may have been removed and added again, truncated or delayed meanwhile."""
    return requested.fetch_offset == state.fetch_offset and state.is_ready_for_fetch(now_ms)


def _is_of_current_epoch(state: PartitionFetchState, requested: FetchPartitionRequest) -> bool:
    """What an answer tells of a leader's log counts only in the epoch in which it was asked for.

    Kafka 3.8 compares the offset alone. With truncation on fetch a partition fetches again at the
    same offset as soon as its epoch has moved, so an answer that outlives two elections would
    truncate an exposed record.
    """
    return requested.current_leader_epoch == state.current_leader_epoch


def _is_defined(diverging: EpochEndOffset) -> bool:
    return diverging.leader_epoch != -1 or diverging.end_offset != -1
