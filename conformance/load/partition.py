"""The records of one partition of an internal topic, read from its folder.

Of offsets that a group commits one after the other only the first, the last of each partition,
those beside tombstones, and whatever a load may not be able to read are kept. What a commit changes
is its own entry, and that there is a group. No other record of the group lies between them, so a
load of any compaction comes to the same with and without the others.

Source: org.apache.kafka.coordinator.common.runtime.CoordinatorLoaderImpl: what a loader hands over.
"""

from __future__ import annotations

import mmap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from struct import calcsize, unpack_from

import msgspec

from conformance.errors import DataError
from conformance.inspect.reading import headers
from conformance.inspect.reading.folders import Buffer
from conformance.inspect.reading.names import EPOCH_CHECKPOINT, INDEXES
from conformance.inspect.reading.records import BatchHeader, records
from conformance.inspect.reading.segments import MappedSegment
from conformance.inspect.reading.texts import checkpoint
from conformance.kafka.batches import MAGIC

_NO_PRODUCER = -1
_TRANSACTIONAL = 0x10
_COLUMNS = (
    "position", "size", "magic", "base_offset", "last_offset", "attributes", "base_timestamp",
    "records", "producer_id", "producer_epoch",
)  # fmt: skip
_OFFSET_KEYS = (b"\x00\x00", b"\x00\x01")
"""Their types: LegacyOffsetCommitKey, OffsetCommitKey."""
_FIRST = b""
_SWAP = "a broker's start puts this file in the place of segments, which were read as they are"
"""Source: LogLoader.load, completeSwapOperations: the cleaner was interrupted."""
_MARKERS = {0: False, 1: True}
"""Control records by their type: an aborted and a committed transaction; loaders skip others."""


class LoggedRecord(msgspec.Struct, frozen=True, gc=False):
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
    """Those that are kept."""
    size: int
    """Bytes of all segments."""
    damage: tuple[Damage, ...]
    count: int
    """All records that were read."""

    def without_records(self) -> PartitionLog:
        """What a report needs of it."""
        return replace(self, records=())


def read_partition(folder: Path, *, whole: bool = False) -> PartitionLog:
    """All segments of a partition's folder in their order, up to the first damage: what stands
    behind it may be judged wrongly without the records that are not read.

    DataError if there are none. `whole`: every record is kept, as of a topic that has no commits.
    """
    segments = sorted(path for path in folder.glob("*.log") if path.stem.isdecimal())
    if not segments:
        raise DataError(f"{folder} holds no segment (00000000000000000000.log).")
    reader = SegmentReader()
    reader.damage += [Damage(path.name, _SWAP) for path in sorted(folder.glob("*.log.swap"))]
    reader.damage += _missing(folder, segments)
    read = reader.log(segments)
    if whole:
        records = tuple(read)
        return PartitionLog(records, reader.size, tuple(reader.damage), len(records))
    log = _KeptRecords()
    for record in read:
        log.append(record)
    return PartitionLog(log.records(), reader.size, tuple(reader.damage), log.count)


def _missing(folder: Path, segments: Sequence[Path]) -> Iterator[Damage]:
    """Segments of which the folder itself says that they were there.

    A broker's start would delete an index without its segment, and load what is left
    (LogLoader.loadSegmentFiles): of another log than the one that was copied.
    """
    stems = {path.stem for path in segments}
    indexes = {path.stem for path in folder.iterdir() if path.suffix[1:] in INDEXES}
    for stem in sorted(stem for stem in indexes - stems if stem.isdecimal()):
        yield Damage(f"{stem}.log", "it is missing, and its index is here")
    first, begin = int(segments[0].stem), _begin_of_epochs(folder / EPOCH_CHECKPOINT)
    if begin is not None and begin < first:
        detail = f"its epochs begin at offset {begin}, the first segment at {first}"
        yield Damage(EPOCH_CHECKPOINT, detail)


def _begin_of_epochs(file: Path) -> int | None:
    """The first offset of which the log's epochs tell; None without such a file that is whole."""
    try:
        entries = checkpoint(EPOCH_CHECKPOINT, file.read_bytes())
    except (OSError, DataError):
        return None
    return min((entry.offset for entry in entries), default=None)


_Commit = tuple[int, int | None]
"""A commit's number, and the version of its value if nothing is wrong with it."""


