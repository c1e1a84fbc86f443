"""The situations of one partition: its rows grouped by value, by offset and by process.

Everything is done on whole columns. The first few groups of each kind become `HistorySituation`s,
the rest is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conformance.history.arrays import Array, RowsOf, distinct_groups, firsts, numbers_of, ranks
from conformance.history.reading import Timeline
from conformance.history.rows import (
    COMMITTED,
    FAIL,
    FETCHED,
    NO_OFFSET,
    NO_TIME,
    OK,
    READ,
    SENT,
    UNKNOWN,
)
from conformance.history.situations import NEVER, HistoryFact, HistorySituation, SituationKind

EXAMPLES = 20
"""So many situations that are alike are kept of a partition; all are counted."""
_FEW = 3
"""Ranks from here on are not told apart."""


@dataclass(frozen=True, slots=True)
class CountedSituations:
    """Situations that are alike, and the first of them."""

    count: int
    examples: tuple[HistorySituation, ...]


@dataclass(frozen=True, slots=True)
class TransactionFact:
    """What a partition knows of a value that a transaction of unknown outcome sent."""

    order: int
    sent: HistoryFact
    read: HistoryFact | None
    passed: HistoryFact | None


@dataclass(frozen=True, slots=True)
class PartitionSituations:
    """What is asked of a partition, and what it knows of transactions."""

    key: str
    rows: int
    situations: tuple[CountedSituations, ...]
    unknown: tuple[TransactionFact, ...]
    reads_from: Array
    """Pairs of orders, one row each: the transaction that read, the one that sent."""
    resent: int
    """Values that were sent more than once."""
    unplaced: int
    """Acknowledged values that nobody read, and whose offset nobody was told."""
    last_read: int
    """The highest offset that was read, or NO_OFFSET."""


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """What a partition's rows do not say themselves."""

    timelines: Mapping[str, Timeline]
    late_starts: Mapping[int, int]
    failing: frozenset[str]
    jumping: frozenset[str]
    skew: int
    """Nanoseconds by which two processes' clocks may differ."""


def judge_partition(key: str, rows: pa.Table, context: PartitionContext) -> PartitionSituations:
    """Group the rows of one partition."""
    partition = _PartitionRows(key, rows, context)
    situations = (
        *partition.of_values(),
        *partition.of_offsets(),
        *partition.of_read_steps(),
        *partition.of_send_steps(),
        *partition.of_commits(),
        *partition.of_positions(),
    )
    return PartitionSituations(
        key,
        len(rows),
        situations,
        tuple(partition.unknown_transactions()),
        partition.reads_from(),
        partition.resent,
        partition.unplaced,
        int(partition.known[-1]) if len(partition.known) else NO_OFFSET,
    )


