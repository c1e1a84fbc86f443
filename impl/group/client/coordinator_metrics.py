"""What a member of a group measures of itself, with Kafka's names.

Source: AbstractCoordinator.GroupCoordinatorMetrics, ConsumerCoordinatorMetrics and
RebalanceCallbackMetricsManager; KIP-429 for the callbacks, KAFKA-8730 and KIP-447 for rebalances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .sensors import (
    HOUR_MS,
    SECOND_MS,
    ClientMetrics,
    Cumulative,
    MetricName,
    Rate,
    Sensor,
    Statistic,
    average,
    maximum,
)

GROUP = "consumer-coordinator-metrics"
NEVER = -1.0


def metric(name: str) -> MetricName:
    """A metric of a consumer's coordinator by its name."""
    return MetricName(name, GROUP)


class Measured(Protocol):
    """What a member is asked for when a gauge is read."""

    @property
    def last_rebalance_end_ms(self) -> int | None: ...

    @property
    def last_heartbeat_send_ms(self) -> int | None: ...


class GroupCoordinatorMetrics:
    """Sensors of requests to the coordinator and of rebalances; values are latencies in ms."""

    __slots__ = ("failed_rebalance", "heartbeat", "join", "successful_rebalance", "sync")

    def __init__(self, metrics: ClientMetrics, member: Measured) -> None:
        self.heartbeat = metrics.sensor(
            {metric("heartbeat-response-time-max"): maximum(), **_meter("heartbeat")}
        )
        self.join = metrics.sensor({**_latency("join-time"), **_meter("join")})
        self.sync = metrics.sensor({**_latency("sync-time"), **_meter("sync")})
        self.successful_rebalance = metrics.sensor(
            {
                **_latency("rebalance-latency"),
                metric("rebalance-latency-total"): Cumulative(counts=False),
                **_hourly("rebalance"),
            }
        )
        self.failed_rebalance = metrics.sensor(_hourly("failed-rebalance"))
        metrics.add_metric(
            metric("last-rebalance-seconds-ago"),
            lambda now_ms: _seconds_ago(member.last_rebalance_end_ms, now_ms),
        )
        metrics.add_metric(
            metric("last-heartbeat-seconds-ago"),
            lambda now_ms: _seconds_ago(member.last_heartbeat_send_ms, now_ms),
        )


class ConsumerCoordinatorMetrics:
    """Sensors of commits and of the application's callbacks; values are latencies in ms."""

    __slots__ = ("commit", "partitions_assigned", "partitions_lost", "partitions_revoked")

    def __init__(self, metrics: ClientMetrics, assigned: Callable[[], int]) -> None:
        self.commit = metrics.sensor({**_latency("commit-latency"), **_meter("commit")})
        self.partitions_assigned = _callback(metrics, "assigned")
        self.partitions_revoked = _callback(metrics, "revoked")
        self.partitions_lost = _callback(metrics, "lost")
        metrics.add_metric(metric("assigned-partitions"), lambda _now_ms: assigned())


def _callback(metrics: ClientMetrics, what: str) -> Sensor:
    return metrics.sensor(_latency(f"partition-{what}-latency"))


def _latency(name: str) -> dict[MetricName, Statistic]:
    return {metric(f"{name}-avg"): average(), metric(f"{name}-max"): maximum()}


def _meter(name: str) -> dict[MetricName, Statistic]:
    """How often, per second and in all (createMeter)."""
    return {
        metric(f"{name}-rate"): Rate(SECOND_MS),
        metric(f"{name}-total"): Cumulative(counts=True),
    }


def _hourly(name: str) -> dict[MetricName, Statistic]:
    return {
        metric(f"{name}-rate-per-hour"): Rate(HOUR_MS),
        metric(f"{name}-total"): Cumulative(counts=True),
    }


def _seconds_ago(then_ms: int | None, now_ms: int) -> float:
    return NEVER if then_ms is None else (now_ms - then_ms) // SECOND_MS
