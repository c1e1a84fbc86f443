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


def logs_agree(cluster: Cluster) -> bool:
    """Whether all logs have the same batches.

    Ends do not say it: before a follower truncates, a record of an earlier epoch may stand where
    the new leader has another one.
    """
    first, *others = (cluster.log(broker).batches() for broker in cluster.brokers)
    return all(other == first for other in others)


def wait_until_equal(cluster: Cluster) -> None:
    """Until the followers have the leader's log."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if logs_agree(cluster):
            return
        time.sleep(0.005)
    raise AssertionError("the followers did not catch up")


def test_logs_of_the_same_length_may_differ_until_a_follower_truncates() -> None:
    cluster = Cluster(3)
    cluster.elect(0, (0, 1, 2))
    cluster.append(0)
    cluster.elect(1, (0, 1, 2))
    cluster.append(1)
    assert cluster.log(0).log_end_offset == cluster.log(1).log_end_offset
    assert not logs_agree(cluster)
    cluster.settle()
    assert logs_agree(cluster)


def test_logs_agree_after_appends_during_elections() -> None:
    cluster = Cluster(3, clock=SystemClock(), concurrency=RealConcurrency(), idle_wait_ms=2)
    cluster.elect(0, (0, 1, 2))
    refused = threading.Event()

    def append_to(broker: int) -> None:
        for _ in range(30):
            try:
                cluster.append(broker)
            except ApiException:
                refused.set()  # it does not lead now
            time.sleep(0.0005)

    writers = [threading.Thread(target=append_to, args=(broker,)) for broker in (0, 1)]
    for writer in writers:
        writer.start()
    assert refused.wait(PATIENCE_S)
    for leader in (1, 0, 1, 2):
        wait_until_equal(cluster)
        cluster.elect(leader, (0, 1, 2))
    for writer in writers:
        writer.join(PATIENCE_S)
    cluster.append(2)
    wait_until_equal(cluster)
    for broker in cluster.brokers.values():
        broker.fetcher_manager.shutdown()

    assert logs_agree(cluster)
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
    wait_until_equal(cluster)
    for broker in cluster.brokers.values():
        broker.fetcher_manager.shutdown()
    for waiting in cluster.waiting.values():
        waiting.shutdown()
