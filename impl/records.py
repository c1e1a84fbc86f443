"""Record batches in memory and in files.

A batch is encoded and its CRC computed once, when it is built; offset and leader epoch stand
outside the CRC, so that the leader stamps them without touching the body (DefaultRecordBatch).
The records of compressed batches are not decoded.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Protocol

from .errors import CorruptRecordException
from .record_format import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    TRANSACTIONAL_FLAG,
    attributes_of,
    base_timestamp_of,
    crc32c,
    decode_body_legacy,
    decode_body_v2,
    encode_body_legacy,
    encode_body_v2,
    producer_of,
)
from .record_format import MAGIC_VALUE_V0 as MAGIC_VALUE_V0
from .record_format import MAGIC_VALUE_V1 as MAGIC_VALUE_V1
from .record_format import MAGIC_VALUE_V2 as MAGIC_VALUE_V2
from .record_format import NO_PRODUCER as NO_PRODUCER
from .record_format import ProducerInfo as ProducerInfo
from .record_format import Record as Record

LOG_OVERHEAD = 12
"""Bytes of offset and length in front of every batch."""

_HEADER_V2 = struct.Struct(">qiibI")
_HEADER_LEGACY = struct.Struct(">qiI")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_MIN_LENGTH_V2 = 49
_MIN_LENGTH_LEGACY = 14


class RecordBatch:
    """An immutable batch of records. Legacy magic: exactly one record and leader epoch -1."""

    __slots__ = (
        "base_offset",
        "body",
        "crc",
        "last_offset",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "records",
        "size_in_bytes",
    )

    def __init__(
        self,
        base_offset: int,
        partition_leader_epoch: int,
        magic: int,
        crc: int,
        body: bytes,
        records: tuple[Record, ...],
        last_offset_delta: int,
        max_timestamp: int,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = base_offset + last_offset_delta
        self.partition_leader_epoch = partition_leader_epoch
        self.magic = magic
        self.crc = crc
        self.body = body
        self.records = records
        self.max_timestamp = max_timestamp
        header = _HEADER_V2.size if magic >= MAGIC_VALUE_V2 else _HEADER_LEGACY.size
        self.size_in_bytes = header + len(body)

    @classmethod
    def create(
        cls,
        records: Sequence[Record],
        base_offset: int = 0,
        partition_leader_epoch: int = -1,
        magic: int = MAGIC_VALUE_V2,
        producer: ProducerInfo = NO_PRODUCER,
        *,
        is_transactional: bool = False,
        is_control: bool = False,
    ) -> RecordBatch:
        """Encode `records`, numbered from `base_offset`.

        Legacy magic ignores the leader epoch and all that is the producer's.
        """
        numbered = tuple(
            record if record.offset_delta == i else _at_delta(record, i)
            for i, record in enumerate(records)
        )
        if not numbered:
            raise ValueError("a batch holds at least one record")
        max_timestamp = max(record.timestamp for record in numbered)
        if magic >= MAGIC_VALUE_V2:
            attributes = is_transactional * TRANSACTIONAL_FLAG | is_control * CONTROL_FLAG
            body = encode_body_v2(numbered, max_timestamp, producer, attributes)
            crc = crc32c(body)
        else:
            body = encode_body_legacy(numbered, magic)
            crc = zlib.crc32(body)
            partition_leader_epoch = -1
        delta = len(numbered) - 1
        return cls(
            base_offset, partition_leader_epoch, magic, crc, body, numbered, delta, max_timestamp
        )

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last one."""
        return self.last_offset + 1

    @property
    def producer(self) -> ProducerInfo:
        """Who sent the batch, and the sequence of its first record."""
        return producer_of(self.body) if self.magic >= MAGIC_VALUE_V2 else NO_PRODUCER

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of its producer's transaction, or ends it."""
        return self._has_flag(TRANSACTIONAL_FLAG)

    @property
    def is_control_batch(self) -> bool:
        """Whether the batch is for brokers and clients, not for applications."""
        return self._has_flag(CONTROL_FLAG)

    def _has_flag(self, flag: int) -> bool:
        return self.magic >= MAGIC_VALUE_V2 and bool(attributes_of(self.body) & flag)

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on the cleaner may remove tombstones or the marker; None: it is not set."""
        return base_timestamp_of(self.body) if self._has_flag(DELETE_HORIZON_FLAG) else None

    def cleaned(
        self, records: tuple[Record, ...], delete_horizon_ms: int | None = None
    ) -> RecordBatch:
        """The batch with these of its records only; offsets, epoch and producer stay.

        Source: MemoryRecords.buildRetainedRecordsInto, DefaultRecordBatch.writeEmptyHeader.
        """
        attributes = (
            self.is_transactional * TRANSACTIONAL_FLAG | self.is_control_batch * CONTROL_FLAG
        )
        if delete_horizon_ms is not None:
            attributes |= DELETE_HORIZON_FLAG
        delta = self.last_offset - self.base_offset
        newest = max((record.timestamp for record in records), default=self.max_timestamp)
        body = encode_body_v2(
            records,
            newest,
            self.producer,
            attributes,
            last_offset_delta=delta,
            base_timestamp=delete_horizon_ms,
        )
        return RecordBatch(
            self.base_offset,
            self.partition_leader_epoch,
            self.magic,
            crc32c(body),
            body,
            records,
            delta,
            newest,
        )

    def is_valid(self) -> bool:
        """Whether the CRC fits the body."""
        computed = crc32c(self.body) if self.magic >= MAGIC_VALUE_V2 else zlib.crc32(self.body)
        return computed == self.crc

    def ensure_valid(self) -> None:
        """Raise `CorruptRecordException` if the CRC does not fit the body."""
        if not self.is_valid():
            raise CorruptRecordException(f"CRC of the batch at offset {self.base_offset} is wrong")

    def with_offset_and_epoch(self, base_offset: int, partition_leader_epoch: int) -> RecordBatch:
        """The same batch as the leader stamps it; a legacy batch has no room for an epoch."""
        epoch = partition_leader_epoch if self.magic >= MAGIC_VALUE_V2 else -1
        delta = self.last_offset - self.base_offset
        return RecordBatch(
            base_offset,
            epoch,
            self.magic,
            self.crc,
            self.body,
            self.records,
            delta,
            self.max_timestamp,
        )

    def with_crc(self, crc: int) -> RecordBatch:
        """The same batch with another CRC, as a broken network or disk would deliver it."""
        return RecordBatch(
            self.base_offset,
            self.partition_leader_epoch,
            self.magic,
            crc,
            self.body,
            self.records,
            self.last_offset - self.base_offset,
            self.max_timestamp,
        )

    def to_bytes(self) -> bytes:
        """The batch in Kafka's binary layout."""
        length = self.size_in_bytes - LOG_OVERHEAD
        if self.magic >= MAGIC_VALUE_V2:
            return (
                _HEADER_V2.pack(
                    self.base_offset, length, self.partition_leader_epoch, self.magic, self.crc
                )
                + self.body
            )
        return _HEADER_LEGACY.pack(self.base_offset, length, self.crc) + self.body

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordBatch):
            return NotImplemented
        return (
            self.base_offset == other.base_offset
            and self.partition_leader_epoch == other.partition_leader_epoch
            and self.magic == other.magic
            and self.crc == other.crc
            and self.body == other.body
        )

    def __hash__(self) -> int:
        return hash((self.base_offset, self.partition_leader_epoch, self.crc))

    def __repr__(self) -> str:
        return (
            f"RecordBatch([{self.base_offset},{self.last_offset}],"
            f" epoch={self.partition_leader_epoch}, magic={self.magic}, crc={self.crc:#x})"
        )


