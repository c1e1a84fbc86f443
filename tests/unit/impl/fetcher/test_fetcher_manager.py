"""Kafka's AbstractFetcherManagerTest: which thread owns a partition, and how a pool is resized."""

from __future__ import annotations

import pytest

from impl.clock import MockClock
from impl.concurrency import Concurrency, NoConcurrency
from impl.deterministic_scheduler import DeterministicScheduler
from impl.fetcher.abstract_fetcher_manager import (
    AbstractFetcherManager,
    BrokerIdAndFetcherId,
    java_string_hash,
)
from impl.fetcher.abstract_fetcher_thread import FetcherRuntime
from impl.fetcher.state import ReplicaState
from impl.metrics import MetricName, MetricsRegistry
from impl.types import BrokerEndPoint, InitialFetchState, TopicPartition
from tests.unit.impl.fetcher.doubles import MockFetcher, MockLeader

TP = TopicPartition("topic", 0)
TAGS = (("clientId", "client"),)


class LeaderAt(MockLeader):
    """A mock leader with an address of its own."""

    def __init__(self, end_point: BrokerEndPoint, clock: MockClock) -> None:
        super().__init__(truncate_on_fetch=False, clock=clock)
        self.end_point = end_point

    def broker_end_point(self) -> BrokerEndPoint:
        return self.end_point


class Manager(AbstractFetcherManager[MockFetcher]):
    """Makes mock fetchers and remembers them, also those that were shut down."""

    def __init__(self, num_fetchers: int, concurrency: Concurrency | None = None) -> None:
        self.clock = MockClock()
        self.metrics = MetricsRegistry(self.clock)
        self.made: list[MockFetcher] = []
        runtime = FetcherRuntime(self.clock, concurrency or NoConcurrency(), self.metrics)
        super().__init__("manager", "client", num_fetchers, runtime)

    def create_fetcher_thread(self, fetcher_id: int, source_broker: BrokerEndPoint) -> MockFetcher:
        leader = LeaderAt(source_broker, self.clock)
        thread = MockFetcher(leader, self.failed_partitions, self._runtime, 0)
        thread.name = f"fetcher-{source_broker.id}-{fetcher_id}"
        self.made.append(thread)
        return thread

    def follow(self, tp: TopicPartition, leader: BrokerEndPoint, offset: int, epoch: int) -> None:
        self.add_fetcher_for_partitions({tp: InitialFetchState(None, leader, epoch, offset)})

    def gauge(self, name: str) -> float:
        return self.metrics.value(MetricName("Manager", name, TAGS))


def test_m01_add_and_remove_a_partition() -> None:
    manager = Manager(1)
    manager.follow(TP, BrokerEndPoint(0), offset=10, epoch=15)
    thread = manager.get_fetcher(TP)
    assert thread is not None
    assert manager.made == [thread]
    removed = manager.remove_fetcher_for_partitions((TP,))
    assert [(s.fetch_offset, s.current_leader_epoch) for s in removed.values()] == [(10, 15)]
    assert manager.get_fetcher(TP) is None


def test_m03_dead_threads_are_counted() -> None:
    scheduler = DeterministicScheduler()
    manager = Manager(1, scheduler)
    manager.follow(TP, BrokerEndPoint(0), offset=0, epoch=0)
    assert manager.gauge("DeadThreadCount") == 0
    # The mock follower has no log for the partition, which no handler expects.
    with pytest.raises(Exception, match="finished"):
        scheduler.run_until("mock-fetcher", "never")
    assert manager.gauge("DeadThreadCount") == 1
    manager.close_all_fetchers()
    assert manager.gauge("DeadThreadCount") == 0


