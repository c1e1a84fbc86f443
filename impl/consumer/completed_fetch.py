"""The records of one fetch that the application gets (CompletedFetch).

A consumer with isolation.level=read_committed leaves out the records of aborted transactions; no
consumer's application gets markers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from ..end_transaction_marker import deserialize
from ..producer_state.transactions import AbortedTxn
from ..records import Record, RecordBatch


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
        self._batches = batches
        self._is_read_committed = aborted_transactions is not None
        self._aborted_transactions = [
            (aborted.first_offset, aborted.producer_id) for aborted in aborted_transactions or ()
        ]
        heapq.heapify(self._aborted_transactions)
        self._aborted_producer_ids: set[int] = set()
        self.next_fetch_offset = fetch_offset
        """The consumer's position behind what was taken."""

    def fetch_records(self) -> Iterator[tuple[int, Record]]:
        """Offset and record of each that the application gets; the position moves along."""
        position = self.next_fetch_offset
        for batch in self._batches:
            if not self._is_left_out(batch):
                for record in batch.records:
                    offset = batch.base_offset + record.offset_delta
                    if offset >= position:
                        self.next_fetch_offset = offset + 1
                        yield offset, record
            self.next_fetch_offset = batch.next_offset

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
    return batch.is_control_batch and not deserialize(batch).is_commit