class Records(Protocol):
    """Record batches in memory or in a file."""

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all batches."""

    def batches(self) -> tuple[RecordBatch, ...]:
        """The batches, in order of offset."""


class MemoryRecords:
    """Record batches in memory; immutable."""

    __slots__ = ("_batches", "_size")

    EMPTY: ClassVar[MemoryRecords]

    def __init__(self, batches: Iterable[RecordBatch] = ()) -> None:
        self._batches = tuple(batches)
        self._size = sum(batch.size_in_bytes for batch in self._batches)

    @classmethod
    def with_records(
        cls,
        *records: Record,
        base_offset: int = 0,
        partition_leader_epoch: int = -1,
        magic: int = MAGIC_VALUE_V2,
    ) -> MemoryRecords:
        """One batch of the records; with legacy magic one batch for each record."""
        if magic >= MAGIC_VALUE_V2:
            return cls((RecordBatch.create(records, base_offset, partition_leader_epoch, magic),))
        return cls(
            RecordBatch.create((record,), base_offset + i, -1, magic)
            for i, record in enumerate(records)
        )

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all batches."""
        return self._size

    def batches(self) -> tuple[RecordBatch, ...]:
        """The batches, in order of offset."""
        return self._batches

    def records(self) -> Iterator[tuple[int, Record]]:
        """(offset, record) of every record, in order."""
        for batch in self._batches:
            for record in batch.records:
                yield batch.base_offset + record.offset_delta, record

    def to_bytes(self) -> bytes:
        """All batches in Kafka's binary layout."""
        return b"".join(batch.to_bytes() for batch in self._batches)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRecords) and self._batches == other._batches

    def __hash__(self) -> int:
        return hash(self._batches)

    def __repr__(self) -> str:
        return f"MemoryRecords({list(self._batches)!r})"


