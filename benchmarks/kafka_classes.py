"""Drives Kafka's own classes and `impl` along one model, and prints how fast, beside the goals.

Some tests of the minimal transition cover, drawn by a seed, in one process each and with all
variables compared after every step; the time of a reset, warm; what the JVM takes of the processor
for a step, its resets counted in, and of memory.

    python benchmarks/kafka_classes.py [--kafka 3.8.1,4.4.0] [--model NAME] [--tests N]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median

from conformance.replay.engine import close
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite
from conformance.systems.external import CHANNELS

STEPS_A_SECOND = 1_000
RESET_MS = 10.0
RSS_MB = 512
_RESETS = 900
_WARM = 600
"""Resets before those that count: after 100 the JVM still compiles what they run through."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One system's figures."""

    system: str
    result: ReplayResult
    reset_ms: float
    rss_mb: float
    """Of the adapter's process at its largest; 0 if there is none."""
    jvm_ms: float
    """Of the processor, by the adapter's process, for a step of the replay."""

    def told(self) -> str:
        """One line, with the goals of a JVM."""
        rate = self.result.steps / self.result.seconds
        line = f"{self.system:14} {self.result.steps:8,} steps {rate:8,.0f} steps/s"
        line += f"  reset {self.reset_ms:6.2f} ms"
        if self.rss_mb:
            line += f"  {self.rss_mb:4.0f} MB  JVM {self.jvm_ms:.2f} ms/step"
            met = (rate >= STEPS_A_SECOND, self.reset_ms < RESET_MS, self.rss_mb <= RSS_MB)
            line += f"  goals met: {', '.join('yes' if is_met else 'no' for is_met in met)}"
        return f"{line}  {self.result.verdict}"


def main() -> None:
    """Measure each system in turn."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kafka", default="3.8.1,4.4.0")
    parser.add_argument(
        "--model", default="replication/bench/truncate-on-fetch-log-start-coarse-2b"
    )
    parser.add_argument("--tests", type=int, default=5_000)
    given = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {given.model}")
    print(f"goals of a JVM: {STEPS_A_SECOND:,} steps/s, {RESET_MS:.0f} ms, {RSS_MB} MB")
    versions = [f"kafka-{version}" for version in given.kafka.split(",")]
    for system in (None, *versions):
        bench = workbench(Context(), one_model(given.model), system)
        print(measured(system or "impl", bench, given.tests).told(), flush=True)
        CHANNELS.close()


def measured(system: str, bench: Workbench, tests: int) -> Measured:
    """Resets first, which warm it up."""
    reset_ms = _reset_ms(bench)
    before = sum(map(_processor_seconds, _bridges()))
    result = replay_suite(bench.graph, _some(bench, tests), bench.make_system)
    used = sum(map(_processor_seconds, _bridges())) - before
    rss = max((_peak_mb(child) for child in _bridges()), default=0.0)
    return Measured(system, result, reset_ms, rss, 1_000 * used / result.steps)


def _some(bench: Workbench, tests: int) -> Suite:
    suite = transition_cover(bench.graph)
    chosen = Random(1).sample(suite.tests, min(tests, len(suite)))
    return replace(suite, tests=tuple(chosen))


def _reset_ms(bench: Workbench) -> float:
    """The median of warm resets."""
    system = bench.make_system()
    initial = dict(
        zip(bench.graph.variables, bench.graph.states[bench.graph.initial[0]], strict=True)
    )
    times = []
    try:
        for _ in range(_RESETS):
            started = time.perf_counter()
            system.reset(initial)
            times.append(1_000 * (time.perf_counter() - started))
    finally:
        close(system)
    return median(times[_WARM:])


def _bridges() -> Iterator[Path]:
    """Our children that are bridges, by their folder in /proc."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if int(fields[1]) == os.getpid() and b"kconform.Bridge" in command:
            yield folder


def _processor_seconds(process: Path) -> float:
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mb(process: Path) -> float:
    for line in (process / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    main()
