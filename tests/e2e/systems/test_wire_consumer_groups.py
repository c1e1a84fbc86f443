"""Our own server as a coordinator of KIP-848: driven by suites, and joined by a client library."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app

ROOT = Path(__file__).resolve().parents[3]
RECORDS, SECONDS = 20, 60


@contextmanager
def served(*options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "impl.wire", "--port", "0", "--topic", "topic=2"]
    command += ["--assignment-interval-ms", "0", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()
        assert process.wait(10) == 0


def test_a_gate_with_models_of_kip_848_says_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served() as address:
        # It offers no IncrementalAlterConfigs, so no session of a group can be made short.
        system = f"wire:{address}?deviations=consumer&groups=8&session=800"
        models = ["consumer/static-2m", "consumer/dynamic-2m"]
        ended = CliRunner().invoke(app, ["gate", *models, "--system", system, "--output", "out"])
    assert ended.exit_code == 0, ended.output
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    tests = [model["tests"] for model in report["stages"]["replay"]["models"]]
    assert len(tests) == len(models)
    assert all(counts["pass"] == counts["in"] > 0 for counts in tests)


class _Reader:
    """A consumer of the client library, and what it was told and given."""

    def __init__(self, address: str, subscribed: str = "topic") -> None:
        from confluent_kafka import Consumer

        self.assigned: set[int] = set()
        self.values: list[bytes] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "readers",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self.consumer.subscribe([subscribed], on_assign=self._given, on_revoke=self._revoked)

    def _given(self, consumer: Any, partitions: list[Any]) -> None:
        self.assigned |= {partition.partition for partition in partitions}
        consumer.incremental_assign(partitions)

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        self.assigned -= {partition.partition for partition in partitions}
        consumer.incremental_unassign(partitions)

    def poll(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None:
            assert message.error() is None, message.error()
            self.values.append(message.value())

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)


def until(condition: Callable[[], bool], *readers: _Reader) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, [(reader.assigned, len(reader.values)) for reader in readers]
        for reader in readers:
            reader.poll()


@pytest.mark.skipif(
    importlib.util.find_spec("confluent_kafka") is None, reason="needs the extra `clients`"
)
def test_consumers_of_a_client_library_join_read_commit_and_leave() -> None:
    from confluent_kafka import Producer

    with served("--heartbeat-interval-ms", "100") as address:
        producer = Producer({"bootstrap.servers": address})
        for number in range(RECORDS):
            producer.produce("topic", f"value {number}".encode(), partition=number % 2)
        assert producer.flush(SECONDS) == 0

        first = _Reader(address)
        until(lambda: len(first.values) == RECORDS, first)
        assert first.assigned == {0, 1}
        first.commit()

        second = _Reader(address)
        until(lambda: len(first.assigned) == len(second.assigned) == 1, first, second)
        assert first.assigned | second.assigned == {0, 1}

        first.consumer.close()
        until(lambda: second.assigned == {0, 1}, second)
        for number in range(2):
            producer.produce("topic", b"late", partition=number)
        assert producer.flush(SECONDS) == 0
        until(lambda: len(second.values) >= 2, second)
        assert second.values == [b"late", b"late"], "it goes on where the first one committed"
        second.commit()
        second.consumer.close()


@pytest.mark.skipif(
    importlib.util.find_spec("confluent_kafka") is None, reason="needs the extra `clients`"
)
def test_a_consumer_with_a_regular_expression_is_given_topics_that_appear() -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    with served("--heartbeat-interval-ms", "100") as address:
        reader = _Reader(address, "^to.*")
        until(lambda: reader.assigned == {0, 1}, reader)

        admin = AdminClient({"bootstrap.servers": address})
        for created in admin.create_topics([NewTopic("tower", 3), NewTopic("other", 4)]).values():
            created.result(SECONDS)
        until(lambda: len(reader.assigned) > 2, reader)  # ten seconds after the first look

        assert reader.assigned == {0, 1, 2}
        reader.consumer.close()
