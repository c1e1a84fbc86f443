"""A bucket of partitions: its rows in context, by offset, by value and by position.

    rows --linked--> windows of offsets --copies of reads that go by--> parts of values

A row meets its neighbours first, in the order of the lines (`neighbours`). Then the rows of near
offsets are judged together (`windows`), and then those of the same value (`values`). Each of these
holds a bounded number of rows in memory, however many the bucket has. All is done on whole columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conformance.history import across
from conformance.history.arrays import Array, numbers_of, spread
from conformance.history.columns import CountedSituations, PartitionRows, SituationCounts
from conformance.history.neighbours import LINKED_ROWS, OVER, OWN, PartitionContext, linked
from conformance.history.positions import count_positions
from conformance.history.rows import COMMITTED, FETCHED, NO_OFFSET, READ, ROWS, SENT
from conformance.history.shuffle import SortedRows, by_key, read_part, together, write_parts
from conformance.history.values import READINGS, TRANSACTION_ROWS, ValueRows
from conformance.history.windows import OffsetWindow, WindowCuts, copies


@dataclass(frozen=True, slots=True)
class BucketTask:
    """What all buckets have in common."""

    parts: tuple[Path, ...]
    """Files of rows, in the order of their lines."""
    rest: Path
    """Rows of operations that ended in another block than they began."""
    rows: Array
    """By bucket, how many there are."""
    fetched: Array
    """By bucket, how many of them are positions that were fetched."""
    scratch: Path
    window: int
    """About so many rows are in memory together."""
    context: PartitionContext


@dataclass(frozen=True, slots=True)
class HistoryBucket:
    """What is asked of a bucket's partitions, and what of them concerns transactions."""

    situations: tuple[CountedSituations, ...]
    resent: int
    """Values that were sent more than once."""
    unplaced: int
    """Acknowledged values that nobody read, and whose offset nobody was told."""
    last_read: Mapping[str, int]
    """By partition: the highest offset that was read, or NO_OFFSET."""
    unknown: tuple[Path, ...]
    """Files of `TRANSACTION_ROWS`, by bucket of transactions."""
    readings: tuple[Path, ...]
    """Files of `READINGS`, by bucket of the transaction that read."""
    back: Array
    """Spans of time: see `across.spans_back`."""


def judge_bucket(task: BucketTask, bucket: int) -> HistoryBucket:
    """Group the rows of a bucket."""
    return _Bucket(task, bucket).judged()


