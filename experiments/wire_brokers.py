"""Judges brokers through their ports, each by a whole gate, and prints what came out.

Each broker is started here and ended: releases of Apache Kafka, one of them also as two brokers
between which the coordinator moves and as three of which one is away; our own server; the mock
cluster in librdkafka (the extra `clients`); kfake of franz-go (built where Go is). One that cannot
be started on this machine is told of, with the reason. Apache Kafka is judged with its known
deviations.
docs/lab-notes/broker-runs.md keeps the runs, docs/brokers.md judges what came out. Exit code 1 if a
Kafka or our own server
disagrees.
Run: python experiments/wire_brokers.py [BROKER ...] [--model NAME ...] [--seconds N]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.brokers import DELAY, ROOT, TIMERS, brokers_of, first_of, kafka, ours, started
from conformance.systems.wire.address import parse_address
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import Security

KFAKE = ROOT / "experiments" / "kfake"
MOCK_METADATA = "Metadata=5"
KCONFORM = Path(sys.executable).with_name("kconform")


class Missing(Exception):
    """What this machine lacks."""


@contextmanager
def moving(version: str) -> Iterator[str]:
    """Two brokers, between which a fail-over moves the coordinators."""
    with brokers_of(version, 2) as cluster:
        settings = urlencode({"deviations": f"kafka-{version}", "fail-over": "move"})
        yield f"wire:{first_of(cluster)}?{TIMERS}&{settings}"


@contextmanager
def one_of_three_away(version: str) -> Iterator[str]:
    """A replica of the offsets topic is out of sync: its log can be made to refuse an append."""
    with brokers_of(version, 3) as cluster:
        address = first_of(cluster)
        port = Port(parse_address(address), Security())
        try:
            port.find_coordinator("a group")  # with it the topic is made, on all three
        finally:
            port.close()
        cluster.nodes[max(cluster.nodes)].stop()
        yield f"wire:{address}?{TIMERS}&deviations=kafka-{version}&store-failures=1"


@contextmanager
def mock() -> Iterator[str]:
    """The mock cluster of the librdkafka that confluent-kafka brings, through librdkafka's own
    functions: Python's settings know nothing of the initial delay. Its Metadata of version 9 has a
    byte too many."""
    try:
        from confluent_kafka import cimpl
    except ImportError:
        raise Missing("the extra `clients` is not installed") from None
    library = ctypes.CDLL(cimpl.__file__)  # what it is linked with is found through it
    library.rd_kafka_new.restype = library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    producer, error = 0, ctypes.create_string_buffer(512)
    handle = ctypes.c_void_p(library.rd_kafka_new(producer, None, error, len(error)))
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(handle, 1))
    try:
        library.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, DELAY)
        address = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()
        yield f"wire:{address}?{TIMERS}&{MOCK_METADATA}"
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(handle)


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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Broker:
    """How it is called, how it is started, and whether it is to agree."""

    name: str
    serve: Callable[[], AbstractContextManager[str]]
    agrees: bool = True
    models: tuple[str, ...] = ()
    """Those that it is for; none: all that its port allows."""


FAIL_OVERS = ("group/fail-over-2m", "group/pending-fail-over-2m", "group/static-fail-over-2m")
BROKERS: Mapping[str, Broker] = {
    "kafka-3.8.1": Broker("Apache Kafka 3.8.1", lambda: kafka("3.8.1")),
    "kafka-4.4.0": Broker("Apache Kafka 4.4.0", lambda: kafka("4.4.0")),
    "kafka-4.4.0-fail-over": Broker(
        "Apache Kafka 4.4.0, two brokers", lambda: moving("4.4.0"), models=FAIL_OVERS
    ),
    "kafka-3.8.1-store-failures": Broker(
        "Apache Kafka 3.8.1, one of three brokers away",
        lambda: one_of_three_away("3.8.1"),
        models=("group/store-failure-2m",),
    ),
    "own": Broker("python -m impl.wire", ours),
    "librdkafka-mock": Broker("librdkafka's mock cluster", mock, agrees=False),
    "kfake": Broker("kfake of franz-go", kfake, agrees=False),
}


def gate(system: str, models: list[str], seconds: float) -> dict[str, Any]:
    """The report of a gate in a process of its own. TimeoutExpired if it does not end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(KCONFORM), "gate", *models, "--system", system, "--output", folder]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, check=False
        )
        report = Path(folder) / "report.json"
        if not report.is_file():
            raise Missing(f"the gate has no report: {ended.stderr.strip()[-500:]}")
        result: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return result


