"""What a coordinator knows of one transactional id (TransactionMetadata, TxnTransitMetadata).

A transition is prepared, appended to the log, and completed once the append is acknowledged. One
is under way at a time: `pending_state` says which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..concurrency import Lock
from ..errors import Errors, IllegalStateException
from ..types import TopicPartition
from .transaction_state import COMPLETES, PREPARES, VALID_PREVIOUS_STATES, TransactionState

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
MAX_PRODUCER_EPOCH = 2**15 - 1
_VERSION_WITH_EPOCH_BUMP = 2


def supports_epoch_bump(transaction_version: int) -> bool:
    """Whether each end of a transaction raises the epoch (KIP-890)."""
    return transaction_version >= _VERSION_WITH_EPOCH_BUMP


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether the producer id needs a successor; the last epoch is kept for a fence."""
    return producer_epoch >= MAX_PRODUCER_EPOCH - 1


@dataclass(frozen=True, slots=True)
class TxnTransitMetadata:
    """All of an id that a record of the log has, and `last_producer_epoch`; times are in ms."""

    producer_id: int
    txn_timeout_ms: int
    txn_last_update_timestamp: int
    prev_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    txn_state: TransactionState = TransactionState.EMPTY
    topic_partitions: frozenset[TopicPartition] = frozenset()
    txn_start_timestamp: int = NO_TIMESTAMP
    client_transaction_version: int = 0

    @property
    def supports_epoch_bump(self) -> bool:
        """Whether the transaction is one of version 2."""
        return supports_epoch_bump(self.client_transaction_version)

    @property
    def is_producer_epoch_exhausted(self) -> bool:
        """Whether the producer id needs a successor."""
        return is_epoch_exhausted(self.producer_epoch)


