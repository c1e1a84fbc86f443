"""Drives several brokers' group coordinators through their ports, and prints who agrees.

Each broker is started here and ended: releases of Apache Kafka, our own server, the mock cluster in
librdkafka (the extra `clients`), kfake of franz-go (built where Go is). One that cannot be started
on this machine is told of, with the reason. docs/brokers.md keeps a run and judges what came out.
Run: python benchmarks/wire_brokers.py [--broker NAME ...] [--model NAME ...] [--disagreements N]
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from conformance.errors import UserError
from conformance.kafka.cluster import Cluster, Settings
from conformance.kafka.jars import chosen_jars
from conformance.modelcheck.check import graph_and_spec
from conformance.replay.engine import Divergence
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.stages.context import constants_of, one_model
from conformance.suites.restricted import Limits, cover_within
from conformance.systems.protocol import Distant
from conformance.systems.registry import load_factory

ROOT = Path(__file__).resolve().parents[1]
KFAKE = ROOT / "benchmarks" / "kfake"
DELAY = 150
TIMERS = f"initial-delay={DELAY}&session=400&min-session=10&groups=24"
PROPERTIES = {
    "group.initial.rebalance.delay.ms": str(DELAY),
    "group.min.session.timeout.ms": "10",
}
MODELS = (
    "protocols-2m",
    "dynamic-2m",
    "pending-2m",
    "pending-timeouts-2m",
    "initial-delay-3m",
    "delete-2m",
    "losses-2m",
    "late-requests-2m",
    "shared-instance-2m",
    "static-restart-2m",
    "static-absent-2m",
)


class Missing(Exception):
    """What this machine lacks."""


@contextmanager
def kafka(version: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(properties=PROPERTIES)
        with Cluster(chosen_jars(version, None), Path(folder), settings) as cluster:
            yield f"wire:{cluster.bootstrap}?{TIMERS}"


@contextmanager
def ours(folder: Path = ROOT) -> Iterator[str]:
    """Our own server; `folder` holds the `impl` that it runs."""
    command = [sys.executable, "-m", "impl.wire", "--port", "0", "--topic", "topic=2"]
    command += ["--initial-delay-ms", str(DELAY), "--min-session-ms", "10"]
    with started(command, folder) as address:
        yield f"wire:{address}?{TIMERS}"


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


def drive(system: str, model: str, disagreements: int) -> ReplayResult:
    """Replay what of the model's suite the port allows, until so many tests disagree."""
    factory = load_factory(system)
    graph, prepared = graph_and_spec(one_model(f"group/{model}"))
    distant: object = factory
    assert isinstance(distant, Distant), "every broker here is reached through a port"
    passes, variables = distant.passes, graph.variables
    limits = Limits(
        distant.beyond_reach(), lambda state: passes(dict(zip(variables, state, strict=True)))
    )
    suite = cover_within(graph, limits).suite
    constants = constants_of(prepared)
    return replay_suite(graph, suite, lambda: factory(constants), stop_after=disagreements)


def row(name: str, model: str, result: ReplayResult) -> str:
    tests = result.passed + result.failed + result.inconclusive + result.not_run
    fate = "agrees" if not result.failed else f"{result.failed} disagree"
    if result.inconclusive:
        fate += f", {result.inconclusive} inconclusive"
    if result.not_driven:
        fate += f", {sum(result.not_driven.values())} not driven"
    rate = result.steps / max(result.seconds, 1e-9)
    return f"| {name} | {model} | {tests:,} | {result.steps:,} | {rate:,.0f} | {fate} |"


def story(divergence: Divergence) -> str:
    path = ", ".join(map(str, divergence.actions))
    if not divergence.observed or not divergence.allowed:
        return f"  {divergence.kind} after {path}: {divergence.detail.splitlines()[0]}"
    names = divergence.observed
    return f"  {divergence.kind} after {path}\n    seen {dict(names)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", action="append", choices=sorted(BROKERS))
    parser.add_argument("--model", action="append")
    parser.add_argument("--disagreements", type=int, default=1)
    options = parser.parse_args()
    print("| broker | model | tests | steps | steps/s | outcome |\n|---|---|---|---|---|---|")
    stories: list[str] = []
    for name in options.broker or BROKERS:
        started_at = time.monotonic()
        with ExitStack() as stack:
            try:
                system = stack.enter_context(BROKERS[name]())
            except Missing as missing:
                print(f"| {name} | | | | | not run: {missing} |", flush=True)
                continue
            for model in options.model or MODELS:
                try:
                    result = drive(str(system), model, options.disagreements)
                except UserError as error:
                    print(f"| {name} | {model} | | | | not run: {error} |", flush=True)
                    continue
                print(row(name, model, result), flush=True)
                stories += [f"{name}, {model}:\n{story(one)}" for one in result.divergences]
        print(f"  ({name}: {time.monotonic() - started_at:.0f} s)", file=sys.stderr)
    print("\n" + "\n".join(stories))


if __name__ == "__main__":
    main()
