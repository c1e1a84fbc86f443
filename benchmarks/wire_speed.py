"""How fast suites go through a port, beside a bare loop of Heartbeats by the same library.

For our own server and for Kafka, in one run: Heartbeats, one after the other on one connection;
then models, their round trips counted where requests are sent. Goals, on two cores: 1,500 round
trips/s against our own server, 500 steps/s against Kafka.

Run: python benchmarks/wire_speed.py [--kafka 4.4.0] [--heartbeats 5000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from benchmarks.brokers import drive, kafka, ours
from conformance.kafka.entities import make, newest
from conformance.registry import SCHEMES
from conformance.systems.wire.address import parse_address
from conformance.systems.wire.connection import WireConnection
from conformance.systems.wire.port import Port
from conformance.systems.wire.security import security_of

OF_GROUPS = ("group/protocols-2m", "group/static-restart-2m", "group/shared-instance-2m")
"""The initial delay is their only timer; tests side by side wait for it together."""
OF_CONSUMER_GROUPS = ("consumer/dynamic-2m", "consumer/losses-2m")
"""Without any timer."""


@dataclass(slots=True)
class Sent:
    """How many requests have gone out."""

    count: int = 0


@contextmanager
def counted() -> Iterator[Sent]:
    """Count what all connections send; several threads may lose a few in ten thousand."""
    sent, send = Sent(), WireConnection.send

    def count_and_send(self: WireConnection, body: Any, client_id: str) -> Any:
        sent.count += 1
        return send(self, body, client_id)

    with patch.object(WireConnection, "send", count_and_send):
        yield sent


def heartbeats(system: str, count: int) -> float:
    """Round trips/s of a member that nobody knows; the answer is an error, at once."""
    address = parse_address(system.removeprefix("wire" + SCHEMES["wire"].separator))
    port = Port(address, security_of(address.config, address.tls_ca))
    try:
        port.find_coordinator("speed")
        request = make(
            newest("heartbeat", "request").HeartbeatRequest,
            group_id="speed",
            generation_id=1,
            member_id="nobody",
            group_instance_id=None,
        )
        started = time.perf_counter()
        for _ in range(count):
            port.ask(request)
        return count / (time.perf_counter() - started)
    finally:
        port.close()


def measure(name: str, system: str, models: tuple[str, ...], count: int) -> None:
    """Print a row for the bare loop and one for each model."""
    bare = heartbeats(system, count)
    print(f"| {name} | bare Heartbeats | | {bare:,.0f} | 1.00 |", flush=True)
    for model in models:
        with counted() as sent:
            result = drive(system, model)
        assert not result.failed, f"{model}: {result.divergences}"
        steps, trips = result.steps / result.seconds, sent.count / result.seconds
        print(
            f"| {name} | {model} | {steps:,.0f} | {trips:,.0f} | {trips / bare:.2f} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.4.0")
    parser.add_argument("--heartbeats", type=int, default=5_000)
    options = parser.parse_args()
    print("| broker | what | steps/s | round trips/s | of the bare loop |\n|---|---|---|---|---|")
    with ours() as system:
        measure("impl.wire", system, OF_GROUPS, options.heartbeats)
    with kafka(options.kafka) as system:
        models = OF_GROUPS + OF_CONSUMER_GROUPS
        measure(f"Apache Kafka {options.kafka}", system, models, options.heartbeats)


if __name__ == "__main__":
    main()