def told(name: str, report: Mapping[str, Any]) -> Iterator[str]:
    """A line for the gate, one for each suite, one for each disagreement."""
    yield f"{name}: {report['verdict'].upper()} in {report['seconds']:.0f} s"
    for suite in of_stage(report, "replay"):
        tests = suite["tests"]
        spoiled = f", {tests['spoiled']} spoiled by the machine" if tests["spoiled"] else ""
        yield (
            f"  {suite['model']:<28} {tests['pass']:>5,} of {tests['in']:>5,} tests agree"
            f"{fate(tests)}{spoiled}, {suite['steps']:>6,} steps, {suite['seconds']:>4.0f} s"
        )
    for row in of_stage(report, "deviations"):
        yield f"  known deviations: {row['summary']}"
    for finding in report["findings"]:
        yield from disagreement(finding)


def disagreement(finding: Mapping[str, Any]) -> Iterator[str]:
    """The suite, the way to the step that is not allowed, and what was seen there."""
    suite = Path(finding["artifact"]).name.partition("-replay-")[0]
    steps = [line for line in finding["story"] if re.match(r"\d+\. ", line)]
    yield f"  disagrees, {suite}: {finding['title']}"
    yield f"      {' '.join(steps)}"
    for item in finding["differences"]:
        yield f"      {item['variable']}: expected {item['expected']}, actual {item['actual']}"
    if not finding["differences"]:
        last = finding["story"].index(steps[-1]) if steps else 0
        yield from (f"      {line.strip()[:160]}" for line in finding["story"][last + 1 :][:4])


def of_stage(report: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """What a stage says of each of its subjects."""
    result = report["stages"].get(name, {})
    entries: list[dict[str, Any]] = result.get("models", [result] if result else [])
    return entries


def fate(tests: Mapping[str, int]) -> str:
    """What became of the tests that do not agree."""
    names = {"fail": "disagrees", "inconclusive": "not judged", "not_run": "not run after that"}
    return "".join(f", {tests[key]:,} {words}" for key, words in names.items() if tests[key])


def judged(broker: Broker, models: list[str], seconds: float) -> bool:
    """Print what came of one broker; whether it is as it should be."""
    try:
        with broker.serve() as system:
            report = gate(system, models or list(broker.models), seconds)
    except Missing as missing:
        print(f"{broker.name}: not run: {missing}", flush=True)
        return True
    except subprocess.TimeoutExpired:
        print(f"{broker.name}: no end within {seconds:.0f} s", file=sys.stderr, flush=True)
        return False
    as_it_should = report["verdict"] == "pass" or not broker.agrees
    lines = "\n".join(told(broker.name, report))
    print(lines, file=sys.stdout if as_it_should else sys.stderr, flush=True)
    return as_it_should


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("brokers", nargs="*", metavar="BROKER", help=", ".join(BROKERS))
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=900.0, help="For one gate at most.")
    options = parser.parse_args()
    unknown = [name for name in options.brokers if name not in BROKERS]
    if unknown:
        parser.error(f"there is no broker {unknown[0]}; there are {', '.join(BROKERS)}")
    wanted = [BROKERS[name] for name in options.brokers or BROKERS]
    as_it_should = [judged(broker, options.model, options.seconds) for broker in wanted]
    sys.exit(not all(as_it_should))


if __name__ == "__main__":
    main()
