"""Lines become rows: one for each value sent, value read, position committed or fetched.

An operation is where its process says how it ended; its `order` is that line's place in all files.
A line that says that an operation was invoked gives its start. It is the operation itself, of
unknown outcome, if the process says nothing more of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conformance.history.arrays import Array, numbers_of
from conformance.history.lines import LINES, TYPES

SENT, READ, COMMITTED, FETCHED = range(4)
"""What a row is."""
OK, FAIL, UNKNOWN = range(3)
"""How its operation ended."""
NO_OFFSET = -1
NO_TIME = -(1 << 63)
_LINE_BITS, _BLOCK_BITS = 24, 24

_LISTS = ("sent", "polled", "committed", "fetched")
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
ROWS = pa.schema(
    {
        "kind": pa.int8(),
        "order": pa.int64(),
        "place": pa.int32(),
        "process": _DICTIONARY,
        "key": _DICTIONARY,
        "value": pa.string(),
        "offset": pa.int64(),
        "outcome": pa.int8(),
        "transactional": pa.bool_(),
        "moved": pa.bool_(),
        "time": pa.int64(),
        "start": pa.int64(),
        "group": pa.string(),
    }
)
"""`place` counts within the operation; what nobody knows is NO_OFFSET or NO_TIME."""


def order_of(file: int, block: int, line: int) -> int:
    """The place of a line in all files: the number of its file, its block, and its line there."""
    return (file << _BLOCK_BITS | block) << _LINE_BITS | line


def place_of(order: int) -> tuple[int, int, int]:
    """The file, the block in it, and the line in that."""
    file, block = divmod(order >> _LINE_BITS, 1 << _BLOCK_BITS)
    return file, block, order & ((1 << _LINE_BITS) - 1)


@dataclass(frozen=True, slots=True)
class PositionEvent:
    """From here on a process reads from another position than where it has read last."""

    process: str | None
    """None: any process of the file may have; a line was not understood."""
    order: int
    kind: str
    """`assigned` (the partitions that it has from now on), `moved` (these), `all` (it begins
    anew) or `subscribed` (at any operation, until it says what it is assigned)."""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessSpan:
    """What a block has of a process: its first line, and an operation that has not ended there."""

    first: int
    """The order of its first line."""
    first_has_start: bool
    first_silent: frozenset[int]
    """Of SENT and COMMITTED, what that line does not say."""
    first_time: int
    first_outcome: int
    """-1: that line says that an operation was invoked."""
    earliest: int
    latest: int
    backwards: int
    """How many of its lines are of an earlier time than the line before."""
    pending: pa.Table | None = None
    """The line of an operation whose end the block does not have, as `LINES`."""
    pending_order: int = 0


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of a block and what other blocks need to know of it."""

    rows: pa.Table
    lines: int
    operations: Mapping[str, int]
    """By outcome."""
    spans: Mapping[str, ProcessSpan] = field(default_factory=dict)
    events: tuple[PositionEvent, ...] = ()
    failing: frozenset[str] = frozenset()
    """Processes with a send outside transactions that was not acknowledged."""


def block_rows(lines: pa.Table, orders: Array) -> BlockRows:
    """The rows of a block of `LINES`; `orders` are those of its lines, growing."""
    lines = lines.combine_chunks()
    processes = pc.dictionary_encode(lines.column("process")).combine_chunks()
    if isinstance(processes, pa.ChunkedArray):
        processes = pa.array([], _DICTIONARY)
    codes = numbers_of(processes.indices)
    types = numbers_of(pc.index_in(lines.column("type"), value_set=pa.array(TYPES)))
    pairs = _Pairs(codes, types)
    times = _times(lines, "time")
    starts = _times(lines, "start")
    invoked = pairs.invoked_at
    has = invoked >= 0
    unknown = (starts == NO_TIME) & has
    starts[unknown] = times[invoked[unknown]]
    outcomes = np.where(types == 1, OK, np.where(types == 2, FAIL, UNKNOWN)).astype(np.int8)
    kept = np.flatnonzero(pairs.kept)
    rows = _flattened(lines, kept, invoked, orders, outcomes, times, starts, processes)
    return BlockRows(
        rows,
        len(lines),
        _counts(outcomes[kept]),
        _spans(lines, processes, pairs, orders, types, times, starts),
        tuple(_events(lines, orders)),
        failing_processes(rows),
    )


BEGUN = frozenset({SENT, COMMITTED})
"""What a line may say that begins an operation, and its end leave out."""


