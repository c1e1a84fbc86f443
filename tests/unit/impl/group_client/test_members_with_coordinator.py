"""Consumers against the real group coordinator: in one thread, and in real ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from impl.clock import Clock, MockClock, SystemClock
from impl.concurrency import Concurrency, NoConcurrency, RealConcurrency
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.group.client.assignors.assignor import PartitionAssignor
from impl.group.client.assignors.range import RangeAssignor
from impl.group.client.assignors.round_robin import RoundRobinAssignor
from impl.group.client.assignors.sticky import StickyAssignor
from impl.group.client.config import GroupRebalanceConfig, MemberRuntime
from impl.group.client.consumer_config import ConsumerConfig
from impl.group.client.consumer_coordinator import ConsumerCoordinator
from impl.group.client.generation import MemberState
from impl.group.client.network_client import ClientRequest, ConsumerNetworkClient, GroupResponse
from impl.group.client.subscription_state import OffsetAndMetadata, SubscriptionState
from impl.group.client.timer import Timer
from impl.group.config import GroupConfig
from impl.group.group_coordinator import GroupCoordinator, seeded_ids
from impl.group.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from impl.group.offsets_topic import LocalOffsetsTopic
from impl.scheduler import ImmediateScheduler
from impl.types import BrokerEndPoint, TopicPartition

NODE = BrokerEndPoint(0)
CONFIG = GroupRebalanceConfig("group", session_timeout_ms=10_000, rebalance_timeout_ms=20_000)
COUNTS = {"t": 6}


class Broker:
    """A broker in this process: requests are calls, answers are callbacks."""

    def __init__(self, clock: Clock, concurrency: Concurrency, initial_delay_ms: int) -> None:
        topic = LocalOffsetsTopic(MemoryDisk(), ImmediateScheduler(), concurrency, 1)
        self.coordinator = GroupCoordinator(
            topic,
            clock,
            unique_id=seeded_ids(0),
            config=GroupConfig(
                group_min_session_timeout_ms=10, group_initial_rebalance_delay_ms=initial_delay_ms
            ),
            concurrency=concurrency,
        )
        self.coordinator.startup()
        self.coordinator.on_election(0, 0)

    def handle(self, request: object, answer: Callable[[GroupResponse], None]) -> None:
        coordinator = self.coordinator
        match request:
            case FindCoordinatorRequest():
                answer(FindCoordinatorResponse(Errors.NONE, NODE))
            case JoinGroupRequest():
                coordinator.handle_join_group(request, answer)
            case SyncGroupRequest():
                coordinator.handle_sync_group(request, answer)
            case HeartbeatRequest():
                coordinator.handle_heartbeat(request, answer)
            case LeaveGroupRequest():
                coordinator.handle_leave_group(request, answer)
            case OffsetCommitRequest():
                coordinator.handle_commit_offsets(request, answer)
            case OffsetFetchRequest():
                answer(coordinator.handle_fetch_offsets(request))
            case _:
                raise AssertionError(f"no handler for {request}")


class LocalTransport:
    """Carries requests to the broker in the sender's thread."""

    def __init__(self, broker: Broker, idle: Callable[[int], None]) -> None:
        self._broker = broker
        self._idle = idle
        self.network: ConsumerNetworkClient | None = None

    def least_loaded_node(self) -> BrokerEndPoint | None:
        return NODE

    def connection_failed(self, node: BrokerEndPoint) -> bool:
        return False

    def try_connect(self, node: BrokerEndPoint) -> None:
        pass

    def send(self, request: ClientRequest) -> None:
        network = self.network
        assert network is not None
        self._broker.handle(request.request, lambda response: network.respond(request, response))

    def update_metadata(self) -> None:
        pass

    def idle(self, timeout_ms: int) -> None:
        self._idle(timeout_ms)


class Consumer:
    """A consumer of topic `t`."""

    def __init__(
        self,
        broker: Broker,
        assignor: PartitionAssignor,
        clock: Clock,
        concurrency: Concurrency,
        idle: Callable[[int], None] = lambda _ms: None,
        config: GroupRebalanceConfig = CONFIG,
    ) -> None:
        transport = LocalTransport(broker, idle)
        network = ConsumerNetworkClient(transport, clock, concurrency)
        transport.network = network
        self.clock = clock
        self.subscriptions = SubscriptionState()
        self.subscriptions.subscribe(COUNTS)
        self.coordinator = ConsumerCoordinator(
            config,
            ConsumerConfig((assignor,)),
            network,
            MemberRuntime(clock, concurrency),
            self.subscriptions,
            lambda: COUNTS,
        )

    def poll(self, ms: int = 0) -> bool:
        return self.coordinator.poll(Timer(self.clock, ms))

    def beat(self) -> None:
        if self.coordinator.heartbeat_thread is not None:
            self.coordinator.heartbeat_thread.run_once()

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return self.subscriptions.assigned_partitions


