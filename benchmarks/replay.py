"""Drives the Python implementation and prints how fast: replay in memory and on files, recording.

One process replays the minimal transition suite with step equality, timed in seconds of the
processor; two Spark workers record random walks, timed by the clock, which says something only on
a quiet machine (`--traces 0` leaves them out). Each rate stands beside its goal. Only replication
has a disk. Run:
python benchmarks/replay.py [--model NAME] [--traces N] [--file-traces N] [--file-tests N]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from conformance.garbage import collect_seldom
from conformance.modelcheck.check import graph_and_spec
from conformance.modelcheck.manifest import find_models
from conformance.registry import factory_path, load_factory
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.spark.session import spark_session
from conformance.spark.workers import OnSpark
from conformance.stages.context import Context, Workbench
from conformance.stages.record import record
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite
from conformance.systems.protocol import SystemUnderTest

ON_FILES = "conformance.systems.replication:create_on_files"
MILLION_IN_SECONDS = 20 * 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="replication/bench/kip320-coarse-2b-4-epochs")
    parser.add_argument("--file-tests", type=int, default=1000)
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--file-traces", type=int, default=1000)
    options = parser.parse_args()
    collect_seldom()  # as the gate's processes do
    model = find_models([options.model])[0]
    graph, prepared = graph_and_spec(model)
    bench = Workbench(model, prepared, factory_path(model.system), graph)
    on_files = replace(bench, factory=ON_FILES) if model.system == "replication" else None
    suite = transition_cover(graph)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, model {options.model}")
    told("replay in memory", drive(bench, suite), 10_000)
    if on_files is not None:
        some = Random(1).sample(suite.tests, min(options.file_tests, len(suite)))
        told("replay on files", drive(on_files, replace(suite, tests=tuple(some))), 1500)
    if not options.traces:
        return
    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        recorded("record in memory", spark, bench, Path(folder) / "memory", options.traces)
        if on_files is not None:
            recorded("record on files", spark, on_files, Path(folder) / "disk", options.file_traces)


def recorded(what: str, spark: SparkSession, bench: Workbench, path: Path, traces: int) -> None:
    result = record(Context(), bench, OnSpark(spark), path, traces=traces, length=20)
    rate = traces / result.seconds
    print(
        f"{what:17} {traces:9,} traces  {result.seconds:7.1f} s  "
        f"{result.manifest.counts.steps / result.seconds:9,.0f} steps/s  "
        f"a million in {1e6 / rate / 60:6.1f} min, "
        f"ratio to 20 min {MILLION_IN_SECONDS * rate / 1e6:5.2f}"
    )


def drive(bench: Workbench, suite: Suite) -> tuple[ReplayResult, float]:
    """The result, and seconds of the processor."""
    factory, constants = load_factory(bench.factory), bench.constants

    def make_system() -> SystemUnderTest:
        return factory(constants)

    before = time.process_time()
    result = replay_suite(bench.graph, suite, make_system)
    return result, time.process_time() - before


def told(what: str, driven: tuple[ReplayResult, float], goal: int) -> None:
    result, seconds = driven
    rate = result.steps / seconds
    print(
        f"{what:17} {result.steps:9,} steps   {seconds:7.1f} s  {rate:9,.0f} steps/s  "
        f"ratio to {goal:,}: {rate / goal:5.2f}  {result.verdict}"
    )


if __name__ == "__main__":
    main()
