"""Gauges and meters in a registry that is passed in; rates follow the injected clock."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from .clock import Clock
from .types import TopicPartition

Tags = tuple[tuple[str, str], ...]
"""Names and values of tags, in the order in which Kafka writes them."""

_TICK_MS = 5_000
_PLAIN_TAG = re.compile(r"[\w\-%. \t]*", re.ASCII)
_JMX_SPECIAL = re.compile(r'[\\"*?]')
_ONE_MINUTE_ALPHA = 1 - math.exp(-_TICK_MS / 60_000)


class MetricName(NamedTuple):
    """A metric's identity within a registry: `type` is the class whose metric it is in Kafka."""

    type: str
    name: str
    tags: Tags = ()

    @property
    def mbean(self) -> str:
        """As Kafka registers it with JMX (KafkaMetricsGroup.metricName); values are sanitized."""
        tags = "".join(f",{tag}={_sanitized(value)}" for tag, value in self.tags if value)
        return f"kafka.server:type={self.type},name={self.name}{tags}"


def _sanitized(value: str) -> str:
    """A tag's value, quoted if JMX would misread it (Sanitizer.jmxSanitize)."""
    if _PLAIN_TAG.fullmatch(value):
        return value
    return f'"{_JMX_SPECIAL.sub(_escaped, value)}"'


def _escaped(special: re.Match[str]) -> str:
    return f"\\{special.group()}"


class Meter:
    """Counts events; its rate is a one-minute exponentially weighted average, ticking every 5 s.

    Source: com.yammer.metrics.core.Meter. Not synchronized: one thread marks.
    """

    __slots__ = ("_clock", "_last_tick_ms", "_rate", "_uncounted", "count")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_tick_ms = clock.milliseconds()
        self._rate: float | None = None
        self._uncounted = 0
        self.count = 0

    def mark(self, n: int = 1) -> None:
        """Count `n` events now."""
        self._tick_if_necessary()
        self.count += n
        self._uncounted += n

    @property
    def one_minute_rate(self) -> float:
        """Events per second; 0 before the first tick."""
        self._tick_if_necessary()
        return 0.0 if self._rate is None else self._rate

    def _tick_if_necessary(self) -> None:
        ticks = (self._clock.milliseconds() - self._last_tick_ms) // _TICK_MS
        if ticks > 0:
            self._last_tick_ms += ticks * _TICK_MS
            self._tick(ticks)

    def _tick(self, ticks: int) -> None:
        instant = self._uncounted * 1000 / _TICK_MS
        self._uncounted = 0
        rate = self._rate
        rate = instant if rate is None else rate + _ONE_MINUTE_ALPHA * (instant - rate)
        self._rate = rate * math.pow(1 - _ONE_MINUTE_ALPHA, ticks - 1)


class Gauge(NamedTuple):
    """A value computed when it is read."""

    value: Callable[[], float]


class MetricsRegistry:
    """All metrics of one broker, by name and tags."""

    __slots__ = ("_clock", "_metrics")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._metrics: dict[MetricName, Gauge | Meter] = {}

    def new_gauge(self, name: MetricName, value: Callable[[], float]) -> None:
        """Register a gauge; a gauge of the same name is replaced."""
        self._metrics[name] = Gauge(value)

    def new_meter(self, name: MetricName) -> Meter:
        """The meter of that name, made if absent. Raises TypeError if the name is a gauge's."""
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = Meter(self._clock)
        if not isinstance(metric, Meter):
            raise TypeError(f"{name} is a gauge")
        return metric

    def remove(self, name: MetricName) -> None:
        """Forget a metric; an unknown one is ignored."""
        self._metrics.pop(name, None)

    def names(self) -> frozenset[MetricName]:
        """The registered metrics."""
        return frozenset(self._metrics)

    def value(self, name: MetricName) -> float:
        """A gauge's value or a meter's count. Raises KeyError for an unknown metric."""
        metric = self._metrics[name]
        return metric.count if isinstance(metric, Meter) else metric.value()