@pytest.mark.parametrize(("before", "after"), [(10, 50), (50, 10)], ids=["expand", "shrink"])
def test_m05_resizing_moves_every_partition_to_its_new_thread(before: int, after: int) -> None:
    manager = Manager(before)
    leaders = {i: BrokerEndPoint(i, "localhost", 9092 + i) for i in range(6)}
    partitions = {
        TopicPartition(f"topic_{t}", p): leaders[(t * 100 + p) % 6]
        for t in range(10)
        for p in range(100)
    }
    manager.add_fetcher_for_partitions(
        {tp: InitialFetchState(None, leader, 0, 0) for tp, leader in partitions.items()}
    )
    for tp in list(partitions)[:20]:
        manager.add_failed_partition(tp)
    failed_outside = {TopicPartition("unknown_topic", p) for p in range(10)}
    for tp in failed_outside:
        manager.add_failed_partition(tp)

    manager.resize_thread_pool(after)
    owners: dict[TopicPartition, list[BrokerIdAndFetcherId]] = {}
    for key, thread in manager.fetcher_threads().items():
        assert thread.partition_count > 0
        for tp in thread.partitions():
            owners.setdefault(tp, []).append(key)
    assert owners == {
        tp: [BrokerIdAndFetcherId(leader.id, manager.get_fetcher_id(tp))]
        for tp, leader in partitions.items()
    }
    assert manager.failed_partitions.partitions() == failed_outside
    running = {thread.name for thread in manager.made if thread.is_running}
    assert running == {thread.name for thread in manager.fetcher_threads().values()}


def test_resizing_makes_partitions_truncate_again_from_where_they_were() -> None:
    manager = Manager(1)
    manager.follow(TP, BrokerEndPoint(0), offset=7, epoch=3)
    manager.resize_thread_pool(2)
    thread = manager.get_fetcher(TP)
    assert thread is not None
    state = thread.fetch_state(TP)
    assert state is not None
    assert (state.fetch_offset, state.current_leader_epoch) == (7, 3)
    assert state.state is ReplicaState.TRUNCATING


def test_leader_with_a_new_address_gets_a_new_thread() -> None:
    manager = Manager(1)
    manager.follow(TP, BrokerEndPoint(0, "old"), offset=0, epoch=0)
    other = TopicPartition("topic", 1)
    manager.follow(other, BrokerEndPoint(0, "old"), offset=0, epoch=0)
    assert len(manager.made) == 1
    manager.follow(TP, BrokerEndPoint(0, "new"), offset=0, epoch=1)
    old, new = manager.made
    assert not old.is_running
    assert new.is_running
    assert manager.get_fetcher(TP) is new


def test_truncation_is_passed_on_to_the_owner_only() -> None:
    manager = Manager(3)
    manager.follow(TP, BrokerEndPoint(0), offset=5, epoch=0)
    manager.mark_partitions_for_truncation(1, TP, 2)
    thread = manager.get_fetcher(TP)
    assert thread is not None
    before = thread.fetch_state(TP)
    manager.mark_partitions_for_truncation(0, TP, 2)
    after = thread.fetch_state(TP)
    assert before is not None
    assert after is not None
    assert (before.fetch_offset, after.fetch_offset) == (5, 2)


def test_topic_ids_reach_the_owner() -> None:
    manager = Manager(3)
    manager.follow(TP, BrokerEndPoint(0), offset=5, epoch=0)
    unknown = TopicPartition("unknown", 0)
    manager.maybe_update_topic_ids({TP: 0, unknown: 4}, lambda topic: f"id of {topic}")
    thread = manager.get_fetcher(TP)
    assert thread is not None
    state = thread.fetch_state(TP)
    assert state is not None
    assert state.topic_id == "id of topic"


def test_gauges_show_the_worst_of_all_threads() -> None:
    manager = Manager(1)
    assert manager.gauge("MinFetchRate") == 0
    for broker_id, lag in ((0, 3), (1, 8)):
        tp = TopicPartition("topic", broker_id)
        manager.follow(tp, BrokerEndPoint(broker_id, f"host{broker_id}"), offset=0, epoch=0)
        thread = manager.made[-1]
        thread.fetcher_lag_stats.set_lag(tp, lag)
        thread.fetcher_stats.request_rate.mark(10 * (broker_id + 1))
    manager.clock.sleep(5_000)
    assert manager.gauge("MaxLag") == 8
    assert manager.gauge("MinFetchRate") == pytest.approx(2.0)
    manager.add_failed_partition(TP)
    assert manager.gauge("FailedPartitionsCount") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("topic", 110546223),
        ("__consumer_offsets", -970371369),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_java_string_hash(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


def test_fetcher_id_overflows_like_a_java_int() -> None:
    manager = Manager(7)
    # 31 * -2147483648 wraps to -2147483648, whose absolute value Kafka takes to be 0.
    assert manager.get_fetcher_id(TopicPartition("polygenelubricants", 0)) == 0
    assert manager.get_fetcher_id(TopicPartition("polygenelubricants", 1)) == (2**31 - 1) % 7
