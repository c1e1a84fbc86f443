"""Transactions at a port: what of the answers is read, and which models a port takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from conformance.kafka.batches import keyed_batch
from conformance.kafka.entities import class_of, make, read_response, response_frame
from conformance.kafka.entities import milliseconds as duration
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.transaction.instance import TransactionBatch
from conformance.systems.wire.port import Port
from conformance.systems.wire.transaction.look import Look, visible
from conformance.systems.wire.transaction.reach import FEATURE, beyond_a_port, lacking
from conformance.systems.wire.transaction.requests import (
    DescribedTransaction,
    FetchedRecord,
    ReadPartition,
    described_transaction,
    records_of,
)
from conformance.tla import Value

PRODUCER, OTHER = 7, 8
CONSTANTS: dict[str, Value] = {
    "Version2": True,
    "StrictMarkers": True,
    "OffsetsPartitions": frozenset(),
    "MaxTenures": 1,
    "MaxLeaderChanges": 0,
    "MaxAppendFailures": 0,
}
OF_44 = {
    "init_producer_id": 5,
    "produce": 13,
    "fetch": 18,
    "list_offsets": 11,
    "end_txn": 5,
    "create_topics": 7,
    "metadata": 9,
    "add_partitions_to_txn": 3,
    "txn_offset_commit": 5,
    "offset_fetch": 9,
    "write_txn_markers": 2,
}


def data(offset: int, value: str, producer: int = PRODUCER) -> FetchedRecord:
    return FetchedRecord(offset, producer, 0, 0, value)


def marker(offset: int, *, commits: bool, producer: int = PRODUCER) -> FetchedRecord:
    return FetchedRecord(offset, producer, 0, -1, "", commits)


@pytest.mark.parametrize(
    ("records", "aborted", "values"),
    [
        ([data(0, "a"), marker(1, commits=True)], [], ["a"]),
        ([data(0, "a"), marker(1, commits=False)], [(PRODUCER, 0)], []),
        ([data(0, "a"), marker(1, commits=False), data(2, "b")], [(PRODUCER, 0)], ["b"]),
        ([data(0, "a"), data(1, "b", OTHER), marker(2, commits=False)], [(PRODUCER, 0)], ["b"]),
        (
            [data(0, "a"), marker(1, commits=True), data(2, "b"), marker(3, commits=False)],
            [(PRODUCER, 2)],
            ["a"],
        ),
        ([data(0, "a"), marker(1, commits=False)], [], ["a"]),
    ],
    ids=["committed", "aborted", "behind", "another's", "begins later", "not told"],
)
def test_a_consumer_keeps_what_is_not_aborted(
    records: list[FetchedRecord], aborted: list[tuple[int, int]], values: list[str]
) -> None:
    read = ReadPartition(9, 9, tuple(records), tuple(aborted))
    assert [record.value for record in visible(read, 0)] == values
    assert visible(read, 9) == [], "what was there before the test does not count"


def test_markers_and_records_are_read_as_they_were_written() -> None:
    key, value = b"\0\0\0\1", b"\0\0\0\0\0\5"
    written = keyed_batch(
        [(None, b"1 0")], first_ms=1_000, base_offset=3, producer_id=PRODUCER, base_sequence=4
    ) + keyed_batch(
        [(key, value)],
        first_ms=2_000,
        base_offset=4,
        producer_id=PRODUCER,
        producer_epoch=2,
        attributes=0x30,
    )
    assert records_of(written) == (
        FetchedRecord(3, PRODUCER, 0, 4, "1 0", timestamp_ms=1_000, base_offset=3),
        FetchedRecord(4, PRODUCER, 2, -1, "", True, 5, 2_000, is_transactional=True, base_offset=4),
    )
    broken = written[:-1] + bytes([written[-1] ^ 1])
    with pytest.raises(SystemFailed, match="cannot be read"):
        records_of(broken)


@pytest.mark.parametrize("start_ms", [b"\xff" * 8, b"\0" * 7 + b"\1"])
def test_a_transaction_that_has_not_begun_starts_at_no_time(start_ms: bytes) -> None:
    """Kafka sends -1."""
    kind = class_of("describe_transactions", 0, "response")
    state = make(
        cast(Any, kind.__annotations__["transaction_states"]).__args__[0],
        error_code=ErrorCode.none,
        transactional_id="t",
        transaction_state="Empty",
        transaction_timeout=duration(1),
        transaction_start_time=None,
        producer_id=PRODUCER,
        producer_epoch=3,
        topics=(),
    )
    frame = response_frame(make(kind, throttle_time=duration(0), transaction_states=(state,)), 1)
    sent = frame[4:].replace(b"\xff" * 8, start_ms)
    _, answer = read_response(sent, kind)
    assert described_transaction(answer) == DescribedTransaction("Empty", 3, ())


@dataclass
class OfferedPort:
    """Versions that were agreed on, and a feature's level."""

    versions: dict[str, int] = field(default_factory=lambda: dict(OF_44))
    level: int = 2

    def finalized_level(self, feature: str) -> int:
        assert feature == FEATURE
        return self.level


@pytest.mark.parametrize(
    ("api", "version", "level", "of_model", "reason"),
    [
        ("", 0, 2, {}, ""),
        ("produce", 11, 2, {}, "does not offer Produce 12"),
        ("end_txn", 4, 2, {}, "does not offer EndTxn 5"),
        ("", 0, 1, {}, "has not finalized transaction.version=2"),
        ("write_txn_markers", 1, 2, {}, "KIP-1228"),
        ("write_txn_markers", -1, 2, {}, ""),
        ("write_txn_markers", 1, 2, {"StrictMarkers": False}, ""),
        ("end_txn", 4, 0, {"Version2": False, "StrictMarkers": False}, ""),
        ("add_partitions_to_txn", -1, 0, {"Version2": False}, "offer AddPartitionsToTxn 0"),
        ("txn_offset_commit", -1, 2, {"OffsetsPartitions": frozenset({"q"})}, "TxnOffsetCommit"),
        ("list_offsets", 1, 2, {}, "does not offer ListOffsets 2"),
    ],
)
def test_a_broker_takes_the_models_of_what_it_offers(
    api: str, version: int, level: int, of_model: dict[str, Value], reason: str
) -> None:
    port = OfferedPort({**OF_44, **({api: version} if api else {})}, level)
    said = lacking(cast(Port, port), {**CONSTANTS, **of_model})
    assert reason in said
    assert bool(reason) is bool(said)


@pytest.mark.parametrize(
    ("constant", "value", "reason"),
    [
        ("MaxTenures", 2, "moves a leader"),
        ("MaxLeaderChanges", 1, "moves a leader"),
        ("MaxAppendFailures", 1, "makes an append fail"),
        ("MaxTenures", 1, ""),
    ],
)
def test_no_port_moves_a_leader(constant: str, value: int, reason: str) -> None:
    said = beyond_a_port({**CONSTANTS, constant: value})
    assert reason in said
    assert bool(reason) is bool(said)


def test_a_position_names_its_batch() -> None:
    assert Look.position_of(TransactionBatch("q", 5, 1, 2)) == 201
