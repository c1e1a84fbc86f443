"""Whole brokers with real threads: appends, elections and fetchers at the same time."""

from __future__ import annotations

import threading
import time

from impl.clock import SystemClock
from impl.concurrency import RealConcurrency
from impl.delayed.delayed_produce import ProducePartitionResponse
from impl.errors import ApiException, Errors
from impl.types import TopicPartition
from tests.unit.impl.brokers import TP, records
from tests.unit.impl.cluster import Cluster

PATIENCE_S = 30.0


def wait_until_equal(cluster: Cluster, leader: int) -> None:
    """Until all logs end where the leader's does."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        ends = {cluster.log(broker).log_end_offset for broker in cluster.brokers}
        if ends == {cluster.log(leader).log_end_offset}:
            return
        time.sleep(0.005)
    raise AssertionError("the followers did not catch up")


def test_logs_agree_after_appends_during_elections() -> None:
    cluster = Cluster(3, clock=SystemClock(), concurrency=RealConcurrency(), idle_wait_ms=2)
    cluster.elect(0, (0, 1, 2))
    refused: list[int] = []

    def append_to(broker: int) -> None:
        for _ in range(30):
            try:
                cluster.append(broker)
            except ApiException:
                refused.append(broker)  # it does not lead now
            time.sleep(0.0005)

    writers = [threading.Thread(target=append_to, args=(broker,)) for broker in (0, 1)]
    for writer in writers:
        writer.start()
    for leader in (1, 0, 1, 2):
        wait_until_equal(cluster, cluster.epoch % 2)
        cluster.elect(leader, (0, 1, 2))
    for writer in writers:
        writer.join(PATIENCE_S)
    cluster.append(2)
    wait_until_equal(cluster, 2)
    for broker in cluster.brokers.values():
        broker.fetcher_manager.shutdown()

    logs = [cluster.log(broker).batches() for broker in (0, 1, 2)]
    assert logs[0] == logs[1] == logs[2]
    assert refused
    assert all(manager.dead_thread_count == 0 for manager in cluster.fetchers.values())
    assert not any(manager.failed_partitions.contains(TP) for manager in cluster.fetchers.values())


def test_acks_all_is_answered_by_followers_whose_fetches_wait_at_the_leader() -> None:
    cluster = Cluster(3, clock=SystemClock(), concurrency=RealConcurrency(), waits=True)
    cluster.elect(0, (0, 1, 2))
    answers: list[Errors] = []
    answered = threading.Event()

    def note(answer: dict[TopicPartition, ProducePartitionResponse]) -> None:
        answers.append(answer[TP].error)
        if len(answers) == 20:
            answered.set()

    for _ in range(20):
        cluster.waiting[0].append_records(cluster.brokers[0], 30_000, -1, {TP: records()}, note)
    assert answered.wait(PATIENCE_S)
    assert answers == [Errors.NONE] * 20
    assert cluster.log(0).high_watermark == 20
    wait_until_equal(cluster, 0)
    for broker in cluster.brokers.values():
        broker.fetcher_manager.shutdown()
    for waiting in cluster.waiting.values():
        waiting.shutdown()
