"""The records within a batch, for the topics whose values are evidence themselves.

Source: org.apache.kafka.common.record.DefaultRecord, Compression and SnappyInputStream's framing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import msgspec
import pyarrow as pa

from conformance.errors import DataError
from conformance.inspect.reading.headers import HEADER

_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_MAX_DECOMPRESSED = 256 << 20
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_SHIFTS = range(7, 64, 7)
"""Of the bytes of a varint behind the first."""


class LogRecord(msgspec.Struct, frozen=True, gc=False):
    """A record; `key` and `value` are None for null."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class BatchHeader(msgspec.Struct, frozen=True, gc=False):
    """What of a batch's header its records need."""

    base_offset: int
    base_timestamp: int
    attributes: int
    count: int

    @property
    def is_control(self) -> bool:
        """Whether it holds a control record."""
        return bool(self.attributes & 0x20)


def records(batch: BatchHeader, data: bytes) -> Iterator[LogRecord]:
    """The records of a batch of magic 2, given all its bytes. Raises DataError."""
    body = _decompressed(batch.attributes & 7, data[HEADER.itemsize :])
    position = 0
    for _ in range(batch.count):
        try:
            record, position = _record(batch, body, position)
        except IndexError:
            raise DataError(f"a record is cut off at byte {len(body)}") from None
        yield record
    if position != len(body):
        raise DataError(f"{len(body) - position} bytes are left behind {batch.count} records")


def _record(batch: BatchHeader, body: bytes, position: int) -> tuple[LogRecord, int]:
    length, position = _varint(body, position)
    end = position + length
    if length < 0 or end > len(body):
        raise DataError(f"a record has the length {length}")
    time, position = _varint(body, position + 1)
    delta, position = _varint(body, position)
    key, position = _bytes(body, position)
    value, position = _bytes(body, position)
    if position > end:
        raise DataError("key and value are longer than their record")
    stamp = batch.base_timestamp + time
    return LogRecord(batch.base_offset + delta, stamp, key, value), end


def _bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    length, position = _varint(body, position)
    if length < 0:
        return None, position
    if position + length > len(body):
        raise DataError(f"{length} bytes are announced, {len(body) - position} are left")
    return body[position : position + length], position + length


def _varint(body: bytes, position: int) -> tuple[int, int]:
    """A zig-zag varint of at most 64 bits and the position behind it."""
    number = body[position]
    position += 1
    if number < 0x80:  # nearly all
        return (number >> 1) ^ -(number & 1), position
    number &= 0x7F
    for shift in _SHIFTS:
        byte = body[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise DataError("a varint is longer than 64 bits")


def _decompressed(codec: int, data: bytes) -> bytes:
    if codec == 0:
        return data
    name = _CODECS.get(codec)
    if name is None:
        raise DataError(f"compression {codec} is not known")
    try:
        if name == "snappy":
            return b"".join(_snappy(data))
        with pa.input_stream(pa.BufferReader(data), compression=name) as stream:
            result: bytes = stream.read(_MAX_DECOMPRESSED + 1)
    except (OSError, pa.ArrowException, struct.error) as error:
        raise DataError(f"{name} cannot be decompressed: {error}") from None
    if len(result) > _MAX_DECOMPRESSED:
        raise DataError(f"more than {_MAX_DECOMPRESSED} bytes when decompressed")
    return result


def _snappy(data: bytes) -> Iterator[bytes]:
    """Java's clients frame blocks of snappy; librdkafka may write one block without a frame."""
    if not data.startswith(_XERIAL):
        yield _snappy_block(data)
        return
    position = _XERIAL_HEADER
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if size < 0 or position + size > len(data):
            raise DataError(f"a block of snappy has the size {size}")
        yield _snappy_block(data[position : position + size])
        position += size


def _snappy_block(block: bytes) -> bytes:
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > _MAX_DECOMPRESSED:
        raise DataError(f"more than {_MAX_DECOMPRESSED} bytes when decompressed")
    result: bytes = pa.Codec("snappy").decompress(block, size, asbytes=True)
    return result
