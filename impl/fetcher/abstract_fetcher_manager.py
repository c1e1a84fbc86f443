"""Spreads partitions over fetcher threads, one pool of them for each leader."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from ..metrics import MetricName
from ..types import BrokerEndPoint, InitialFetchState, TopicPartition
from .abstract_fetcher_thread import AbstractFetcherThread, FetcherRuntime
from .failed_partitions import FailedPartitions
from .state import PartitionFetchState

_log = logging.getLogger(__name__)

T = TypeVar("T", bound=AbstractFetcherThread)

_INT_MIN = -(2**31)


class BrokerIdAndFetcherId(NamedTuple):
    """Key of a fetcher thread."""

    broker_id: int
    fetcher_id: int


class BrokerAndFetcherId(NamedTuple):
    """A thread's key with the leader's whole address: the broker may have moved."""

    broker: BrokerEndPoint
    fetcher_id: int


@lru_cache(maxsize=1024)  # topic names: hashed at each change of leadership
def java_string_hash(text: str) -> int:
    """java.lang.String.hashCode: over UTF-16 code units, as a signed 32-bit integer."""
    value = 0
    units = text.encode("utf-16-be")
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return _to_signed_32(value)


def _to_signed_32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def _java_abs(value: int) -> int:
    """Utils.abs of Kafka: the smallest integer has no positive counterpart and becomes 0."""
    return 0 if value == _INT_MIN else abs(value)


class AbstractFetcherManager(ABC, Generic[T]):
    """Owns the fetcher threads, one lock over all of them (AbstractFetcherManager)."""

    def __init__(
        self, name: str, client_id: str, num_fetchers: int, runtime: FetcherRuntime
    ) -> None:
        self.name = name
        self.failed_partitions = FailedPartitions(runtime.concurrency)
        self._runtime = runtime
        self._num_fetchers_per_broker = num_fetchers
        self._lock = runtime.concurrency.lock("fetcher-manager")
        self._threads: dict[BrokerIdAndFetcherId, T] = {}
        self._register_gauges(client_id)

    @abstractmethod
    def create_fetcher_thread(self, fetcher_id: int, source_broker: BrokerEndPoint) -> T:
        """A new thread for one leader, not started."""

    # Which thread.

    def get_fetcher_id(self, partition: TopicPartition) -> int:
        """The index in its leader's pool of the thread that owns the partition."""
        with self._lock:
            hashed = _to_signed_32(31 * java_string_hash(partition.topic) + partition.partition)
            return _java_abs(hashed) % self._num_fetchers_per_broker

    def get_fetcher(self, partition: TopicPartition) -> T | None:
        """The thread that follows the partition, if any does."""
        with self._lock:
            for thread in self._threads.values():
                if thread.fetch_state(partition) is not None:
                    return thread
            return None

    def fetcher_threads(self) -> dict[BrokerIdAndFetcherId, T]:
        """A copy of the pool."""
        with self._lock:
            return dict(self._threads)

    # Changing what is followed.

    def add_fetcher_for_partitions(
        self, initial_fetch_states: Mapping[TopicPartition, InitialFetchState]
    ) -> None:
        """Give each partition to its thread; threads are started as needed."""
        with self._lock:
            per_fetcher: dict[BrokerAndFetcherId, dict[TopicPartition, InitialFetchState]] = {}
            for partition, initial in initial_fetch_states.items():
                key = BrokerAndFetcherId(initial.leader, self.get_fetcher_id(partition))
                per_fetcher.setdefault(key, {})[partition] = initial
            for key, initial_states in per_fetcher.items():
                self._thread_for(key).add_partitions(initial_states)

    def _thread_for(self, key: BrokerAndFetcherId) -> T:
        thread_id = BrokerIdAndFetcherId(key.broker.id, key.fetcher_id)
        thread = self._threads.get(thread_id)
        if thread is not None:
            if thread.leader.broker_end_point() == key.broker:
                return thread
            thread.shutdown()  # the leader has another address now
        thread = self._threads[thread_id] = self.create_fetcher_thread(key.fetcher_id, key.broker)
        thread.start()
        return thread

    def remove_fetcher_for_partitions(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, PartitionFetchState]:
        """Stop following; failures of the partitions are forgotten. Returns their last states."""
        with self._lock:
            removed: dict[TopicPartition, PartitionFetchState] = {}
            for thread in self._threads.values():
                removed.update(thread.remove_partitions(partitions))
            self.failed_partitions.remove_all(partitions)
            return removed

    def add_failed_partition(self, partition: TopicPartition) -> None:
        """Count a partition as failed, for example because its log directory is offline."""
        with self._lock:
            self.failed_partitions.add(partition)

    def mark_partitions_for_truncation(
        self, broker_id: int, partition: TopicPartition, truncation_offset: int
    ) -> None:
        """Pass on to the partition's thread, if there is one."""
        with self._lock:
            key = BrokerIdAndFetcherId(broker_id, self.get_fetcher_id(partition))
            thread = self._threads.get(key)
            if thread is not None:
                thread.mark_partitions_for_truncation(partition, truncation_offset)

    def maybe_update_topic_ids(
        self, leaders: Mapping[TopicPartition, int], topic_ids: Callable[[str], str | None]
    ) -> None:
        """Set topic ids of followed partitions; `leaders` gives each partition's leader."""
        with self._lock:
            per_fetcher: dict[BrokerIdAndFetcherId, list[TopicPartition]] = {}
            for partition, leader_id in leaders.items():
                key = BrokerIdAndFetcherId(leader_id, self.get_fetcher_id(partition))
                per_fetcher.setdefault(key, []).append(partition)
            for key, partitions in per_fetcher.items():
                thread = self._threads.get(key)
                if thread is not None:
                    thread.maybe_update_topic_ids(partitions, topic_ids)

    # The pool.

    def resize_thread_pool(self, new_size: int) -> None:
        """Change the number of threads per leader; followed partitions move and truncate again."""
        with self._lock:
            current_size = self._num_fetchers_per_broker
            _log.info("Resizing fetcher thread pool size from %d to %d", current_size, new_size)
            self._num_fetchers_per_broker = new_size
            if new_size != current_size:
                self._migrate_partitions(new_size)
            self.shutdown_idle_fetcher_threads()

    def _migrate_partitions(self, new_size: int) -> None:
        # All are removed before any is added: a thread visited later must not give back what it
        # has just been given (KAFKA-13772).
        migrating: dict[TopicPartition, InitialFetchState] = {}
        for thread_id, thread in self._threads.items():
            states = thread.remove_all_partitions()
            if thread_id.fetcher_id >= new_size:
                thread.shutdown()
            migrating.update(_initial_states(thread.leader.broker_end_point(), states.items()))
        self.add_fetcher_for_partitions(migrating)

    def shutdown_idle_fetcher_threads(self) -> None:
        """Stop the threads that follow nothing."""
        with self._lock:
            idle = [key for key, thread in self._threads.items() if thread.partition_count <= 0]
            for key in idle:
                self._threads.pop(key).shutdown()

    def close_all_fetchers(self) -> None:
        """Stop every thread: first all are asked, then each is waited for."""
        with self._lock:
            for thread in self._threads.values():
                thread.initiate_shutdown()
            for thread in self._threads.values():
                thread.shutdown()
            self._threads.clear()

    # Metrics.

    @property
    def dead_thread_count(self) -> int:
        """Threads that ended by an error."""
        with self._lock:
            return sum(thread.is_thread_failed for thread in self._threads.values())

    @property
    def max_lag(self) -> int:
        """The greatest lag of any partition, at least 0."""
        threads = self.fetcher_threads().values()
        return max((thread.fetcher_lag_stats.max_lag() for thread in threads), default=0)

    @property
    def min_fetch_rate(self) -> float:
        """The smallest one-minute rate of requests, 0 without threads."""
        threads = self.fetcher_threads().values()
        rates = (thread.fetcher_stats.request_rate.one_minute_rate for thread in threads)
        return min(rates, default=0.0)

    def _register_gauges(self, client_id: str) -> None:
        tags = (("clientId", client_id),)
        gauges: dict[str, Callable[[], float]] = {
            "MaxLag": lambda: self.max_lag,
            "MinFetchRate": lambda: self.min_fetch_rate,
            "FailedPartitionsCount": lambda: self.failed_partitions.size,
            "DeadThreadCount": lambda: self.dead_thread_count,
        }
        for name, value in gauges.items():
            self._runtime.metrics.new_gauge(MetricName(type(self).__name__, name, tags), value)


def _initial_states(
    leader: BrokerEndPoint, states: Iterable[tuple[TopicPartition, PartitionFetchState]]
) -> dict[TopicPartition, InitialFetchState]:
    return {
        partition: InitialFetchState(
            state.topic_id, leader, state.current_leader_epoch, state.fetch_offset
        )
        for partition, state in states
    }
