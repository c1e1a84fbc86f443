"""Drives several brokers' group coordinators through their ports, and prints who agrees.

Each broker is started here and ended: releases of Apache Kafka, our own server, the mock cluster in
librdkafka (the extra `clients`), kfake of franz-go (built where Go is). One that cannot be started
on this machine is told of, with the reason; so is a suite that does not end. Apache Kafka is judged
with its known deviations. docs/brokers.md keeps a run and judges what came out.
Run: python benchmarks/wire_brokers.py [--broker NAME ...] [--model NAME ...] [--disagreements N]
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from conformance.kafka.cluster import Cluster, Settings
from conformance.kafka.jars import chosen_jars
from conformance.replay.engine import Divergence
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.selection import reason_against_model
from conformance.suites.restricted import cover_within

ROOT = Path(__file__).resolve().parents[1]
KFAKE = ROOT / "benchmarks" / "kfake"
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
MODELS = (
    "group/protocols-2m",
    "group/dynamic-2m",
    "group/pending-2m",
    "group/pending-timeouts-2m",
    "group/initial-delay-3m",
    "group/delete-2m",
    "group/losses-2m",
    "group/late-requests-2m",
    "group/shared-instance-2m",
    "group/static-restart-2m",
    "group/static-absent-2m",
    "consumer/static-2m",
    "consumer/dynamic-2m",
    "consumer/leaves-2m",
    "consumer/losses-2m",
    "consumer/expiries-2m",
)


class Missing(Exception):
    """What this machine lacks."""


@contextmanager
def kafka(version: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(properties=PROPERTIES)
        with Cluster(chosen_jars(version, None), Path(folder), settings) as cluster:
            yield f"wire:{cluster.bootstrap}?{TIMERS}&deviations=kafka-{version}"


@contextmanager
def ours(folder: Path = ROOT, max_size: int = 0) -> Iterator[str]:
    """Our own server; `folder` holds the `impl` that it runs, `max_size` is its group.max.size."""
    command = [sys.executable, "-m", "impl.wire", "--port", "0", "--topic", "topic=2"]
    command += ["--initial-delay-ms", str(DELAY), "--min-session-ms", "10"]
    command += ["--max-size", str(max_size)] if max_size else []
    with started(command, folder) as address:
        yield f"wire:{address}?{TIMERS}&max-size={max_size}"


@contextmanager
def mock() -> Iterator[str]:
    """librdkafka's mock cluster, whose initial delay is 3 s and cannot be set from Python."""
    try:
        from confluent_kafka.admin import AdminClient
    except ImportError:
        raise Missing("the extra `clients` is not installed") from None
    client = AdminClient({"test.mock.num.brokers": 1})
    (broker,) = client.list_topics(timeout=10).brokers.values()
    yield f"wire:{broker.host}:{broker.port}?initial-delay=3000&session=400&groups=64"
    del client


@contextmanager
def kfake() -> Iterator[str]:
    go = shutil.which("go")
    if go is None:
        raise Missing("there is no Go")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "kfake"
        built = subprocess.run(
            [go, "build", "-o", str(program), "."],
            cwd=KFAKE,
            capture_output=True,
            text=True,
            check=False,
        )
        if built.returncode:
            raise Missing(f"kfake cannot be built: {built.stderr.strip()[-300:]}")
        port = free_port()
        with started([str(program), "-port", str(port)], ROOT) as address:
            yield f"wire:{address}?{TIMERS}"


@contextmanager
def started(command: list[str], folder: Path) -> Iterator[str]:
    """The address that a server prints when it listens."""
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1].replace("[::]", "127.0.0.1")
    finally:
        process.terminate()
        process.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


BROKERS: dict[str, Callable[[], AbstractContextManager[str]]] = {
    "Apache Kafka 3.8.1": lambda: kafka("3.8.1"),
    "Apache Kafka 4.4.0": lambda: kafka("4.4.0"),
    "impl.wire": ours,
    "librdkafka's mock cluster": mock,
    "kfake of franz-go": kfake,
}