MemoryRecords.EMPTY = MemoryRecords()


class ReadableFile(Protocol):
    """The part of a disk's file that reading needs."""

    def read(self, position: int, size: int) -> bytes:
        """At most `size` bytes from `position`."""


class FileRecords:
    """A range of a log segment's file; nothing is read before `read_into_memory` (FileRecords)."""

    __slots__ = ("_file", "_position", "_size")

    def __init__(self, file: ReadableFile, position: int, size_in_bytes: int) -> None:
        self._file = file
        self._position = position
        self._size = size_in_bytes

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the range."""
        return self._size

    def read_into_memory(self) -> MemoryRecords:
        """Read a buffer of `size_in_bytes` and decode it."""
        return MemoryRecords(decode_batches(self._file.read(self._position, self._size)))

    def batches(self) -> tuple[RecordBatch, ...]:
        """The batches, in order of offset; reads the file."""
        return self.read_into_memory().batches()


def decode_batches(data: bytes) -> list[RecordBatch]:
    """All whole batches at the start of `data`: a torn tail ends the list.

    Raises `CorruptRecordException` for a batch whose length is below the format's minimum or whose
    records cannot be parsed; a wrong CRC is left to `RecordBatch.ensure_valid`.
    """
    batches = []
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(data, position)
        end = position + LOG_OVERHEAD + length
        if length < _MIN_LENGTH_LEGACY:
            raise CorruptRecordException(f"batch at position {position} has length {length}")
        if end > len(data):
            break
        batches.append(_decode_batch(base_offset, data[position:end]))
        position = end
    return batches


def _decode_batch(base_offset: int, data: bytes) -> RecordBatch:
    magic = data[16]
    try:
        if magic < MAGIC_VALUE_V2:
            return _decode_legacy(base_offset, magic, data)
        return _decode_v2(base_offset, data)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise CorruptRecordException(f"batch at offset {base_offset}: {error}") from error


def _decode_v2(base_offset: int, data: bytes) -> RecordBatch:
    if len(data) < LOG_OVERHEAD + _MIN_LENGTH_V2:
        raise CorruptRecordException(f"batch at offset {base_offset} is shorter than its header")
    _, _, epoch, magic, crc = _HEADER_V2.unpack_from(data)
    return _batch(base_offset, epoch, magic, crc, data[_HEADER_V2.size :])


def _decode_legacy(base_offset: int, magic: int, data: bytes) -> RecordBatch:
    _, _, crc = _HEADER_LEGACY.unpack_from(data)
    return _batch(base_offset, -1, magic, crc, data[_HEADER_LEGACY.size :])


def _batch(base_offset: int, epoch: int, magic: int, crc: int, data: bytes) -> RecordBatch:
    body = decode_body_v2(data) if magic >= MAGIC_VALUE_V2 else decode_body_legacy(data)
    return RecordBatch(
        base_offset,
        epoch,
        magic,
        crc,
        data,
        body.records,
        body.last_offset_delta,
        body.max_timestamp,
    )


def in_format(batch: RecordBatch, magic: int) -> tuple[RecordBatch, ...]:
    """The batch in another message format; before magic 2 each record is a batch of its own."""
    if batch.magic == magic:
        return (batch,)
    if magic >= MAGIC_VALUE_V2:
        return (RecordBatch.create(batch.records),)
    plain = (Record(record.value, record.key, record.timestamp) for record in batch.records)
    return tuple(RecordBatch.create((record,), magic=magic) for record in plain)


def _at_delta(record: Record, delta: int) -> Record:
    return Record(record.value, record.key, record.timestamp, record.headers, delta)
