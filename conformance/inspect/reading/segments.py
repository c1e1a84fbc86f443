"""One segment into rows of `batches` and `damage`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from conformance.inspect.evidence import BATCHES
from conformance.inspect.reading import headers
from conformance.inspect.reading.folders import Buffer
from conformance.inspect.reading.headers import OVERHEAD, Positions, SegmentWalk
from conformance.inspect.reading.inputs import Filters
from conformance.inspect.reading.names import FilePlace

Column = NDArray[np.integer[Any]]

Span = tuple[int, int]
"""Positions from the first to the second, that one left out."""

CHUNK = 1 << 18
"""Batches that are turned into rows at a time: memory does not grow with the segment."""

Damage = Callable[[int | None, int | None, str, str], None]
"""Takes position, offset, kind and detail of a damage."""

_TEXTS = ("broker", "directory", "topic", "state", "segment")
ROWS = pa.schema(
    [
        pa.field(field.name, pa.dictionary(pa.int32(), pa.string()), field.nullable)
        if field.name in _TEXTS
        else field
        for field in BATCHES
    ]
)
"""`BATCHES` with dictionaries: a segment has one broker, one topic and so on."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment's identity, as its rows have it."""

    broker: str
    path: str
    place: FilePlace

    def constants(self) -> dict[str, str | int]:
        """The columns that are the same in all of its rows."""
        place = self.place
        return {
            "broker": self.broker,
            "directory": place.directory,
            "topic": place.topic or "",
            "partition": place.partition or 0,
            "state": place.state,
            "segment": self.path,
        }


@dataclass(frozen=True, slots=True)
class Columns:
    """Some neighbouring batches of a segment, as native arrays by the names in `BATCHES`."""

    arrays: dict[str, Column]

    def __getitem__(self, name: str) -> Column:
        return self.arrays[name]

    def __len__(self) -> int:
        return len(self.arrays["position"])

    def split(self, positions: Span) -> Iterator[tuple[Columns, bool]]:
        """The batches in up to three pieces, and whether each begins at these positions."""
        first, last = np.searchsorted(self["position"], positions)
        for start, end, within in ((0, first, False), (first, last, True), (last, None, False)):
            piece = Columns({name: array[start:end] for name, array in self.arrays.items()})
            if len(piece):
                yield piece, within


class Content(Protocol):
    """What a segment holds, however it is read."""

    @property
    def walk(self) -> SegmentWalk:
        """Where its batches are, and what lies between them."""

    def columns(self) -> Iterator[Columns]:
        """The headers of all batches, chunk by chunk, in the order of positions."""

    def verified(self, batches: Columns) -> NDArray[np.bool_]:
        """Whether each of these batches has the checksum that it stores."""


@dataclass(frozen=True, slots=True)
class MappedSegment:
    """A segment that is mapped into memory."""

    data: Buffer
    walk: SegmentWalk

    def columns(self) -> Iterator[Columns]:
        """The headers of all batches, chunk by chunk, in the order of positions."""
        for at in range(0, len(self.walk.positions), CHUNK):
            yield _columns(self.data, self.walk.positions[at : at + CHUNK])

    def verified(self, batches: Columns) -> NDArray[np.bool_]:
        """Whether each of these batches has the checksum that it stores."""
        legacy = batches["magic"] != 2
        starts: NDArray[np.int64] = batches.arrays["position"].astype(np.int64, copy=False)
        ends = starts + batches.arrays["size"].astype(np.int64)
        computed = np.empty(len(batches), np.uint32)
        for chosen, compute in ((~legacy, headers.checksums), (legacy, headers.legacy_checksums)):
            result = compute(self.data, starts[chosen].tolist(), ends[chosen].tolist())
            computed[chosen] = np.fromiter(result, np.uint32, int(np.count_nonzero(chosen)))
        good: NDArray[np.bool_] = computed == batches["stored_crc"]
        return good


def _columns(data: Buffer, positions: Positions) -> Columns:
    if positions[-1] + headers.HEADER.itemsize <= len(data):
        header = headers.gather(data, positions)
        if (header["magic"] == 2).all():
            return current_columns(positions, header)
    current = headers.magics(data, positions) == 2
    parts = [
        _current(positions[current], headers.gather(data, positions[current]))
        if current.any()
        else {},
        _legacy(positions[~current], headers.gather_legacy(data, positions[~current])),
    ]
    order = np.argsort(np.concatenate([part["position"] for part in parts if part]))
    names = parts[1].keys()
    joined = {name: np.concatenate([part[name] for part in parts if part]) for name in names}
    return Columns({name: array[order] for name, array in joined.items()})


def current_columns(positions: Positions, header: NDArray[np.void]) -> Columns:
    """Batches of magic 2."""
    return Columns(_current(positions, header))


