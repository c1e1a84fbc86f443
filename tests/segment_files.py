"""Writes segments and their indexes byte by byte, as a broker leaves them: data for tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

_V2 = struct.Struct(">qiibI")
_BODY = struct.Struct(">hiqqqhii")


def varint(number: int) -> bytes:
    """A zig-zag varint."""
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def record(delta: int, key: bytes | None, value: bytes | None, time: int = 0) -> bytes:
    """A record of magic 2 without headers."""
    body = b"\0" + varint(time) + varint(delta)
    for part in (key, value):
        body += varint(-1) if part is None else varint(len(part)) + part
    body += varint(0)
    return varint(len(body)) + body


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of magic 2 to be written."""

    base_offset: int
    records: tuple[tuple[bytes | None, bytes | None], ...] = ((b"k", b"v"),)
    leader_epoch: int = 0
    attributes: int = 0
    timestamp: int = 1_700_000_000_000
    producer_id: int = -1
    delta: int | None = None
    payload: bytes | None = None
    """The bytes behind the header instead of the records."""

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_delta

    @property
    def last_delta(self) -> int:
        return len(self.records) - 1 if self.delta is None else self.delta

    def encoded(self) -> bytes:
        payload = self.payload
        if payload is None:
            payload = b"".join(record(i, key, value) for i, (key, value) in enumerate(self.records))
        body = _BODY.pack(
            self.attributes,
            self.last_delta,
            self.timestamp,
            self.timestamp,
            self.producer_id,
            -1,
            -1,
            len(self.records),
        )
        body += payload
        head = _V2.pack(self.base_offset, len(body) + 9, self.leader_epoch, 2, crc32c(body))
        return head + body


@dataclass(frozen=True, slots=True)
class Written:
    """A segment on disk."""

    path: Path
    positions: tuple[int, ...]


def partition_folder(root: Path, topic: str, partition: int = 0, suffix: str = "") -> Path:
    """`root/topic-partition`, made."""
    folder = root / f"{topic}-{partition}{suffix}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_segment(
    folder: Path, batches: Sequence[Batch], *, interval: int = 0, tail: bytes = b""
) -> Written:
    """`.log`, `.index` and `.timeindex`, an entry after every `interval` bytes and more."""
    base = batches[0].base_offset if batches else 0
    path = folder / f"{base:020d}.log"
    data, index, times = bytearray(), bytearray(), bytearray()
    positions, since, newest = [], 0, -1
    for batch in batches:
        position, encoded = len(data), batch.encoded()
        positions.append(position)
        if since > interval:
            index += struct.pack(">ii", batch.last_offset - base, position)
            if batch.timestamp > newest:
                times += struct.pack(">qi", batch.timestamp, batch.last_offset - base)
                newest = batch.timestamp
            since = 0
        since += len(encoded)
        data += encoded
    path.write_bytes(bytes(data) + tail)
    path.with_suffix(".index").write_bytes(index)
    path.with_suffix(".timeindex").write_bytes(times)
    return Written(path, tuple(positions))


def run_of(count: int, *, first: int = 0, epoch: int = 0, size: int = 10) -> list[Batch]:
    """Batches of one record each, with growing timestamps."""
    return [
        Batch(
            first + i,
            ((None, bytes(size)),),
            leader_epoch=epoch,
            timestamp=1_700_000_000_000 + first + i,
        )
        for i in range(count)
    ]


def write_checkpoint(path: Path, *entries: str) -> None:
    """A checkpoint file of version 0."""
    path.write_text("\n".join(["0", str(len(entries)), *entries]) + "\n", encoding="utf-8")
