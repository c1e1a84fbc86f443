"""The ids that a broker coordinates, and how they get into the log and out of it.

Source: TransactionStateManager. A record is appended under the state lock, and counts once it is
acknowledged. An append that fails may be in the log all the same: who loads it next, acts on it.

The state lock is for reading where ids are looked up, and for writing where partitions come and go.
Who holds an id's lock never takes it; records are never appended under an id's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..clock import Clock
from ..concurrency import Concurrency
from ..errors import ApiException, Errors
from ..group.group_metadata_manager import partition_for
from ..log import Log
from ..records import MemoryRecords
from ..scheduler import Scheduler
from .transaction_log import read_transaction_record, tombstone_record, transaction_record
from .transaction_metadata import TransactionMetadata, TxnTransitMetadata
from .transaction_state import PREPARES, TransactionState

_NO_TIMEOUT = 2**31 - 1
"""Of two-phase commit: such a transaction is never aborted by the coordinator."""
_NOT_AVAILABLE = frozenset(
    {
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
    }
)
_NOT_LEADER = frozenset({Errors.NOT_LEADER_OR_FOLLOWER, Errors.KAFKA_STORAGE_ERROR})
_TOO_LARGE = frozenset({Errors.MESSAGE_TOO_LARGE, Errors.RECORD_LIST_TOO_LARGE})
_LOAD_BYTES = 5 * 1024 * 1024
"""transaction.state.log.load.buffer.size."""
_EXPIRATION = "transactionalId-expiration"

AppendCallback = Callable[[Errors], None]
SendTxnMarkers = Callable[[int, TransactionMetadata, TxnTransitMetadata], None]
"""Coordinator epoch, the decided transaction, and what completes it."""


class TransactionStateLog(Protocol):
    """The partitions of __transaction_state on this broker (ReplicaManager)."""

    def append_records(
        self, partition: int, records: MemoryRecords, timeout_ms: int, callback: AppendCallback
    ) -> None:
        """Append; the call-back comes once all in-sync replicas have it, or that has failed."""

    def log(self, partition: int) -> Log | None:
        """The log, None if this broker has none."""


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """A broker's settings. `transaction_version` is the finalized feature transaction.version."""

    transaction_version: int = 2
    max_timeout_ms: int = 900_000
    num_partitions: int = 50
    transactional_id_expiration_ms: int = 7 * 24 * 3_600_000
    request_timeout_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class CoordinatorEpochAndTxnMetadata:
    """An id, and the epoch in which this broker coordinates it."""

    coordinator_epoch: int
    metadata: TransactionMetadata


