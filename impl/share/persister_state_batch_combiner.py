"""What two lists of states of records say together: Kafka's PersisterStateBatchCombiner (KIP-932).

Each record has a batch of its own, as `SharePartition` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from .in_flight_state import RecordState
from .share_partition import PersisterStateBatch

_IDS = {RecordState.AVAILABLE: 0, RecordState.ACKNOWLEDGED: 2, RecordState.ARCHIVED: 4}
"""RecordState.id of what is stored."""


def combine_state_batches(
    so_far: Iterable[PersisterStateBatch], new: Iterable[PersisterStateBatch], start_offset: int
) -> tuple[PersisterStateBatch, ...]:
    """Of each offset from the start on the batch that wins, by offset.

    The greater delivery count wins, then the greater state: a join, so that writes may come in any
    order, and again.
    """
    best: dict[int, PersisterStateBatch] = {}
    for batch in (*so_far, *new):
        known = best.get(batch.offset)
        if batch.offset >= start_offset and (known is None or _rank(known) < _rank(batch)):
            best[batch.offset] = batch
    return tuple(best[offset] for offset in sorted(best))


def _rank(batch: PersisterStateBatch) -> tuple[int, int]:
    return batch.delivery_count, _IDS[batch.state]
