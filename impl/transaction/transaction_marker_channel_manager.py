"""Markers on their way to the leaders of partitions, and the completion behind them.

Source: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler. A partition
without a leader waits for one (as up to 4.2; 4.3 and 4.4 take it for a deleted one, KAFKA-20734).

Kafka keeps the queues, the decided transactions and the failed completions in concurrent
collections: each access is a section of its own, under a lock that nothing else is taken under.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..concurrency import Concurrency
from ..errors import ApiException, Errors, IllegalStateException
from ..scheduler import Scheduler
from ..types import TopicPartition
from .transaction_metadata import TransactionMetadata, TxnTransitMetadata
from .transaction_state import TransactionState
from .transaction_state_manager import TransactionStateManager

NO_LEADER = -1
_RETRIABLE = frozenset(
    {
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
        Errors.KAFKA_STORAGE_ERROR,
    }
)
_DONE = frozenset({Errors.NONE, Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT, Errors.UNSUPPORTED_VERSION})
_OVERTAKEN = frozenset({Errors.INVALID_PRODUCER_EPOCH, Errors.TRANSACTION_COORDINATOR_FENCED})

LeaderOf = Callable[[TopicPartition], int | None]
"""The broker that leads; NO_LEADER if none does now, None if there is no such partition."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingCompleteTxn:
    """A decided transaction. No two are equal: a later decision of the same id is another."""

    coordinator_epoch: int
    metadata: TransactionMetadata
    completion: TxnTransitMetadata

    @property
    def transactional_id(self) -> str:
        """Whose transaction it is."""
        return self.metadata.transactional_id


