"""What a member measures of itself: names, windows, and what each event counts for."""

from __future__ import annotations

import math

import pytest

from impl.clock import MockClock
from impl.errors import Errors, IllegalArgumentException, KafkaException
from impl.group.client.consumer_config import RebalanceListener
from impl.group.client.coordinator_metrics import NEVER, metric
from impl.group.client.sensors import (
    HOUR_MS,
    SECOND_MS,
    WINDOW_MS,
    ClientMetrics,
    Cumulative,
    Rate,
    Statistic,
    average,
    maximum,
)
from impl.group.messages import HeartbeatResponse
from impl.types import TopicPartition
from tests.unit.impl.group_client.test_consumer_coordinator import OFFSETS, committed, stable
from tests.unit.impl.group_client.world import (
    MEMBER,
    ConsumerWorld,
    World,
    join_failed,
    joined,
    synced,
)

NAMES = """
assigned-partitions commit-latency-avg commit-latency-max commit-rate commit-total
failed-rebalance-rate-per-hour failed-rebalance-total heartbeat-rate heartbeat-response-time-max
heartbeat-total join-rate join-time-avg join-time-max join-total last-heartbeat-seconds-ago
last-rebalance-seconds-ago partition-assigned-latency-avg partition-assigned-latency-max
partition-lost-latency-avg partition-lost-latency-max partition-revoked-latency-avg
partition-revoked-latency-max rebalance-latency-avg rebalance-latency-max rebalance-latency-total
rebalance-rate-per-hour rebalance-total sync-rate sync-time-avg sync-time-max sync-total
"""
"""Kafka's documentation, consumer group metrics, without those of KIP-1094 and later."""


def test_a_consumer_has_the_metrics_that_kafka_documents() -> None:
    metrics = ConsumerWorld().consumer.metrics
    assert metrics.names() == {metric(name) for name in NAMES.split()}
    assert metrics.mbean(metric("join-rate")) == (
        "kafka.consumer:type=consumer-coordinator-metrics,client-id=consumer"
    )


@pytest.mark.parametrize(
    ("statistic", "nothing", "at_once", "next_window", "third_window", "forgotten"),
    [
        (average(), math.nan, 3.0, 5.0, 12.5, math.nan),
        (maximum(), math.nan, 4.0, 9.0, 35.0, math.nan),
        (Cumulative(counts=False), 0.0, 6.0, 15.0, 50.0, 50.0),
        (Cumulative(counts=True), 0.0, 2.0, 3.0, 4.0, 4.0),
        # Less than one whole window has passed: the rate is of one more.
        (Rate(SECOND_MS), 0.0, 2 / 30, 3 / 60, 4 / 60, 0.0),
        (Rate(HOUR_MS), 0.0, 240.0, 180.0, 240.0, 0.0),
    ],
)
def test_statistics_over_windows(
    statistic: Statistic,
    nothing: float,
    at_once: float,
    next_window: float,
    third_window: float,
    forgotten: float,
) -> None:
    def measured(now_ms: int) -> float:
        return statistic.measure(now_ms)

    assert measured(0) == pytest.approx(nothing, nan_ok=True)
    statistic.record(2.0, 0)
    statistic.record(4.0, 0)
    assert measured(0) == pytest.approx(at_once)
    statistic.record(9.0, WINDOW_MS + 29_999)
    # The window before it is looked at until nothing was recorded in it for two windows.
    assert measured(WINDOW_MS + 29_999) == pytest.approx(next_window, abs=0.01)
    statistic.record(35.0, 2 * WINDOW_MS - 1)
    assert measured(2 * WINDOW_MS - 1) == pytest.approx(third_window, abs=0.01)
    assert measured(9 * WINDOW_MS) == pytest.approx(forgotten, nan_ok=True)


def test_windows_that_are_over_are_used_again() -> None:
    largest = maximum()
    for window in range(6):
        largest.record(100.0 - window, window * WINDOW_MS)
    # Three are kept: the open one, the one before, and one that overlaps both of them.
    assert largest.measure(5 * WINDOW_MS) == 96.0
    assert largest.measure(6 * WINDOW_MS) == 95.0


