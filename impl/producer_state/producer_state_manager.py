"""All producers that a partition knows, and their snapshots on disk (ProducerStateManager).

The state is a function of the log: it is rebuilt from the newest snapshot and the log behind it.
A log without producers has no snapshots, unlike Kafka's: there is nothing to read back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..clock import Clock
from ..disk import Disk
from ..errors import (
    CorruptRecordException,
    IllegalArgumentException,
    InvalidProducerEpochException,
    InvalidTxnStateException,
)
from ..records import RecordBatch
from ..types import TopicPartition
from .producer_append_info import AppendOrigin, ProducerAppendInfo
from .producer_snapshot import read_snapshot, snapshot_offsets, snapshot_path, write_snapshot
from .producer_state_entry import NUM_BATCHES_TO_RETAIN, ProducerStateEntry
from .transactions import (
    SENTINEL,
    AbortedTxn,
    CompletedTxn,
    TxnMetadata,
    VerificationGuard,
    VerificationStateEntry,
)


@dataclass(frozen=True, slots=True)
class ProducerStateManagerConfig:
    """A broker's settings: `expiration_ms` is producer.id.expiration.ms.

    `transaction_verification_enabled` is transaction.partition.verification.enable.
    """

    expiration_ms: int = 86_400_000
    batches_to_retain: int = NUM_BATCHES_TO_RETAIN
    transaction_verification_enabled: bool = True


class ProducerStateManager:
    """The producers of one log. Its owner holds the log's lock."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        disk: Disk,
        clock: Clock,
        config: ProducerStateManagerConfig,
    ) -> None:
        self.topic_partition = topic_partition
        self._directory = directory
        self._disk = disk
        self._clock = clock
        self._config = config
        self._producers: dict[int, ProducerStateEntry] = {}
        self._ongoing_txns: dict[int, TxnMetadata] = {}
        self._unreplicated_txns: dict[int, TxnMetadata] = {}
        self._verification_states: dict[int, VerificationStateEntry] = {}
        self._snapshots = snapshot_offsets(disk, directory)
        self._last_map_offset = 0
        self._last_snap_offset = 0
        self._loaded_offset = 0
        self._has_known = bool(self._snapshots)

    @property
    def active_producers(self) -> Mapping[int, ProducerStateEntry]:
        """The entries by producer id."""
        return self._producers

    @property
    def map_end_offset(self) -> int:
        """Up to where the log is in the entries."""
        return self._last_map_offset

    @property
    def snapshots(self) -> tuple[int, ...]:
        """The offsets of the snapshots on disk, in order."""
        return tuple(self._snapshots)

    def snapshot(self, offset: int) -> list[ProducerStateEntry]:
        """What the snapshot at an offset holds. Raises `CorruptRecordException`."""
        return read_snapshot(self._disk, snapshot_path(self._directory, offset))

    # ---- appends ---------------------------------------------------------------------------

    def find_duplicate(self, batch: RecordBatch) -> tuple[int, int] | None:
        """First and last offset of the batch that `batch` repeats, if that is remembered."""
        entry = self._producers.get(batch.producer.producer_id)
        known = None if entry is None else entry.find_duplicate_batch(batch)
        return None if known is None else (known.first_offset, known.last_offset)

    def prepare(
        self, batches: Iterable[RecordBatch], origin: AppendOrigin, transaction_version: int = 0
    ) -> tuple[ProducerAppendInfo, ...]:
        """What `batches` would change; raises as `ProducerAppendInfo.append`."""
        infos: dict[int, ProducerAppendInfo] = {}
        for batch in batches:
            producer_id = batch.producer.producer_id
            if producer_id < 0:
                continue
            if producer_id not in infos:
                infos[producer_id] = self._prepare_update(producer_id, origin, transaction_version)
            infos[producer_id].append(batch)
        return tuple(infos.values())

    def _prepare_update(
        self, producer_id: int, origin: AppendOrigin, transaction_version: int
    ) -> ProducerAppendInfo:
        return ProducerAppendInfo(
            self.topic_partition,
            self._producers.get(producer_id) or ProducerStateEntry(producer_id),
            origin,
            self._config.batches_to_retain,
            self._verification_states.get(producer_id),
            transaction_version,
        )

    def update(
        self, infos: Iterable[ProducerAppendInfo], end_offset: int
    ) -> tuple[AbortedTxn, ...]:
        """The log has the batches of `prepare`, and ends at `end_offset`.

        Gives what belongs into the abort index.
        """
        aborted: list[AbortedTxn] = []
        for info in infos:
            entry = info.updated_entry
            self._producers[entry.producer_id] = entry
            self._has_known = True
            self._ongoing_txns |= {txn.first_offset: txn for txn in info.started}
            for completed in info.completed:
                stable = self._last_stable_offset(completed)
                self._complete_txn(completed)
                if completed.is_aborted:
                    aborted.append(_indexed(completed, stable))
            if info.clears_verification:
                self._verification_states.pop(entry.producer_id, None)
        self._last_map_offset = end_offset
        return tuple(aborted)

    def _complete_txn(self, completed: CompletedTxn) -> None:
        """The transaction is unstable until its marker is replicated."""
        self._ongoing_txns.pop(completed.first_offset)
        self._unreplicated_txns[completed.first_offset] = TxnMetadata(
            completed.producer_id, completed.first_offset, completed.last_offset
        )

    def _last_stable_offset(self, completed: CompletedTxn) -> int:
        """The last stable offset behind the marker, once all up to it is replicated."""
        others = (
            txn.first_offset
            for txn in self._ongoing_txns.values()
            if txn.producer_id != completed.producer_id
        )
        return min(others, default=completed.last_offset + 1)

    # ---- transactions ----------------------------------------------------------------------

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is open, or whose marker is not replicated."""
        return min((*self._ongoing_txns, *self._unreplicated_txns), default=None)

    @property
    def ongoing_txns(self) -> Collection[TxnMetadata]:
        """The transactions that are open."""
        return self._ongoing_txns.values()

    @property
    def unreplicated_txns(self) -> Collection[TxnMetadata]:
        """The transactions whose markers are not known to be replicated."""
        return self._unreplicated_txns.values()

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """What was ended below the high watermark is stable."""
        self._unreplicated_txns = {
            first: txn
            for first, txn in self._unreplicated_txns.items()
            if txn.last_offset is None or txn.last_offset >= high_watermark
        }

    def verification_state_entry(self, producer_id: int) -> VerificationStateEntry | None:
        """The producer's entry, if its transaction is being verified."""
        return self._verification_states.get(producer_id)

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """The guard to append with; the sentinel if the transaction is open already.

        Raises `InvalidProducerEpochException` for an epoch that is over.
        """
        self._check_epoch(producer_id, epoch)
        if self._has_ongoing_transaction(producer_id, epoch):
            return SENTINEL
        now = self._clock.milliseconds()
        entry = self._verification_states.get(producer_id)
        if entry is None:
            guard = VerificationGuard()
            entry = VerificationStateEntry(guard, now, sequence, epoch, supports_epoch_bump)
        self._verification_states[producer_id] = entry.maybe_update(sequence, epoch)
        return entry.guard

    def ensure_verified(self, batch: RecordBatch, guard: VerificationGuard) -> None:
        """Raises if the batch would begin a transaction and may not; a marker needs no guard.

        `InvalidProducerEpochException` for an old epoch, `InvalidTxnStateException` without the
        entry's guard.
        """
        producer_id, epoch, _ = batch.producer
        if not batch.is_transactional or self._has_ongoing_transaction(producer_id, epoch):
            return
        self._check_epoch(producer_id, epoch)
        entry = self._verification_states.get(producer_id)
        is_verified = entry is not None and entry.guard is guard
        enabled = self._config.transaction_verification_enabled
        if enabled and not batch.is_control_batch and not is_verified:
            raise InvalidTxnStateException(
                f"{batch.producer} of {self.topic_partition} is not verified by the coordinator"
            )

    def _has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self._producers.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset is not None
            and entry.producer_epoch == epoch
        )

    def _check_epoch(self, producer_id: int, epoch: int) -> None:
        entry = self._producers.get(producer_id)
        if entry is not None and entry.producer_epoch > epoch:
            raise InvalidProducerEpochException(
                f"epoch {epoch} of producer {producer_id} of {self.topic_partition} is over:"
                f" it has epoch {entry.producer_epoch}"
            )

    # ---- expiration ------------------------------------------------------------------------

    def remove_expired_producers(self) -> None:
        """Forget who has not written for longer than producer.id.expiration.ms.

        A verification that takes as long is given up; an open transaction is kept.
        """
        oldest = self._clock.milliseconds() - self._config.expiration_ms
        self._verification_states = {
            producer_id: entry
            for producer_id, entry in self._verification_states.items()
            if entry.timestamp > oldest
        }
        self._producers = {
            producer_id: entry
            for producer_id, entry in self._producers.items()
            if not self._is_expired(entry)
        }

    def _is_expired(self, entry: ProducerStateEntry) -> bool:
        if entry.current_txn_first_offset is not None:
            return False
        return self._clock.milliseconds() - entry.last_timestamp >= self._config.expiration_ms

    # ---- snapshots -------------------------------------------------------------------------

    def take_snapshot(self) -> None:
        """Write a snapshot of the entries as they are, unless there is one of this offset."""
        if self._last_map_offset > self._last_snap_offset and self._has_known:
            path = snapshot_path(self._directory, self._last_map_offset)
            write_snapshot(self._disk, path, self._producers.values())
            self._snapshots.append(self._last_map_offset)
            self._last_snap_offset = self._last_map_offset

    def remove_stray_snapshots(self, segment_base_offsets: Collection[int]) -> None:
        """Keep the newest snapshot, and those at which a segment begins."""
        for offset in self._snapshots[:-1]:
            if offset not in segment_base_offsets:
                self._remove(offset)

    def remove_snapshots_before(self, offset: int) -> None:
        """The segments before `offset` are deleted, and their snapshots with them."""
        for snapshot in [known for known in self._snapshots if known < offset]:
            self._remove(snapshot)

    def _remove(self, offset: int) -> None:
        self._disk.remove(snapshot_path(self._directory, offset))
        self._snapshots.remove(offset)

    # ---- truncation and loading ------------------------------------------------------------

    def rebuild(
        self, batches: Iterable[RecordBatch], log_start_offset: int, end_offset: int
    ) -> None:
        """The state of the log up to `end_offset` (UnifiedLog.rebuildProducerState).

        Unlike Kafka, it reads again what it has only loaded: a snapshot has no transactions that
        have ended, and the end of one may be cut off (forgotten-open-transaction).
        """
        knows_nothing = not self._producers and not self._unreplicated_txns
        was_empty = knows_nothing and self._loaded_offset <= end_offset <= self._last_map_offset
        self._truncate_and_reload(log_start_offset, end_offset)
        if end_offset > self._last_map_offset and not was_empty:
            self.replay(
                batch
                for batch in batches
                if batch.base_offset >= self._last_map_offset and batch.next_offset <= end_offset
            )
        self._last_map_offset = end_offset
        self._loaded_offset = end_offset
        self.take_snapshot()

    def replay(self, batches: Iterable[RecordBatch]) -> list[AbortedTxn]:
        """Batches that the log has already; gives what belongs into the abort index."""
        aborted: list[AbortedTxn] = []
        for batch in batches:
            infos = self.prepare((batch,), AppendOrigin.REPLICATION)
            aborted += self.update(infos, batch.next_offset)
        return aborted

    def _truncate_and_reload(self, log_start_offset: int, end_offset: int) -> None:
        for offset in list(self._snapshots):
            if offset > end_offset or offset <= log_start_offset:
                self._remove(offset)
        if end_offset != self._last_map_offset:
            self._clear_producers()
            self._load_from_snapshot(log_start_offset)

    def _clear_producers(self) -> None:
        self._producers = {}
        self._ongoing_txns = {}
        self._unreplicated_txns = {}

    def _load_from_snapshot(self, log_start_offset: int) -> None:
        while self._snapshots:
            newest = self._snapshots[-1]
            try:
                entries = self.snapshot(newest)
            except CorruptRecordException:
                self._remove(newest)
                continue
            for entry in entries:
                self._load_producer_entry(entry)
            self._last_snap_offset = self._last_map_offset = newest
            return
        self._has_known = False
        self._last_snap_offset = self._last_map_offset = log_start_offset

    def _load_producer_entry(self, entry: ProducerStateEntry) -> None:
        if self._is_expired(entry):
            return
        self._producers[entry.producer_id] = entry
        first = entry.current_txn_first_offset
        if first is not None:
            self._ongoing_txns[first] = TxnMetadata(entry.producer_id, first)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """The log is empty and begins at `offset`."""
        if offset < 0:
            raise IllegalArgumentException(f"no log begins at {offset}")
        self._clear_producers()
        for snapshot in list(self._snapshots):
            self._remove(snapshot)
        self._has_known = False
        self._last_snap_offset = 0
        self._last_map_offset = offset
        self._loaded_offset = offset

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Entries stay, whatever of their batches is deleted (since Kafka 2.4)."""
        self._last_map_offset = max(self._last_map_offset, log_start_offset)
        self._last_snap_offset = self._snapshots[-1] if self._snapshots else log_start_offset

    def move_to(self, directory: str) -> None:
        """Follow the renaming of the log's directory."""
        self._directory = directory


def _indexed(completed: CompletedTxn, last_stable_offset: int) -> AbortedTxn:
    return AbortedTxn(
        completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
    )