@dataclass(frozen=True, slots=True)
class TxnMarkerEntry:
    """One marker of a WriteTxnMarkers request, for partitions of one leader."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


QueuedMarker = tuple[PendingCompleteTxn, TxnMarkerEntry]
"""A marker with the transaction that it ends (PendingCompleteTxnAndMarkerEntry)."""


@dataclass(frozen=True, slots=True)
class WriteTxnMarkers:
    """A request to one broker."""

    broker: int
    entries: tuple[QueuedMarker, ...]


class TransactionMarkerChannelManager:
    """Queues by broker; who drains them sends the requests and hands the answers back."""

    def __init__(
        self,
        state_manager: TransactionStateManager,
        leader_of: LeaderOf,
        scheduler: Scheduler,
        concurrency: Concurrency,
    ) -> None:
        self._state_manager = state_manager
        self._leader_of = leader_of
        self._scheduler = scheduler
        self._queues_lock = concurrency.lock("markers-queue-per-broker")
        self._pending_lock = concurrency.lock("transactions-with-pending-markers")
        self._retries_lock = concurrency.lock("txn-log-append-retry-queue")
        self._queues: dict[int, list[QueuedMarker]] = {}
        self._pending: dict[str, PendingCompleteTxn] = {}
        self._append_retries: list[PendingCompleteTxn] = []

    def has_pending_markers(self, transactional_id: str) -> bool:
        """Whether the id's transaction is decided, and its completion not begun."""
        return transactional_id in self._pending

    # ---- queues ----------------------------------------------------------------------------

    def add_txn_markers_to_send(
        self, coordinator_epoch: int, metadata: TransactionMetadata, completion: TxnTransitMetadata
    ) -> None:
        """Queue the markers of a decided transaction; without partitions it is complete."""
        pending = PendingCompleteTxn(coordinator_epoch, metadata, completion)
        with self._pending_lock:
            self._pending[metadata.transactional_id] = pending
        current = metadata.current
        self._add_to_queues(
            pending,
            TxnMarkerEntry(
                current.producer_id,
                current.producer_epoch,
                coordinator_epoch,
                completion.txn_state is TransactionState.COMPLETE_COMMIT,
                current.topic_partitions,
                current.client_transaction_version,
            ),
        )
        self.maybe_write_txn_completion(metadata.transactional_id)

    def _add_to_queues(self, pending: PendingCompleteTxn, marker: TxnMarkerEntry) -> None:
        by_broker: dict[int | None, set[TopicPartition]] = {}
        for partition in marker.partitions:
            by_broker.setdefault(self._leader_of(partition), set()).add(partition)
        for broker, partitions in by_broker.items():
            if broker is None:
                self._remove_deleted(pending, partitions)
            else:
                entry = _of_partitions(marker, partitions)
                with self._queues_lock:
                    self._queues.setdefault(broker, []).append((pending, entry))

    def _remove_deleted(self, pending: PendingCompleteTxn, partitions: set[TopicPartition]) -> None:
        if self._is_current(pending):
            with pending.metadata.lock:
                for partition in partitions:
                    pending.metadata.remove_partition(partition)
            self.maybe_write_txn_completion(pending.transactional_id)

    def generate_requests(self) -> list[WriteTxnMarkers]:
        """A request for each broker that something is queued for; leaders are looked up again for
        partitions that had none, and failed completions are appended again."""
        for pending in self._drain_retries():
            self._append_completion(pending)
        for pending, marker in self._drain(NO_LEADER):
            self._add_to_queues(pending, marker)
        with self._queues_lock:
            brokers = [broker for broker in self._queues if broker != NO_LEADER]
        drained = ((broker, self._drain(broker)) for broker in brokers)
        return [WriteTxnMarkers(broker, tuple(entries)) for broker, entries in drained if entries]

    def _drain_retries(self) -> list[PendingCompleteTxn]:
        with self._retries_lock:
            retries, self._append_retries = self._append_retries, []
            return retries

    def _drain(self, broker: int) -> list[QueuedMarker]:
        with self._queues_lock:
            return self._queues.pop(broker, [])

    def remove_markers_for_txn_topic_partition(self, partition: int) -> None:
        """This broker does not coordinate the partition's ids any more, or begins again."""
        with self._queues_lock:
            brokers = list(self._queues)
        for broker in brokers:
            for pending in self._remove_queued(broker, partition):
                self._remove(pending)

    def _remove_queued(self, broker: int, partition: int) -> list[PendingCompleteTxn]:
        """Whose markers were queued."""

        def is_of_partition(pending: PendingCompleteTxn) -> bool:
            return self._state_manager.partition_for(pending.transactional_id) == partition

        with self._queues_lock:
            entries = self._queues.get(broker, [])
            self._queues[broker] = [entry for entry in entries if not is_of_partition(entry[0])]
            return [pending for pending, _ in entries if is_of_partition(pending)]

    def _remove(self, pending: PendingCompleteTxn) -> bool:
        """Only this one: another decision of the id may have taken its place (KAFKA-16352).

        Whether it was there.
        """
        with self._pending_lock:
            if self._pending.get(pending.transactional_id) is not pending:
                return False
            del self._pending[pending.transactional_id]
            return True

    # ---- answers ---------------------------------------------------------------------------

    def on_disconnect(self, request: WriteTxnMarkers) -> None:
        """No answer: the markers are sent again, to whoever leads now."""
        for pending, marker in request.entries:
            if self._is_current(pending):
                self._add_to_queues(pending, marker)

    def on_complete(
        self, request: WriteTxnMarkers, errors: Mapping[int, Mapping[TopicPartition, Errors]]
    ) -> None:
        """The answer: an error for each producer id and partition."""
        for pending, marker in request.entries:
            if self._is_current(pending):
                self._handle_answer(pending, marker, errors[marker.producer_id])

    def _handle_answer(
        self,
        pending: PendingCompleteTxn,
        marker: TxnMarkerEntry,
        errors: Mapping[TopicPartition, Errors],
    ) -> None:
        retries = set()
        with pending.metadata.lock:
            for partition, error in errors.items():
                if error in _DONE:
                    pending.metadata.remove_partition(partition)
                elif error in _RETRIABLE:
                    retries.add(partition)
                elif error not in _OVERTAKEN:
                    raise IllegalStateException(
                        f"marker of {pending.transactional_id} for {partition}: {error.name}"
                    )
        if not _OVERTAKEN.isdisjoint(errors.values()):
            self._remove(pending)  # given up: the id waits for the next load
        elif retries:
            self._add_to_queues(pending, _of_partitions(marker, retries))
        else:
            self.maybe_write_txn_completion(pending.transactional_id)

    def _is_current(self, pending: PendingCompleteTxn) -> bool:
        """Whether this broker coordinates the id as it did; if not, nothing is sent any more."""
        try:
            known = self._state_manager.get_transaction_state(pending.transactional_id)
        except ApiException:
            known = None
        if known is not None and known.coordinator_epoch == pending.coordinator_epoch:
            return True
        self._remove(pending)
        return False

    # ---- completion ------------------------------------------------------------------------

    def maybe_write_txn_completion(self, transactional_id: str) -> None:
        """Append the completion, once, when all partitions have their markers."""
        with self._pending_lock:
            pending = self._pending.get(transactional_id)
        if pending is None:
            return
        with pending.metadata.lock:
            if pending.metadata.current.topic_partitions:
                return
        self._scheduler.schedule_once(
            "write-txn-completion", lambda: self._write_txn_completion(pending)
        )

    def _write_txn_completion(self, pending: PendingCompleteTxn) -> None:
        if self._remove(pending) and self._is_current(pending):
            self._append_completion(pending)

    def _append_completion(self, pending: PendingCompleteTxn) -> None:
        def on_append(error: Errors) -> None:
            if error is Errors.COORDINATOR_NOT_AVAILABLE:
                with self._retries_lock:
                    self._append_retries.append(pending)
            elif error not in _ANSWERS_OF_COMPLETION:
                raise IllegalStateException(
                    f"completion of {pending.transactional_id}: {error.name}"
                )

        self._state_manager.append_transaction_to_log(
            pending.transactional_id,
            pending.coordinator_epoch,
            pending.completion,
            on_append,
            lambda error: error is Errors.COORDINATOR_NOT_AVAILABLE,
        )


_ANSWERS_OF_COMPLETION = frozenset(
    {Errors.NONE, Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS}
)
"""Who loads the log next, completes what is not."""


def _of_partitions(marker: TxnMarkerEntry, partitions: set[TopicPartition]) -> TxnMarkerEntry:
    return TxnMarkerEntry(
        marker.producer_id,
        marker.producer_epoch,
        marker.coordinator_epoch,
        marker.is_commit,
        frozenset(partitions),
        marker.transaction_version,
    )
