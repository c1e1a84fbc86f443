"""The records of one fetch that the application gets (CompletedFetch).

A consumer with isolation.level=read_committed leaves out the records of aborted transactions; no
consumer's application gets markers.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from ..end_transaction_marker import deserialize
from ..producer_state.transactions import AbortedTxn
from ..records import Record, RecordBatch
from ..types import NO_PARTITION_LEADER_EPOCH


class CompletedFetch:
    """Batches of a fetch, and which aborted transactions the broker named with them.

    `aborted_transactions` is None for isolation.level=read_uncommitted.
    """

    def __init__(
        self,
        fetch_offset: int,
        batches: Iterable[RecordBatch],
        aborted_transactions: Iterable[AbortedTxn] | None,
    ) -> None:
        self._batches = deque(batches)
        self._is_read_committed = aborted_transactions is not None
        self._aborted_transactions = [
            (aborted.first_offset, aborted.producer_id) for aborted in aborted_transactions or ()
        ]
        heapq.heapify(self._aborted_transactions)
        self._aborted_producer_ids: set[int] = set()
        self.next_fetch_offset = fetch_offset
        """The consumer's position behind what was taken."""
        self.last_epoch: int | None = None
        """The leader epoch of the last batch that was taken from."""

    @property
    def is_consumed(self) -> bool:
        """Whether nothing is left."""
        return not self._batches

    def fetch_records(self, max_records: int | None = None) -> list[tuple[int, Record]]:
        """The next records that the application gets, with offsets; the position moves along."""
        records: list[tuple[int, Record]] = []
        while self._batches:
            batch = self._batches[0]
            for offset, record in self._records_left(batch):
                if len(records) == max_records:
                    return records
                records.append((offset, record))
                self._move(batch, offset + 1)
            self._move(batch, batch.next_offset)
            self._batches.popleft()
        return records

    def _records_left(self, batch: RecordBatch) -> list[tuple[int, Record]]:
        if self._is_left_out(batch):
            return []
        offsets = ((batch.base_offset + record.offset_delta, record) for record in batch.records)
        return [each for each in offsets if each[0] >= self.next_fetch_offset]

    def _move(self, batch: RecordBatch, offset: int) -> None:
        self.next_fetch_offset = offset
        epoch = batch.partition_leader_epoch
        self.last_epoch = None if epoch == NO_PARTITION_LEADER_EPOCH else epoch

    def _is_left_out(self, batch: RecordBatch) -> bool:
        if self._is_read_committed and batch.producer.producer_id >= 0:
            self._consume_aborted_transactions_up_to(batch.last_offset)
            if _is_abort_marker(batch):
                self._aborted_producer_ids.discard(batch.producer.producer_id)
            elif self._is_batch_aborted(batch):
                return True
        return batch.is_control_batch

    def _consume_aborted_transactions_up_to(self, offset: int) -> None:
        while self._aborted_transactions and self._aborted_transactions[0][0] <= offset:
            _, producer_id = heapq.heappop(self._aborted_transactions)
            self._aborted_producer_ids.add(producer_id)

    def _is_batch_aborted(self, batch: RecordBatch) -> bool:
        return batch.is_transactional and batch.producer.producer_id in self._aborted_producer_ids


def _is_abort_marker(batch: RecordBatch) -> bool:
    """A marker that the cleaner has emptied is none."""
    return batch.is_control_batch and bool(batch.records) and not deserialize(batch).is_commit