class _KeptRecords:
    """The records that are kept; memory grows with the keys of a log, hardly with its commits."""

    def __init__(self) -> None:
        self._kept: list[LoggedRecord | None] = []
        self._runs: dict[bytes, dict[bytes, _Commit]] = defaultdict(dict)
        """By group: the last commit of each key, and the first of all under no key."""
        self._open: dict[int, set[bytes]] = defaultdict(set)
        """By producer: groups in its transaction."""
        self._keys: dict[bytes, tuple[bytes, bool]] = {}

    @property
    def count(self) -> int:
        """All that were appended."""
        return len(self._kept)

    def records(self) -> tuple[LoggedRecord, ...]:
        """Those that are kept, in their order."""
        return tuple(record for record in self._kept if record is not None)

    def append(self, record: LoggedRecord) -> None:
        """Keep a record; let go of the one that it makes superfluous."""
        number = len(self._kept)
        self._kept.append(record)
        if record.commit is not None:
            for group in self._open.pop(record.producer, ()):
                self._runs.pop(group, None)
            return
        key = record.key
        group, is_offset = self._keys.get(key) or self._read(key)
        if record.producer >= 0:
            self._open[record.producer].add(group)
        elif is_offset:
            self._extend(self._runs[group], record, number)
            return
        self._runs.pop(group, None)

    def _extend(self, run: dict[bytes, _Commit], record: LoggedRecord, number: int) -> None:
        if record.value is None:  # where the tombstone is cleaned away, the commit before it counts
            run.setdefault(_FIRST, (number, None))
            run.pop(record.key, None)
            return
        version = commit_version(record.value)
        first, _ = run.setdefault(_FIRST, (number, version))
        older = run.get(record.key)
        if older is not None and older[0] != first and version is not None and older[1] == version:
            self._kept[older[0]] = None
        run[record.key] = number, version

    def _read(self, key: bytes) -> tuple[bytes, bool]:
        self._keys[key] = read = group_of(key), is_offset_key(key)
        return read


def group_of(key: bytes) -> bytes:
    """The group's name: the first field of every key. Empty of a key that has none."""
    return key[4 : 4 + int.from_bytes(key[2:4], "big")]


def is_offset_key(key: bytes) -> bool:
    """Whether it is a whole key of a committed offset: group, topic, partition."""
    group = 4 + int.from_bytes(key[2:4], "big")
    topic = group + 2 + int.from_bytes(key[group : group + 2], "big")
    if key[:2] not in _OFFSET_KEYS or len(key) != topic + 4:
        return False
    try:
        key[4:group].decode(), key[group + 2 : topic].decode()
    except UnicodeDecodeError:
        return False
    return True


_FRONT = {0: ">2xqh", 1: ">2xqh", 2: ">2xqh", 3: ">2xqih"}
"""Of an OffsetCommitValue by its version: up to the length of the metadata."""
_BEHIND = {0: 8, 1: 16, 2: 8, 3: 8}
"""Bytes behind the metadata."""


def commit_version(value: bytes) -> int | None:
    """The version of an OffsetCommitValue; None of one that a load may not get past.

    Of the flexible version 4 nothing is said: its values are all looked at.
    """
    version = int.from_bytes(value[:2], "big", signed=True)
    front = _FRONT.get(version)
    if front is None or len(value) < (start := calcsize(front)):
        return None
    length = unpack_from(front, value)[-1]
    if length < 0 or len(value) != start + length + _BEHIND[version]:
        return None
    try:
        value[start : start + length].decode()
    except UnicodeDecodeError:
        return None
    return version


class SegmentReader:
    """Counts while it reads."""

    def __init__(self) -> None:
        self.size = 0
        self.damage: list[Damage] = []
        self._next = 0
        """Behind the last offset that was read."""

    def log(self, segments: Sequence[Path]) -> Iterator[LoggedRecord]:
        """The records of segments, up to the first damage of one."""
        before = len(self.damage)
        for path in segments:
            if len(self.damage) == before:
                yield from self.segment(path)
            elif path.is_file():
                self.size += path.stat().st_size

    def segment(self, path: Path) -> Iterator[LoggedRecord]:
        """The records of a segment. Behind a damage nothing of it is read."""
        if not path.is_file():
            self.damage.append(Damage(path.name, "it is no regular file"))
            return
        self._next = max(self._next, int(path.stem))
        self.size += path.stat().st_size
        if not path.stat().st_size:
            return
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from self._batches(path.name, data)

    def _batches(self, segment: str, data: Buffer) -> Iterator[LoggedRecord]:
        content = MappedSegment(data, headers.walk(data))
        # A walk goes on behind what it cannot read; a loader does not.
        end = min((stretch.start for stretch in content.walk.stretches), default=len(data))
        for chunk in content.columns():
            good = content.verified(chunk)
            rows = zip(*(chunk[name].tolist() for name in _COLUMNS), strict=True)
            for row, fine in zip(rows, good.tolist(), strict=True):
                if row[0] > end:
                    break
                if why := self._not_readable(row, fine=fine):
                    self.damage.append(Damage(segment, f"batch at offset {row[3]}: {why}"))
                    return
                self._next = row[4] + 1
                damages = len(self.damage)
                yield from self._batch(segment, data, row)
                if len(self.damage) > damages:
                    return
        self.damage += [
            Damage(segment, f"{stretch.kind} at byte {stretch.start}: {stretch.detail}")
            for stretch in content.walk.stretches
        ]

    def _not_readable(self, row: tuple[int, ...], *, fine: bool) -> str:
        if not fine:
            return "its checksum is wrong"
        if row[2] != MAGIC:
            return f"its magic is {row[2]}"
        if row[3] < self._next:
            return f"it stands where offset {self._next} or a later one is due"
        return ""

    def _batch(self, segment: str, data: Buffer, row: tuple[int, ...]) -> Iterator[LoggedRecord]:
        position, size, _, base, _, attributes, time, count, producer, epoch = row
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