@dataclass(frozen=True, slots=True)
class Driven:
    """What driving a model's suite came to; `story` of the first disagreement."""

    tests: int
    passed: int
    steps: int
    seconds: float
    outcome: str
    story: str = ""


def selected(system: str, model: str) -> str:
    """Why the port does not allow the model at all; empty if it does."""
    return reason_against_model(Context(), system, one_model(model))


def drive(system: str, model: str, disagreements: int = 1) -> ReplayResult:
    """Replay what of the model's suite the port allows, until so many tests disagree."""
    bench = workbench(Context(), one_model(model), system)
    assert bench.limits is not None, "every broker here is reached through a port"
    suite = cover_within(bench.graph, bench.limits).suite
    return replay_suite(bench.graph, suite, bench.make_system, stop_after=disagreements)


def driven(system: str, model: str, disagreements: int) -> Driven:
    """The same, told."""
    reason = selected(system, model)
    if reason:
        return Driven(0, 0, 0, 0.0, f"not driven: {reason}")
    result = drive(system, model, disagreements)
    tests = result.passed + result.failed + result.inconclusive + result.not_run
    fate = "agrees" if not result.failed else f"{result.failed} disagree"
    if result.inconclusive:
        fate += f", {result.inconclusive} inconclusive"
    for reason, count in result.not_driven.items():
        fate += f", {count} not driven: {reason}"
    told = "\n".join(map(story, result.divergences))
    return Driven(tests, result.passed, result.steps, result.seconds, fate, told)


def driven_within(system: str, model: str, disagreements: int, seconds: float) -> Driven:
    """The same in a process of its own, which may not come to an end: then that is the outcome."""
    command = [sys.executable, __file__, "--drive", system, model]
    command += ["--disagreements", str(disagreements)]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Driven(0, 0, 0, seconds, f"no end within {seconds:.0f} s")
    if ended.returncode:
        words = ended.stderr.decode("utf-8").strip().splitlines()[-1:]
        return Driven(0, 0, 0, 0.0, f"not run: {' '.join(words)}")
    return msgspec.json.decode(ended.stdout, type=Driven)


def row(name: str, model: str, one: Driven) -> str:
    rate = one.steps / max(one.seconds, 1e-9)
    counts = f"{one.passed:,} of {one.tests:,} | {one.steps:,} | {one.seconds:.0f} s | {rate:,.0f}"
    return f"| {name} | {model} | {counts} | {one.outcome} |"


def story(divergence: Divergence) -> str:
    path = ", ".join(map(str, divergence.actions))
    if divergence.detail or not divergence.observed:
        return f"  {divergence.kind} after {path}: {divergence.detail}"
    return f"  {divergence.kind} after {path}\n    seen {dict(divergence.observed)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", action="append", choices=sorted(BROKERS))
    parser.add_argument("--model", action="append")
    parser.add_argument("--disagreements", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=300.0, help="For one suite at most.")
    parser.add_argument("--drive", nargs=2, metavar=("SYSTEM", "MODEL"), help="One suite, as JSON.")
    options = parser.parse_args()
    if options.drive:
        system, model = options.drive
        one = driven(system, model, options.disagreements)
        sys.stdout.buffer.write(msgspec.json.encode(one))
        return
    print("| broker | model | tests that agree | steps | time | steps/s | outcome |")
    print("|---|---|---|---|---|---|---|")
    stories = []
    for name in options.broker or BROKERS:
        with ExitStack() as stack:
            try:
                system = stack.enter_context(BROKERS[name]())
            except Missing as missing:
                print(f"| {name} | | | | | | not run: {missing} |", flush=True)
                continue
            for model in options.model or MODELS:
                one = driven_within(system, model, options.disagreements, options.seconds)
                print(row(name, model, one), flush=True)
                if one.story:
                    stories.append(f"{name}, {model}:\n{one.story}")
    print("\n" + "\n".join(stories))


if __name__ == "__main__":
    main()