def pending_rows(
    line: pa.Table, order: int, outcome: int, times: tuple[int, int], kinds: frozenset[int] = BEGUN
) -> pa.Table:
    """The rows of an operation of which the line that ended it does not say them.

    `line` has begun it; `order` is that of its end, if it has one; `times` are those of both.
    """
    start, end = times
    processes = pc.dictionary_encode(line.column("process")).combine_chunks()
    nobody = np.full(1, -1, np.int64)
    rows = _flattened(
        line,
        np.zeros(1, np.int64),
        nobody,
        np.array([order], np.int64),
        np.array([outcome], np.int8),
        np.array([end], np.int64),
        np.array([start], np.int64),
        processes,
    )
    return rows.filter(pc.is_in(rows.column("kind"), pa.array(sorted(kinds), pa.int8())))


def failing_processes(rows: pa.Table) -> frozenset[str]:
    """Processes with a send outside transactions that was not acknowledged."""
    sends = pc.and_(pc.equal(rows.column("kind"), SENT), pc.invert(rows.column("transactional")))
    failed = rows.filter(pc.and_(sends, pc.not_equal(rows.column("outcome"), OK)))
    return frozenset(pc.unique(failed.column("process").cast(pa.string())).to_pylist())


class _Pairs:
    """Which line ends the operation that another line began: a process does one at a time."""

    def __init__(self, codes: Array, types: Array) -> None:
        self.by_process = np.argsort(codes, kind="stable")
        sorted_codes = codes[self.by_process]
        self.begins = np.ones(len(codes), bool)
        self.begins[1:] = sorted_codes[1:] != sorted_codes[:-1]
        self.ends = np.roll(self.begins, -1)
        invokes = types[self.by_process] == 0
        paired = np.zeros(len(codes), bool)
        paired[:-1] = invokes[:-1] & ~invokes[1:] & ~self.begins[1:]
        self.invoked_at = np.full(len(codes), -1, np.int64)
        """By line: the line that began its operation, or -1."""
        where = np.flatnonzero(paired)
        self.invoked_at[self.by_process[where + 1]] = self.by_process[where]
        self.kept = np.ones(len(codes), bool)
        """Lines that are operations: not those that only begin one that ends in this block, and not
        the last one of a process if it begins one."""
        self.kept[self.by_process[paired]] = False
        self.pending = np.flatnonzero(invokes & self.ends)
        self.kept[self.by_process[self.pending]] = False


def _times(lines: pa.Table, name: str) -> Array:
    return numbers_of(pc.fill_null(lines.column(name), NO_TIME)).copy()


def _counts(outcomes: Array) -> dict[str, int]:
    counts = np.bincount(outcomes, minlength=3)
    return {name: int(counts[code]) for code, name in enumerate(("ok", "fail", "unknown"))}


def _flattened(
    lines: pa.Table,
    kept: Array,
    invoked: Array,
    orders: Array,
    outcomes: Array,
    times: Array,
    starts: Array,
    processes: pa.DictionaryArray,
) -> pa.Table:
    transactional = numbers_of(pc.equal(lines.column("f"), "txn"))
    groups = _groups(lines, invoked)
    parts = []
    for kind, name in enumerate(_LISTS):
        lists = lines.column(name)
        source = kept.copy()
        if kind in BEGUN:  # what an end leaves out, its beginning may say
            silent = ~numbers_of(pc.is_valid(lists))[kept] & (invoked[kept] >= 0)
            source[silent] = invoked[kept][silent]
        chosen = lists.take(pa.array(source)).combine_chunks()
        if isinstance(chosen, pa.ChunkedArray):
            continue
        parents = numbers_of(pc.list_parent_indices(chosen))
        if not len(parents):
            continue
        items = pc.list_flatten(chosen)
        at = kept[parents]
        firsts = np.searchsorted(parents, parents)
        moved = _moved(lines, at, items) if kind == READ else np.zeros(len(at), bool)
        parts.append(
            pa.Table.from_arrays(
                [
                    pa.array(np.full(len(at), kind, np.int8)),
                    pa.array(orders[at]),
                    pa.array((np.arange(len(at)) - firsts).astype(np.int32)),
                    processes.take(pa.array(at)),
                    pc.struct_field(items, "key").dictionary_encode(),
                    pc.struct_field(items, "value")
                    if kind in {SENT, READ}
                    else pa.nulls(len(at), pa.string()),
                    pc.fill_null(pc.struct_field(items, "offset"), NO_OFFSET),
                    pa.array(outcomes[at]),
                    pa.array(transactional[at]),
                    pa.array(moved),
                    pa.array(times[at]),
                    pa.array(starts[at]),
                    groups.take(pa.array(at))
                    if kind in {COMMITTED, FETCHED}
                    else pa.nulls(len(at), pa.string()),
                ],
                schema=ROWS,
            )
        )
    return pa.concat_tables(parts) if parts else ROWS.empty_table()


