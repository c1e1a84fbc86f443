"""A thread that copies partitions from one leader: truncate what diverges, fetch, append."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from impl.errors import (
    CorruptRecordException,
    Errors,
    FencedLeaderEpochException,
    InvalidRecordException,
)
from impl.fetcher.leader_endpoint import ReplicaFetch
from impl.fetcher.offset_reset import OffsetResettingFetcher
from impl.fetcher.state import PartitionFetchState, ReplicaState
from impl.network import FetchRequest
from impl.records import FileRecords, MemoryRecords, Records
from impl.types import (
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    InitialFetchState,
    LogAppendInfo,
    TopicPartition,
)

_log = logging.getLogger(__name__)

_TOLD_OF_A_LOG = frozenset({Errors.NONE, Errors.OFFSET_OUT_OF_RANGE})

SessionPartitions = Mapping[TopicPartition, FetchPartitionRequest]


class TierStateMachine(Protocol):
    """Rebuilds a follower whose fetch offset is only in tiered storage (TierStateMachine)."""

    def start(
        self,
        partition: TopicPartition,
        current_fetch_state: PartitionFetchState,
        fetch_partition_data: FetchPartitionData,
        /,
    ) -> PartitionFetchState: ...


class AbstractFetcherThread(OffsetResettingFetcher):
    """Follows partitions of one leader (kafka.server.AbstractFetcherThread).

    Requests are sent without the lock, so each answer is checked against the state that the
    partition has by then. A driver that steps the thread itself calls, in place of `do_work`:
    `fetch_truncating_partitions` and `process_epoch_end_offsets`, or `build_fetch` and
    `process_fetch_response` (`handle_fetch_failure` if no answer came).
    """

    tier_state_machine: TierStateMachine | None = None

    @abstractmethod
    def process_partition_data(
        self, partition: TopicPartition, fetch_offset: int, data: FetchPartitionData
    ) -> LogAppendInfo | None:
        """Append fetched records to the local log; None leaves the fetch state as it is."""

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
