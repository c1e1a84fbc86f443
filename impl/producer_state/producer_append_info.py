"""What one append would change of a producer's entry (ProducerAppendInfo)."""

from __future__ import annotations

from enum import Enum

from ..errors import InvalidProducerEpochException, OutOfOrderSequenceException
from ..records import RecordBatch
from ..types import TopicPartition
from .producer_state_entry import NO_PRODUCER_EPOCH, ProducerStateEntry, increment_sequence


class AppendOrigin(Enum):
    """Who appends; what a leader has written is not checked again."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class ProducerAppendInfo:
    """The entry as it is after the batches that were added; nobody else sees it before `update`."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        entry: ProducerStateEntry,
        origin: AppendOrigin,
        retained: int,
    ) -> None:
        self._topic_partition = topic_partition
        self._origin = origin
        self._retained = retained
        self.updated_entry = entry

    def append(self, batch: RecordBatch) -> None:
        """Add a batch.

        Raises `InvalidProducerEpochException`, `OutOfOrderSequenceException`; nothing changes then.
        """
        if self._origin is not AppendOrigin.REPLICATION:
            self._check_producer_epoch(batch)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(batch)
        self.updated_entry = self.updated_entry.add_batch(batch, self._retained)

    def _check_producer_epoch(self, batch: RecordBatch) -> None:
        if batch.producer.epoch < self.updated_entry.producer_epoch:
            raise InvalidProducerEpochException(
                f"{batch.producer} of {self._topic_partition} is older than epoch"
                f" {self.updated_entry.producer_epoch}"
            )

    def _check_sequence(self, batch: RecordBatch) -> None:
        entry = self.updated_entry
        if not self._in_sequence(batch):
            raise OutOfOrderSequenceException(
                f"{batch.producer} of {self._topic_partition} does not follow sequence"
                f" {entry.last_seq} of epoch {entry.producer_epoch}"
            )

    def _in_sequence(self, batch: RecordBatch) -> bool:
        entry = self.updated_entry
        first = batch.producer.base_sequence
        if entry.producer_epoch == NO_PRODUCER_EPOCH:
            return True  # its state may have expired
        if batch.producer.epoch != entry.producer_epoch:
            return first == 0
        return first == increment_sequence(entry.last_seq, 1)
