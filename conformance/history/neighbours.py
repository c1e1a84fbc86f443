"""The neighbours of each row: what its process has read, sent and committed before it.

The rows of a bucket come piece by piece, in the order of the lines. From piece to piece the last
rows of each process and partition are carried on, so no more than a piece is in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from conformance.history.arrays import Array, RowsOf, firsts, numbers_of
from conformance.history.reading import Timeline
from conformance.history.rows import COMMITTED, NO_OFFSET, NO_TIME, OK, READ, ROWS, SENT

OWN, OVER, BEFORE = -1, -2, -3
"""What a row is a copy for: it is none; a read that goes over offsets of a window; the last read
before a window. Others are copies for the send with that `id`."""
LINKED_ROWS = pa.schema(
    [
        *ROWS,
        ("after", pa.int64()),
        ("within", pa.bool_()),
        ("before", pa.int64()),
        ("processed", pa.int64()),
        ("given", pa.int64()),
        ("id", pa.int64()),
        ("copy_for", pa.int64()),
    ]
)
"""Rows with their neighbours: what `SituationFact` says of these; `id` is unique in a bucket."""


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """What a partition's rows do not say themselves."""

    timelines: Mapping[str, Timeline]
    late_starts: Mapping[int, int]
    failing: frozenset[str]
    jumping: frozenset[str]
    skew: int
    """Nanoseconds by which two processes' clocks may differ."""


def linked(pieces: Iterable[pa.Table], context: PartitionContext) -> Iterator[pa.Table]:
    """The pieces as `LINKED_ROWS`; their orders must grow from piece to piece."""
    carried, number = ROWS.empty_table(), 0
    for piece in pieces:
        rows = pa.concat_tables([carried, piece]).unify_dictionaries().combine_chunks()
        lanes = _Lanes(rows, context)
        yield lanes.linked(number).slice(len(carried))
        number += len(rows)
        carried = rows.take(pa.array(lanes.last()))