@dataclass(frozen=True, slots=True)
class TransactionalIdAndProducerIdEpoch:
    """An open transaction, as it was looked at."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class _Expiry:
    """An id whose tombstone is appended, as it was looked at."""

    transactional_id: str
    transit: TxnTransitMetadata


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    coordinator_epoch: int
    metadata: dict[str, TransactionMetadata]


class TransactionStateManager:
    """What is loaded of each partition that this broker leads."""

    def __init__(
        self,
        log: TransactionStateLog,
        scheduler: Scheduler,
        concurrency: Concurrency,
        clock: Clock,
        config: TransactionConfig,
    ) -> None:
        self._log = log
        self._scheduler = scheduler
        self._concurrency = concurrency
        self._clock = clock
        self.config = config
        self._state_lock = concurrency.read_write_lock("transaction-state")
        self._loading: set[tuple[int, int]] = set()
        self._cache: dict[int, _CacheEntry] = {}

    def partition_for(self, transactional_id: str) -> int:
        """The partition of __transaction_state whose leader coordinates the id."""
        return partition_for(transactional_id, self.config.num_partitions)

    def loading_epoch(self, partition: int) -> int | None:
        """In which coordinator epoch the partition is being loaded."""
        epochs = (epoch for loading, epoch in self._loading if loading == partition)
        return max(epochs, default=None)

    # ---- the ids ---------------------------------------------------------------------------

    def get_transaction_state(self, transactional_id: str) -> CoordinatorEpochAndTxnMetadata | None:
        """The id; None if there is none.

        Raises COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        with self._state_lock.read:
            entry = self._entry_for(transactional_id)
            metadata = entry.metadata.get(transactional_id)
            if metadata is None:
                return None
            return CoordinatorEpochAndTxnMetadata(entry.coordinator_epoch, metadata)

    def put_transaction_state_if_not_exists(
        self, transactional_id: str, current: TxnTransitMetadata
    ) -> CoordinatorEpochAndTxnMetadata:
        """The id, in memory only if it is new. Raises as `get_transaction_state`."""
        with self._state_lock.read:
            entry = self._entry_for(transactional_id)
            made = self._make(transactional_id, current)
            metadata = entry.metadata.setdefault(transactional_id, made)
            return CoordinatorEpochAndTxnMetadata(entry.coordinator_epoch, metadata)

    def _entry_for(self, transactional_id: str) -> _CacheEntry:
        partition = self.partition_for(transactional_id)
        if self.loading_epoch(partition) is not None:
            raise Errors.COORDINATOR_LOAD_IN_PROGRESS.exception()
        entry = self._cache.get(partition)
        if entry is None:
            raise Errors.NOT_COORDINATOR.exception()
        return entry

    def _make(self, transactional_id: str, current: TxnTransitMetadata) -> TransactionMetadata:
        lock = self._concurrency.lock(f"transaction-{transactional_id}")
        return TransactionMetadata(transactional_id, current, lock)

    def list_transaction_states(self) -> dict[str, TxnTransitMetadata]:
        """What is acknowledged of each id. Raises COORDINATOR_LOAD_IN_PROGRESS."""
        with self._state_lock.read:
            if self._loading:
                raise Errors.COORDINATOR_LOAD_IN_PROGRESS.exception()
            states = {}
            for metadata in self._all_metadata():
                with metadata.lock:
                    states[metadata.transactional_id] = metadata.current
            return states

    def timed_out_transactions(self) -> list[TransactionalIdAndProducerIdEpoch]:
        """The open transactions that have taken longer than their time-out.

        No id's lock is taken: who aborts one takes it, and looks again.
        """
        now = self._clock.milliseconds()
        with self._state_lock.read:
            return [
                TransactionalIdAndProducerIdEpoch(
                    metadata.transactional_id,
                    metadata.current.producer_id,
                    metadata.current.producer_epoch,
                )
                for metadata in self._all_metadata()
                if _is_timed_out(metadata, now)
            ]

    def _all_metadata(self) -> list[TransactionMetadata]:
        return [m for entry in self._cache.values() for m in entry.metadata.values()]

    def cached_metadata(self, transactional_id: str) -> TransactionMetadata | None:
        """What is loaded of the id, looked at from outside: no lock is taken, no error raised."""
        entry = self._cache.get(self.partition_for(transactional_id))
        return None if entry is None else entry.metadata.get(transactional_id)

    # ---- expiry ----------------------------------------------------------------------------

    def enable_transactional_id_expiration(self) -> None:
        """Look for ids that nobody uses, again and again: the scheduler says when
        transaction.remove.expired.transaction.cleanup.interval.ms is over."""
        self._scheduler.schedule_once(_EXPIRATION, self._expire_and_go_on)

    def _expire_and_go_on(self) -> None:
        self.remove_expired_transactional_ids()
        self.enable_transactional_id_expiration()

    def remove_expired_transactional_ids(self) -> None:
        """Append tombstones of the ids that were not used for transactional.id.expiration.ms.

        An id leaves memory once its tombstone is replicated.
        """
        with self._state_lock.read:
            for partition, entry in list(self._cache.items()):
                found = map(self._expiry_of, list(entry.metadata.values()))
                expired = [expiry for expiry in found if expiry is not None]
                if expired:
                    self._write_tombstones(partition, entry.coordinator_epoch, expired)

    def _expiry_of(self, metadata: TransactionMetadata) -> _Expiry | None:
        """None if the id is in use, or anything is pending."""
        newest = self._clock.milliseconds() - self.config.transactional_id_expiration_ms
        with metadata.lock:
            if metadata.pending_state is not None or not _is_expired(metadata, newest):
                return None
            return _Expiry(metadata.transactional_id, metadata.prepare_dead())

    def _write_tombstones(
        self, partition: int, coordinator_epoch: int, expired: list[_Expiry]
    ) -> None:
        """One batch; Kafka makes more of them where max.message.bytes is reached."""
        now = self._clock.milliseconds()
        records = [tombstone_record(expiry.transactional_id, now) for expiry in expired]
        self._log.append_records(
            partition,
            MemoryRecords.with_records(*records),
            self.config.request_timeout_ms,
            lambda error: self._remove_expired(partition, coordinator_epoch, expired, error),
        )

    def _remove_expired(
        self, partition: int, coordinator_epoch: int, expired: list[_Expiry], error: Errors
    ) -> None:
        """removeFromCacheCallback. An id that this broker has loaded since is another one.

        Kafka clears what is pending there too, and throws if the id is not loaded.
        """
        with self._state_lock.read:
            entry = self._cache.get(partition)
            if entry is None or entry.coordinator_epoch != coordinator_epoch:
                return
            for expiry in expired:
                _remove_or_keep(entry, expiry, error)

    # ---- elections -------------------------------------------------------------------------

    def load_transactions(
        self, partition: int, coordinator_epoch: int, send_txn_markers: SendTxnMarkers
    ) -> None:
        """This broker leads the partition: read it in the background."""
        with self._state_lock.write:
            self._loading.add((partition, coordinator_epoch))
        self._scheduler.schedule_once(
            "load-txns-for-partition",
            lambda: self._load(partition, coordinator_epoch, send_txn_markers),
        )

    def _load(
        self, partition: int, coordinator_epoch: int, send_txn_markers: SendTxnMarkers
    ) -> None:
        """Who loads a decision goes on with it."""
        loaded = self._read(partition, coordinator_epoch)
        with self._state_lock.write:
            if (partition, coordinator_epoch) not in self._loading:
                return
            self._cache[partition] = _CacheEntry(coordinator_epoch, loaded)
            decided = []
            for metadata in loaded.values():
                with metadata.lock:
                    if metadata.state in PREPARES:
                        decided.append((metadata, self._prepare_complete(metadata)))
            self._loading.discard((partition, coordinator_epoch))
            for metadata, transit in decided:
                send_txn_markers(coordinator_epoch, metadata, transit)

    def _prepare_complete(self, metadata: TransactionMetadata) -> TxnTransitMetadata:
        return metadata.prepare_complete(self._clock.milliseconds())

    def _read(self, partition: int, coordinator_epoch: int) -> dict[str, TransactionMetadata]:
        """The last record of each id, to the log's end: above the high watermark too."""
        loaded: dict[str, TransactionMetadata] = {}
        log = self._log.log(partition)
        offset = 0 if log is None else log.log_start_offset
        while log is not None and offset < log.log_end_offset:
            if not self._is_loading(partition, coordinator_epoch):
                break
            batches = log.read(offset, _LOAD_BYTES).records.batches()
            if not batches:
                break
            for batch in batches:
                for record in batch.records:
                    known = read_transaction_record(record)
                    if known is not None and known.value is None:
                        loaded.pop(known.transactional_id, None)
                    elif known is not None and known.value is not None:
                        loaded[known.transactional_id] = self._make(
                            known.transactional_id, known.value
                        )
                offset = batch.next_offset
        return loaded

    def _is_loading(self, partition: int, coordinator_epoch: int) -> bool:
        with self._state_lock.read:
            return (partition, coordinator_epoch) in self._loading

    def remove_transactions(self, partition: int, coordinator_epoch: int | None = None) -> None:
        """This broker does not lead the partition any more, or in a later epoch again.

        Loads of earlier epochs are given up (KAFKA-18137); without an epoch all are.
        """
        with self._state_lock.write:
            self._loading = {
                (loading, epoch)
                for loading, epoch in self._loading
                if loading != partition
                or (coordinator_epoch is not None and epoch >= coordinator_epoch)
            }
            self._cache.pop(partition, None)

    # ---- appends ---------------------------------------------------------------------------

    def append_transaction_to_log(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        transit: TxnTransitMetadata,
        callback: AppendCallback,
        retry_on_error: Callable[[Errors], bool] = lambda _error: False,
    ) -> None:
        """Append what was prepared. Once it is acknowledged the id is there, and `callback` told.

        If it fails the id stays where it was; it stays pending if `retry_on_error`.
        """

        def update_cache(status: Errors) -> None:
            error = _as_coordinator_error(status)
            if error is Errors.NONE:
                error = self._if_current(
                    transactional_id, coordinator_epoch, lambda m: m.complete_transition_to(transit)
                )
            elif not retry_on_error(error):
                self._if_current(transactional_id, coordinator_epoch, _clear_pending)
            callback(error)

        timestamp = self._clock.milliseconds()
        record = transaction_record(
            transactional_id, transit, self.config.transaction_version, timestamp
        )
        with self._state_lock.read:
            # Until the record is in the local log: else an election could come and go between the
            # look at the epoch and the append, which would follow records of a later epoch.
            error = self._if_current(transactional_id, coordinator_epoch, _nothing)
            if error is not Errors.NONE:
                callback(error)
                return
            self._log.append_records(
                self.partition_for(transactional_id),
                MemoryRecords.with_records(record),
                transit.txn_timeout_ms,
                update_cache,
            )

    def _if_current(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        change: Callable[[TransactionMetadata], None],
    ) -> Errors:
        """Change the id under its lock, if this broker coordinates it still in that epoch."""
        try:
            known = self.get_transaction_state(transactional_id)
        except ApiException as error:
            return error.error
        if known is None:
            return Errors.NOT_COORDINATOR
        with known.metadata.lock:
            if known.coordinator_epoch != coordinator_epoch:
                return Errors.NOT_COORDINATOR
            change(known.metadata)
        return Errors.NONE


