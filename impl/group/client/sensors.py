"""Sensors of a client, and the statistics of what they record (org.apache.kafka.common.metrics).

A statistic is of the last windows (metrics.num.samples, metrics.sample.window.ms) or of all that
was ever recorded. Times are in ms; what was never recorded is NaN.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...clock import Clock
from ...errors import IllegalArgumentException

WINDOW_MS = 30_000
SAMPLES = 2
SECOND_MS = 1_000
HOUR_MS = 3_600_000


class MetricName(NamedTuple):
    """A metric of a client: `group` is the MBean's type, such as consumer-coordinator-metrics."""

    name: str
    group: str


@dataclass(slots=True)
class Sample:
    """What was recorded in one window."""

    started_ms: int
    last_ms: int
    count: int = 0
    total: float = 0.0
    largest: float = -math.inf

    def add(self, value: float, now_ms: int) -> None:
        """Take another value."""
        self.count += 1
        self.total += value
        self.largest = max(self.largest, value)
        self.last_ms = now_ms


class Samples:
    """The windows of one statistic: those that count, and one that overlaps them (SampledStat)."""

    __slots__ = ("_current", "_samples")

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Take a value into the window that is open, or open the next one."""
        if not self._samples:
            self._samples.append(Sample(now_ms, now_ms))
        elif now_ms - self._samples[self._current].started_ms >= WINDOW_MS:
            self._advance(now_ms)
        self._samples[self._current].add(value, now_ms)

    def _advance(self, now_ms: int) -> None:
        self._current = (self._current + 1) % (SAMPLES + 1)
        if self._current == len(self._samples):
            self._samples.append(Sample(now_ms, now_ms))
        else:
            self._samples[self._current] = Sample(now_ms, now_ms)

    def recent(self, now_ms: int) -> Sequence[Sample]:
        """All windows; those in which nothing was recorded lately begin again, empty."""
        for number, sample in enumerate(self._samples):
            if now_ms - sample.last_ms >= SAMPLES * WINDOW_MS:
                self._samples[number] = Sample(now_ms, now_ms)
        return self._samples


class Statistic(Protocol):
    """Takes what a sensor records, and measures it when it is asked."""

    def record(self, value: float, now_ms: int) -> None: ...

    def measure(self, now_ms: int) -> float: ...


class Windowed:
    """A figure of the values of the last windows."""

    __slots__ = ("_combine", "_samples")

    def __init__(self, combine: Callable[[Sequence[Sample]], float]) -> None:
        self._combine = combine
        self._samples = Samples()

    def record(self, value: float, now_ms: int) -> None:
        """Take a value."""
        self._samples.record(value, now_ms)

    def measure(self, now_ms: int) -> float:
        """The figure; NaN if nothing was recorded lately."""
        samples = self._samples.recent(now_ms)
        return self._combine(samples) if any(sample.count for sample in samples) else math.nan


def average() -> Windowed:
    """The mean of the last windows (Avg)."""
    return Windowed(
        lambda samples: sum(one.total for one in samples) / sum(one.count for one in samples)
    )


def maximum() -> Windowed:
    """The largest of the last windows (Max)."""
    return Windowed(lambda samples: max(one.largest for one in samples))


class Rate:
    """How often it was recorded, in a unit of time (Rate over a WindowedCount)."""

    __slots__ = ("_samples", "_unit_ms")

    def __init__(self, unit_ms: int) -> None:
        self._unit_ms = unit_ms
        self._samples = Samples()

    def record(self, value: float, now_ms: int) -> None:
        """Count once."""
        self._samples.record(value, now_ms)

    def measure(self, now_ms: int) -> float:
        """Events per unit."""
        samples = self._samples.recent(now_ms)
        count = sum(sample.count for sample in samples)
        return count * self._unit_ms / self._elapsed_ms(samples, now_ms)

    @staticmethod
    def _elapsed_ms(samples: Sequence[Sample], now_ms: int) -> int:
        """At least all windows but one, so that the first second has no rate of a whole minute."""
        elapsed = now_ms - min((sample.started_ms for sample in samples), default=now_ms)
        missing = max(0, SAMPLES - 1 - elapsed // WINDOW_MS)
        return max(elapsed + missing * WINDOW_MS, 1)


class Cumulative:
    """All that was ever recorded: a sum, or how often (CumulativeSum, CumulativeCount)."""

    __slots__ = ("_counts", "_total")

    def __init__(self, *, counts: bool) -> None:
        self._counts = counts
        self._total = 0.0

    def record(self, value: float, _now_ms: int) -> None:
        """Add it."""
        self._total += 1 if self._counts else value

    def measure(self, _now_ms: int) -> float:
        """The sum."""
        return self._total


class Sensor:
    """Records for several statistics at once; any thread may record (Sensor)."""

    __slots__ = ("_clock", "_lock", "_statistics")

    def __init__(self, clock: Clock, statistics: Sequence[Statistic]) -> None:
        self._clock = clock
        self._statistics = tuple(statistics)
        # It covers a few instructions and no callback, so it is no scheduling point.
        self._lock = threading.Lock()

    def record(self, value: float = 1.0) -> None:
        """Take a value now."""
        now_ms = self._clock.milliseconds()
        with self._lock:
            for statistic in self._statistics:
                statistic.record(value, now_ms)


class ClientMetrics:
    """All metrics of one client."""

    __slots__ = ("_clock", "_measures", "client_id")

    def __init__(self, clock: Clock, client_id: str) -> None:
        self._clock = clock
        self.client_id = client_id
        self._measures: dict[MetricName, Callable[[int], float]] = {}

    def sensor(self, statistics: Mapping[MetricName, Statistic]) -> Sensor:
        """A sensor that feeds these. Raises IllegalArgumentException for a name that is taken."""
        for name, statistic in statistics.items():
            self.add_metric(name, statistic.measure)
        return Sensor(self._clock, tuple(statistics.values()))

    def add_metric(self, name: MetricName, measure: Callable[[int], float]) -> None:
        """A value that is computed when it is read, of the time in ms."""
        if name in self._measures:
            raise IllegalArgumentException(f"A metric named '{name}' already exists")
        self._measures[name] = measure

    def names(self) -> frozenset[MetricName]:
        """The registered metrics."""
        return frozenset(self._measures)

    def value(self, name: MetricName) -> float:
        """Its value now. Raises KeyError for an unknown metric."""
        return self._measures[name](self._clock.milliseconds())

    def mbean(self, name: MetricName) -> str:
        """The MBean that a consumer's metric is an attribute of (JmxReporter)."""
        return f"kafka.consumer:type={name.group},client-id={self.client_id}"
