"""Records of __transaction_state: bytes laid out by hand after TransactionLogValue.json of 4.4."""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.errors import CorruptRecordException
from impl.records import Record
from impl.transaction.transaction_log import read_transaction_record, transaction_record
from impl.transaction.transaction_metadata import TxnTransitMetadata
from impl.transaction.transaction_state import TransactionState
from impl.types import TopicPartition

EMPTY = TxnTransitMetadata(5, 1000, 7, producer_epoch=2)
DECIDED = replace(
    EMPTY,
    txn_state=TransactionState.PREPARE_COMMIT,
    prev_producer_id=5,
    next_producer_id=6,
    topic_partitions=frozenset({TopicPartition("t", 1), TopicPartition("t", 3)}),
    txn_start_timestamp=6,
    client_transaction_version=2,
)
KEY = bytes.fromhex("0000 0002") + b"id"
FIXED = bytes.fromhex("0000000000000005 0002 000003e8")
TIMES = bytes.fromhex("0000000000000007 0000000000000006")
PARTITIONS_V0 = bytes.fromhex("00000001 0001") + b"t" + bytes.fromhex("00000002 00000001 00000003")
PARTITIONS_V1 = bytes.fromhex("02 02") + b"t" + bytes.fromhex("03 00000001 00000003 00")
TAGGED = bytes.fromhex("03 00 08 0000000000000005 01 08 0000000000000006 02 02 0002")
NOT_STARTED = bytes.fromhex("0000000000000007 ffffffffffffffff")


@pytest.mark.parametrize(
    ("value", "version", "expected"),
    [
        (DECIDED, 0, b"\0\0" + FIXED + b"\x02" + PARTITIONS_V0 + TIMES),
        (DECIDED, 2, b"\0\1" + FIXED + b"\x02" + PARTITIONS_V1 + TIMES + TAGGED),
        (EMPTY, 0, b"\0\0" + FIXED + b"\0" + bytes.fromhex("ffffffff") + NOT_STARTED),
        (EMPTY, 1, b"\0\1" + FIXED + b"\0" + b"\0" + NOT_STARTED + b"\0"),
    ],
)
def test_a_record_has_the_bytes_of_its_version(
    value: TxnTransitMetadata, version: int, expected: bytes
) -> None:
    record = transaction_record("id", value, version, 9)
    assert (record.key, record.value, record.timestamp) == (KEY, expected, 9)


@pytest.mark.parametrize("value", [EMPTY, DECIDED])
def test_what_is_read_is_what_was_written(value: TxnTransitMetadata) -> None:
    known = read_transaction_record(transaction_record("id", value, 2, 9))
    assert known is not None
    assert (known.transactional_id, known.value) == ("id", value)


def test_version_0_has_no_room_for_the_producer_ids_before_and_after() -> None:
    known = read_transaction_record(transaction_record("id", DECIDED, 0, 9))
    assert known is not None
    assert known.value == replace(
        DECIDED, prev_producer_id=-1, next_producer_id=-1, client_transaction_version=0
    )


def test_a_tombstone_has_no_value() -> None:
    known = read_transaction_record(Record(None, KEY))
    assert known is not None
    assert known.value is None


@pytest.mark.parametrize("record", [Record(b"", b"\0\1" + KEY[2:]), Record(b"\0\2" + FIXED, KEY)])
def test_a_version_that_is_unknown_is_passed_over(record: Record) -> None:
    assert read_transaction_record(record) is None


@pytest.mark.parametrize("size", range(50))
def test_a_record_that_is_cut_off_is_corrupt(size: int) -> None:
    whole = transaction_record("id", DECIDED, 2, 9)
    assert whole.value is not None
    with pytest.raises(CorruptRecordException):
        read_transaction_record(replace(whole, value=whole.value[:size]))