class _Lanes:
    """Rows by lane: those of a process in a partition."""

    def __init__(self, rows: pa.Table, context: PartitionContext) -> None:
        self._rows, self._context = rows, context
        self.kind = numbers_of(rows.column("kind"))
        self.order = numbers_of(rows.column("order"))
        self.place = numbers_of(rows.column("place"))
        self.offset = numbers_of(rows.column("offset"))
        self.outcome = numbers_of(rows.column("outcome"))
        self.moved = numbers_of(rows.column("moved"))
        self.time = numbers_of(rows.column("time"))
        self.start = self._starts(numbers_of(rows.column("start")))
        processes, keys = (rows.column(name).combine_chunks() for name in ("process", "key"))
        self._processes, self._keys = processes.dictionary.to_pylist(), keys.dictionary.to_pylist()
        self.lane = numbers_of(processes.indices).astype(np.int64) * len(self._keys)
        self.lane += numbers_of(keys.indices)
        self.session = self._sessions()
        self.after = np.full(len(rows), NO_OFFSET, np.int64)
        self.within = np.zeros(len(rows), bool)
        self.before = np.full(len(rows), -1, np.int64)
        self.processed = np.full(len(rows), NO_OFFSET, np.int64)
        self.given = np.full(len(rows), -1, np.int64)
        self._reads = self._in_process_order((self.kind == READ) | (self.kind == COMMITTED))
        self._sends = self._in_process_order(
            (self.kind == SENT) & (self.outcome == OK) & (self.offset != NO_OFFSET)
        )
        self._link_readers()
        self._link_senders()

    def linked(self, number: int) -> pa.Table:
        """The rows with their neighbours, numbered from there."""
        rows = self._rows.set_column(
            ROWS.get_field_index("start"), ROWS.field("start"), pa.array(self.start)
        )
        ids = np.arange(number, number + len(rows))
        further = (self.after, self.within, self.before, self.processed, self.given, ids)
        columns = [*rows.columns, *map(pa.array, further), pa.array(np.full(len(rows), OWN))]
        return pa.Table.from_arrays(columns, schema=LINKED_ROWS)

    def last(self) -> Array:
        """Of each lane the rows that a later one may follow."""
        reads = self._reads[self.kind[self._reads] == READ]
        commits = self._reads[self._counts(self._reads, COMMITTED)]
        chosen = [
            rows[np.append(self.lane[rows[1:]] != self.lane[rows[:-1]], True)]
            for rows in (reads, commits[self.kind[commits] == COMMITTED], self._sends)
            if len(rows)
        ]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *chosen]))

    def _starts(self, starts: Array) -> Array:
        late = self._context.late_starts
        if late:
            orders = np.array(sorted(late), np.int64)
            at = np.searchsorted(orders, self.order)
            hit = (at < len(orders)) & (orders[np.minimum(at, len(orders) - 1)] == self.order)
            begun = np.array([late[int(order)] for order in orders], np.int64)
            starts = np.where(hit, begun[np.minimum(at, len(orders) - 1)], starts)
        return starts

    def _sessions(self) -> Array:
        """Of each row a number: rows of a lane with one number read from one position on."""
        session = np.zeros(len(self.order), np.int64)
        rows_of = RowsOf(self.lane)
        for lane in np.unique(self.lane):
            process, key = divmod(int(lane), len(self._keys))
            timeline = self._context.timelines.get(self._processes[process])
            if timeline is None:
                continue
            rows = rows_of(int(lane))
            breaks = (*timeline.everywhere, *timeline.by_key.get(self._keys[key], ()))
            orders = self.order[rows]
            session[rows] = np.searchsorted(
                np.array(sorted(breaks), np.int64), orders, side="right"
            )
            for begin, end in timeline.loose:
                loose = (orders >= begin) & (orders < end)
                session[rows[loose]] = -1 - orders[loose]  # each operation for itself
        return session

    def _in_process_order(self, chosen: Array) -> Array:
        rows = np.flatnonzero(chosen)
        return rows[
            np.lexsort((self.place[rows], self.kind[rows], self.order[rows], self.lane[rows]))
        ]

    def _link_readers(self) -> None:
        """Of each read the offset of the one before; of each commit what was processed, and the
        position before."""
        rows = self._reads
        if not len(rows):
            return
        begins = firsts(self.lane[rows]) | firsts(self.session[rows])
        for kind in (READ, COMMITTED):
            before = self._before(rows, begins, kind)
            has = before >= 0
            own = has & (self.kind[rows] == kind)
            self.after[rows[own]] = self.offset[rows[before[own]]]
            self.before[rows[own]] = self.order[rows[before[own]]]
            if kind == READ:
                same = own & (self.order[rows[before]] == self.order[rows])
                self.within[rows[same]] = True
                # After a transaction that did not commit the position is the application's matter.
                stale = own & ~same & (self.outcome[rows[before]] != OK)
                self.after[rows[stale | (own & self.moved[rows])]] = NO_OFFSET
                commits = has & (self.kind[rows] == COMMITTED)
                self.processed[rows[commits]] = self.offset[rows[before[commits]]]
                self.given[rows[commits]] = self.order[rows[before[commits]]]

    def _before(self, rows: Array, begins: Array, kind: int) -> Array:
        """Of each of the rows the place of the last one of a kind before it, or -1."""
        places = np.arange(len(rows))
        at = np.where((self.kind[rows] == kind) & self._counts(rows, kind), places, -1)
        at = np.concatenate(([-1], np.maximum.accumulate(at)[:-1]))
        begun = np.maximum.accumulate(np.where(begins, places, 0))
        return np.where(at >= begun, at, -1)

    def _counts(self, rows: Array, kind: int) -> Array:
        """Commits that may not have taken effect are no position to compare with."""
        return self.outcome[rows] == OK if kind == COMMITTED else np.ones(len(rows), bool)

    def _link_senders(self) -> None:
        rows = self._sends
        if not len(rows):
            return
        before = rows[np.maximum(np.arange(len(rows)) - 1, 0)]
        follows = ~firsts(self.lane[rows])
        follows &= (self.order[before] == self.order[rows]) | ~self._unordered(rows)
        self.after[rows[follows]] = self.offset[before[follows]]
        self.before[rows[follows]] = self.order[before[follows]]
        began, ended = self.start[rows], self.time[before]
        answered = (began != NO_TIME) & (ended != NO_TIME) & (began >= ended)
        self.within[rows] = (self.order[before] == self.order[rows]) | ~answered

    def _unordered(self, rows: Array) -> Array:
        """Of each of the rows, whether nobody knows the order of its process's operations."""
        timelines = (self._context.timelines.get(process) for process in self._processes)
        codes = [
            code
            for code, known in enumerate(timelines)
            if known is not None and not known.is_ordered
        ]
        return np.isin(self.lane[rows] // len(self._keys), codes)
