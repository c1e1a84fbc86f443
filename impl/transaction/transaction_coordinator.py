"""InitProducerId, AddPartitionsToTxn and EndTxn, time-outs and elections (TransactionCoordinator).

A request is validated and its transition prepared under the id's lock; the record is appended
without it, and the answer comes in the call-back. The version of a request picks its rules, not
the cluster's feature. Sections that Kafka runs on one thread with the lock released in between are
tasks of the scheduler: anything may come between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..clock import Clock
from ..errors import ApiException, Errors
from ..scheduler import Scheduler
from ..types import TopicPartition
from .transaction_marker_channel_manager import TransactionMarkerChannelManager
from .transaction_metadata import (
    MAX_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    TxnTransitMetadata,
    is_epoch_exhausted,
    supports_epoch_bump,
)
from .transaction_state import COMPLETES, PREPARES, TransactionState
from .transaction_state_manager import (
    AppendCallback,
    CoordinatorEpochAndTxnMetadata,
    TransactionalIdAndProducerIdEpoch,
    TransactionStateManager,
)

EpochCallback = Callable[[Errors, int, int], None]
"""Error, producer id, producer epoch."""


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """What a producer has, or believes to have."""

    producer_id: int
    epoch: int


class TransactionCoordinator:
    """The coordinator of one broker."""

    def __init__(
        self,
        state_manager: TransactionStateManager,
        channel_manager: TransactionMarkerChannelManager,
        generate_producer_id: Callable[[], int],
        scheduler: Scheduler,
        clock: Clock,
    ) -> None:
        self._state_manager = state_manager
        self._channel_manager = channel_manager
        self._generate_producer_id = generate_producer_id
        self._scheduler = scheduler
        self._clock = clock

    # ---- elections -------------------------------------------------------------------------

    def on_election(self, partition: int, coordinator_epoch: int) -> None:
        """This broker leads a partition of __transaction_state."""
        self._channel_manager.remove_markers_for_txn_topic_partition(partition)
        self._state_manager.load_transactions(
            partition, coordinator_epoch, self._channel_manager.add_txn_markers_to_send
        )

    def on_resignation(self, partition: int, coordinator_epoch: int | None) -> None:
        """Another broker leads it, from that epoch on; None if the replica is deleted."""
        self._state_manager.remove_transactions(partition, coordinator_epoch)
        self._channel_manager.remove_markers_for_txn_topic_partition(partition)

    # ---- InitProducerId --------------------------------------------------------------------

    def handle_init_producer_id(
        self,
        transactional_id: str | None,
        txn_timeout_ms: int,
        callback: EpochCallback,
        expected: ProducerIdAndEpoch | None = None,
    ) -> None:
        """A producer id and an epoch of its own; who had the one before is fenced.

        An open transaction is aborted first: CONCURRENT_TRANSACTIONS, and the client asks again.
        Without a transactional id `expected` is passed over.
        """
        try:
            if transactional_id is None:
                callback(Errors.NONE, self._generate_producer_id(), 0)
                return
            known = self._known_or_new(transactional_id, txn_timeout_ms)
            with known.metadata.lock:
                transit = self._prepare_init(known.metadata, txn_timeout_ms, expected)
        except ApiException as error:
            callback(error.error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            return
        if transit.txn_state is TransactionState.PREPARE_EPOCH_FENCE:
            self._end_fenced(transactional_id, transit, _asks_again(callback))
            return
        self._state_manager.append_transaction_to_log(
            transactional_id,
            known.coordinator_epoch,
            transit,
            _with_epoch(callback, transit),
        )

    def _known_or_new(
        self, transactional_id: str, txn_timeout_ms: int
    ) -> CoordinatorEpochAndTxnMetadata:
        if not transactional_id:
            raise Errors.INVALID_REQUEST.exception()
        if not 0 < txn_timeout_ms <= self._state_manager.config.max_timeout_ms:
            raise Errors.INVALID_TRANSACTION_TIMEOUT.exception()
        known = self._state_manager.get_transaction_state(transactional_id)
        if known is not None:
            return known
        producer_id, now = self._generate_producer_id(), self._clock.milliseconds()
        return self._state_manager.put_transaction_state_if_not_exists(
            transactional_id, TxnTransitMetadata(producer_id, txn_timeout_ms, now)
        )

    def _prepare_init(
        self,
        metadata: TransactionMetadata,
        txn_timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
    ) -> TxnTransitMetadata:
        current = metadata.current
        if metadata.pending_state is not None:
            raise Errors.CONCURRENT_TRANSACTIONS.exception()
        if not _is_expected(current, expected):
            raise Errors.PRODUCER_FENCED.exception()
        if metadata.state in PREPARES:
            raise Errors.CONCURRENT_TRANSACTIONS.exception()
        if metadata.state is TransactionState.ONGOING:
            return metadata.prepare_fence_producer_epoch()
        now = self._clock.milliseconds()
        epoch = None if expected is None else expected.epoch
        if current.is_producer_epoch_exhausted and epoch in (None, current.producer_epoch):
            successor = self._generate_producer_id()
            return metadata.prepare_producer_id_rotation(
                successor, txn_timeout_ms, now, record_last_epoch=expected is not None
            )
        return metadata.prepare_increment_producer_epoch(txn_timeout_ms, epoch, now)

    # ---- AddPartitionsToTxn ----------------------------------------------------------------

    def handle_add_partitions_to_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        transaction_version: int,
        callback: AppendCallback,
    ) -> None:
        """Of a client (version 1), or of the leader of a partition for its client (version 2)."""
        try:
            known = self._known(transactional_id)
            with known.metadata.lock:
                metadata = known.metadata
                if metadata.pending_state is not None:
                    raise Errors.CONCURRENT_TRANSACTIONS.exception()
                _check_producer(metadata, producer)
                is_open = metadata.state is TransactionState.ONGOING
                if is_open and metadata.current.topic_partitions >= partitions:
                    raise Errors.NONE.exception()
                transit = metadata.prepare_add_partitions(
                    partitions, self._clock.milliseconds(), transaction_version
                )
        except ApiException as error:
            callback(error.error)
            return
        self._state_manager.append_transaction_to_log(
            transactional_id, known.coordinator_epoch, transit, callback
        )

    def handle_verify_partitions_in_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
    ) -> dict[TopicPartition, Errors]:
        """Whether the partitions are in the producer's transaction, whatever is pending
        (KAFKA-14904): TRANSACTION_ABORTABLE for those that are not."""
        try:
            known = self._known(transactional_id)
            with known.metadata.lock:
                _check_producer(known.metadata, producer)
                added = known.metadata.current.topic_partitions
        except ApiException as error:
            return dict.fromkeys(partitions, error.error)
        return {
            partition: Errors.NONE if partition in added else Errors.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    def _known(self, transactional_id: str) -> CoordinatorEpochAndTxnMetadata:
        if not transactional_id:
            raise Errors.INVALID_REQUEST.exception()
        known = self._state_manager.get_transaction_state(transactional_id)
        if known is None:
            raise Errors.INVALID_PRODUCER_ID_MAPPING.exception()
        return known

    # ---- Describe and list -----------------------------------------------------------------

    def handle_describe_transaction(self, transactional_id: str) -> TxnTransitMetadata:
        """What is acknowledged of the id, whatever is pending.

        Raises INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, or as `get_transaction_state`.
        """
        if not transactional_id:
            raise Errors.INVALID_REQUEST.exception()
        known = self._state_manager.get_transaction_state(transactional_id)
        if known is None:
            raise Errors.TRANSACTIONAL_ID_NOT_FOUND.exception()
        with known.metadata.lock:
            return known.metadata.current

    def handle_list_transactions(self) -> dict[str, TxnTransitMetadata]:
        """All ids of this broker. Raises COORDINATOR_LOAD_IN_PROGRESS while any are loaded."""
        return self._state_manager.list_transaction_states()

    # ---- EndTxn ----------------------------------------------------------------------------

    def handle_end_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        is_commit: bool,
        transaction_version: int,
        callback: EpochCallback,
    ) -> None:
        """Of a client. NONE says that the decision is replicated, not that it is visible.

        In version 2 it comes with the id and the epoch of the next transaction.
        """
        self._end_transaction(
            transactional_id, producer, is_commit, True, transaction_version, callback
        )

    def abort_timed_out_transactions(self) -> None:
        """The coordinator aborts what has taken longer than transaction.timeout.ms."""
        for timed_out in self._state_manager.timed_out_transactions():
            fence = self._fence_of(timed_out)
            if fence is not None:
                self._end_fenced(timed_out.transactional_id, fence, _ignored)

    def _fence_of(self, timed_out: TransactionalIdAndProducerIdEpoch) -> TxnTransitMetadata | None:
        """None if another request, or an election, was faster."""
        try:
            known = self._state_manager.get_transaction_state(timed_out.transactional_id)
        except ApiException:
            return None
        if known is None:
            return None
        with known.metadata.lock:
            is_same = known.metadata.current.producer_id == timed_out.producer_id
            if not is_same or known.metadata.pending_state is not None:
                return None
            return known.metadata.prepare_fence_producer_epoch()

    def _end_fenced(
        self, transactional_id: str, fence: TxnTransitMetadata, callback: EpochCallback
    ) -> None:
        """The second section of a fence."""
        producer = ProducerIdAndEpoch(fence.producer_id, fence.producer_epoch)
        version = self._state_manager.config.transaction_version
        self._scheduler.schedule_once(
            "end-fence",
            lambda: self._end_transaction(
                transactional_id, producer, False, False, version, callback
            ),
        )

    def _end_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        is_commit: bool,
        is_from_client: bool,
        transaction_version: int,
        callback: EpochCallback,
    ) -> None:
        prepare = (
            self._prepare_end
            if supports_epoch_bump(transaction_version)
            else self._prepare_end_with_tv1
        )
        try:
            known = self._known(transactional_id)
            metadata = known.metadata
            with metadata.lock:
                is_fence = metadata.is_fenced and not is_commit
                now = ProducerIdAndEpoch(
                    metadata.current.producer_id, metadata.current.producer_epoch
                )
                transit = prepare(
                    metadata, producer, is_commit, is_from_client, transaction_version
                )
        except ApiException as error:
            if error.error is Errors.NONE and supports_epoch_bump(transaction_version):
                callback(Errors.NONE, now.producer_id, now.epoch)
            else:
                callback(error.error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            return

        def on_append(error: Errors) -> None:
            if error is Errors.NONE:
                self._send_txn_markers(known, producer, transit, callback)
                return
            if is_fence and not transit.supports_epoch_bump:
                self._remember_failed_fence(known)
            callback(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

        self._state_manager.append_transaction_to_log(
            transactional_id, known.coordinator_epoch, transit, on_append
        )

    def _prepare_end_with_tv1(
        self,
        metadata: TransactionMetadata,
        producer: ProducerIdAndEpoch,
        is_commit: bool,
        is_from_client: bool,
        _transaction_version: int,
    ) -> TxnTransitMetadata:
        """Version 1: nothing ties the request to one transaction (KAFKA-17754)."""
        current = metadata.current
        if current.producer_id != producer.producer_id:
            raise Errors.INVALID_PRODUCER_ID_MAPPING.exception()
        is_other = is_from_client and producer.epoch != current.producer_epoch
        if is_other or producer.epoch < current.producer_epoch:
            raise Errors.PRODUCER_FENCED.exception()
        if metadata.pending_state is not None and not metadata.is_fenced:
            raise Errors.CONCURRENT_TRANSACTIONS.exception()
        if metadata.state is not TransactionState.ONGOING:
            raise _answer_of_over(metadata.state, is_commit).exception()
        if metadata.is_fenced and not is_commit:
            metadata.pending_state = None
            metadata.set_fenced_epoch(producer.epoch)
        return metadata.prepare_abort_or_commit(
            _decision(is_commit), 0, NO_PRODUCER_ID, self._clock.milliseconds(), False
        )

    def _prepare_end(
        self,
        metadata: TransactionMetadata,
        producer: ProducerIdAndEpoch,
        is_commit: bool,
        is_from_client: bool,
        transaction_version: int,
    ) -> TxnTransitMetadata:
        """Version 2: a retry is known by the epoch before the present one.

        A client that does not know whether its batch has added the partition may abort what is
        over.
        """
        is_retry = _is_retry(metadata, producer)
        if metadata.pending_state is not None and not metadata.is_fenced:
            raise Errors.CONCURRENT_TRANSACTIONS.exception()
        _check_end(metadata, producer, is_retry, is_from_client)
        is_open = metadata.state is TransactionState.ONGOING
        if not is_open and (is_retry or is_commit):
            raise _answer_of_retry(metadata.state, is_commit, is_retry).exception()
        successor = (
            self._generate_producer_id()
            if metadata.current.is_producer_epoch_exhausted
            else NO_PRODUCER_ID
        )
        if metadata.is_fenced and not is_commit:
            metadata.pending_state = None
        return metadata.prepare_abort_or_commit(
            _decision(is_commit),
            transaction_version,
            successor,
            self._clock.milliseconds(),
            not is_open,
        )

    def _send_txn_markers(
        self,
        known: CoordinatorEpochAndTxnMetadata,
        producer: ProducerIdAndEpoch,
        transit: TxnTransitMetadata,
        callback: EpochCallback,
    ) -> None:
        """The decision is replicated: the client is answered, then the markers go out."""
        try:
            current = self._known(known.metadata.transactional_id)
            if current.coordinator_epoch != known.coordinator_epoch:
                raise Errors.NOT_COORDINATOR.exception()
            metadata = current.metadata
            with metadata.lock:
                _check_decided(metadata, producer, transit.txn_state)
                completion = metadata.prepare_complete(self._clock.milliseconds())
        except ApiException as error:
            callback(error.error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            return
        callback(Errors.NONE, completion.producer_id, completion.producer_epoch)
        self._channel_manager.add_txn_markers_to_send(known.coordinator_epoch, metadata, completion)

    def _remember_failed_fence(self, known: CoordinatorEpochAndTxnMetadata) -> None:
        """The epoch stays raised in memory: the next fence does not raise it again (KAFKA-9666)."""
        try:
            current = self._state_manager.get_transaction_state(known.metadata.transactional_id)
        except ApiException:
            return
        if current is not None and current.coordinator_epoch == known.coordinator_epoch:
            current.metadata.has_failed_epoch_fence = True


def _asks_again(callback: EpochCallback) -> EpochCallback:
    """The client whose request has fenced a transaction gets no epoch yet."""

    def answer(error: Errors, _producer_id: int, _epoch: int) -> None:
        told = Errors.CONCURRENT_TRANSACTIONS if error is Errors.NONE else error
        callback(told, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

    return answer


def _with_epoch(callback: EpochCallback, transit: TxnTransitMetadata) -> AppendCallback:
    def answer(error: Errors) -> None:
        if error is Errors.NONE:
            callback(error, transit.producer_id, transit.producer_epoch)
        else:
            callback(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

    return answer


def _ignored(_error: Errors, _producer_id: int, _epoch: int) -> None:
    """The next look for time-outs tries again."""


def _decision(is_commit: bool) -> TransactionState:
    return TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT


def _completion(is_commit: bool) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT


def _is_expected(current: TxnTransitMetadata, expected: ProducerIdAndEpoch | None) -> bool:
    """Whether who expects this id may ask for its next epoch (KIP-360)."""
    if expected is None or current.producer_epoch == NO_PRODUCER_EPOCH:
        return True
    if expected.producer_id == current.producer_id:
        return True
    was_last = expected.producer_id == current.prev_producer_id
    return was_last and is_epoch_exhausted(expected.epoch)


def _check_producer(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> None:
    if metadata.current.producer_id != producer.producer_id:
        raise Errors.INVALID_PRODUCER_ID_MAPPING.exception()
    if metadata.current.producer_epoch != producer.epoch:
        raise Errors.PRODUCER_FENCED.exception()
    if metadata.state in PREPARES:
        raise Errors.CONCURRENT_TRANSACTIONS.exception()


def _is_overflow_retry(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Whether the transaction has used up the producer id of the request."""
    current = metadata.current
    return (
        not metadata.is_fenced
        and current.prev_producer_id == producer.producer_id
        and producer.epoch == MAX_PRODUCER_EPOCH - 1
        and current.producer_epoch == 0
    )


