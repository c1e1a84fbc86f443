"""One producer's entry: its epoch, and its last batches in that epoch (ProducerStateEntry)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..records import RecordBatch

NUM_BATCHES_TO_RETAIN = 5
"""As many as a producer may have in flight."""
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_COORDINATOR_EPOCH = -1
MAX_SEQUENCE = 2**31 - 1
MAX_EPOCH = 2**15 - 1


def increment_sequence(sequence: int, increment: int) -> int:
    """Sequences go on with 0 after 2^31 - 1 (DefaultRecordBatch.incrementSequence)."""
    return (sequence + increment) % (MAX_SEQUENCE + 1)


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """A batch as it is remembered (BatchMetadata)."""

    last_seq: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_seq(self) -> int:
        """The sequence of the batch's first record."""
        return increment_sequence(self.last_seq, -self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of the batch's first record."""
        return self.last_offset - self.offset_delta


@dataclass(frozen=True, slots=True)
class ProducerStateEntry:
    """What is known of a producer; without batches it may still have an epoch."""

    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    batch_metadata: tuple[BatchMetadata, ...] = ()
    last_timestamp: int = -1
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    current_txn_first_offset: int | None = None
    """None if no transaction of the producer is open."""

    @property
    def last_seq(self) -> int:
        """The newest sequence in this epoch; -1 if there is none."""
        return self.batch_metadata[-1].last_seq if self.batch_metadata else NO_SEQUENCE

    @property
    def last_data_offset(self) -> int | None:
        """The offset of the newest record in this epoch; None if there is none."""
        return self.batch_metadata[-1].last_offset if self.batch_metadata else None

    def add_batch(self, batch: RecordBatch, retained: int) -> ProducerStateEntry:
        """The entry after `batch`: a new epoch clears the batches, of which `retained` stay."""
        entry = self._maybe_update_producer_epoch(batch.producer.epoch)
        delta = batch.last_offset - batch.base_offset
        added = BatchMetadata(
            increment_sequence(batch.producer.base_sequence, delta),
            batch.last_offset,
            delta,
            batch.max_timestamp,
        )
        batches = (*entry.batch_metadata, added)[-retained:]
        return replace(entry, batch_metadata=batches, last_timestamp=batch.max_timestamp)

    def begin_txn(self, first_offset: int) -> ProducerStateEntry:
        """The entry with an open transaction."""
        return replace(self, current_txn_first_offset=first_offset)

    def end_txn(self, marker: RecordBatch, coordinator_epoch: int) -> ProducerStateEntry:
        """The entry after a marker: nothing is open."""
        return replace(
            self._maybe_update_producer_epoch(marker.producer.epoch),
            coordinator_epoch=coordinator_epoch,
            current_txn_first_offset=None,
            last_timestamp=marker.max_timestamp,
        )

    def _maybe_update_producer_epoch(self, epoch: int) -> ProducerStateEntry:
        if epoch == self.producer_epoch:
            return self
        return replace(self, producer_epoch=epoch, batch_metadata=())

    def find_duplicate_batch(self, batch: RecordBatch) -> BatchMetadata | None:
        """The batch of the same epoch and exactly the same sequences, if it is remembered."""
        if batch.producer.epoch != self.producer_epoch:
            return None
        first = batch.producer.base_sequence
        last = increment_sequence(first, batch.last_offset - batch.base_offset)
        for known in self.batch_metadata:
            if known.first_seq == first and known.last_seq == last:
                return known
        return None