def _is_expired(metadata: TransactionMetadata, newest: int) -> bool:
    last_update = metadata.current.txn_last_update_timestamp
    return metadata.state.is_expiration_allowed and last_update <= newest


def _remove_or_keep(entry: _CacheEntry, expiry: _Expiry, error: Errors) -> None:
    """What is removed stays pending: who has looked it up before cannot go on with it."""
    metadata = entry.metadata[expiry.transactional_id]
    with metadata.lock:
        is_same = metadata.current.producer_epoch == expiry.transit.producer_epoch
        is_dead = metadata.pending_state is TransactionState.DEAD
        if error is Errors.NONE and is_same and is_dead:
            del entry.metadata[expiry.transactional_id]
        else:
            metadata.pending_state = None


def _nothing(_metadata: TransactionMetadata) -> None:
    """Nobody else changes what is pending in the same epoch."""


def _clear_pending(metadata: TransactionMetadata) -> None:
    metadata.pending_state = None


def _is_timed_out(metadata: TransactionMetadata, now: int) -> bool:
    current = metadata.current
    return (
        metadata.pending_state is None
        and metadata.state is TransactionState.ONGOING
        and current.txn_timeout_ms != _NO_TIMEOUT
        and current.txn_start_timestamp + current.txn_timeout_ms < now
    )


def _as_coordinator_error(status: Errors) -> Errors:
    """A produce error as clients of a coordinator understand it."""
    if status in _NOT_AVAILABLE:
        return Errors.COORDINATOR_NOT_AVAILABLE
    if status in _NOT_LEADER:
        return Errors.NOT_COORDINATOR
    return Errors.UNKNOWN_SERVER_ERROR if status in _TOO_LARGE else status
