"""Meters and gauges on an injected clock."""

from __future__ import annotations

import math

import pytest

from impl.clock import MockClock
from impl.metrics import Meter, MetricName, MetricsRegistry


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
    meter_name = MetricName("BytesPerSec", (("clientId", "a"),))
    gauge_name = MetricName("MaxLag")
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