class _PartitionRows:
    """The columns of a partition, and of each of its rows the neighbours."""

    def __init__(self, key: str, rows: pa.Table, context: PartitionContext) -> None:
        self.key, self.context = key, context
        self.kind = numbers_of(rows.column("kind"))
        self.order = numbers_of(rows.column("order"))
        self.place = numbers_of(rows.column("place"))
        self.offset = numbers_of(rows.column("offset"))
        self.outcome = numbers_of(rows.column("outcome"))
        self.transactional = numbers_of(rows.column("transactional"))
        self.moved = numbers_of(rows.column("moved"))
        self.time = numbers_of(rows.column("time"))
        self.start = self._starts(numbers_of(rows.column("start")))
        processes = rows.column("process").combine_chunks()
        self.process = numbers_of(processes.indices)
        self.names: Sequence[str] = processes.dictionary.to_pylist()
        self.groups = rows.column("group")
        self._values = rows.column("value").combine_chunks()
        encoded = self._values.dictionary_encode()
        self.value = numbers_of(pc.fill_null(encoded.indices, -1)).astype(np.int64)
        self.session = self._sessions()
        self.after = np.full(len(self.order), NO_OFFSET, np.int64)
        self.within = np.zeros(len(self.order), bool)
        self.before = np.full(len(self.order), -1, np.int64)
        """Of each row the order of the operation that `after` is of."""
        self._readers_neighbours()
        self._senders_neighbours()
        self.reads = np.flatnonzero(self.kind == READ)
        self.sends = np.flatnonzero(self.kind == SENT)
        self.placed = (self.kind == SENT) & (self.outcome == OK) & (self.offset != NO_OFFSET)
        # A read without a value speaks for every record of its offset, so it comes first.
        by_offset = self.reads[np.lexsort((self.value[self.reads], self.offset[self.reads]))]
        first = firsts(self.offset[by_offset])
        self._reader_of_known = by_offset[first]
        self.known = self.offset[self._reader_of_known]
        """The offsets that were read, growing."""
        self._gaps()
        self.resent = self.unplaced = 0

    def _starts(self, starts: Array) -> Array:
        late = self.context.late_starts
        if late:
            orders = np.array(sorted(late), np.int64)
            at = np.searchsorted(orders, self.order)
            hit = (at < len(orders)) & (orders[np.minimum(at, len(orders) - 1)] == self.order)
            begun = np.array([late[int(order)] for order in orders], np.int64)
            starts = np.where(hit, begun[np.minimum(at, len(orders) - 1)], starts)
        return starts

    # --- neighbours -------------------------------------------------------------------------------

    def _sessions(self) -> Array:
        """Of each row a number: rows of a process with one number read from one position on."""
        session = np.zeros(len(self.order), np.int64)
        rows_of = RowsOf(self.process)
        for code, name in enumerate(self.names):
            timeline = self.context.timelines.get(name)
            if timeline is None:
                continue
            rows = rows_of(code)
            breaks = np.array(
                sorted((*timeline.everywhere, *timeline.by_key.get(self.key, ()))), np.int64
            )
            orders = self.order[rows]
            session[rows] = np.searchsorted(breaks, orders, side="right")
            for begin, end in timeline.loose:
                loose = (orders >= begin) & (orders < end)
                session[rows[loose]] = -1 - orders[loose]  # each operation for itself
        return session

    def _in_process_order(self, rows: Array) -> Array:
        return rows[
            np.lexsort((self.place[rows], self.kind[rows], self.order[rows], self.process[rows]))
        ]

    def _readers_neighbours(self) -> None:
        """Of each read the offset of the one before; of each commit what was processed, and the
        position before."""
        rows = self._in_process_order(
            np.flatnonzero((self.kind == READ) | (self.kind == COMMITTED))
        )
        self.processed = np.full(len(self.order), NO_OFFSET, np.int64)
        if not len(rows):
            return
        begins = firsts(self.process[rows]) | firsts(self.session[rows])
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

    def _senders_neighbours(self) -> None:
        placed = (self.kind == SENT) & (self.outcome == OK) & (self.offset != NO_OFFSET)
        rows = self._in_process_order(np.flatnonzero(placed))
        if not len(rows):
            return
        follows = ~firsts(self.process[rows])
        before = rows[np.maximum(np.arange(len(rows)) - 1, 0)]
        self.after[rows[follows]] = self.offset[before[follows]]
        self.before[rows[follows]] = self.order[before[follows]]
        began, ended = self.start[rows], self.time[before]
        answered = (began != NO_TIME) & (ended != NO_TIME) & (began >= ended)
        self.within[rows] = (self.order[before] == self.order[rows]) | ~answered

    def _gaps(self) -> None:
        """The steps of readers that go over offsets."""
        reads = self.reads
        over = reads[
            (self.after[reads] != NO_OFFSET) & (self.offset[reads] > self.after[reads] + 1)
        ]
        over = over[np.argsort(self.after[over], kind="stable")]
        ends = self.offset[over]
        self._gap_begins = self.after[over]
        highest = np.maximum.accumulate(ends) if len(ends) else ends
        at = np.maximum.accumulate(np.where(ends == highest, np.arange(len(ends)), 0))
        self._gap_ends, self._gap_rows = highest, over[at] if len(over) else over

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
        """Of each pair of offsets a row that read between them, or -1."""
        result = np.full(len(low), -1, np.int64)
        if len(self.known):
            at = np.searchsorted(self.known, low, side="right")
            hit = at < np.searchsorted(self.known, high)
            result[hit] = self._reader_of_known[at[hit]]
        return result

    # --- situations -------------------------------------------------------------------------------

    def fact(self, row: int, kind: int | None = None) -> HistoryFact:
        """A row with its neighbours."""
        process = self.names[int(self.process[row])]
        failing = process in self.context.failing and not self.transactional[row]
        return HistoryFact(
            int(self.kind[row]) if kind is None else kind,
            int(self.order[row]),
            int(self.place[row]),
            process,
            self.key,
            self._values[row].as_py(),
            int(self.offset[row]),
            int(self.outcome[row]),
            bool(self.transactional[row]),
            int(self.after[row]),
            bool(self.within[row]),
            None if failing else False,
            int(self.processed[row]),
            *self._interval(row),
            int(self.before[row]),
        )

    def intervals(self, rows: Array) -> tuple[Array, Array]:
        """When operations may have taken effect, at the earliest and at the latest."""
        skew, starts, times = self.context.skew, self.start[rows], self.time[rows]
        known = (times != NO_TIME) & (self.outcome[rows] != UNKNOWN)
        began = np.where(starts != NO_TIME, starts - skew, -NEVER)
        return began, np.where(known, times + skew, NEVER)

    def _interval(self, row: int) -> tuple[int, int]:
        if self.kind[row] not in {COMMITTED, FETCHED}:
            return 0, 0
        began, ended = self.intervals(np.array([row]))
        return int(began[0]), int(ended[0])

    def _grouped(
        self, kind: SituationKind, groups: Array, traits: Array, rows: Array, further: Array
    ) -> Iterator[CountedSituations]:
        """`further`: of each row another one that belongs to its group, or -1."""
        rows_of = RowsOf(groups)
        for count, chosen in distinct_groups(groups, traits, EXAMPLES):
            examples = []
            for group in chosen:
                at = rows_of(int(group))
                _, first = np.unique(traits[at], return_index=True)
                at = at[np.sort(first)]
                extra = further[at]
                every = (*rows[at], *np.unique(extra[extra >= 0]))
                examples.append(HistorySituation(kind, tuple(self.fact(int(row)) for row in every)))
            yield CountedSituations(count, tuple(examples))

    def of_values(self) -> Iterator[CountedSituations]:
        """All sends and reads of each value that was sent."""
        sends = self.sends[np.argsort(self.value[self.sends], kind="stable")]
        if not len(sends):
            return
        values = self.value[sends]
        nameless = values < 0
        most = int(self.value.max(initial=-1)) + 1
        values = np.where(nameless, most + np.arange(len(sends)), values)
        new = firsts(values)
        number = np.arange(len(sends)) - np.maximum.accumulate(
            np.where(new, np.arange(len(sends)), 0)
        )
        self.resent = int(np.count_nonzero(number == 1))
        first_order = np.full(most + len(sends), -1, np.int64)
        first_order[values[new]] = self.order[sends[new]]
        self._sole = np.ones(most + len(sends), bool)
        self._sole[values[~new]] = False
        self._first_send = np.full(most + len(sends), -1, np.int64)
        self._first_send[values[new]] = sends[new]
        reads = self.reads[self.value[self.reads] >= 0]
        reads = reads[first_order[self.value[reads]] >= 0]
        is_read = np.zeros(most + len(sends), bool)
        is_read[self.value[reads]] = True
        further = np.full(len(sends), -1, np.int64)
        lonely = np.flatnonzero(~is_read[values] & (self.offset[sends] != NO_OFFSET))
        further[lonely] = self.passing(self.offset[sends[lonely]])
        self._unknown_facts = (sends, values, further)
        self.unplaced = int(
            np.count_nonzero(
                ~is_read[values] & (self.outcome[sends] == OK) & (self.offset[sends] == NO_OFFSET)
            )
        )
        rows = np.concatenate((sends, reads))
        groups = np.concatenate((values, self.value[reads]))
        extra = np.concatenate((further, np.full(len(reads), -1, np.int64)))
        own = np.zeros(len(rows), bool)
        own[len(sends) :] = self.order[reads] == first_order[self.value[reads]]
        numbers = np.concatenate((np.minimum(number, _FEW), np.zeros(len(reads), np.int64)))
        counts = (self.kind[rows] == READ) | self.placed[rows]
        traits = _packed(
            (self.kind[rows], 1),
            (self.outcome[rows] * (self.kind[rows] == SENT), 2),
            (self.transactional[rows] & (self.kind[rows] == SENT), 1),
            (self._renewed()[self.process[rows]] & (self.kind[rows] == SENT), 1),
            (self.offset[rows] != NO_OFFSET, 1),
            (ranks(groups, np.where(counts, self.offset[rows], -1), _FEW), 2),
            (own, 1),
            (numbers, 2),
            (self._passing_kind(rows, extra), 2),
        )
        yield from self._grouped(SituationKind.VALUE, groups, traits, rows, extra)

    def _renewed(self) -> Array:
        """Of each process, whether it may have taken a new epoch."""
        return np.array([name in self.context.failing for name in self.names], bool)

    def _passing_kind(self, rows: Array, further: Array) -> Array:
        """How the read went by: not at all, over the place, at the place without a value to
        compare, or at the place with another one."""
        at = self.offset[further] == self.offset[rows]
        silent = (self.value[further] < 0) | (self.value[rows] < 0)
        return np.where(further < 0, 0, np.where(~at, 1, np.where(silent, 2, 3)))

    def of_offsets(self) -> Iterator[CountedSituations]:
        """All that is known of each offset."""
        rows = np.flatnonzero(((self.kind == READ) | self.placed) & (self.value >= 0))
        if not len(rows):
            return
        groups = np.unique(self.offset[rows], return_inverse=True)[1].astype(np.int64)
        traits = _packed((self.kind[rows], 1), (ranks(groups, self.value[rows], _FEW), 2))
        nothing = np.full(len(rows), -1, np.int64)
        yield from self._grouped(SituationKind.OFFSET, groups, traits, rows, nothing)

    def of_read_steps(self) -> Iterator[CountedSituations]:
        """Each read with the one before, and with what others read between them."""
        rows = self.reads
        if not len(rows):
            return
        between = np.full(len(rows), -1, np.int64)
        over = (self.after[rows] != NO_OFFSET) & (self.offset[rows] > self.after[rows] + 1)
        between[over] = self.between(self.after[rows[over]], self.offset[rows[over]])
        traits = self._step_traits(rows, between >= 0)
        yield from self._grouped(
            SituationKind.READ_STEP, np.arange(len(rows)), traits, rows, between
        )

    def _step_traits(self, rows: Array, flag: Array) -> Array:
        sign = np.sign(self.offset[rows] - self.after[rows]) + 1
        known = self.after[rows] != NO_OFFSET
        return _packed((known, 1), (np.where(known, sign, 0), 2), (self.within[rows], 1), (flag, 1))

    def of_send_steps(self) -> Iterator[CountedSituations]:
        """Each acknowledged send with the offset that its process was told before."""
        rows = np.flatnonzero(self.placed)
        if not len(rows):
            return
        renewed = self._renewed()[self.process[rows]]
        nothing = np.full(len(rows), -1, np.int64)
        traits = self._step_traits(rows, renewed)
        yield from self._grouped(
            SituationKind.SEND_STEP, np.arange(len(rows)), traits, rows, nothing
        )

    def of_commits(self) -> Iterator[CountedSituations]:
        """Each commit with the one before, and with what others read that it leaves out."""
        rows = np.flatnonzero(self.kind == COMMITTED)
        if not len(rows):
            return
        known = self.processed[rows] != NO_OFFSET
        ahead = np.full(len(rows), -1, np.int64)
        ahead[known] = self.between(self.processed[rows[known]], self.offset[rows[known]])
        traits = _packed(
            (known, 1),
            (self.after[rows] != NO_OFFSET, 1),
            (np.sign(self.offset[rows] - self.after[rows]) + 1, 2),
            (np.sign(self.offset[rows] - self.processed[rows]) + 1, 2),
            (np.sign(self.after[rows] - self.processed[rows]) + 1, 2),
            (self.outcome[rows], 2),
            (ahead >= 0, 1),
        )
        yield from self._grouped(
            SituationKind.COMMIT_STEP, np.arange(len(rows)), traits, rows, ahead
        )

    def of_positions(self) -> Iterator[CountedSituations]:
        """Each fetch of a group's position, with the commits that decide what it may show."""
        positions = np.flatnonzero((self.kind == COMMITTED) | (self.kind == FETCHED))
        if not len(positions):
            return
        groups = pc.fill_null(self.groups.take(pa.array(positions)), "").combine_chunks()
        codes = numbers_of(groups.dictionary_encode().indices)
        jumps = np.array([name in self.context.jumping for name in self.names], bool)
        usable = ~jumps[self.process[positions]] & (self.outcome[positions] != FAIL)
        for code in np.unique(codes):
            rows = positions[(codes == code) & usable]
            fetches = rows[(self.kind[rows] == FETCHED) & (self.outcome[rows] == OK)]
            if len(fetches):
                commits = _Commits(self, rows[self.kind[rows] == COMMITTED])
                for row in fetches:
                    facts = tuple(map(self.fact, (*commits.deciding(int(row)), int(row))))
                    yield CountedSituations(1, (HistorySituation(SituationKind.POSITION, facts),))

    # --- transactions -----------------------------------------------------------------------------

    def unknown_transactions(self) -> Iterator[TransactionFact]:
        """What is known of the values of transactions whose outcome nobody knows."""
        if not len(self.sends):
            return
        sends, values, further = self._unknown_facts
        chosen = self.transactional[sends] & (self.outcome[sends] == UNKNOWN) & self._sole[values]
        if not chosen.any():
            return
        by_value = RowsOf(self.value)
        for at in np.flatnonzero(chosen):
            row, value = int(sends[at]), int(self.value[sends[at]])
            same = by_value(value) if value >= 0 else np.zeros(0, np.int64)
            reads = same[self.kind[same] == READ]
            passed = int(further[at])
            yield TransactionFact(
                int(self.order[row]),
                self.fact(row),
                self.fact(int(reads[0])) if len(reads) else None,
                self.fact(passed) if passed >= 0 else None,
            )

    def reads_from(self) -> Array:
        """Which transactions read what other ones sent."""
        reads = self.reads[self.transactional[self.reads] & (self.value[self.reads] >= 0)]
        if not len(reads) or not len(self.sends):
            return np.zeros((0, 2), np.int64)
        values = self.value[reads]
        senders = self._first_send[values]
        chosen = (senders >= 0) & self._sole[values]
        reads, senders = reads[chosen], senders[chosen]
        chosen = self.transactional[senders] & (self.order[senders] != self.order[reads])
        pairs = np.stack((self.order[reads[chosen]], self.order[senders[chosen]]), axis=1)
        return np.unique(pairs, axis=0)


