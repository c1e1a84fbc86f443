"""The one layout of a record batch (magic 2), read and written everywhere in the harness.

Source: KIP-98; org.apache.kafka.common.record.DefaultRecordBatch. Records are written by kio.
`impl` has a layout of its own, since it is under test.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import NamedTuple

import crc32c
from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

FIELDS = (
    ("base_offset", "i8"),
    ("length", "i4"),
    ("leader_epoch", "i4"),
    ("magic", "i1"),
    ("crc", "u4"),
    ("attributes", "i2"),
    ("last_offset_delta", "i4"),
    ("base_timestamp", "i8"),
    ("max_timestamp", "i8"),
    ("producer_id", "i8"),
    ("producer_epoch", "i2"),
    ("base_sequence", "i4"),
    ("records", "i4"),
)
"""The header's fields in their order, big-endian, by numpy's names of types."""

_FORMATS = {"i1": "b", "i2": "h", "i4": "i", "i8": "q", "u4": "I"}
_HEADER = struct.Struct(">" + "".join(_FORMATS[kind] for _, kind in FIELDS))
HEADER_BYTES = _HEADER.size
OVERHEAD = 12
"""Base offset and length: the length counts what follows it."""
_CRC_AT, CRC_FROM = 17, 21
"""The checksum, and the bytes that it covers: all behind it."""
MAGIC = 2
NO_LEADER_EPOCH = -1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RecordBatchHeader(NamedTuple):
    """The fields as `FIELDS` has them."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return OVERHEAD + self.length


def header_at(data: bytes, position: int) -> RecordBatchHeader | None:
    """The header of the batch that begins there; None if fewer bytes are left."""
    if position + HEADER_BYTES > len(data):
        return None
    return RecordBatchHeader._make(_HEADER.unpack_from(data, position))


def sealed(batch: bytes) -> bytes:
    """The batch with the checksum of its bytes."""
    checksum = struct.pack(">I", crc32c.crc32c(batch[CRC_FROM:]))
    return batch[:_CRC_AT] + checksum + batch[CRC_FROM:]


def batch_bytes(
    values: Sequence[bytes],
    *,
    first_ms: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """A batch of records without keys, as a producer without an id writes it. Each record is a
    millisecond younger than the one before."""
    records = [(None, value) for value in values]
    return keyed_batch(
        records, first_ms=first_ms, base_offset=base_offset, leader_epoch=leader_epoch
    )


def keyed_batch(
    records: Sequence[tuple[bytes | None, bytes | None]],
    *,
    first_ms: int,
    step_ms: int = 1,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = -1,
    producer_epoch: int = 0,
    base_sequence: int = 0,
    attributes: int = 0,
) -> bytes:
    """A batch of records with keys and values, each by `step_ms` younger than the one before.
    `attributes` are the header's. Epoch and sequence count with a producer id only."""
    written = tuple(
        Record(
            attributes=i8(0),
            timestamp=_at(first_ms + number * step_ms),
            offset=i64(base_offset + number),
            key=key,
            value=value,
            headers=(),
        )
        for number, (key, value) in enumerate(records)
    )
    buffer = BytesIO()
    batch = NewRecordBatch(
        producer_id=i64(producer_id),
        producer_epoch=i16(-1 if producer_id < 0 else producer_epoch),
        partition_leader_epoch=i32(leader_epoch),
        base_sequence=i32(-1 if producer_id < 0 else base_sequence),
        records=written,
        attributes=i16(attributes),
    )
    write_new_batch(buffer, batch)
    return buffer.getvalue()


def _at(ms: int) -> TZAwareMicros:
    return TZAwareMicros.parse(_EPOCH + timedelta(milliseconds=ms))


def milliseconds_of(timestamp: datetime) -> int:
    """A record's timestamp as Kafka counts it, from 1970 on."""
    return (timestamp - _EPOCH) // timedelta(milliseconds=1)
