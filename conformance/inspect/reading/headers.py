"""Finds the batches of a segment by their headers: hops from one to the next, reads no values.

Source of the layout: org.apache.kafka.common.record.DefaultRecordBatch and LegacyRecord.
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from conformance.inspect.reading.folders import Buffer
from conformance.kafka import batches

Positions = NDArray[np.int64]

Bytes = Buffer | memoryview
"""A segment's bytes, or some of them."""

HEADER = np.dtype([(name, f">{kind}") for name, kind in batches.FIELDS])
"""Magic 2; its checksum covers what follows it."""
LEGACY_HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("crc", ">u4"),
        ("magic", "i1"),
        ("attributes", "i1"),
        ("timestamp", ">i8"),
    ]
)
"""Magic 0 and 1, which share the framing; magic 0 has a key's length where 1 has a timestamp."""

OVERHEAD = batches.OVERHEAD
MIN_LENGTH = 14
"""Of the shortest message of magic 0, hence of anything."""
MIN_BATCH = OVERHEAD + MIN_LENGTH
_MIN_LENGTH_V2 = HEADER.itemsize - OVERHEAD
_LENGTH, _MAGIC = 8, 16
_CRC_FROM, _LEGACY_CRC_FROM = batches.CRC_FROM, 16
_FEW_CHAINS = 64
"""So many chains are hopped one after the other: numpy's calls would cost more."""
_WINDOW = 1 << 22


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes of a segment that are no batch: from `start` to `end`, the end left out."""

    start: int
    end: int
    kind: Literal["torn-tail", "zero-tail", "unreadable"]
    detail: str


@dataclass(frozen=True, slots=True)
class SegmentWalk:
    """Where the batches of a segment begin, and what lies between them."""

    positions: Positions
    stretches: tuple[Stretch, ...]


def walk(data: Buffer, hints: Positions | None = None) -> SegmentWalk:
    """All batches of a segment. `hints` are positions at which batches may begin, ascending.

    The result is that of hopping one by one from position 0, whatever the hints are: a chain of
    hops that starts at a hint counts only if the chain before it ends exactly there.
    """
    chains = _Chains.of(data, hints)
    result: list[Positions] = []
    stretches: list[Stretch] = []
    position = 0
    while True:
        positions, position = chains.follow(position)
        result.append(positions)
        if position == len(data):
            break
        stretch = _stretch(data, position)
        stretches.append(stretch)
        position = stretch.end
        if position == len(data):
            break
    return SegmentWalk(np.concatenate(result), tuple(stretches))


def first_batches(data: Bytes, hints: Positions | None = None) -> tuple[Positions, int]:
    """The batches from position 0 on, and where they end: at the end, or where none is whole."""
    return _Chains.of(data, hints).follow(0)


@dataclass(frozen=True, slots=True)
class _Chains:
    """Hops from all hints at once; a chain is whole if it ends exactly where the next begins."""

    data: Bytes
    starts: list[int]
    members: Positions
    """The positions of all chains, chain after chain."""
    bounds: list[int]
    """Chain i has members[bounds[i]:bounds[i + 1]]."""
    run_end: list[int]
    """The first chain from i on that is not whole; i itself if that one is not."""

    @classmethod
    def of(cls, data: Bytes, hints: Positions | None) -> _Chains:
        size = len(data)
        if hints is not None:
            hints = hints[(hints > 0) & (hints <= size - MIN_BATCH)]
            if not (hints[1:] > hints[:-1]).all():
                hints = np.unique(hints)
        if hints is None or len(hints) < _FEW_CHAINS:
            return cls(data, [], np.empty(0, np.int64), [0], [])
        starts = np.concatenate(([0], hints))
        members, owners, whole = _lockstep(data, starts, np.concatenate((hints, [size])))
        bounds = np.searchsorted(owners, np.arange(len(starts) + 1))
        broken = np.where(whole, len(starts), np.arange(len(starts)))
        run_end = np.minimum.accumulate(broken[::-1])[::-1]
        return cls(data, starts.tolist(), members, bounds.tolist(), run_end.tolist())

    def follow(self, position: int) -> tuple[Positions, int]:
        """The batches from `position` on and where they end: at the file's end or at no batch."""
        result: list[Positions] = []
        while (chain := bisect_left(self.starts, position)) < len(self.starts):
            start = self.starts[chain]
            last = self.run_end[chain] if start == position else chain
            if last > chain:
                result.append(self.members[self.bounds[chain] : self.bounds[last]])
                position = self.starts[last] if last < len(self.starts) else len(self.data)
                continue
            before = position
            hopped, position = hop(self.data, position, max(start, position + 1))
            result.append(hopped)
            if position == before or position < start:
                return np.concatenate(result), position
        hopped, position = hop(self.data, position, len(self.data))
        return np.concatenate([*result, hopped]), position


