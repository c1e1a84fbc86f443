"""The rows of a bucket by offset: in windows, one after the other.

A window is a range of a partition's offsets, or some small partitions. What a window must know of
the earlier ones is the last record read there, and the step of a reader that goes farthest beyond.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from conformance.history.arrays import Array, firsts, numbers_of, packed, ranks
from conformance.history.columns import FEW, PartitionRows, SituationCounts
from conformance.history.neighbours import BEFORE, OVER, PartitionContext
from conformance.history.rows import COMMITTED, FETCHED, NO_OFFSET, READ, SENT
from conformance.history.situations import SituationKind

WINDOW = 1 << 17
"""About so many rows are judged together, unless they are all of one offset."""
_SAMPLES = 256
"""Of each window, to find where it ends."""


@dataclass(frozen=True, slots=True)
class WindowCuts:
    """Where a window ends: by the place of a partition among the bucket's, then by offset."""

    places: dict[str, int]
    at_place: Array
    at_offset: Array

    @staticmethod
    def of(pieces: Iterable[pa.Table], rows: int, window: int) -> WindowCuts:
        """Cuts of so many rows by which each window has about `window` of them."""
        if rows <= window:
            return WindowCuts({}, np.zeros(0, np.int64), np.zeros(0, np.int64))
        step = max(1, window // _SAMPLES)
        samples = sorted(_samples(pieces, step))
        cuts = sorted(set(samples[window // step :: window // step]))
        keys = sorted({key for key, _ in cuts})
        places = {key: place for place, key in enumerate(keys)}
        return WindowCuts(
            places,
            np.array([places[key] for key, _ in cuts], np.int64),
            np.array([offset for _, offset in cuts], np.int64),
        )

    @property
    def windows(self) -> int:
        """How many there are."""
        return len(self.at_place) + 1

    def __call__(self, rows: pa.Table, offset: Array) -> Array:
        """The window of each row, by its partition and these offsets."""
        if self.windows == 1:
            return np.zeros(len(rows), np.int64)
        keys = rows.column("key").combine_chunks()
        names: list[str] = keys.dictionary.to_pylist()
        known = sorted(self.places)
        place = np.array([bisect_left(known, name) for name in names], np.int64)
        before = np.searchsorted(self.at_place, place)[numbers_of(keys.indices)]
        for code, name in enumerate(names):
            if name in self.places:
                own = self.at_offset[self.at_place == self.places[name]]
                at = np.flatnonzero(numbers_of(keys.indices) == code)
                before[at] += np.searchsorted(own, offset[at], side="right")
        return before


def _samples(pieces: Iterable[pa.Table], step: int) -> Iterator[tuple[str, int]]:
    """Each so manyth row that goes to a window."""
    passed = 0
    for piece in pieces:
        offset, kind = numbers_of(piece.column("offset")), numbers_of(piece.column("kind"))
        chosen = np.flatnonzero((offset != NO_OFFSET) & (kind != FETCHED))
        at = chosen[-passed % step :: step]
        passed += len(chosen)
        keys = piece.column("key").combine_chunks().take(pa.array(at)).to_pylist()
        yield from zip(keys, offset[at].tolist(), strict=True)


class OffsetWindow:
    """The rows of a partition in a window, with the two of earlier windows that it must know."""

    def __init__(self, key: str, rows: pa.Table, context: PartitionContext) -> None:
        self.rows = own = PartitionRows(key, rows, context)
        self.reads = np.flatnonzero((own.kind == READ) & own.own)
        known = np.flatnonzero((own.kind == READ) & (own.own | (own.copy_for == BEFORE)))
        # A read without a value speaks for every record of its offset, so it comes first.
        known = known[np.lexsort((own.value[known], own.offset[known]))]
        self._reader_of_known = known[firsts(own.offset[known])]
        self.known = own.offset[self._reader_of_known]
        """The offsets that were read, growing."""
        over = np.flatnonzero((own.kind == READ) & (own.own | (own.copy_for == OVER)))
        over = over[(own.after[over] != NO_OFFSET) & (own.offset[over] > own.after[over] + 1)]
        over = over[np.argsort(own.after[over], kind="stable")]
        self._gap_begins, ends = own.after[over], own.offset[over]
        highest = np.maximum.accumulate(ends) if len(ends) else ends
        at = np.maximum.accumulate(np.where(ends == highest, np.arange(len(ends)), 0))
        self._gap_ends, self._gap_rows = highest, over[at] if len(over) else over

    @property
    def last_read(self) -> int:
        """The highest offset that was read up to here, or NO_OFFSET."""
        return int(self.known[-1]) if len(self.known) else NO_OFFSET

    def handed_on(self) -> pa.Table:
        """Copies of the two rows that the partition's next window must know."""
        rows = [(self._reader_of_known[-1:], BEFORE), (self._gap_rows[-1:], OVER)]
        return pa.concat_tables([copies(self.rows.table, chosen, role) for chosen, role in rows])

    def passing(self, offsets: Array) -> Array:
        """Of each offset a row that read there, or else one that went over it, or -1."""
        result = np.full(len(offsets), -1, np.int64)
        if len(self._gap_begins):
            at = np.searchsorted(self._gap_begins, offsets) - 1
            hit = (at >= 0) & (self._gap_ends[at] > offsets)
            result[hit] = self._gap_rows[at[hit]]
        if len(self.known):
            at = np.minimum(np.searchsorted(self.known, offsets), len(self.known) - 1)
            hit = self.known[at] == offsets
            result[hit] = self._reader_of_known[at[hit]]
        return result

    def between(self, low: Array, high: Array) -> Array:
        """Of each pair of offsets the last row that read between them, or -1."""
        result = np.full(len(low), -1, np.int64)
        if len(self.known):
            at = np.searchsorted(self.known, high) - 1
            hit = (at >= 0) & (self.known[at] > low)
            result[hit] = self._reader_of_known[at[hit]]
        return result

    def passed_sends(self) -> tuple[Array, Array]:
        """Sends that may not have been read, each with the row that read at its place or went over
        it. The read of the value itself is none of these."""
        rows = self.rows
        sends = np.flatnonzero((rows.kind == SENT) & rows.own)
        passing = self.passing(rows.offset[sends])
        same = (rows.value[passing] == rows.value[sends]) & (rows.value[sends] >= 0)
        chosen = (passing >= 0) & ~same
        return sends[chosen], passing[chosen]

    def count(self, counts: SituationCounts) -> None:
        """The situations of offsets and of steps."""
        self._offsets(counts)
        self._read_steps(counts)
        self._send_steps(counts)
        self._commits(counts)

    def _offsets(self, counts: SituationCounts) -> None:
        """All that is known of each offset."""
        own = self.rows
        rows = np.flatnonzero((((own.kind == READ) & own.own) | own.placed) & (own.value >= 0))
        if not len(rows):
            return
        groups = np.unique(own.offset[rows], return_inverse=True)[1].astype(np.int64)
        traits = packed((own.kind[rows], 1), (ranks(groups, own.value[rows], FEW), 2))
        own.count(counts, SituationKind.OFFSET, groups, traits, rows)

    def _read_steps(self, counts: SituationCounts) -> None:
        """Each read with the one before, and with what others read between them."""
        own, rows = self.rows, self.reads
        between = np.full(len(rows), -1, np.int64)
        over = (own.after[rows] != NO_OFFSET) & (own.offset[rows] > own.after[rows] + 1)
        between[over] = self.between(own.after[rows[over]], own.offset[rows[over]])
        traits = self._step_traits(rows, between >= 0)
        own.count(counts, SituationKind.READ_STEP, np.arange(len(rows)), traits, rows, between)

    def _step_traits(self, rows: Array, flag: Array) -> Array:
        own = self.rows
        known = own.after[rows] != NO_OFFSET
        sign = np.where(known, np.sign(own.offset[rows] - own.after[rows]) + 1, 0)
        return packed((known, 1), (sign, 2), (own.within[rows], 1), (flag, 1))

    def _send_steps(self, counts: SituationCounts) -> None:
        """Each acknowledged send with the offset that its process was told before."""
        rows = np.flatnonzero(self.rows.placed)
        traits = self._step_traits(rows, self.rows.renewed[rows])
        self.rows.count(counts, SituationKind.SEND_STEP, np.arange(len(rows)), traits, rows)

    def _commits(self, counts: SituationCounts) -> None:
        """Each commit with the one before, and with what others read that it leaves out."""
        own = self.rows
        rows = np.flatnonzero(own.kind == COMMITTED)
        known = own.processed[rows] != NO_OFFSET
        ahead = np.full(len(rows), -1, np.int64)
        ahead[known] = self.between(own.processed[rows[known]], own.offset[rows[known]])
        traits = packed(
            (known, 1),
            (own.after[rows] != NO_OFFSET, 1),
            (np.sign(own.offset[rows] - own.after[rows]) + 1, 2),
            (np.sign(own.offset[rows] - own.processed[rows]) + 1, 2),
            (np.sign(own.after[rows] - own.processed[rows]) + 1, 2),
            (own.outcome[rows], 2),
            (ahead >= 0, 1),
        )
        own.count(counts, SituationKind.COMMIT_STEP, np.arange(len(rows)), traits, rows, ahead)


def copies(rows: pa.Table, chosen: Array, copy_for: Array | int) -> pa.Table:
    """Some rows again, for another place."""
    again = rows.take(pa.array(chosen))
    role = pa.array(np.broadcast_to(np.asarray(copy_for, np.int64), len(chosen)))
    return again.set_column(
        rows.schema.get_field_index("copy_for"), rows.schema.field("copy_for"), role
    )
