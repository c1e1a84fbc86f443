"""The leader of a partition: `impl`'s log."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.transaction.instance import TransactionBatch
from conformance.systems.transaction.broker import PRODUCER_ID
from conformance.systems.transaction.log_system import kind_of
from conformance.systems.transaction.parts import (
    BatchInLog,
    SentMarker,
    TransactionPartition,
)
from conformance.systems.transaction.replica import follower_of, load_replica
from conformance.systems.transaction.settings import PartitionSettings
from impl.clock import Clock
from impl.end_transaction_marker import EndTransactionMarker, deserialize
from impl.log import Log
from impl.producer_state.producer_append_info import AppendOrigin
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.producer_state.transactions import SENTINEL, VerificationGuard, VerificationStateEntry
from impl.records import MemoryRecords, ProducerInfo, Record, RecordBatch
from impl.types import LogOffsetMetadata

_LEADER_EPOCH = 0
_NO_SEQUENCE = -1
_NO_ENTRY = -1


class PartitionLeader(TransactionPartition):
    """The rules are those of `impl.log` and its producer state manager."""

    def __init__(
        self, name: str, clock: Clock, settings: PartitionSettings, *, is_offsets: bool
    ) -> None:
        super().__init__(
            name, is_offsets=is_offsets, replicates_at_once=not settings.changes_leaders
        )
        self._clock = clock
        self._settings = settings
        self._config = ProducerStateManagerConfig(
            transaction_verification_enabled=settings.verifies
        )
        self._log: Log = load_replica(self._config, clock, name)

    @property
    def batches(self) -> Sequence[BatchInLog]:
        """See `TransactionPartition.batches`."""
        return [_logged(batch) for batch in self._log.batches()]

    @property
    def high_watermark(self) -> int:
        """See `TransactionPartition.high_watermark`."""
        return self._log.high_watermark

    @property
    def entry_epoch(self) -> int:
        """See `TransactionPartition.entry_epoch`."""
        entry = self._entry
        return _NO_ENTRY if entry is None else entry.epoch

    @property
    def _current_guard(self) -> VerificationGuard | None:
        entry = self._entry
        return None if entry is None else entry.guard

    @property
    def _entry(self) -> VerificationStateEntry | None:
        return self._log.producer_state_manager.verification_state_entry(PRODUCER_ID)

    def _maybe_start_verification(self, batch: TransactionBatch) -> VerificationGuard | None:
        guard = self._log.maybe_start_transaction_verification(
            PRODUCER_ID,
            _NO_SEQUENCE if self._is_offsets else batch.sequence,
            batch.epoch,
            self._settings.version >= 2,
        )
        return None if guard is SENTINEL else guard

    def _append(self, batch: TransactionBatch, guard: object | None) -> None:
        assert guard is None or isinstance(guard, VerificationGuard)
        sequence = 0 if self._is_offsets else batch.sequence
        producer = ProducerInfo(PRODUCER_ID, batch.epoch, sequence)
        record = Record(batch.value.encode())
        appended = RecordBatch.create((record,), producer=producer, is_transactional=True)
        end = self._log.log_end_offset
        self._log.append_as_leader(
            MemoryRecords((appended,)),
            _LEADER_EPOCH,
            AppendOrigin.COORDINATOR if self._is_offsets else AppendOrigin.CLIENT,
            verification_guard=guard or SENTINEL,
        )
        if self._log.log_end_offset == end:
            raise ActionRefused(f"{batch} is there already")

    def _write_marker(self, sent: SentMarker) -> None:
        records = EndTransactionMarker(sent.is_commit, sent.coordinator_epoch).memory_records(
            sent.start, PRODUCER_ID, sent.epoch
        )
        version = sent.transaction_version if self._settings.strict_markers else 0
        self._log.append_as_leader(
            records, _LEADER_EPOCH, AppendOrigin.COORDINATOR, transaction_version=version
        )

    def replicate(self) -> None:
        """See `TransactionPartition.replicate`."""
        self._log.maybe_increment_high_watermark(LogOffsetMetadata(self._log.log_end_offset))

    def elect(self, end: int) -> None:
        """See `TransactionPartition.elect`."""
        watermark = self._log.high_watermark
        self._log = follower_of(self._log, end, self._config, self._clock)
        self._log.update_high_watermark(watermark)


def _logged(batch: RecordBatch) -> BatchInLog:
    is_marker = batch.is_control_batch
    return BatchInLog(
        kind_of(batch),
        batch.producer.epoch,
        deserialize(batch).coordinator_epoch if is_marker else 0,
        "" if is_marker else (batch.records[0].value or b"").decode(),
        batch.max_timestamp,
        batch.base_offset,
    )
