"""Meters and gauges on an injected clock."""

from __future__ import annotations

import math

import pytest

from impl.clock import MockClock
from impl.metrics import (
    BrokerTopicStats,
    FetcherLagStats,
    FetcherStats,
    Meter,
    MetricName,
    MetricsRegistry,
)
from impl.types import TopicPartition


def test_one_minute_rate_is_an_average_that_forgets() -> None:
    clock = MockClock()
    meter = Meter(clock)
    meter.mark(50)
    assert meter.one_minute_rate == 0, "nothing is known before the first tick"
    clock.sleep(5_000)
    assert meter.one_minute_rate == pytest.approx(10.0)
    clock.sleep(60_000)
    assert meter.one_minute_rate == pytest.approx(10.0 / math.e)
    assert meter.count == 50


def test_ticks_do_not_depend_on_when_the_rate_is_read() -> None:
    rates = []
    for naps in ([20_000], [5_000] * 4, [1] * 20_000):
        clock = MockClock()
        meter = Meter(clock)
        meter.mark(7)
        for nap in naps:
            clock.sleep(nap)
            rate = meter.one_minute_rate
        rates.append(rate)
    assert rates == pytest.approx([rates[0]] * 3)


def test_registry_knows_metrics_by_name_and_tags() -> None:
    registry = MetricsRegistry(MockClock())
    meter_name = MetricName("FetcherStats", "BytesPerSec", (("clientId", "a"),))
    gauge_name = MetricName("ReplicaFetcherManager", "MaxLag")
    meter = registry.new_meter(meter_name)
    registry.new_gauge(gauge_name, lambda: 4)
    assert registry.new_meter(meter_name) is meter
    meter.mark(3)
    assert (registry.value(meter_name), registry.value(gauge_name)) == (3, 4)
    with pytest.raises(TypeError, match="is a gauge"):
        registry.new_meter(gauge_name)
    registry.remove(gauge_name)
    registry.remove(gauge_name)
    assert registry.names() == {meter_name}
    with pytest.raises(KeyError):
        registry.value(gauge_name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            MetricName("ReplicaManager", "IsrShrinksPerSec"),
            "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec",
        ),
        (
            MetricName(
                "FetcherLagMetrics",
                "ConsumerLag",
                (("clientId", "ReplicaFetcherThread-0-1"), ("topic", "t.1"), ("partition", "0")),
            ),
            "kafka.server:type=FetcherLagMetrics,name=ConsumerLag,"
            "clientId=ReplicaFetcherThread-0-1,topic=t.1,partition=0",
        ),
        (
            MetricName("FetcherStats", "BytesPerSec", (("brokerHost", "::1"), ("clientId", ""))),
            'kafka.server:type=FetcherStats,name=BytesPerSec,brokerHost="::1"',
        ),
        (
            MetricName("FetcherStats", "BytesPerSec", (("clientId", 'a*b"c'),)),
            'kafka.server:type=FetcherStats,name=BytesPerSec,clientId="a\\*b\\"c"',
        ),
    ],
)
def test_names_are_those_of_kafkas_mbeans(name: MetricName, expected: str) -> None:
    assert name.mbean == expected


def test_every_fetcher_metric_has_the_type_of_its_class() -> None:
    registry = MetricsRegistry(MockClock())
    stats = FetcherStats(registry, "thread", "host", 9092)
    lags = FetcherLagStats(registry, "thread")
    lags.set_lag(TopicPartition("topic", 0), 3)
    BrokerTopicStats(registry)
    types = {(name.type, name.name) for name in registry.names()}
    assert types == {
        ("FetcherStats", "BytesPerSec"),
        ("FetcherStats", "RequestsPerSec"),
        ("FetcherLagMetrics", "ConsumerLag"),
        ("BrokerTopicMetrics", "ReplicationBytesInPerSec"),
        ("BrokerTopicMetrics", "ReassignmentBytesInPerSec"),
    }
    stats.unregister()
    lags.unregister_all()
    assert {name.type for name in registry.names()} == {"BrokerTopicMetrics"}