class TransactionMetadata:
    """One id at one coordinator. Whoever calls a method holds `lock`."""

    def __init__(self, transactional_id: str, current: TxnTransitMetadata, lock: Lock) -> None:
        self.transactional_id = transactional_id
        self.current = current
        self.pending_state: TransactionState | None = None
        self.has_failed_epoch_fence = False
        """Whether the epoch was raised here by a fence whose append failed (KAFKA-9666)."""
        self.lock = lock

    @property
    def state(self) -> TransactionState:
        """Where the id is, as far as that is acknowledged."""
        return self.current.txn_state

    @property
    def is_fenced(self) -> bool:
        """Whether the coordinator has begun to abort the transaction by itself."""
        return self.pending_state is TransactionState.PREPARE_EPOCH_FENCE

    # ---- transitions -----------------------------------------------------------------------

    def prepare_fence_producer_epoch(self) -> TxnTransitMetadata:
        """The coordinator aborts the transaction: a client's request, or the time, ends it."""
        epoch = self.current.producer_epoch
        is_raised = self.has_failed_epoch_fence or epoch == MAX_PRODUCER_EPOCH
        return self._prepare_transition_to(
            replace(
                self.current,
                txn_state=TransactionState.PREPARE_EPOCH_FENCE,
                producer_epoch=epoch if is_raised else epoch + 1,
            )
        )

    def set_fenced_epoch(self, epoch: int) -> None:
        """Version 1: a fence counts in memory before it is appended."""
        self.current = replace(
            self.current, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH
        )

    def prepare_increment_producer_epoch(
        self, txn_timeout_ms: int, expected_epoch: int | None, timestamp: int
    ) -> TxnTransitMetadata:
        """A client asks for an epoch; with an expected one it may be a retry (KIP-360).

        Raises PRODUCER_FENCED if another client has got a later one.
        """
        epoch, last = self.current.producer_epoch, self.current.last_producer_epoch
        if expected_epoch is None:
            epoch, last = epoch + 1, NO_PRODUCER_EPOCH
        elif epoch == NO_PRODUCER_EPOCH or expected_epoch == epoch:
            epoch, last = epoch + 1, epoch
        elif expected_epoch != last:
            raise Errors.PRODUCER_FENCED.exception()
        return self._prepare_empty(
            replace(self.current, producer_epoch=epoch, last_producer_epoch=last),
            txn_timeout_ms,
            timestamp,
        )

    def prepare_producer_id_rotation(
        self, producer_id: int, txn_timeout_ms: int, timestamp: int, record_last_epoch: bool
    ) -> TxnTransitMetadata:
        """A client asks for an epoch, and its producer id has none left."""
        last = self.current.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH
        return self._prepare_empty(
            replace(
                self.current, producer_id=producer_id, producer_epoch=0, last_producer_epoch=last
            ),
            txn_timeout_ms,
            timestamp,
        )

    def _prepare_empty(
        self, transit: TxnTransitMetadata, txn_timeout_ms: int, timestamp: int
    ) -> TxnTransitMetadata:
        return self._prepare_transition_to(
            replace(
                transit,
                txn_state=TransactionState.EMPTY,
                topic_partitions=frozenset(),
                txn_timeout_ms=txn_timeout_ms,
                txn_start_timestamp=NO_TIMESTAMP,
                txn_last_update_timestamp=timestamp,
            )
        )

    def prepare_add_partitions(
        self, added: frozenset[TopicPartition], timestamp: int, transaction_version: int
    ) -> TxnTransitMetadata:
        """Partitions join the transaction, which begins with its first ones."""
        goes_on = self.state is TransactionState.ONGOING
        return self._prepare_transition_to(
            replace(
                self.current,
                txn_state=TransactionState.ONGOING,
                topic_partitions=self.current.topic_partitions | added,
                txn_start_timestamp=self.current.txn_start_timestamp if goes_on else timestamp,
                txn_last_update_timestamp=timestamp,
                client_transaction_version=transaction_version,
            )
        )

    def prepare_abort_or_commit(
        self,
        state: TransactionState,
        transaction_version: int,
        next_producer_id: int,
        timestamp: int,
        no_partition_added: bool,
    ) -> TxnTransitMetadata:
        """The decision. In version 2 it has an epoch of its own."""
        epoch, last = self.current.producer_epoch, self.current.last_producer_epoch
        if supports_epoch_bump(transaction_version):
            epoch, last = min(epoch + 1, MAX_PRODUCER_EPOCH), epoch
        start = timestamp if no_partition_added else self.current.txn_start_timestamp
        return self._prepare_transition_to(
            replace(
                self.current,
                txn_state=state,
                producer_epoch=epoch,
                last_producer_epoch=last,
                next_producer_id=next_producer_id,
                txn_start_timestamp=start,
                txn_last_update_timestamp=timestamp,
                client_transaction_version=transaction_version,
            )
        )

    def prepare_complete(self, timestamp: int) -> TxnTransitMetadata:
        """What is to be appended once all partitions have their markers."""
        self.has_failed_epoch_fence = False
        commits = self.state is TransactionState.PREPARE_COMMIT
        transit = replace(
            self.current,
            txn_state=(
                TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT
            ),
            topic_partitions=frozenset(),
            next_producer_id=NO_PRODUCER_ID,
            txn_last_update_timestamp=timestamp,
        )
        successor = self.current.next_producer_id
        if transit.supports_epoch_bump and successor != NO_PRODUCER_ID:
            transit = replace(transit, producer_id=successor, producer_epoch=0)
        return self._prepare_transition_to(transit)

    def prepare_dead(self) -> TxnTransitMetadata:
        """The id is to be forgotten. Once that is replicated it leaves memory, and stays pending
        for whoever has looked it up before."""
        return self._prepare_transition_to(
            replace(self.current, txn_state=TransactionState.DEAD, topic_partitions=frozenset())
        )

    def _prepare_transition_to(self, transit: TxnTransitMetadata) -> TxnTransitMetadata:
        if self.pending_state is not None:
            raise IllegalStateException(
                f"{self.transactional_id} cannot go on to {transit.txn_state.name}: it is about to"
                f" go on to {self.pending_state.name}"
            )
        if self.state not in VALID_PREVIOUS_STATES[transit.txn_state]:
            raise IllegalStateException(
                f"{self.transactional_id} cannot go on from {self.state.name} to"
                f" {transit.txn_state.name}"
            )
        self.pending_state = transit.txn_state
        return replace(transit, prev_producer_id=self.current.producer_id)

    def complete_transition_to(self, transit: TxnTransitMetadata) -> None:
        """The record is acknowledged. Raises `IllegalStateException` for what was not prepared."""
        if self.pending_state is not transit.txn_state or not self._is_legal(transit):
            raise IllegalStateException(
                f"{self.transactional_id} at {self.current}, about to go on to"
                f" {self.pending_state}, cannot go on to {transit}"
            )
        self.current = transit
        self.pending_state = None

    def _is_legal(self, transit: TxnTransitMetadata) -> bool:
        current, state = self.current, transit.txn_state
        if state is TransactionState.EMPTY:
            return self._may_begin_epoch(transit)
        if transit.txn_timeout_ms != current.txn_timeout_ms or not self._is_same_epoch(transit):
            return False
        if state is TransactionState.ONGOING:
            return transit.topic_partitions >= current.topic_partitions
        if state in COMPLETES:
            return transit.txn_start_timestamp != NO_TIMESTAMP
        if state not in PREPARES or transit.topic_partitions != current.topic_partitions:
            return False
        was_empty = self.state is not TransactionState.ONGOING and transit.supports_epoch_bump
        return was_empty or transit.txn_start_timestamp == current.txn_start_timestamp

    def _may_begin_epoch(self, transit: TxnTransitMetadata) -> bool:
        epoch, is_same = transit.producer_epoch, transit.producer_id == self.current.producer_id
        known = self.current.producer_epoch
        follows = epoch in (known, known + 1) or (epoch == 0 and not is_same)
        return follows and not transit.topic_partitions

    def _is_same_epoch(self, transit: TxnTransitMetadata) -> bool:
        current = self.current
        if transit.supports_epoch_bump:
            if transit.txn_state in COMPLETES and transit.producer_epoch == 0:
                is_successor = transit.prev_producer_id == current.producer_id
                return is_successor and transit.last_producer_epoch == current.last_producer_epoch
            if transit.txn_state in PREPARES:
                is_same = transit.producer_id == current.producer_id
                return is_same and transit.last_producer_epoch == current.producer_epoch
        return (transit.producer_id, transit.producer_epoch) == (
            current.producer_id,
            current.producer_epoch,
        )

    def remove_partition(self, topic_partition: TopicPartition) -> None:
        """The partition has its marker. Raises `IllegalStateException` unless one was decided."""
        if self.state not in PREPARES:
            raise IllegalStateException(
                f"{self.transactional_id} is {self.state.name}, and {topic_partition} has a marker"
            )
        left = self.current.topic_partitions - {topic_partition}
        self.current = replace(self.current, topic_partitions=left)