def hop(data: Bytes, position: int, until: int) -> tuple[Positions, int]:
    """Batches one after the other, from `position` to the first that begins at or behind `until`.

    Also where they stopped: short of `until`, there is no batch at that position.
    """
    result: list[int] = []
    note, length_at, size = result.append, struct.Struct(">i").unpack_from, len(data)
    while position < until and position + MIN_BATCH <= size:
        (length,) = length_at(data, position + _LENGTH)
        after = position + OVERHEAD + length
        magic = data[position + _MAGIC]
        if length < MIN_LENGTH or after > size or magic > 2 or (magic == 2 and length < 49):
            break
        note(position)
        position = after
    return np.array(result, np.int64), position


def _lockstep(
    data: Bytes, starts: Positions, stops: Positions
) -> tuple[Positions, Positions, NDArray[np.bool_]]:
    """Hop in all chains at once: positions and their chains, sorted, and which chains are whole."""
    size = len(data)
    lengths = np.ndarray((size - 3,), ">i4", data, strides=(1,))
    magics = np.frombuffer(data, np.uint8)
    chains, current = np.arange(len(starts)), starts.astype(np.int64)
    whole = np.zeros(len(starts), np.bool_)
    result: list[tuple[Positions, Positions]] = []
    while len(chains) > _FEW_CHAINS:
        fits = current + MIN_BATCH <= stops[chains]
        chains, current = chains[fits], current[fits]
        length = lengths[current + _LENGTH].astype(np.int64)
        magic = magics[current + _MAGIC]
        after = current + OVERHEAD + length
        good = (length >= MIN_LENGTH) & (after <= stops[chains]) & (magic <= 2)
        good &= (magic != 2) | (length >= _MIN_LENGTH_V2)
        chains, current, after = chains[good], current[good], after[good]
        result.append((current, chains))
        met = after == stops[chains]
        whole[chains[met]] = True
        chains, current = chains[~met], after[~met]
    for chain, position in zip(chains.tolist(), current.tolist(), strict=True):
        stop = int(stops[chain])
        hopped, end = hop(data, position, stop)
        result.append((hopped, np.full(len(hopped), chain)))
        whole[chain] = end == stop
    positions = np.concatenate([part[0] for part in result])
    owners = np.concatenate([part[1] for part in result])
    order = np.argsort(positions, kind="stable")
    return positions[order], owners[order], whole


def _stretch(data: Buffer, start: int) -> Stretch:
    """What lies at `start`, where no batch begins, up to the next batch or the end."""
    size = len(data)
    if _all_zero(data, start):
        return Stretch(start, size, "zero-tail", f"{size - start} zero bytes to the file's end")
    reason = _what_it_says(data, start)
    result = resume(data, start + 1)
    if result is not None:
        return Stretch(start, result, "unreadable", f"{reason}; the next batch is at {result}")
    if _could_be_torn(data, start):
        return Stretch(start, size, "torn-tail", reason)
    return Stretch(start, size, "unreadable", f"{reason}; no batch follows")