class FetcherStats:
    """Meters of one fetcher thread: BytesPerSec and RequestsPerSec (FetcherStats)."""

    __slots__ = ("_bytes", "_registry", "_requests", "byte_rate", "request_rate")

    def __init__(self, registry: MetricsRegistry, client_id: str, host: str, port: int) -> None:
        tags = (("clientId", client_id), ("brokerHost", host), ("brokerPort", str(port)))
        self._registry = registry
        self._bytes = MetricName("FetcherStats", "BytesPerSec", tags)
        self._requests = MetricName("FetcherStats", "RequestsPerSec", tags)
        self.byte_rate = registry.new_meter(self._bytes)
        self.request_rate = registry.new_meter(self._requests)

    def unregister(self) -> None:
        """Remove both meters from the registry."""
        self._registry.remove(self._bytes)
        self._registry.remove(self._requests)


class FetcherLagStats:
    """ConsumerLag gauges of one fetcher thread, one per partition (FetcherLagStats).

    A gauge is registered by the partition's first `set_lag`; a gauge without a lag shows -1.
    """

    __slots__ = ("_client_id", "_lags", "_registry")

    def __init__(self, registry: MetricsRegistry, client_id: str) -> None:
        self._registry = registry
        self._client_id = client_id
        self._lags: dict[TopicPartition, int] = {}

    def set_lag(self, partition: TopicPartition, lag: int) -> None:
        """Set the number of records that the follower lacks."""
        if partition not in self._lags:
            self._register(partition)
        self._lags[partition] = lag

    def lag(self, partition: TopicPartition) -> int | None:
        """The gauge's value, None if there is no gauge."""
        return self._lags.get(partition)

    def max_lag(self) -> int:
        """The greatest lag, at least 0."""
        return max(0, max(self._lags.values(), default=0))

    def unregister(self, partition: TopicPartition) -> None:
        """Remove the partition's gauge."""
        if self._lags.pop(partition, None) is not None:
            self._registry.remove(self._name(partition))

    def unregister_all(self) -> None:
        """Remove every gauge of this thread."""
        for partition in tuple(self._lags):
            self.unregister(partition)

    def _register(self, partition: TopicPartition) -> None:
        lags = self._lags
        self._registry.new_gauge(self._name(partition), lambda: float(lags.get(partition, -1)))

    def _name(self, partition: TopicPartition) -> MetricName:
        topic, number = partition
        tags = (("clientId", self._client_id), ("topic", topic), ("partition", str(number)))
        return MetricName("FetcherLagMetrics", "ConsumerLag", tags)


class BrokerTopicStats:
    """Bytes that replication brought in, broker-wide (BrokerTopicStats)."""

    __slots__ = ("reassignment_bytes_in", "replication_bytes_in")

    def __init__(self, registry: MetricsRegistry) -> None:
        self.replication_bytes_in = registry.new_meter(_topic_metric("ReplicationBytesInPerSec"))
        self.reassignment_bytes_in = registry.new_meter(_topic_metric("ReassignmentBytesInPerSec"))


def _topic_metric(name: str) -> MetricName:
    return MetricName("BrokerTopicMetrics", name)


class IsrStats:
    """Meters of a broker's ISR changes, as the controller has answered (ReplicaManager)."""

    __slots__ = ("_expands", "_failed", "_shrinks")

    def __init__(self, registry: MetricsRegistry) -> None:
        self._expands = registry.new_meter(MetricName("ReplicaManager", "IsrExpandsPerSec"))
        self._shrinks = registry.new_meter(MetricName("ReplicaManager", "IsrShrinksPerSec"))
        self._failed = registry.new_meter(MetricName("ReplicaManager", "FailedIsrUpdatesPerSec"))

    def mark_isr_expand(self) -> None:
        """A follower has joined."""
        self._expands.mark()

    def mark_isr_shrink(self) -> None:
        """Followers have been dropped."""
        self._shrinks.mark()

    def mark_failed(self) -> None:
        """The controller refused, or answered what is out of date."""
        self._failed.mark()
