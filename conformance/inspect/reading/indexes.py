"""Index files: hints for the reader, and what in them disagrees with the segment.

Source: org.apache.kafka.storage.internals.log.OffsetIndex, TimeIndex, TransactionIndex. An entry
of `.index` holds the last offset of what was appended together and the position of its first
batch; since a follower appends several batches together, the offset may be that of a later batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.errors import DataError
from conformance.inspect.reading import records
from conformance.inspect.reading.folders import Buffer
from conformance.inspect.reading.headers import Positions
from conformance.inspect.reading.segments import Columns, Damage

_OFFSETS = np.dtype([("relative", ">i4"), ("position", ">i4")])
_TIMES = np.dtype([("timestamp", ">i8"), ("relative", ">i4")])
_ABORTS = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first", ">i8"),
        ("last", ">i8"),
        ("stable", ">i8"),
    ]
)
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_ABORT = 0
"""A control record's type; commit is 1."""
_COMPARED = ("base_offset", "last_offset", "max_timestamp")
_TOLD = 20
"""Of the entries of one index that are wrong in one way, so many are told one by one."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A control batch that ends a producer's transaction."""

    producer: int
    offset: int
    position: int
    size: int


@dataclass(frozen=True, slots=True)
class SegmentContents:
    """What the segment itself says, of all its batches in the order of positions."""

    base_offset: int
    size: int
    positions: Positions
    first: Positions
    last: Positions
    max_timestamp: Positions
    markers: frozenset[tuple[int, int]]
    """Producer and offset of every control batch."""
    ended: tuple[Marker, ...] = ()
    """Markers that end a transaction with records in this segment."""


class ContentsGatherer:
    """Gathers what a segment says, chunk by chunk, for the comparison with its indexes."""

    def __init__(self, base_offset: int, size: int) -> None:
        self._base_offset = base_offset
        self._size = size
        self._columns: dict[str, list[Positions]] = {name: [] for name in _COMPARED}
        self._markers: set[tuple[int, int]] = set()
        self._transactional: list[dict[str, Positions]] = []

    def note(self, chunk: Columns) -> None:
        """Take the next batches."""
        for name, arrays in self._columns.items():
            arrays.append(chunk[name].astype(np.int64, copy=False))
        control = np.flatnonzero(chunk["attributes"] & _CONTROL)
        producers, offsets = chunk["producer_id"][control], chunk["last_offset"][control]
        self._markers.update(zip(producers.tolist(), offsets.tolist(), strict=True))
        rows = np.flatnonzero(chunk["attributes"] & _TRANSACTIONAL)
        if len(rows):
            names = ("producer_id", "position", "size", "last_offset", "attributes")
            self._transactional.append({n: chunk[n][rows].astype(np.int64) for n in names})

    def all(self, positions: Positions) -> SegmentContents:
        """All that was taken."""
        none = np.empty(0, np.int64)
        first, last, time = (np.concatenate([none, *self._columns[name]]) for name in _COMPARED)
        markers = frozenset(self._markers)
        return SegmentContents(
            self._base_offset, self._size, positions, first, last, time, markers,
            tuple(self._ended()),
        )  # fmt: skip

    def _ended(self) -> Iterator[Marker]:
        """Markers right behind a batch of records of the same producer."""
        if not self._transactional:
            return
        parts = self._transactional
        columns = {name: np.concatenate([row[name] for row in parts]) for name in parts[0]}
        order = np.lexsort((columns["position"], columns["producer_id"]))
        producer, control = columns["producer_id"][order], columns["attributes"][order] & _CONTROL
        ends = (producer[1:] == producer[:-1]) & (control[1:] > 0) & (control[:-1] == 0)
        for row in order[1:][ends].tolist():
            yield Marker(
                *(int(columns[n][row]) for n in ("producer_id", "last_offset", "position", "size"))
            )


def entries(data: Buffer, kind: np.dtype[np.void]) -> NDArray[np.void]:
    """All whole entries but the zeros that a preallocated file ends with."""
    count = len(data) // kind.itemsize
    result = np.frombuffer(data, kind, count)
    if count == 0:
        return result
    words = np.frombuffer(data, np.uint8, count * kind.itemsize)
    used = _last_used(words) // kind.itemsize + 1
    return result[:used]


def _last_used(words: NDArray[np.uint8]) -> int:
    """The place of the last byte that is not zero, -1 if all are."""
    window = 1 << 20
    for end in range(len(words), 0, -window):
        at = np.flatnonzero(words[max(0, end - window) : end])
        if len(at):
            return max(0, end - window) + int(at[-1])
    return -1


def hints(data: Buffer) -> Positions:
    """The positions that `.index` names, as hints for the reader."""
    return entries(data, _OFFSETS)["position"].astype(np.int64)


def check_size(data: Buffer, kind: str, tell: Damage) -> None:
    """Tell if the file is not made of whole entries."""
    size = {"index": 8, "timeindex": 12, "txnindex": 34}[kind]
    if len(data) % size:
        tell(None, None, "index-size", f"{len(data)} bytes are no multiple of {size}")


