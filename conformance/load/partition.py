"""The records of one partition of an internal topic, read from its folder.

Source: org.apache.kafka.coordinator.common.runtime.CoordinatorLoaderImpl: what a loader hands over.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.errors import DataError
from conformance.inspect.reading import headers
from conformance.inspect.reading.folders import Buffer
from conformance.inspect.reading.records import BatchHeader, records
from conformance.inspect.reading.segments import MappedSegment
from conformance.kafka.batches import MAGIC

_NO_PRODUCER = -1
_TRANSACTIONAL = 0x10
_COLUMNS = (
    "position", "size", "magic", "base_offset", "attributes", "base_timestamp", "records",
    "producer_id", "producer_epoch",
)  # fmt: skip
_MARKERS = {0: False, 1: True}
"""Control records by their type: an aborted and a committed transaction; loaders skip others."""


@dataclass(frozen=True, slots=True)
class LoggedRecord:
    """A record as a loader hands it over, or a transaction's marker."""

    offset: int
    batch: int
    """The first offset of its batch."""
    key: bytes
    value: bytes | None
    producer: int = _NO_PRODUCER
    """Of a transaction; -1: none."""
    producer_epoch: int = -1
    commit: bool | None = None
    """What a marker says; None: it is no marker."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that no loader gets past, or behind which nothing is read."""

    segment: str
    detail: str


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """What a partition's folder holds."""

    records: tuple[LoggedRecord, ...]
    batches: int
    size: int
    """Bytes of all segments."""
    damage: tuple[Damage, ...]
    count: int
    """Records, also where they are not kept."""

    def without_records(self) -> PartitionLog:
        """What a report needs of it."""
        return replace(self, records=())


def read_partition(folder: Path) -> PartitionLog:
    """All segments of a partition's folder in their order. DataError if there are none."""
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: name a copy of one partition's folder.")
    segments = sorted(path for path in folder.glob("*.log") if path.stem.isdigit())
    if not segments:
        raise DataError(f"{folder} holds no segment (00000000000000000000.log).")
    reader = _SegmentReader()
    log = [record for path in segments for record in reader.segment(path)]
    return PartitionLog(tuple(log), reader.batches, reader.size, tuple(reader.damage), len(log))


class _SegmentReader:
    """Counts while it reads."""

    def __init__(self) -> None:
        self.batches = self.size = 0
        self.damage: list[Damage] = []

    def segment(self, path: Path) -> Iterator[LoggedRecord]:
        """The records of a segment. Behind a damage nothing of it is read."""
        self.size += path.stat().st_size
        if not path.stat().st_size:
            return
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from self._batches(path.name, data)

    def _batches(self, segment: str, data: Buffer) -> Iterator[LoggedRecord]:
        content = MappedSegment(data, headers.walk(data))
        for chunk in content.columns():
            good = content.verified(chunk)
            rows = zip(*(chunk[name].tolist() for name in _COLUMNS), strict=True)
            for row, fine in zip(rows, good.tolist(), strict=True):
                if not fine or row[2] != MAGIC:
                    why = f"its magic is {row[2]}" if fine else "its checksum is wrong"
                    self.damage.append(Damage(segment, f"batch at offset {row[3]}: {why}"))
                    return
                yield from self._batch(segment, data, row)
        self.damage += [
            Damage(segment, f"{stretch.kind} at byte {stretch.start}: {stretch.detail}")
            for stretch in content.walk.stretches
        ]

    def _batch(self, segment: str, data: Buffer, row: tuple[int, ...]) -> Iterator[LoggedRecord]:
        position, size, _, base, attributes, time, count, producer, epoch = row
        self.batches += 1
        header = BatchHeader(base, time, attributes, count)
        transactional = bool(attributes & _TRANSACTIONAL)
        try:
            for record in records(header, data[position : position + size]):
                if header.is_control:
                    commit = _MARKERS.get(int.from_bytes((record.key or b"")[2:4], "big"))
                    if commit is not None:
                        yield LoggedRecord(record.offset, base, b"", None, producer, epoch, commit)
                    continue
                yield LoggedRecord(
                    record.offset, base, record.key or b"", record.value,
                    producer if transactional else _NO_PRODUCER, epoch,
                )  # fmt: skip
        except DataError as error:
            self.damage.append(Damage(segment, f"batch at offset {base}: {error}"))
