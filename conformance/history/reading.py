"""Reads files of histories: blocks of lines in, rows by bucket of partitions out.

Each block is one item of work, for any workers. Its rows go to a file of its own, one batch for
each bucket; who judges a bucket reads that batch of each file. What a block cannot know alone,
which operations never ended and from where processes read, is settled here from the blocks' spans.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from conformance.errors import DataError
from conformance.history import edn
from conformance.history.arrays import Array, numbers_of
from conformance.history.lines import BadLine, LineBlock, read_block
from conformance.history.rows import (
    FETCHED,
    NO_TIME,
    ROWS,
    UNKNOWN,
    BlockRows,
    PositionEvent,
    ProcessSpan,
    block_rows,
    failing_processes,
    order_of,
    pending_rows,
    place_of,
)
from conformance.history.shuffle import write_parts
from conformance.printable import path_text
from conformance.workers import Workers

BLOCK = 32 << 20
"""Bytes of a block."""
_BUCKET = 64 << 20
"""Bytes of histories for each bucket of partitions."""
_MOST_BUCKETS = 1024


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A file, and where it is cut into blocks."""

    number: int
    path: Path
    size: int
    block: int
    """Bytes of a block; workers elsewhere must cut as this process does."""

    @property
    def blocks(self) -> int:
        """How many blocks it has."""
        return max(1, -(-self.size // self.block))


@dataclass(frozen=True, slots=True)
class HistoryBlock:
    """A block: the lines that begin in it."""

    file: HistoryFile
    number: int

    def data(self) -> bytes:
        """Its lines, whole."""
        begin, end = self.number * self.file.block, (self.number + 1) * self.file.block
        with self.file.path.open("rb") as file:
            if begin:
                file.seek(begin - 1)
                file.readline()
            else:
                file.seek(0)
            start = file.tell()
            if start >= end:
                return b""
            data = file.read(end - start)
            return data if data.endswith(b"\n") else data + file.readline()

    @property
    def is_last(self) -> bool:
        """Whether the file ends with it."""
        return self.number == self.file.blocks - 1


@dataclass(frozen=True, slots=True)
class ReadBlock:
    """What reading a block tells; its rows are in a file."""

    block: HistoryBlock
    path: Path
    counts: Array
    """What `write_rows` says of them."""
    lines: int
    """Lines of the file, also empty ones and those that were not understood."""
    rows: BlockRows
    """Without the rows."""
    bad: tuple[BadLine, ...]
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Where a process begins to read anew: orders, growing."""

    everywhere: tuple[int, ...] = ()
    by_key: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    loose: tuple[tuple[int, int], ...] = ()
    """From order to order (excluded): it may begin anew at any operation."""
    is_ordered: bool = True
    """Whether the order of its operations is known: not of a process of two files at one time."""


@dataclass(slots=True)
class History:
    """Everything that was read: rows in scratch files, and what concerns more than one block."""

    files: tuple[HistoryFile, ...]
    parts: tuple[Path, ...]
    """Files of rows, in the order of their lines: one batch for each bucket."""
    rest: Path
    """Such a file of operations that ended in another block than they began."""
    rows: Array
    """By bucket, how many rows there are."""
    fetched: Array
    """By bucket, how many of them are positions that were fetched."""
    timelines: Mapping[str, Timeline]
    late_starts: Mapping[int, int]
    """By order: when an operation began, if its beginning is in another block."""
    failing: frozenset[str]
    jumping: frozenset[str]
    """Processes of which a line is of an earlier time than the line before."""
    first_lines: Mapping[tuple[int, int], int]
    """By file and block: the number of the lines before it in the file."""
    operations: Mapping[str, int]
    processes: int
    lines: int
    bad: tuple[tuple[str, BadLine], ...]
    bad_count: int
    reasons: Mapping[str, int]
    """What was not understood, or is not judged: how many lines or processes, by reason."""

    @property
    def buckets(self) -> int:
        """How many there are, with and without rows."""
        return len(self.rows)

    def line(self, order: int) -> tuple[HistoryFile, int]:
        """The file and the number of a line, from 1."""
        file, block, line = place_of(order)
        return self.files[file], self.first_lines[file, block] + line


def history_files(paths: Sequence[Path]) -> tuple[HistoryFile, ...]:
    """The files in the order of their names. DataError if one cannot be read."""
    files = []
    for number, path in enumerate(paths):
        try:
            if not path.is_file():
                raise DataError(f"{path_text(path)} is not a file. Give files of operations.")
            with path.open("rb") as file:
                begin = file.read(2)
            files.append(HistoryFile(number, path.absolute(), path.stat().st_size, BLOCK))
        except OSError as error:
            raise DataError(f"{path_text(path)}: {error.strerror}.") from error
        if begin == b"\x1f\x8b":
            raise DataError(f"{path_text(path)} is compressed. Unpack it first: gunzip -k FILE.")
    return tuple(files)


def read_history(files: Sequence[HistoryFile], scratch: Path, workers: Workers) -> History:
    """Read all files; rows are written below `scratch`, which all workers must see."""
    size = sum(file.size for file in files)
    buckets = max(1, min(_MOST_BUCKETS, size // _BUCKET))
    blocks = [HistoryBlock(file, number) for file in files for number in range(file.blocks)]
    read = list(workers.map(partial(_read, scratch, buckets), blocks))
    return _settled(tuple(files), read, buckets, scratch)


def _read(scratch: Path, buckets: int, block: HistoryBlock) -> ReadBlock:
    data = block.data()
    lines = _lines(block, data)
    base = order_of(block.file.number, block.number, 0)
    orders = np.asarray(lines.numbers, np.int64) + base
    rows = block_rows(lines.table, orders)
    path = scratch / f"rows-{block.file.number}-{block.number}.arrow"
    counts = write_rows(rows.rows, buckets, path)
    count = data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
    unread = (PositionEvent(None, base + bad.number, "all") for bad in lines.bad if not bad.is_end)
    light = replace(rows, rows=ROWS.empty_table(), events=(*rows.events, *unread))
    return ReadBlock(block, path, counts, count, light, lines.bad, lines.reasons)


def _lines(block: HistoryBlock, data: bytes) -> LineBlock:
    reader = edn.read_block if block.file.path.suffix == ".edn" else read_block
    return reader(data, 1, cut=block.is_last and not data.endswith(b"\n"))


def write_rows(rows: pa.Table, buckets: int, path: Path) -> Array:
    """The rows in a file, one batch for each bucket.

    By bucket: how many rows, and how many of them are positions that were fetched.
    """
    rows = rows.unify_dictionaries().combine_chunks()
    bucket = np.zeros(0, np.int64)
    if len(rows):
        keys = rows.column("key").combine_chunks()
        of_key = [bucket_of(key, buckets) for key in keys.dictionary.to_pylist()]
        bucket = np.array(of_key, np.int64)[numbers_of(keys.indices)]
    write_parts(rows, bucket, buckets, path)
    fetched = bucket[numbers_of(rows.column("kind")) == FETCHED]
    return np.stack([np.bincount(part, minlength=buckets) for part in (bucket, fetched)])


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of a partition, the same on every machine."""
    return zlib.crc32(key.encode()) % buckets


# --- what concerns more than one block ----------------------------------------------------------


def _settled(
    files: tuple[HistoryFile, ...], read: Sequence[ReadBlock], buckets: int, scratch: Path
) -> History:
    spans: dict[str, list[tuple[HistoryBlock, ProcessSpan]]] = {}
    for part in read:
        for process, span in part.rows.spans.items():
            spans.setdefault(process, []).append((part.block, span))
    late, begun, endless = _ends(spans)
    rest = pa.concat_tables([ROWS.empty_table(), *begun]).unify_dictionaries()
    last = scratch / "rows-rest.arrow"
    counts = sum((part.counts for part in read), write_rows(rest, buckets, last))
    reasons: Counter[str] = Counter()
    for part in read:
        reasons.update(part.reasons)
    mixed = _mixed(spans)
    if mixed:
        reasons["of two files at the same time: what it does between operations is not judged"] += (
            len(mixed)
        )
    jumping = frozenset(
        process for process, parts in spans.items() if any(s.backwards for _, s in parts)
    )
    if jumping:
        reasons["its clock goes back: what ended before something began is not judged"] += len(
            jumping
        )
    operations: Counter[str] = Counter()
    for part in read:
        operations.update(part.rows.operations)
    operations["unknown"] += endless
    failing = frozenset().union(*(part.rows.failing for part in read), failing_processes(rest))
    return History(
        files,
        tuple(part.path for part in read),
        last,
        counts[0],
        counts[1],
        _timelines(spans, [event for part in read for event in part.rows.events], mixed),
        late,
        failing,
        jumping,
        _first_lines(read),
        operations,
        len(spans),
        sum(part.rows.lines for part in read),
        tuple((path_text(part.block.file.path), bad) for part in read for bad in part.bad),
        sum(sum(part.reasons.values()) for part in read),
        reasons,
    )


def _first_lines(read: Sequence[ReadBlock]) -> dict[tuple[int, int], int]:
    result: dict[tuple[int, int], int] = {}
    before = 0
    for part in read:
        if part.block.number == 0:
            before = 0
        result[part.block.file.number, part.block.number] = before
        before += part.lines
    return result


def _ends(
    spans: Mapping[str, list[tuple[HistoryBlock, ProcessSpan]]],
) -> tuple[dict[int, int], list[pa.Table], int]:
    """When operations began that end in a later block; the rows of those that never end, or whose
    end does not repeat what was sent; how many never end."""
    late: dict[int, int] = {}
    endless = 0
    rows: list[pa.Table] = []
    for parts in spans.values():
        for place, (_, span) in enumerate(parts):
            if span.pending is None:
                continue
            began = span.pending.column("time")[0].as_py()
            began = NO_TIME if began is None else began
            after = parts[place + 1][1] if place + 1 < len(parts) else None
            if after is None or after.first_outcome < 0:
                times = began, NO_TIME
                rows.append(pending_rows(span.pending, span.pending_order, UNKNOWN, times))
                endless += 1
                continue
            if not after.first_has_start:
                late[after.first] = began
            times = began, after.first_time
            rows.append(
                pending_rows(
                    span.pending, after.first, after.first_outcome, times, after.first_silent
                )
            )
    return late, rows, endless


def _mixed(spans: Mapping[str, list[tuple[HistoryBlock, ProcessSpan]]]) -> frozenset[str]:
    """Processes of two files whose times overlap: nobody knows the order of their operations."""
    result = set()
    for process, parts in spans.items():
        by_file: dict[int, tuple[int, int]] = {}
        for block, span in parts:
            known = by_file.get(block.file.number, (span.earliest, span.latest))
            by_file[block.file.number] = min(known[0], span.earliest), max(known[1], span.latest)
        ranges = [by_file[number] for number in sorted(by_file)]
        if any(second[0] <= first[1] or first[1] == NO_TIME for first, second in pairwise(ranges)):
            result.add(process)
    return frozenset(result)


_EVER = (1 << 63) - 1


def _timelines(
    spans: Mapping[str, list[tuple[HistoryBlock, ProcessSpan]]],
    events: Sequence[PositionEvent],
    mixed: frozenset[str],
) -> dict[str, Timeline]:
    of_nobody = sorted(event.order for event in events if event.process is None)
    by_process: dict[str, list[PositionEvent]] = {}
    for event in events:
        if event.process is not None:
            by_process.setdefault(event.process, []).append(event)
    result: dict[str, Timeline] = {}
    for process, parts in spans.items():
        if process in mixed:
            result[process] = Timeline(loose=((-1, _EVER),), is_ordered=False)
            continue
        unread = _within(of_nobody, {block.file.number for block, _ in parts})
        own = sorted(by_process.get(process, ()), key=lambda event: event.order)
        if own or unread:
            result[process] = _timeline(own, unread)
    return result


def _within(orders: Sequence[int], files: set[int]) -> list[int]:
    """Those that are of these files."""
    result: list[int] = []
    for number in files:
        begin = bisect_right(orders, order_of(number, 0, 0) - 1)
        end = bisect_right(orders, order_of(number + 1, 0, 0) - 1)
        result += orders[begin:end]
    return sorted(result)


def _timeline(events: Sequence[PositionEvent], unread: Sequence[int]) -> Timeline:
    everywhere, by_key, loose = list(unread), dict[str, list[int]](), list[tuple[int, int]]()
    assigned: set[str] | None = None
    since: int | None = None
    for event in events:
        if event.kind == "all":
            everywhere.append(event.order)
            assigned = None
        elif event.kind == "subscribed":
            since = event.order if since is None else since
            assigned = None
        else:
            keys = set(event.keys)
            if event.kind == "assigned":
                if since is not None:
                    loose.append((since, event.order))
                    since = None
                if assigned is None:
                    everywhere.append(event.order)
                    moved: Iterator[str] = iter(())
                else:
                    moved = iter(assigned ^ keys)
                assigned = keys
            else:
                moved = iter(keys)
            for key in moved:
                by_key.setdefault(key, []).append(event.order)
    if since is not None:
        loose.append((since, _EVER))
    return Timeline(
        tuple(sorted(everywhere)),
        {key: tuple(orders) for key, orders in by_key.items()},
        tuple(loose),
    )