def check_offsets(data: Buffer, contents: SegmentContents, tell: Damage) -> None:
    """Tell of entries of `.index` that the segment does not bear out."""
    result = entries(data, _OFFSETS)
    position = result["position"].astype(np.int64)
    offset = result["relative"].astype(np.int64) + contents.base_offset
    beyond = position >= contents.size
    at = np.searchsorted(contents.positions, position)
    hit = _equal_at(contents.positions, at, position)
    last = contents.last[_order(contents.last)]
    is_last = _equal_at(last, np.searchsorted(last, offset), offset)
    wrong = {
        "index-beyond-end": beyond,
        "index-position": ~hit & ~beyond,
        "index-offset": hit & ~beyond & ((offset < _take(contents.first, at)) | ~is_last),
        "index-order": _not_growing(offset) | _not_growing(position),
    }
    _tell_all(tell, wrong, offset, position, trimmed=_is_full(data, result))


def check_times(data: Buffer, contents: SegmentContents, tell: Damage) -> None:
    """Tell of entries of `.timeindex` that the segment does not bear out."""
    result = entries(data, _TIMES)
    time = result["timestamp"].astype(np.int64)
    offset = result["relative"].astype(np.int64) + contents.base_offset
    if len(contents.last) == 0:
        return
    beyond = offset > int(contents.last.max())
    order = _order(contents.last)
    last, times = contents.last[order], contents.max_timestamp[order]
    at = np.minimum(np.searchsorted(last, offset), len(last) - 1)
    wrong = {
        "timeindex-beyond-end": beyond,
        "timeindex-timestamp": ~beyond & (times[at] != time),
        "timeindex-order": _not_growing(time) | (np.diff(offset, prepend=-1) < 0),
    }
    _tell_all(tell, wrong, offset, None, trimmed=_is_full(data, result))


def _is_full(data: Buffer, result: NDArray[np.void]) -> bool:
    """Whether the file was trimmed to its entries, as a broker does when it closes a segment."""
    return len(data) // result.dtype.itemsize == len(result)


def check_aborts(data: Buffer, contents: SegmentContents, tell: Damage) -> None:
    """Tell of entries of `.txnindex` that cannot be, or that lack their marker in the segment."""
    for version, producer, first, last, stable in entries(data, _ABORTS).tolist():
        detail = f"producer {producer}, offsets {first} to {last}, last stable offset {stable}"
        if version != 0 or first > last or producer < 0:
            tell(None, last, "txnindex", f"version {version}: {detail}")
        elif (producer, last) not in contents.markers:
            tell(None, last, "txnindex", f"no abort marker: {detail}")


def check_missing_aborts(
    index: Buffer, segment: Buffer, contents: SegmentContents, tell: Damage
) -> None:
    """Tell of aborted transactions that `.txnindex` does not know (b'' where there is none)."""
    known = {(producer, last) for _, producer, _, last, _ in entries(index, _ABORTS).tolist()}
    for marker in contents.ended:
        if (marker.producer, marker.offset) in known or not _is_abort(segment, marker):
            continue
        detail = f"the abort of producer {marker.producer} at offset {marker.offset} has no entry"
        tell(None, marker.offset, "txnindex-missing", detail)


def _is_abort(segment: Buffer, marker: Marker) -> bool:
    """Whether a control batch holds an abort: its key is a version and a type."""
    data = segment[marker.position : marker.position + marker.size]
    try:
        (record,) = records.records(records.BatchHeader(0, 0, 0, 1), data)
    except (DataError, ValueError):
        return False  # its checksum is wrong too, which is told
    return record.key is not None and int.from_bytes(record.key[2:4], "big") == _ABORT


def _order(values: Positions) -> Any:
    """What puts the values in order; nothing is done if they are, as in every sound segment."""
    if (values[1:] >= values[:-1]).all():
        return slice(None)
    return np.argsort(values, kind="stable")


def _not_growing(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    grown: NDArray[np.bool_] = np.concatenate(([False], values[1:] <= values[:-1]))[: len(values)]
    return grown


def _take(values: Positions, at: NDArray[Any]) -> Positions:
    if len(values) == 0:
        return np.zeros(len(at), np.int64)
    selection: Positions = values[np.minimum(at, len(values) - 1)]
    return selection


def _equal_at(values: Positions, at: NDArray[Any], wanted: Positions) -> NDArray[np.bool_]:
    if len(values) == 0:
        return np.zeros(len(wanted), np.bool_)
    equal: NDArray[np.bool_] = (at < len(values)) & (_take(values, at) == wanted)
    return equal


def _tell_all(
    tell: Damage,
    wrong: dict[str, NDArray[np.bool_]],
    offset: Positions,
    position: Positions | None,
    *,
    trimmed: bool,
) -> None:
    """Tell of the wrong entries; those at the end of a file that was not trimmed are stale.

    A truncation only sets the length back: what lies behind is overwritten by and by.
    """
    any_wrong = np.logical_or.reduce(list(wrong.values()))
    good = np.flatnonzero(~any_wrong)
    end = len(any_wrong) if trimmed else (int(good[-1]) + 1 if len(good) else 0)
    for kind, where in wrong.items():
        rows = np.flatnonzero(where[:end]).tolist()
        for row in rows[:_TOLD]:
            at = None if position is None else int(position[row])
            place = "" if at is None else f", position {at}"
            tell(at, int(offset[row]), kind, f"entry {row}: offset {int(offset[row])}{place}")
        if len(rows) > _TOLD:
            tell(None, None, kind, f"{len(rows) - _TOLD} further entries are wrong in this way")
    if end < len(any_wrong):
        detail = f"{len(any_wrong) - end} entries from entry {end} on, of a file not trimmed"
        tell(None, int(offset[end]), "index-stale", detail)
