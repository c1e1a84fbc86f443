"""Transactions behind a port: librdkafka's clients at our server, and suites that are driven."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.bugs.fault import copied
from tests.e2e.systems.test_wire import replay, served

clients = pytest.mark.skipif(
    importlib.util.find_spec("confluent_kafka") is None, reason="needs the extra `clients`"
)
SECONDS = 10


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with served("--topic", "other=1") as address:
        yield address


def producer(address: str, **settings: object) -> Any:
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": address, **settings})


def consumer(address: str, group: str, isolation: str) -> Any:
    from confluent_kafka import Consumer, TopicPartition

    reader = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
        }
    )
    reader.assign([TopicPartition("topic", 0, 0), TopicPartition("topic", 1, 0)])
    return reader


def read(reader: Any, *wanted: str) -> list[str]:
    """The values until all of these are there: partitions come in any order."""
    values: list[str] = []
    until = time.monotonic() + SECONDS
    while not set(wanted) <= set(values) and time.monotonic() < until:
        message = reader.poll(0.2)
        if message is not None and not message.error():
            values.append(message.value().decode())
    return values


@clients
def test_librdkafka_produces_in_transactions_and_reads_what_is_committed(broker: str) -> None:
    from confluent_kafka import KafkaException, TopicPartition

    first = producer(broker, **{"transactional.id": "librdkafka"})
    first.init_transactions(SECONDS)
    committed = consumer(broker, "committed", "read_committed")
    for number, ends in enumerate((first.commit_transaction, first.abort_transaction)):
        first.begin_transaction()
        first.produce("topic", f"a{number}", partition=0)
        first.produce("topic", f"b{number}", partition=1)
        first.flush(SECONDS)
        ends(SECONDS)
    first.begin_transaction()
    first.produce("topic", "last", partition=0)
    position = TopicPartition("topic", 0, 5)
    first.send_offsets_to_transaction([position], committed.consumer_group_metadata(), SECONDS)
    first.commit_transaction(SECONDS)

    assert sorted(read(committed, "a0", "b0", "last")) == ["a0", "b0", "last"]
    ((offset),) = committed.committed([TopicPartition("topic", 0)], SECONDS)
    assert offset.offset == 5
    everything = consumer(broker, "uncommitted", "read_uncommitted")
    assert {"a0", "a1", "last"} <= set(read(everything, "a0", "a1", "last"))

    second = producer(broker, **{"transactional.id": "librdkafka"})
    second.init_transactions(SECONDS)
    first.begin_transaction()
    first.produce("topic", "of the fenced", partition=0)
    with pytest.raises(KafkaException, match="fenced"):
        first.commit_transaction(SECONDS)
    second.begin_transaction()
    second.produce("topic", "of the second", partition=0)
    second.commit_transaction(SECONDS)
    assert read(committed, "of the second") == ["of the second"]
    for reader in (committed, everything):
        reader.close()


@clients
def test_librdkafkas_idempotent_producer_is_read(broker: str) -> None:
    idempotent = producer(broker, **{"enable.idempotence": True})
    for number in range(3):
        idempotent.produce("other", f"v{number}", partition=0)
    assert idempotent.flush(SECONDS) == 0
    from confluent_kafka import TopicPartition

    reader = consumer(broker, "idempotent", "read_committed")
    reader.assign([TopicPartition("other", 0, 0)])
    assert read(reader, "v2") == ["v0", "v1", "v2"]
    reader.close()


@pytest.mark.parametrize(
    "model", [f"transaction/port-{each}" for each in ("v1", "v2", "v1-forged", "v2-forged")]
)
def test_a_whole_suite_agrees_through_the_port(
    model: str, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, output = replay(model, f"wire:{broker}", tmp_path, monkeypatch)
    assert " tests passed, 0 failed, 0 inconclusive" in output
    assert code == 0, output


OF_COORDINATOR, OF_LOG, OF_PRODUCE = "transaction/transaction_coordinator", "log", "wire/producing"
NO_FORGERY = [
    (
        "BatchOfMarkers",
        OF_LOG,
        "if batch.is_control_batch:",
        "if batch.is_control_batch and batch.base_offset:",
    ),
    ("BatchWithoutSequence", OF_LOG, "and sequence < 0:", "and sequence < -1:"),
    (
        "BatchWithoutTransactionalId",
        OF_PRODUCE,
        "if producers and body.",
        "if len(producers) > 1 and body.",
    ),
    ("BatchOfAnotherId", OF_PRODUCE, "if error is not Errors.NONE:", "if error is Errors.UNKNOWN:"),
    (
        "EndOfAnotherId",
        OF_COORDINATOR,
        "producer_id and not is_overflow:",
        "producer_id and is_overflow:",
    ),
    (
        "EndOfLaterEpoch",
        OF_COORDINATOR,
        "else:\n        is_valid = is_current",
        "else:\n        is_valid = producer.epoch >= current.producer_epoch",
    ),
    (
        "InitProducerIdWithoutEpoch",
        "wire/transactions",
        "if (expected_id == _NOBODY) !=",
        "if (expected_id == _NOBODY) >",
    ),
    (
        "MarkerOfOldCoordinator",
        "producer_state/producer_append_info",
        "< self.updated_entry.coordinator_epoch:",
        "< self.updated_entry.coordinator_epoch - 1:",
    ),
]
"""What a broker takes, and the fault of ours by which it does so."""


@pytest.mark.parametrize(("kind", "module", "old", "new"), NO_FORGERY)
def test_a_broker_that_takes_what_no_client_sends_is_found(
    kind: str, module: str, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with copied() as folder:
        source = folder / "impl" / f"{module}.py"
        text = source.read_text()
        assert text.count(old) == 1
        source.write_text(text.replace(old, new))
        with served(folder=folder) as address:
            code, output = replay(
                "transaction/port-v2-forged", f"wire:{address}", tmp_path, monkeypatch
            )
    assert code == 1, output
    assert kind in output