def _current(positions: Positions, header: NDArray[np.void]) -> dict[str, Column]:
    base = header["base_offset"].astype(np.int64)
    return {
        "position": positions,
        "size": header["length"].astype(np.int32) + OVERHEAD,
        "magic": header["magic"].astype(np.int8),
        "base_offset": base,
        "last_offset": base + header["last_offset_delta"],
        "leader_epoch": header["leader_epoch"].astype(np.int32),
        "stored_crc": header["crc"].astype(np.uint32),
        "attributes": header["attributes"].astype(np.int16),
        "producer_id": header["producer_id"].astype(np.int64),
        "producer_epoch": header["producer_epoch"].astype(np.int16),
        "base_sequence": header["base_sequence"].astype(np.int32),
        "base_timestamp": header["base_timestamp"].astype(np.int64),
        "max_timestamp": header["max_timestamp"].astype(np.int64),
        "records": header["records"].astype(np.int32),
    }


def _legacy(positions: Positions, header: NDArray[np.void]) -> dict[str, Column]:
    base = header["base_offset"].astype(np.int64)
    time = np.where(header["magic"] == 1, header["timestamp"], -1).astype(np.int64)

    def all_of(value: int, kind: type[np.integer[Any]]) -> Column:
        return np.full(len(positions), value, kind)

    return {
        "position": positions,
        "size": header["length"].astype(np.int32) + OVERHEAD,
        "magic": header["magic"].astype(np.int8),
        "base_offset": base,
        "last_offset": base,
        "leader_epoch": all_of(-1, np.int32),
        "stored_crc": header["crc"].astype(np.uint32),
        "attributes": header["attributes"].astype(np.int16),
        "producer_id": all_of(-1, np.int64),
        "producer_epoch": all_of(-1, np.int16),
        "base_sequence": all_of(-1, np.int32),
        "base_timestamp": time,
        "max_timestamp": time,
        "records": all_of(1, np.int32),
    }


def touched(content: Content, size: int, filters: Filters) -> Span:
    """Where the batches lie from the first to the last that touch the time asked for.

    Those between are taken whatever their time is.
    """
    if filters.all_time:
        return 0, size
    touching = (chunk["position"][_touching(chunk, filters)] for chunk in content.columns())
    positions = np.concatenate([np.empty(0, np.int64), *touching])
    return (int(positions[0]), int(positions[-1]) + 1) if len(positions) else (0, 0)


def _touching(batches: Columns, filters: Filters) -> NDArray[np.bool_]:
    since = -(1 << 63) if filters.since is None else filters.since
    until = (1 << 63) - 1 if filters.until is None else filters.until
    # A delete horizon takes the place of the base timestamp in compacted logs (KIP-534).
    begins = np.where(batches["attributes"] & 64, -1, batches["base_timestamp"])
    touching: NDArray[np.bool_] = (batches["max_timestamp"] >= since) & (begins <= until)
    return touching


def next_offset(data: Buffer, walk: SegmentWalk, position: int, base_offset: int) -> int:
    """The offset behind the batch before `position`; the segment's base offset if there is none."""
    before = int(np.searchsorted(walk.positions, position)) - 1
    if before < 0:
        return base_offset
    return int(_columns(data, walk.positions[before : before + 1])["last_offset"][0]) + 1


def rows(segment: Segment, batches: Columns, good: NDArray[np.bool_] | None) -> pa.RecordBatch:
    """The batches as rows of the table."""
    count = len(batches)
    constants = segment.constants()
    arrays = []
    for field in ROWS:
        if pa.types.is_dictionary(field.type):
            zeros = pa.array(np.zeros(count, np.int32))
            arrays.append(pa.DictionaryArray.from_arrays(zeros, [str(constants[field.name])]))
        elif field.name == "partition":
            arrays.append(pa.array(np.full(count, constants["partition"], np.int32)))
        elif field.name == "crc_ok":
            arrays.append(pa.nulls(count, pa.bool_()) if good is None else pa.array(good))
        else:
            arrays.append(pa.array(batches[field.name]))
    return pa.RecordBatch.from_arrays(arrays, schema=ROWS)


def tell_damage(
    base_offset: int, batches: Columns, good: NDArray[np.bool_] | None, tell: Damage
) -> None:
    """What is wrong with single batches, told in the order of positions."""
    base, last, records = batches["base_offset"], batches["last_offset"], batches["records"]
    span = last.astype(np.int64) - base.astype(np.int64) + 1
    contradicts = (base < 0) | (span < 1) | (records < 0) | (records > span)
    before = base < base_offset
    bad = np.zeros(len(batches), np.bool_) if good is None else ~good
    for row in np.flatnonzero(contradicts | before | bad).tolist():
        position, offset = int(batches["position"][row]), int(base[row])
        if bad[row]:
            stored = int(batches["stored_crc"][row])
            tell(position, offset, "checksum", f"stored CRC {stored} is not that of the bytes")
        if contradicts[row]:
            detail = f"offsets {offset} to {int(last[row])}, {int(records[row])} records"
            tell(position, offset, "header", detail)
        if before[row]:
            detail = f"offset {offset} in the segment that begins at {base_offset}"
            tell(position, offset, "before-segment", detail)