def _what_it_says(data: Buffer, start: int) -> str:
    left = len(data) - start
    if left < MIN_BATCH:
        return f"{left} bytes, less than any batch"
    (length,) = struct.unpack_from(">i", data, start + _LENGTH)
    return f"{left} bytes left, length field {length}, magic {data[start + _MAGIC]}"


def _could_be_torn(data: Buffer, start: int) -> bool:
    """Whether a whole batch may have begun here whose end is missing."""
    left = len(data) - start
    if left < MIN_BATCH:
        return True
    (length,) = struct.unpack_from(">i", data, start + _LENGTH)
    return bool(length > left - OVERHEAD and data[start + _MAGIC] <= 2)


def _all_zero(data: Buffer, start: int) -> bool:
    windows = range(start, len(data), _WINDOW)
    return not any(data[at : at + _WINDOW].strip(b"\0") for at in windows)


def resume(data: Buffer, start: int) -> int | None:
    """The first position from `start` on where a batch of magic 2 with a good checksum begins."""
    size = len(data)
    limit = size - HEADER.itemsize
    credit = 4 * size  # bytes of checksums: a hostile file must not cost a quadratic time
    for at in range(start, limit + 1, _WINDOW):
        for position in _candidates(data, at, min(at + _WINDOW, limit + 1)):
            (length,) = struct.unpack_from(">i", data, position + _LENGTH)
            credit -= length
            if credit < 0:
                return None
            if checksum_holds(data, position, OVERHEAD + length):
                return position
    return None


def _candidates(data: Buffer, start: int, end: int) -> list[int]:
    """Positions from `start` to `end` whose bytes look like a header of magic 2."""
    view = np.ndarray((len(data) - HEADER.itemsize + 1,), HEADER, data, strides=(1,))[start:end]
    likely = np.flatnonzero(view["magic"] == 2)
    header = view[likely]
    room = len(data) - OVERHEAD - (likely + start)
    good = (header["length"] >= _MIN_LENGTH_V2) & (header["length"] <= room)
    good &= (header["base_offset"] >= 0) & (header["leader_epoch"] >= -1)
    good &= (header["last_offset_delta"] >= 0) & (header["records"] >= 0)
    candidates: list[int] = (likely[good] + start).tolist()
    return candidates


def gather(data: Bytes, positions: Positions) -> NDArray[np.void]:
    """The headers of magic 2 at those positions."""
    view = np.ndarray((len(data) - HEADER.itemsize + 1,), HEADER, data, strides=(1,))
    selection: NDArray[np.void] = view[positions]
    return selection


def gather_legacy(data: Buffer, positions: Positions) -> NDArray[np.void]:
    """The headers of magic 0 and 1 at those positions."""
    view = np.ndarray((len(data) - LEGACY_HEADER.itemsize + 1,), LEGACY_HEADER, data, strides=(1,))
    selection: NDArray[np.void] = view[positions]
    return selection


def magics(data: Bytes, positions: Positions) -> NDArray[np.int8]:
    """The magic bytes at those positions."""
    return np.frombuffer(data, np.int8)[positions + _MAGIC]


def checksum_holds(data: Buffer, position: int, size: int) -> bool:
    """Whether the bytes of a batch of magic 2 have the checksum that it stores."""
    (stored,) = struct.unpack_from(">I", data, position + 17)
    return bool(stored == crc32c(data[position + _CRC_FROM : position + size]))


def checksums(data: Bytes, starts: Iterable[int], ends: Iterable[int]) -> Iterator[int]:
    """CRC-32C of each batch of magic 2 between start and end."""
    view = memoryview(data)
    for start, end in zip(starts, ends, strict=True):
        yield crc32c(view[start + _CRC_FROM : end])


def legacy_checksums(data: Buffer, starts: Iterable[int], ends: Iterable[int]) -> Iterator[int]:
    """CRC-32 of each message of magic 0 or 1 between start and end."""
    view = memoryview(data)
    for start, end in zip(starts, ends, strict=True):
        yield zlib.crc32(view[start + _LEGACY_CRC_FROM : end])
