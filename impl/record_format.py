"""The binary layout of batch bodies: magic 2, and 0/1 of before KIP-98 (DefaultRecord).

The body is what a batch's CRC covers: from the attributes on (magic 2) or from the magic on.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

MAGIC_VALUE_V0 = 0
MAGIC_VALUE_V1 = 1
MAGIC_VALUE_V2 = 2

_BODY_V2 = struct.Struct(">hiqqqhii")
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = struct.calcsize(">hiqq")
_BASE_TIMESTAMP_AT = struct.calcsize(">hi")
NO_BASE_TIMESTAMP = -1
"""Of a batch without records."""
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_COMPRESSION_MASK = 0x07
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40
"""The base timestamp is the time from which on the batch's tombstones or marker may go."""


def _crc32c_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x82F63B78 if crc & 1 else crc >> 1
        table.append(crc)
    return tuple(table)


_CRC32C = _crc32c_table()


@lru_cache(maxsize=4096)
def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli); cached, as every replica checks the body that its leader checked."""
    crc = 0xFFFFFFFF
    table = _CRC32C
    for byte in data:
        crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Record:
    """A record; `offset_delta` is relative to its batch, `timestamp` in ms."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset_delta: int = 0


class ProducerInfo(NamedTuple):
    """Whose batch it is, and the sequence of its first record (KIP-98); -1 if of nobody."""

    producer_id: int = -1
    epoch: int = -1
    base_sequence: int = -1


NO_PRODUCER = ProducerInfo()
"""Of a batch without a producer id, and of the formats before magic 2."""


def encode_body_v2(
    records: Sequence[Record],
    max_timestamp: int,
    producer: ProducerInfo = NO_PRODUCER,
    attributes: int = 0,
    *,
    last_offset_delta: int | None = None,
    base_timestamp: int | None = None,
) -> bytes:
    """Uncompressed; `records` carry their offset deltas.

    A cleaned batch ends behind its last record, may have none, and may have another base timestamp.
    """
    count = len(records)
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else NO_BASE_TIMESTAMP
    delta = count - 1 if last_offset_delta is None else last_offset_delta
    out = bytearray(
        _BODY_V2.pack(attributes, delta, base_timestamp, max_timestamp, *producer, count)
    )
    for record in records:
        payload = bytearray(b"\0")
        _put_varint(payload, record.timestamp - base_timestamp)
        _put_varint(payload, record.offset_delta)
        _put_bytes(payload, record.key)
        _put_bytes(payload, record.value)
        _put_varint(payload, len(record.headers))
        for name, value in record.headers:
            _put_bytes(payload, name.encode())
            _put_bytes(payload, value)
        _put_varint(out, len(payload))
        out += payload
    return bytes(out)


def producer_of(body: bytes) -> ProducerInfo:
    """The producer of a body of magic 2."""
    return ProducerInfo(*_PRODUCER.unpack_from(body, _PRODUCER_AT))


def attributes_of(body: bytes) -> int:
    """The attributes of a body of magic 2."""
    return int.from_bytes(body[:2], "big")


def base_timestamp_of(body: bytes) -> int:
    """The base timestamp of a body of magic 2, in ms."""
    (timestamp,) = _LONG.unpack_from(body, _BASE_TIMESTAMP_AT)
    return int(timestamp)


def encode_body_legacy(records: Sequence[Record], magic: int) -> bytes:
    """One record, uncompressed."""
    if len(records) != 1:
        raise ValueError("an uncompressed legacy batch holds exactly one record")
    record = records[0]
    out = bytearray((magic, 0))
    if magic == MAGIC_VALUE_V1:
        out += _LONG.pack(record.timestamp)
    for data in (record.key, record.value):
        out += _INT.pack(-1 if data is None else len(data))
        out += data or b""
    return bytes(out)


def _put_varint(out: bytearray, value: int) -> None:
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)


def _put_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)  # zig-zag of -1
        return
    _put_varint(out, len(data))
    out += data


@dataclass(frozen=True, slots=True)
class Body:
    """A decoded body; no records if it is compressed."""

    records: tuple[Record, ...]
    last_offset_delta: int
    max_timestamp: int


def decode_body_v2(body: bytes) -> Body:
    """Raises IndexError, struct.error or UnicodeDecodeError for a malformed body."""
    attributes, last_delta, base_timestamp, max_timestamp, _, _, _, count = _BODY_V2.unpack_from(
        body
    )
    if attributes & _COMPRESSION_MASK:
        return Body((), last_delta, max_timestamp)
    reader = _Reader(body, _BODY_V2.size)
    records = tuple(reader.record(base_timestamp) for _ in range(count))
    return Body(records, last_delta, max_timestamp)


def decode_body_legacy(body: bytes) -> Body:
    """One record; raises IndexError or struct.error for a malformed body."""
    position = 2
    timestamp = -1
    if body[0] == MAGIC_VALUE_V1:
        (timestamp,) = _LONG.unpack_from(body, position)
        position += _LONG.size
    key, position = _legacy_bytes(body, position)
    value, _ = _legacy_bytes(body, position)
    return Body((Record(value, key, timestamp),), 0, timestamp)


def _legacy_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    (length,) = _INT.unpack_from(body, position)
    position += 4
    return (
        (None, position) if length < 0 else (body[position : position + length], position + length)
    )


class _Reader:
    """Reads varints and byte strings of a v2 body from a position on."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def record(self, base_timestamp: int) -> Record:
        self._varint()  # length
        self._position += 1  # attributes, unused
        timestamp = base_timestamp + self._varint()
        delta = self._varint()
        key = self._bytes()
        value = self._bytes()
        headers = tuple(
            ((self._bytes() or b"").decode(), self._bytes()) for _ in range(self._varint())
        )
        return Record(value, key, timestamp, headers, delta)

    def _varint(self) -> int:
        shift = zigzag = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            zigzag |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (zigzag >> 1) ^ -(zigzag & 1)
            shift += 7

    def _bytes(self) -> bytes | None:
        length = self._varint()
        if length < 0:
            return None
        start = self._position
        self._position += length
        if self._position > len(self._data):
            raise IndexError("record runs past the end of its batch")
        return self._data[start : self._position]