class _Bucket:
    def __init__(self, task: BucketTask, bucket: int) -> None:
        self._task, self._bucket = task, bucket
        self._buckets = len(task.rows)
        self._counts = SituationCounts()
        self._cuts = WindowCuts.of(
            read_part((*task.parts, task.rest), bucket), int(task.rows[bucket]), task.window
        )
        self._windows = self._sorted("offsets")
        self._values = self._sorted("values")
        self._resent = self._unplaced = 0
        self._last_read: dict[str, int] = {}
        self._unknown: list[Path] = []
        self._readings: list[Path] = []
        self._back = [across.NO_SPANS]

    def _sorted(self, name: str) -> SortedRows:
        stem = self._task.scratch / f"{name}-{self._bucket}"
        return SortedRows(LINKED_ROWS, self._cuts.windows, stem, self._task.window)

    def judged(self) -> HistoryBucket:
        self._sort_rows()
        self._judge_offsets()
        self._judge_values()
        return HistoryBucket(
            self._counts(),
            self._resent,
            self._unplaced,
            self._last_read,
            tuple(self._unknown),
            tuple(self._readings),
            across.merged(np.concatenate(self._back)),
        )

    def _sort_rows(self) -> None:
        """Each row to the window of its offset; those without one to the part of their value."""
        positions: list[pa.Table] = []
        for rows in linked(self._pieces(), self._task.context):
            kind, offset = (numbers_of(rows.column(name)) for name in ("kind", "offset"))
            for key in pc.unique(rows.column("key")).to_pylist():
                self._last_read.setdefault(key, NO_OFFSET)
            if self._task.fetched[self._bucket]:
                positions.append(rows.filter(pa.array(kind >= COMMITTED)))
            nowhere = (kind == SENT) & (offset == NO_OFFSET)
            self._add_values(rows.filter(pa.array(nowhere)))
            placed = rows.filter(pa.array(~nowhere & (kind != FETCHED)))
            self._add_windows(placed)
        for key, rows in by_key(together(positions, LINKED_ROWS)):
            count_positions(PartitionRows(key, rows, self._task.context), self._counts)

    def _pieces(self) -> Iterator[pa.Table]:
        """The bucket's rows in the order of their lines."""
        rest = together(read_part((self._task.rest,), self._bucket), ROWS)
        rest = rest.sort_by("order")
        for piece in read_part(self._task.parts, self._bucket):
            early = numbers_of(rest.column("order")) <= pc.max(piece.column("order")).as_py()
            count = int(np.count_nonzero(early))
            yield pa.concat_tables([rest.slice(0, count), piece])
            rest = rest.slice(count)
        if len(rest):
            yield rest

    def _add_windows(self, rows: pa.Table) -> None:
        if not len(rows):
            return
        after = numbers_of(rows.column("after"))
        offset = numbers_of(rows.column("offset"))
        window = self._cuts(rows, offset)
        self._windows.add(rows, window)
        steps = (numbers_of(rows.column("kind")) == READ) & (after != NO_OFFSET)
        over = np.flatnonzero(steps & (offset > after + 1))
        begins = self._cuts(rows, after)[over]
        over, begins = over[begins < window[over]], begins[begins < window[over]]
        self._windows.add(copies(rows, over, OVER), begins)

    def _add_values(self, rows: pa.Table, senders: pa.Table | None = None) -> None:
        """Rows to the part of their value: of their own, or of the sends that they pass."""
        if not len(rows):
            return
        part = np.zeros(len(rows), np.int64)
        if self._values.parts > 1:
            named = rows if senders is None else senders
            values = named.column("value").combine_chunks()
            numbers = spread(pc.fill_null(values, ""))
            nameless = numbers_of(pc.is_null(values))
            ids = numbers_of(named.column("id")).astype(np.uint64)
            part = (np.where(nameless, ids, numbers) % np.uint64(self._values.parts)).astype(
                np.int64
            )
        self._values.add(rows, part)

    def _judge_offsets(self) -> None:
        """Window by window; what was sent or read goes on to the part of its value."""
        handed: dict[str, pa.Table] = {}
        for rows in self._windows:
            for key, own in by_key(rows):
                if key in handed:
                    own = together([handed.pop(key), own], LINKED_ROWS)
                window = OffsetWindow(key, own, self._task.context)
                window.count(self._counts)
                self._last_read[key] = window.last_read
                if key in self._cuts.places:
                    handed[key] = window.handed_on()
                sends, passing = window.passed_sends()
                if len(sends):
                    passes = copies(window.rows.table, passing, window.rows.id[sends])
                    self._add_values(passes, window.rows.table.take(pa.array(sends)))
            own = rows.filter(pa.array(numbers_of(rows.column("copy_for")) == OWN))
            kinds = numbers_of(own.column("kind"))
            named = numbers_of(pc.is_valid(own.column("value")))
            self._add_values(own.filter(pa.array((kinds == SENT) | ((kinds == READ) & named))))

    def _judge_values(self) -> None:
        for rows in self._values:
            unknown, readings = [], []
            for key, own in by_key(rows):
                values = ValueRows(key, own, self._task.context)
                values.count(self._counts)
                self._resent += values.resent
                self._unplaced += values.unplaced
                unknown.append(values.unknown_transactions())
                readings.append(values.readings())
            self._unknown += self._written(unknown, TRANSACTION_ROWS, "of", "unknown")
            readings_ = together(readings, READINGS)
            self._back.append(across.spans_back(readings_))
            self._readings += self._written([readings_], READINGS, "reader", "readings")

    def _written(
        self, tables: Sequence[pa.Table], schema: pa.Schema, by: str, name: str
    ) -> Iterable[Path]:
        """The rows in a file by transaction; no file if there are none."""
        rows = together(tables, schema)
        if len(rows):
            written = len(self._unknown) + len(self._readings)
            path = self._task.scratch / f"{name}-{self._bucket}-{written}.arrow"
            part = numbers_of(rows.column(by)) % self._buckets
            write_parts(rows, part, self._buckets, path)
            yield path
