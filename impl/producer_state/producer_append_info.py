"""What one append would change of a producer's entry (ProducerAppendInfo)."""

from __future__ import annotations

from enum import Enum

from ..end_transaction_marker import EndTransactionMarker, deserialize
from ..errors import (
    InvalidProducerEpochException,
    InvalidTxnStateException,
    OutOfOrderSequenceException,
    TransactionCoordinatorFencedException,
)
from ..records import RecordBatch
from ..types import TopicPartition
from .producer_state_entry import (
    MAX_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    ProducerStateEntry,
    increment_sequence,
)
from .transactions import CompletedTxn, TxnMetadata, VerificationStateEntry

_STRICT_MARKERS = 2
"""From this transaction version on a marker has an epoch of its own (KIP-1228)."""


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
        verification: VerificationStateEntry | None = None,
        transaction_version: int = 0,
    ) -> None:
        self._topic_partition = topic_partition
        self._origin = origin
        self._retained = retained
        self._verification = verification
        self._transaction_version = transaction_version
        self.updated_entry = entry
        self.started: list[TxnMetadata] = []
        self.completed: list[CompletedTxn] = []
        self.clears_verification = False
        """Whether the batches leave nothing to verify."""

    def append(self, batch: RecordBatch) -> None:
        """Add a batch, of records or of a marker.

        Raises `InvalidProducerEpochException`, `OutOfOrderSequenceException`,
        `InvalidTxnStateException`, `TransactionCoordinatorFencedException`; nothing changes then.
        """
        if batch.is_control_batch:
            if batch.records:  # else the cleaner has removed the whole transaction
                self._append_end_txn_marker(batch, deserialize(batch))
        else:
            self._append_data_batch(batch)

    # ---- records -----------------------------------------------------------------------------

    def _append_data_batch(self, batch: RecordBatch) -> None:
        if self._origin is not AppendOrigin.REPLICATION:
            self._check_producer_epoch(batch)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(batch)
        first = self.updated_entry.current_txn_first_offset
        if first is not None and not batch.is_transactional:
            raise InvalidTxnStateException(
                f"{batch.producer} of {self._topic_partition} is not transactional, and a"
                f" transaction is open from offset {first} on"
            )
        self.updated_entry = self.updated_entry.add_batch(batch, self._retained)
        if batch.is_transactional:
            self.clears_verification = True
            if first is None:
                self._begin(batch)

    def _begin(self, batch: RecordBatch) -> None:
        self.updated_entry = self.updated_entry.begin_txn(batch.base_offset)
        self.started.append(TxnMetadata(batch.producer.producer_id, batch.base_offset))

    def _check_producer_epoch(self, batch: RecordBatch) -> None:
        if batch.producer.epoch < self.updated_entry.producer_epoch:
            raise self._invalid_epoch(batch)

    def _invalid_epoch(self, batch: RecordBatch) -> InvalidProducerEpochException:
        return InvalidProducerEpochException(
            f"{batch.producer} of {self._topic_partition} is too old for epoch"
            f" {self.updated_entry.producer_epoch}"
        )

    def _check_sequence(self, batch: RecordBatch) -> None:
        entry = self.updated_entry
        if not self._in_sequence(batch) or self._is_behind_verification(batch):
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

    def _is_behind_verification(self, batch: RecordBatch) -> bool:
        """Whether an earlier batch is being verified (KAFKA-14920), or must come (KAFKA-18202)."""
        pending = self._verification
        if pending is None:
            return False
        first = batch.producer.base_sequence
        is_new = self.updated_entry.last_seq == NO_SEQUENCE
        return (pending.supports_epoch_bump and is_new and first != 0) or (
            batch.producer.epoch == pending.epoch and first > pending.lowest_sequence
        )

    # ---- markers -----------------------------------------------------------------------------

    def _append_end_txn_marker(self, batch: RecordBatch, marker: EndTransactionMarker) -> None:
        if self._origin is not AppendOrigin.REPLICATION:
            self._check_marker_epoch(batch)
            self._check_coordinator_epoch(batch, marker)
        first = self.updated_entry.current_txn_first_offset
        if first is not None:
            self.completed.append(
                CompletedTxn(
                    batch.producer.producer_id, first, batch.base_offset, not marker.is_commit
                )
            )
        self.updated_entry = self.updated_entry.end_txn(batch, marker.coordinator_epoch)
        self.clears_verification = not self._is_before_verification(batch)

    def _is_before_verification(self, batch: RecordBatch) -> bool:
        """Whether the marker ends the transaction before the one to verify (KAFKA-18654)."""
        pending = self._verification
        return (
            pending is not None
            and pending.supports_epoch_bump
            and pending.epoch == batch.producer.epoch
        )

    def _check_marker_epoch(self, batch: RecordBatch) -> None:
        """Version 2: a marker that has its epoch here already was sent again (KAFKA-19999)."""
        entry, epoch = self.updated_entry, batch.producer.epoch
        is_strict = self._transaction_version >= _STRICT_MARKERS and epoch != MAX_EPOCH
        is_open = entry.current_txn_first_offset is not None
        if epoch < entry.producer_epoch or (
            is_strict and is_open and epoch == entry.producer_epoch
        ):
            raise self._invalid_epoch(batch)

    def _check_coordinator_epoch(self, batch: RecordBatch, marker: EndTransactionMarker) -> None:
        if marker.coordinator_epoch < self.updated_entry.coordinator_epoch:
            raise TransactionCoordinatorFencedException(
                f"{batch.producer} of {self._topic_partition} ends by coordinator epoch"
                f" {marker.coordinator_epoch}, after {self.updated_entry.coordinator_epoch}"
            )