def _groups(lines: pa.Table, invoked: Array) -> pa.Array:
    """By line: the group that it names, or the line that began its operation."""
    own = lines.column("group").combine_chunks()
    return pc.coalesce(own, own.take(pa.array(invoked, mask=invoked < 0)))


def _moved(lines: pa.Table, at: Array, items: pa.StructArray) -> Array:
    """Of each value read, whether its operation says that the partition's position was moved."""
    result = np.zeros(len(at), bool)
    speaks = numbers_of(pc.is_valid(lines.column("moved")))
    if speaks.any():
        lists = lines.column("moved")
        keys = pc.struct_field(items, "key")
        for row in np.flatnonzero(speaks[at]):
            result[row] = keys[row].as_py() in lists[int(at[row])].as_py()
    return result


_ANEW = ("close", "crash")


def _events(lines: pa.Table, orders: Array) -> Iterator[PositionEvent]:
    """Few lines are of positions, so these are looked at one by one."""
    of_kind = pc.is_in(lines.column("f"), value_set=pa.array([*_ANEW, "subscribe"]))
    ended = pc.not_equal(lines.column("type"), "invoke")
    positions = pc.or_(pc.is_valid(lines.column("assigned")), pc.is_valid(lines.column("moved")))
    rows = np.flatnonzero(numbers_of(pc.and_(ended, pc.or_(positions, of_kind))))
    for row in rows:
        line = lines.slice(int(row), 1).select(["process", "f", "assigned", "moved"]).to_pylist()[0]
        order, process = int(orders[row]), line["process"]
        if line["f"] in _ANEW:
            yield PositionEvent(process, order, "all")
        if line["f"] == "subscribe":
            yield PositionEvent(process, order, "subscribed")
        if line["assigned"] is not None:
            yield PositionEvent(process, order, "assigned", tuple(line["assigned"]))
        if line["moved"]:
            yield PositionEvent(process, order, "moved", tuple(line["moved"]))


def _spans(
    lines: pa.Table,
    processes: pa.DictionaryArray,
    pairs: _Pairs,
    orders: Array,
    types: Array,
    times: Array,
    starts: Array,
) -> dict[str, ProcessSpan]:
    names: Sequence[str] = processes.dictionary.to_pylist()
    first_at, last_at = np.flatnonzero(pairs.begins), np.flatnonzero(pairs.ends)
    if not len(first_at):
        return {}
    sorted_times = times[pairs.by_process]
    known = sorted_times != NO_TIME
    steps = np.zeros(len(times), np.int64)
    steps[1:] = (sorted_times[1:] < sorted_times[:-1]) & known[1:] & known[:-1] & ~pairs.begins[1:]
    backwards = np.add.reduceat(steps, first_at)
    earliest = np.minimum.reduceat(np.where(known, sorted_times, -NO_TIME - 1), first_at)
    latest = np.maximum.reduceat(sorted_times, first_at)
    pending = {int(place) for place in pairs.pending}
    says = {kind: numbers_of(pc.is_valid(lines.column(_LISTS[kind]))) for kind in BEGUN}
    codes = numbers_of(processes.indices)
    spans = {}
    for number, (begin, end) in enumerate(zip(first_at, last_at, strict=True)):
        first, final = int(pairs.by_process[begin]), int(pairs.by_process[end])
        outcome = {0: -1, 1: OK, 2: FAIL, 3: UNKNOWN}[int(types[first])]
        spans[names[int(codes[first])]] = ProcessSpan(
            int(orders[first]),
            bool(starts[first] != NO_TIME),
            frozenset(kind for kind in BEGUN if not says[kind][first]),
            int(times[first]),
            outcome,
            int(earliest[number]),
            int(latest[number]),
            int(backwards[number]),
            _line(lines, final) if int(end) in pending else None,
            int(orders[final]),
        )
    return spans


def _line(lines: pa.Table, row: int) -> pa.Table:
    """One line, that does not hold the block it is from."""
    return pa.Table.from_pylist(lines.slice(row, 1).to_pylist(), LINES)
