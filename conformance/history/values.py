"""The rows of a partition by value: each value's sends and reads, and its transaction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from conformance.history.arrays import Array, RowsOf, firsts, packed, ranks
from conformance.history.columns import FEW, PartitionRows, SituationCounts
from conformance.history.neighbours import LINKED_ROWS, PartitionContext
from conformance.history.rows import NO_OFFSET, NO_TIME, OK, READ, SENT, UNKNOWN
from conformance.history.situations import SituationKind

SENDS, READS, PASSES = range(3)
"""What a row of `TRANSACTION_ROWS` is: a send, a read of its value, or a read that went by."""
TRANSACTION_ROWS = pa.schema(
    [*LINKED_ROWS, ("of", pa.int64()), ("role", pa.int8()), ("trait", pa.int8())]
)
"""What is known of values that transactions of unknown outcome sent. `of` is the transaction's
order. Rows with the same partition and `copy_for` are of one value; `trait` is of its send."""
READINGS = pa.schema(
    {name: pa.int64() for name in ("reader", "sender", "reader_time", "sender_time")}
)
"""Which transaction has read from which. A transaction is its order; times are those of its end, or
its order if it has none."""


@dataclass(frozen=True, slots=True)
class _Sends:
    """The sends of values, sorted by value; those without a value have numbers of their own."""

    rows: Array
    values: Array
    is_read: Array
    further: Array
    """A row that went by, or -1."""


class ValueRows:
    """The sends of some values of a partition, all their reads, and reads that went by."""

    def __init__(self, key: str, rows: pa.Table, context: PartitionContext) -> None:
        self.rows = own = PartitionRows(key, rows, context)
        sends = np.flatnonzero((own.kind == SENT) & own.own)
        sends = sends[np.argsort(own.value[sends], kind="stable")]
        values = own.value[sends]
        most = int(own.value.max(initial=-1)) + 1
        values = np.where(values < 0, most + np.arange(len(sends)), values)
        self._new = firsts(values)
        self._first = np.full(most + len(sends), -1, np.int64)
        self._first[values[self._new]] = sends[self._new]
        self._sole = np.ones(most + len(sends), bool)
        self._sole[values[~self._new]] = False
        reads = np.flatnonzero((own.kind == READ) & own.own & (own.value >= 0))
        self._reads = reads[self._first[own.value[reads]] >= 0]
        is_read = np.zeros(most + len(sends), bool)
        is_read[own.value[self._reads]] = True
        self._sends = _Sends(sends, values, is_read[values], self._passing(sends, is_read[values]))

    def _passing(self, sends: Array, is_read: Array) -> Array:
        """Of each send that nobody read the row that went by, or -1."""
        passing = np.flatnonzero(~self.rows.own)
        further = np.full(len(sends), -1, np.int64)
        if len(passing):
            passing = passing[np.argsort(self.rows.copy_for[passing], kind="stable")]
            ids = self.rows.copy_for[passing]
            at = np.minimum(np.searchsorted(ids, self.rows.id[sends]), len(ids) - 1)
            hit = ~is_read & (ids[at] == self.rows.id[sends])
            further[hit] = passing[at[hit]]
        return further

    @property
    def resent(self) -> int:
        """Values that were sent more than once."""
        again = np.flatnonzero(~self._new)
        return len(np.unique(self._sends.values[again]))

    @property
    def unplaced(self) -> int:
        """Acknowledged values that nobody read, and whose offset nobody was told."""
        own, sends = self.rows, self._sends
        lonely = sends.rows[~sends.is_read]
        return int(
            np.count_nonzero((own.outcome[lonely] == OK) & (own.offset[lonely] == NO_OFFSET))
        )

    def count(self, counts: SituationCounts) -> None:
        """All sends and reads of each value that was sent."""
        own, sends, reads = self.rows, self._sends, self._reads
        places = np.arange(len(sends.rows))
        number = places - np.maximum.accumulate(np.where(self._new, places, 0))
        rows = np.concatenate((sends.rows, reads))
        groups = np.concatenate((sends.values, own.value[reads]))
        extra = np.concatenate((sends.further, np.full(len(reads), -1, np.int64)))
        itself = np.zeros(len(rows), bool)
        itself[len(sends.rows) :] = own.order[reads] == own.order[self._first[own.value[reads]]]
        numbers = np.concatenate((np.minimum(number, FEW), np.zeros(len(reads), np.int64)))
        placed = (own.kind[rows] == READ) | own.placed[rows]
        is_send = own.kind[rows] == SENT
        traits = packed(
            (~is_send, 1),
            (own.outcome[rows] * is_send, 2),
            (own.transactional[rows] & is_send, 1),
            (own.renewed[rows] & is_send, 1),
            (own.offset[rows] != NO_OFFSET, 1),
            (ranks(groups, np.where(placed, own.offset[rows], -1), FEW), 2),
            (itself, 1),
            (numbers, 2),
            (self._passing_kind(rows, extra), 2),
        )
        own.count(counts, SituationKind.VALUE, groups, traits, rows, extra)

    def _passing_kind(self, rows: Array, further: Array) -> Array:
        """How the read went by: not at all, over the place, at the place without a value to
        compare, or at the place with another one."""
        own = self.rows
        at = own.offset[further] == own.offset[rows]
        silent = (own.value[further] < 0) | (own.value[rows] < 0)
        return np.where(further < 0, 0, np.where(~at, 1, np.where(silent, 2, 3)))

    # --- transactions -----------------------------------------------------------------------------

    def unknown_transactions(self) -> pa.Table:
        """What is known of the values of transactions whose outcome nobody knows."""
        own, sends = self.rows, self._sends
        chosen = own.transactional[sends.rows] & (own.outcome[sends.rows] == UNKNOWN)
        chosen = np.flatnonzero(chosen & self._sole[sends.values])
        if not len(chosen):
            return TRANSACTION_ROWS.empty_table()
        sent, further = sends.rows[chosen], sends.further[chosen]
        by_value = RowsOf(own.value[self._reads])
        read = np.full(len(sent), -1, np.int64)
        for place in np.flatnonzero(sends.is_read[chosen]):
            read[place] = self._reads[by_value(int(own.value[sent[place]]))[0]]
        passing = self._passing_kind(sent, further)
        traits = packed((read >= 0, 1), (own.offset[sent] != NO_OFFSET, 1), (passing, 2))
        parts = []
        for role, rows in ((SENDS, sent), (READS, read), (PASSES, further)):
            there = rows >= 0
            columns = own.table.take(pa.array(rows[there])).columns
            columns[-1] = pa.array(own.id[sent[there]])
            more = (
                own.order[sent[there]],
                np.full(np.count_nonzero(there), role, np.int8),
                traits[there].astype(np.int8),
            )
            parts.append(
                pa.Table.from_arrays([*columns, *map(pa.array, more)], schema=TRANSACTION_ROWS)
            )
        return pa.concat_tables(parts)

    def readings(self) -> pa.Table:
        """Which transactions read what other ones sent."""
        own = self.rows
        reads = self._reads[own.transactional[self._reads]]
        reads = reads[self._sole[own.value[reads]]]
        senders = self._first[own.value[reads]]
        chosen = own.transactional[senders] & (own.order[senders] != own.order[reads])
        reads, senders = reads[chosen], senders[chosen]
        columns = (own.order[reads], own.order[senders], self._ends(reads), self._ends(senders))
        return pa.Table.from_arrays([*map(pa.array, columns)], schema=READINGS)

    def _ends(self, rows: Array) -> Array:
        own = self.rows
        return np.where(own.time[rows] == NO_TIME, own.order[rows], own.time[rows])