def _is_retry(metadata: TransactionMetadata, producer: ProducerIdAndEpoch) -> bool:
    """Whether the request's transaction has been ended already."""
    is_bumped = metadata.current.producer_epoch == producer.epoch + 1
    return (not metadata.is_fenced and is_bumped) or _is_overflow_retry(metadata, producer)


def _check_end(
    metadata: TransactionMetadata,
    producer: ProducerIdAndEpoch,
    is_retry: bool,
    is_from_client: bool,
) -> None:
    current = metadata.current
    is_overflow = _is_overflow_retry(metadata, producer)
    if current.producer_id != producer.producer_id and not is_overflow:
        raise Errors.INVALID_PRODUCER_ID_MAPPING.exception()
    is_current = producer.epoch == current.producer_epoch
    if metadata.is_fenced:
        is_valid = is_current or (not is_from_client and producer.epoch > current.producer_epoch)
    elif metadata.state in PREPARES:
        is_valid = is_retry and not is_overflow
    elif metadata.state in COMPLETES:
        is_valid = is_retry or is_current
    else:
        is_valid = is_current
    if not is_valid:
        raise Errors.PRODUCER_FENCED.exception()


def _answer_of_over(state: TransactionState, is_commit: bool) -> Errors:
    """To a request for an end that was decided."""
    if state is _completion(is_commit):
        return Errors.NONE
    if state is _decision(is_commit):
        return Errors.CONCURRENT_TRANSACTIONS
    return Errors.INVALID_TXN_STATE


def _answer_of_retry(state: TransactionState, is_commit: bool, is_retry: bool) -> Errors:
    return _answer_of_over(state, is_commit) if is_retry else Errors.INVALID_TXN_STATE


def _check_decided(
    metadata: TransactionMetadata, producer: ProducerIdAndEpoch, decision: TransactionState
) -> None:
    """Nobody has come in between since the decision was applied."""
    current = metadata.current
    if current.producer_id != producer.producer_id:
        raise Errors.INVALID_PRODUCER_ID_MAPPING.exception()
    if current.producer_epoch not in (producer.epoch, producer.epoch + 1):
        raise Errors.PRODUCER_FENCED.exception()
    if metadata.pending_state is not None:
        raise Errors.CONCURRENT_TRANSACTIONS.exception()
    if metadata.state is not decision:
        raise Errors.INVALID_TXN_STATE.exception()
