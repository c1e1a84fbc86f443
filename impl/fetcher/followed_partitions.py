"""The partitions of one fetcher thread: their states, delays, failures and lags, under one lock."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from impl.clock import Clock
from impl.concurrency import Concurrency
from impl.fetcher.failed_partitions import FailedPartitions
from impl.fetcher.leader_endpoint import LeaderEndPoint
from impl.fetcher.partition_states import PartitionStates
from impl.fetcher.shutdownable_thread import ShutdownableThread
from impl.fetcher.state import PartitionFetchState, ReplicaState
from impl.metrics import FetcherLagStats, FetcherStats, MetricsRegistry
from impl.types import OffsetAndEpoch, OffsetTruncationState, TopicPartition

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FetcherRuntime:
    """The world in which fetcher threads live."""

    clock: Clock
    concurrency: Concurrency
    metrics: MetricsRegistry


class FollowedPartitions(ShutdownableThread):
    """The part of AbstractFetcherThread that keeps the books; it sends nothing.

    Every public method takes the thread's lock. Times are ms of the runtime's clock.
    """

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
        """Make a followed partition truncate again, from at most `truncation_offset`."""
        with self._lock:
            state = self._partition_states.state_value(partition)
            if state is not None:
                self._partition_states.update_and_move_to_end(
                    partition, state.marked_for_truncation(truncation_offset)
                )
                self._partitions_changed.notify_all()

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
