"""Starts brokers with short timers, ours and Kafka's, and drives models through their ports."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conformance.kafka.cluster import Cluster, ClusterSettings
from conformance.kafka.jars import chosen_jars
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.selection import reason_against_model
from conformance.suites.restricted import cover_within

ROOT = Path(__file__).resolve().parents[1]
DELAY = 300
TIMERS = f"initial-delay={DELAY}&session=800&min-session=10&rebalance=1200&groups=48"
PROPERTIES = {
    "group.initial.rebalance.delay.ms": str(DELAY),
    "group.min.session.timeout.ms": "10",
    # Of KIP-848, and of releases that have it: short sessions, an assignment with each heartbeat.
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
}


@contextmanager
def kafka(version: str) -> Iterator[str]:
    with brokers_of(version, 1) as cluster:
        yield f"wire:{first_of(cluster)}?{TIMERS}&deviations=kafka-{version}"


@contextmanager
def brokers_of(version: str, count: int) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory() as folder:
        settings = ClusterSettings(brokers=count, properties=PROPERTIES)
        with Cluster(chosen_jars(version, None), Path(folder), settings) as cluster:
            yield cluster


def first_of(cluster: Cluster) -> str:
    """The address of the first broker."""
    return cluster.bootstrap.partition(",")[0]


@contextmanager
def ours(folder: Path = ROOT, max_size: int = 0, *, faulty: bool = False) -> Iterator[str]:
    """Our own server; `folder` holds the `impl` that it runs, `max_size` is its group.max.size.

    Its coordinator of KIP-848 departs from the specification as the system `consumer` does.
    One that is `faulty` may raise at many a request: what it says then is not shown.
    """
    command = [sys.executable, "-m", "impl.wire", "--port", "0", "--topic", "topic=2"]
    command += ["--initial-delay-ms", str(DELAY), "--min-session-ms", "10"]
    command += ["--assignment-interval-ms", "0"]
    command += ["--max-size", str(max_size)] if max_size else []
    errors = subprocess.DEVNULL if faulty else None
    with started(command, folder, errors) as address:
        yield f"wire:{address}?{TIMERS}&max-size={max_size}&deviations=consumer"


@contextmanager
def started(command: list[str], folder: Path, errors: int | None = None) -> Iterator[str]:
    """The address that a server prints when it listens; `errors`: where its error output goes."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, cwd=folder, stdin=pipe, stdout=pipe, stderr=errors, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1].replace("[::]", "127.0.0.1")
    finally:
        process.terminate()
        process.wait(10)


def selected(system: str, model: str) -> str:
    """Why the port does not allow the model at all; empty if it does."""
    return reason_against_model(Context(), system, one_model(model))


def drive(system: str, model: str, disagreements: int = 1) -> ReplayResult:
    """Replay what of the model's suite the port allows, until so many tests disagree."""
    bench = workbench(Context(), one_model(model), system)
    assert bench.limits is not None, "every broker here is reached through a port"
    suite = cover_within(bench.graph, bench.limits).suite
    return replay_suite(bench.graph, suite, bench.make_system, stop_after=disagreements)
