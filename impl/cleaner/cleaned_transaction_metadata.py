"""Which transactions a pass of the cleaner is in, and which of them leave nothing behind.

Source: CleanedTransactionMetadata.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ..end_transaction_marker import deserialize
from ..producer_state.transactions import AbortedTxn
from ..records import RecordBatch
from ..transaction_index import TransactionIndex


class CleanedTransactionMetadata:
    """Batches are shown to it in the order of the log; the index gets what must still be known."""

    def __init__(self, cleaned_index: TransactionIndex | None = None) -> None:
        self._cleaned_index = cleaned_index
        self._aborted_transactions: list[tuple[int, AbortedTxn]] = []
        self._ongoing_committed_txns: set[int] = set()
        self._ongoing_aborted_txns: dict[int, AbortedTxn] = {}
        self._observed: set[int] = set()
        """Producers of whose aborted transaction a batch was read."""

    def add_aborted_transactions(self, aborted: Iterable[AbortedTxn]) -> None:
        """What the abort index says of the batches that come."""
        for txn in aborted:
            heapq.heappush(self._aborted_transactions, (txn.first_offset, txn))

    def on_control_batch_read(self, batch: RecordBatch) -> bool:
        """Whether no batch of the transaction was read that the marker ends."""
        self._consume_aborted_txns_up_to(batch.last_offset)
        if not batch.records:
            return True
        producer_id = batch.producer.producer_id
        if deserialize(batch).is_commit:
            was_read = producer_id in self._ongoing_committed_txns
            self._ongoing_committed_txns.discard(producer_id)
            return not was_read
        aborted = self._ongoing_aborted_txns.pop(producer_id, None)
        if aborted is None or producer_id not in self._observed:
            return True
        self._observed.discard(producer_id)
        if self._cleaned_index is not None:
            self._cleaned_index.append(aborted)
        return False

    def on_batch_read(self, batch: RecordBatch) -> bool:
        """Whether the records of the batch are aborted."""
        self._consume_aborted_txns_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        producer_id = batch.producer.producer_id
        if producer_id in self._ongoing_aborted_txns:
            self._observed.add(producer_id)
            return True
        self._ongoing_committed_txns.add(producer_id)
        return False

    def _consume_aborted_txns_up_to(self, offset: int) -> None:
        while self._aborted_transactions and self._aborted_transactions[0][0] <= offset:
            _, txn = heapq.heappop(self._aborted_transactions)
            self._ongoing_aborted_txns.setdefault(txn.producer_id, txn)
