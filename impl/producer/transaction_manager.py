"""Sequences of an idempotent producer on one partition (TransactionManager, TxnPartitionEntry).

The producer has a producer id already. Transactions are not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import Errors
from ..producer_state.producer_state_entry import NO_SEQUENCE, increment_sequence
from ..records import MemoryRecords, ProducerInfo, Record, RecordBatch


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """Records that are sent together; a retry sends the same sequences (ProducerBatch)."""

    records: tuple[Record, ...]
    producer_epoch: int
    base_sequence: int

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record."""
        return increment_sequence(self.base_sequence, len(self.records) - 1)

    def memory_records(self, producer_id: int) -> MemoryRecords:
        """The batch as it is sent."""
        producer = ProducerInfo(producer_id, self.producer_epoch, self.base_sequence)
        return MemoryRecords((RecordBatch.create(self.records, producer=producer),))


class TransactionManager:
    """Which sequences are next, which are acknowledged, which are in flight."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = 0
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        self.in_flight_batches: tuple[ProducerBatch, ...] = ()

    def add_in_flight_batch(self, records: Sequence[Record]) -> ProducerBatch:
        """The records get the next sequences."""
        batch = ProducerBatch(tuple(records), self.producer_epoch, self.next_sequence)
        self.next_sequence = increment_sequence(self.next_sequence, len(batch.records))
        self.in_flight_batches = (*self.in_flight_batches, batch)
        return batch

    def handle_completed_batch(self, batch: ProducerBatch) -> None:
        """The batch is acknowledged."""
        self.in_flight_batches = tuple(b for b in self.in_flight_batches if b != batch)
        self.last_acked_sequence = max(self.last_acked_sequence, batch.last_sequence)

    def can_retry(self, error: Errors, batch: ProducerBatch) -> bool:
        """Whether the batch is to be sent again as it is.

        OUT_OF_ORDER_SEQUENCE_NUMBER for the batch that is next says that the leader has lost what
        was acknowledged before; of a later batch, that an earlier one is still missing.
        """
        if error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return not self.is_next_sequence(batch.base_sequence)
        return error is not Errors.INVALID_PRODUCER_EPOCH

    def is_next_sequence(self, sequence: int) -> bool:
        """Whether it follows the last one that was acknowledged."""
        return sequence == increment_sequence(self.last_acked_sequence, 1)

    def bump_idempotent_producer_epoch(self) -> tuple[ProducerBatch, ...]:
        """Begin a new epoch; the batches in flight are numbered from 0 on (KIP-360)."""
        self.producer_epoch += 1
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        renumbered = []
        for batch in self.in_flight_batches:
            renumbered.append(
                replace(
                    batch,
                    producer_epoch=self.producer_epoch,
                    base_sequence=self.next_sequence,
                )
            )
            self.next_sequence = increment_sequence(self.next_sequence, len(batch.records))
        self.in_flight_batches = tuple(renumbered)
        return self.in_flight_batches