class Cluster:
    """One broker and some consumers, stepped in turn by one thread."""

    def __init__(self, assignor: type[PartitionAssignor]) -> None:
        self.clock = MockClock()
        self.broker = Broker(self.clock, NoConcurrency(), initial_delay_ms=0)
        self.assignor = assignor
        self.consumers: list[Consumer] = []

    def start(self, instance: str | None = None) -> Consumer:
        config = replace(CONFIG, group_instance_id=instance)
        consumer = Consumer(
            self.broker, self.assignor(), self.clock, NoConcurrency(), config=config
        )
        self.consumers.append(consumer)
        return consumer

    def run(self, ms: int) -> None:
        """Let time pass in steps of 100 ms; every consumer polls and beats in each."""
        for _ in range(ms // 100):
            self.clock.sleep(100)
            self.broker.coordinator.expire_due()
            for consumer in self.consumers:
                consumer.poll()
                consumer.beat()

    def shares(self) -> list[int]:
        owned = [tp for consumer in self.consumers for tp in consumer.owned]
        assert len(owned) == len(set(owned)), "a partition has two owners"
        return sorted(len(consumer.owned) for consumer in self.consumers)


ASSIGNORS = [RangeAssignor, RoundRobinAssignor, StickyAssignor]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_members_come_and_go(assignor: type[PartitionAssignor]) -> None:
    cluster = Cluster(assignor)
    first = cluster.start()
    cluster.run(2_000)
    assert cluster.shares() == [6]
    cluster.start()
    cluster.start()
    cluster.run(10_000)
    assert cluster.shares() == [2, 2, 2]
    cluster.consumers.remove(first)
    first.coordinator.close(Timer(cluster.clock, 0))
    cluster.run(10_000)
    assert cluster.shares() == [3, 3]


def test_a_member_that_dies_is_put_out_after_its_session() -> None:
    cluster = Cluster(RangeAssignor)
    dead, _ = cluster.start(), cluster.start()
    cluster.run(10_000)
    assert cluster.shares() == [3, 3]
    cluster.consumers.remove(dead)
    cluster.run(2_000)
    assert cluster.shares() == [3]
    cluster.run(20_000)
    assert cluster.shares() == [6]


def test_a_static_member_comes_back_to_its_partitions() -> None:
    cluster = Cluster(RangeAssignor)
    old, other = cluster.start("i1"), cluster.start("i2")
    cluster.run(10_000)
    generation_id = other.coordinator.generation.generation_id
    owned = old.owned
    cluster.consumers.remove(old)
    new = cluster.start("i1")
    cluster.run(5_000)
    assert new.owned == owned
    assert other.coordinator.generation.generation_id == generation_id


def test_positions_outlive_their_consumer() -> None:
    cluster = Cluster(RangeAssignor)
    consumer = cluster.start()
    cluster.run(2_000)
    tp = TopicPartition("t", 0)
    consumer.subscriptions.seek(tp, 42)
    cluster.run(6_000)
    heir = cluster.start()
    cluster.run(10_000)
    committed = heir.coordinator.fetch_committed_offsets([tp], Timer(cluster.clock, 100))
    assert committed == {tp: OffsetAndMetadata(42)}


def test_consumers_in_real_threads_share_the_partitions() -> None:
    clock, concurrency = SystemClock(), RealConcurrency()
    broker = Broker(clock, concurrency, initial_delay_ms=10)
    config = replace(CONFIG, heartbeat_interval_ms=50, retry_backoff_ms=10)
    consumers = [
        Consumer(broker, StickyAssignor(), clock, concurrency, config=config) for _ in range(3)
    ]
    stop = threading.Event()
    failures: list[Exception] = []

    def consume(consumer: Consumer) -> None:
        try:
            while not stop.is_set():
                consumer.poll(50)
                time.sleep(0.005)
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=consume, args=(c,), daemon=True) for c in consumers]
    for thread in threads:
        thread.start()
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up and not failures and not settled(consumers):
        time.sleep(0.02)
    stop.set()
    for thread in threads:
        thread.join(10)
    assert failures == []
    assert sorted(len(consumer.owned) for consumer in consumers) == [2, 2, 2]
    for consumer in consumers:
        consumer.coordinator.close(Timer(clock, 1_000))
    broker.coordinator.shutdown()


def settled(consumers: list[Consumer]) -> bool:
    generations = {consumer.coordinator.generation.generation_id for consumer in consumers}
    states = {consumer.coordinator.state for consumer in consumers}
    shares = [len(consumer.owned) for consumer in consumers]
    return states == {MemberState.STABLE} and len(generations) == 1 and shares == [2, 2, 2]