def _packed(*parts: tuple[Array, int]) -> Array:
    """Small numbers in one, each in so many bits."""
    result = np.zeros(len(parts[0][0]), np.int64)
    for numbers, bits in parts:
        result = result << bits | numbers.astype(np.int64)
    return result


class _Commits:
    """The commits of a group, by when they ended and by their offset."""

    def __init__(self, partition: _PartitionRows, rows: Array) -> None:
        self._partition, self._rows = partition, rows
        self._began, self._ended = partition.intervals(rows)
        ok = np.flatnonzero(partition.outcome[rows] == OK)
        ok = ok[np.argsort(self._ended[ok], kind="stable")]
        self._ends = self._ended[ok]
        began = self._began[ok]
        highest = np.maximum.accumulate(began) if len(began) else began
        at = np.maximum.accumulate(np.where(began == highest, np.arange(len(ok)), 0))
        self._newest = ok[at] if len(ok) else ok
        self._of_offset = RowsOf(partition.offset[rows])

    def deciding(self, fetch: int) -> list[int]:
        """The newest commit that a fetch must know of, and that one of the offset it shows which
        has the best chance to be the newest."""
        began, ended = (int(times[0]) for times in self._partition.intervals(np.array([fetch])))
        result = []
        known = int(np.searchsorted(self._ends, began))
        if known:
            result.append(int(self._rows[self._newest[known - 1]]))
        shown = self._of_offset(int(self._partition.offset[fetch]))
        shown = shown[self._began[shown] <= ended]
        if len(shown):
            best = int(self._rows[shown[np.argmax(self._ended[shown])]])
            result += [best] if best not in result else []
        return result