def test_a_name_is_given_once() -> None:
    metrics = ClientMetrics(MockClock(), "one")
    metrics.sensor({metric("a"): average()})
    with pytest.raises(IllegalArgumentException, match="already exists"):
        metrics.sensor({metric("a"): maximum()})


def test_a_rebalance_is_timed_from_its_first_join() -> None:
    world = World()
    measured = world.member.metrics.value
    assert measured(metric("last-rebalance-seconds-ago")) == NEVER
    world.know_coordinator()
    assert not world.member.ensure_active_group(world.timer(0))
    world.clock.sleep(100)
    world.answer(join_failed(Errors.MEMBER_ID_REQUIRED, MEMBER))
    assert not world.member.ensure_active_group(world.timer(0))
    world.clock.sleep(300)
    world.answer(joined())
    world.clock.sleep(200)
    world.answer(synced())
    assert measured(metric("join-time-max")) == 300
    assert measured(metric("sync-time-avg")) == 200
    assert measured(metric("rebalance-latency-total")) == 600
    assert measured(metric("rebalance-total")) == 1
    assert measured(metric("failed-rebalance-total")) == 1
    world.clock.sleep(7_900)
    assert measured(metric("last-rebalance-seconds-ago")) == 7


@pytest.mark.parametrize("error", [Errors.NONE, Errors.REBALANCE_IN_PROGRESS])
def test_a_heartbeat_is_timed_whatever_is_answered(error: Errors) -> None:
    world = World()
    world.join()
    measured = world.member.metrics.value
    assert measured(metric("last-heartbeat-seconds-ago")) == NEVER
    world.clock.sleep(world.config.heartbeat_interval_ms)
    assert world.beat()
    world.network.poll_no_wakeup()
    world.clock.sleep(1_500)
    world.answer(HeartbeatResponse(error))
    assert measured(metric("heartbeat-response-time-max")) == 1_500
    assert measured(metric("heartbeat-total")) == 1
    assert measured(metric("last-heartbeat-seconds-ago")) == 1


def test_an_answer_of_another_kind_of_group_is_no_join() -> None:
    world = World()
    world.know_coordinator()
    assert not world.member.ensure_active_group(world.timer(0))
    world.answer(joined(protocol_type="other"))
    assert world.member.metrics.value(metric("join-total")) == 0
    assert world.member.metrics.value(metric("failed-rebalance-total")) == 1


def test_a_commit_is_timed_whatever_is_answered() -> None:
    world = stable(ConsumerWorld(auto_commit=False))
    world.consumer.send_offset_commit_request(OFFSETS)
    world.network.poll_no_wakeup()
    world.clock.sleep(70)
    world.answer(committed(Errors.OFFSET_METADATA_TOO_LARGE))
    measured = world.consumer.metrics.value
    assert (measured(metric("commit-latency-avg")), measured(metric("commit-total"))) == (70, 1)


def test_the_applications_callbacks_are_timed_unless_they_raise() -> None:
    def fail(_partitions: frozenset[TopicPartition]) -> None:
        raise ValueError

    world = ConsumerWorld(
        listener=RebalanceListener(
            on_partitions_assigned=fail,
            on_partitions_revoked=lambda _: world.clock.sleep(40),
        ),
        auto_commit=False,
    )
    measured = world.consumer.metrics.value
    with pytest.raises(KafkaException, match="callback throws"):
        stable(world)
    assert measured(metric("assigned-partitions")) == 1
    assert math.isnan(measured(metric("partition-assigned-latency-max")))
    assert world.consumer.on_join_prepare(world.timer(0), 3, "member")
    assert measured(metric("partition-revoked-latency-max")) == 40
    assert math.isnan(measured(metric("partition-lost-latency-max")))
    assert measured(metric("assigned-partitions")) == 0
