"""Rows of one partition as arrays, the facts that they are, and situations that are alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conformance.history.arrays import Array, RowsOf, distinct_groups, numbers_of
from conformance.history.neighbours import OWN, PartitionContext
from conformance.history.rows import COMMITTED, FETCHED, NO_OFFSET, NO_TIME, OK, SENT, UNKNOWN
from conformance.history.situations import NEVER, HistorySituation, SituationFact, SituationKind

EXAMPLES = 20
"""So many situations that are alike are kept of a bucket; all are counted."""
FEW = 3
"""Ranks from here on are not told apart."""


@dataclass(frozen=True, slots=True)
class CountedSituations:
    """Situations that are alike, and the first of them."""

    count: int
    examples: tuple[HistorySituation, ...]


@dataclass(slots=True)
class SituationCounts:
    """Situations by kind and by what makes them alike."""

    _counts: dict[tuple[SituationKind, Hashable], int] = field(default_factory=dict)
    _examples: dict[tuple[SituationKind, Hashable], list[HistorySituation]] = field(
        default_factory=dict
    )

    def add(
        self,
        kind: SituationKind,
        alike: Hashable,
        count: int,
        examples: Iterable[HistorySituation],
    ) -> None:
        """So many more; of `examples` no more are made than are kept."""
        key = kind, alike
        kept = self._examples.setdefault(key, [])
        self._counts[key] = self._counts.get(key, 0) + count
        kept += islice(examples, EXAMPLES - len(kept))

    def __call__(self) -> tuple[CountedSituations, ...]:
        """All of them."""
        return tuple(
            CountedSituations(count, tuple(self._examples[key]))
            for key, count in self._counts.items()
        )


class PartitionRows:
    """`LINKED_ROWS` of one partition."""

    def __init__(self, key: str, rows: pa.Table, context: PartitionContext) -> None:
        self.key, self.table, self.context = key, rows, context
        self.kind = numbers_of(rows.column("kind"))
        self.order = numbers_of(rows.column("order"))
        self.place = numbers_of(rows.column("place"))
        self.offset = numbers_of(rows.column("offset"))
        self.outcome = numbers_of(rows.column("outcome"))
        self.transactional = numbers_of(rows.column("transactional"))
        self.time = numbers_of(rows.column("time"))
        self.start = numbers_of(rows.column("start"))
        self.after = numbers_of(rows.column("after"))
        self.within = numbers_of(rows.column("within"))
        self.before = numbers_of(rows.column("before"))
        self.processed = numbers_of(rows.column("processed"))
        self.given = numbers_of(rows.column("given"))
        self.id = numbers_of(rows.column("id"))
        self.copy_for = numbers_of(rows.column("copy_for"))
        processes = rows.column("process").combine_chunks()
        used, self.process = np.unique(numbers_of(processes.indices), return_inverse=True)
        self.names: Sequence[str] = processes.dictionary.take(pa.array(used)).to_pylist()
        self._values = rows.column("value").combine_chunks()
        encoded = self._values.dictionary_encode()
        self.value = numbers_of(pc.fill_null(encoded.indices, -1)).astype(np.int64)
        self.own = self.copy_for == OWN
        self.placed = (
            self.own & (self.kind == SENT) & (self.outcome == OK) & (self.offset != NO_OFFSET)
        )
        self.renewed = np.array([name in context.failing for name in self.names], bool)[
            self.process
        ]
        """Whether its producer may have taken a new epoch."""

    def fact(self, row: int) -> SituationFact:
        """A row with its neighbours."""
        failing = self.renewed[row] and not self.transactional[row]
        return SituationFact(
            int(self.kind[row]),
            int(self.order[row]),
            int(self.place[row]),
            self.names[int(self.process[row])],
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
            int(self.given[row]),
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

    def count(
        self,
        counts: SituationCounts,
        kind: SituationKind,
        groups: Array,
        traits: Array,
        rows: Array,
        further: Array | None = None,
    ) -> None:
        """Count groups of rows. `further`: of each row another one of its group, or -1."""
        rows_of = RowsOf(groups)
        extra = np.full(len(rows), -1, np.int64) if further is None else further

        def example(group: int) -> HistorySituation:
            at = rows_of(group)
            _, first = np.unique(traits[at], return_index=True)
            at = at[np.sort(first)]
            others: Iterable[SituationFact] = map(
                self.fact, np.unique(extra[at][extra[at] >= 0]).tolist()
            )
            if kind is not SituationKind.VALUE:  # of these only their place matters
                others = (replace(o, after=NO_OFFSET, within=False, before=-1) for o in others)
            return HistorySituation(kind, (*map(self.fact, rows[at].tolist()), *others))

        for alike, count, chosen in distinct_groups(groups, traits, EXAMPLES):
            counts.add(kind, alike, count, map(example, chosen.tolist()))
