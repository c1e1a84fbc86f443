"""A group's positions in a partition: each fetch with the commits that decide what it may show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conformance.history.arrays import Array, RowsOf, numbers_of
from conformance.history.columns import PartitionRows, SituationCounts
from conformance.history.rows import COMMITTED, FAIL, FETCHED, OK
from conformance.history.situations import HistorySituation, SituationKind, states_of


def count_positions(rows: PartitionRows, counts: SituationCounts) -> None:
    """Each fetch of a group's position, with the commits that decide what it may show."""
    positions = np.flatnonzero((rows.kind == COMMITTED) | (rows.kind == FETCHED))
    if not len(positions):
        return
    groups = pc.fill_null(rows.table.column("group").take(pa.array(positions)), "")
    codes = numbers_of(groups.combine_chunks().dictionary_encode().indices)
    jumps = np.array([name in rows.context.jumping for name in rows.names], bool)
    usable = ~jumps[rows.process[positions]] & (rows.outcome[positions] != FAIL)
    for code in np.unique(codes):
        own = positions[(codes == code) & usable]
        fetches = own[(rows.kind[own] == FETCHED) & (rows.outcome[own] == OK)]
        if len(fetches):
            commits = _Commits(rows, own[rows.kind[own] == COMMITTED])
            for situation in map(commits.situation, fetches.tolist()):
                state = states_of(situation.facts)[0]  # no epoch is part of a position
                alike = frozenset(state.items())
                counts.add(situation.kind, alike, 1, (situation,))


class _Commits:
    """The commits of a group, by when they ended and by their offset."""

    def __init__(self, partition: PartitionRows, rows: Array) -> None:
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

    def situation(self, fetch: int) -> HistorySituation:
        """A fetch with the commits that decide."""
        rows = (*self._deciding(fetch), fetch)
        return HistorySituation(SituationKind.POSITION, tuple(map(self._partition.fact, rows)))

    def _deciding(self, fetch: int) -> Iterator[int]:
        """The newest commit that a fetch must know of, and that one of the offset it shows which
        has the best chance to be the newest."""
        began, ended = (int(times[0]) for times in self._partition.intervals(np.array([fetch])))
        known = int(np.searchsorted(self._ends, began))
        newest = int(self._rows[self._newest[known - 1]]) if known else None
        if newest is not None:
            yield newest
        shown = self._of_offset(int(self._partition.offset[fetch]))
        shown = shown[self._began[shown] <= ended]
        if len(shown):
            best = int(self._rows[shown[np.argmax(self._ended[shown])]])
            if best != newest:
                yield best
