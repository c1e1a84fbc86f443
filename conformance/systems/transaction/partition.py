"""The leader of a partition: `impl`'s log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.transaction.instance import TransactionBatch
from conformance.systems.transaction.epochs import ProducerEpochs
from conformance.systems.transaction.log_system import kind_of
from conformance.systems.transaction.parts import (
    BatchInLog,
    SentMarker,
    TransactionLeader,
)
from conformance.systems.transaction.replica import follower_of, load_replica
from conformance.systems.transaction.settings import PartitionSettings
from impl.clock import Clock
from impl.concurrency import Concurrency
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


class PartitionLeader(TransactionLeader):
    """The rules are those of `impl.log` and its producer state manager."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        settings: PartitionSettings,
        epochs: ProducerEpochs,
        concurrency: Concurrency,
        *,
        is_offsets: bool,
    ) -> None:
        self._is_offsets = is_offsets
        self._clock = clock
        self._settings = settings
        self._epochs = epochs
        self._concurrency = concurrency
        self._config = ProducerStateManagerConfig(
            transaction_verification_enabled=settings.verifies
        )
        self._log: Log = load_replica(self._config, clock, name, concurrency)

    @property
    def batches(self) -> Sequence[BatchInLog]:
        """See `TransactionLeader.batches`."""
        return [self._logged(batch) for batch in self._log.batches()]

    @property
    def high_watermark(self) -> int:
        """See `TransactionLeader.high_watermark`."""
        return self._log.high_watermark

    @property
    def entry_epoch(self) -> int:
        """See `TransactionLeader.entry_epoch`."""
        for producer_id, entry in self._entries():
            return self._epochs.number(producer_id, entry.epoch)
        return _NO_ENTRY

    @property
    def guard(self) -> VerificationGuard | None:
        """See `TransactionLeader.guard`."""
        return next((entry.guard for _, entry in self._entries()), None)

    def _entries(self) -> Iterator[tuple[int, VerificationStateEntry]]:
        """What is being verified, of the newest producer id first."""
        for producer_id in self._epochs.ids:
            entry = self._log.producer_state_manager.verification_state_entry(producer_id)
            if entry is not None:
                yield producer_id, entry

    def maybe_start_verification(self, batch: TransactionBatch) -> VerificationGuard | None:
        """See `TransactionLeader.maybe_start_verification`."""
        producer = self._epochs.of_number(batch.epoch)
        guard = self._log.maybe_start_transaction_verification(
            producer.producer_id,
            _NO_SEQUENCE if self._is_offsets else batch.sequence,
            producer.epoch,
            self._settings.version >= 2,
        )
        return None if guard is SENTINEL else guard

    def append(self, batch: TransactionBatch, guard: object | None) -> None:
        """See `TransactionLeader.append`."""
        assert guard is None or isinstance(guard, VerificationGuard)
        sequence = 0 if self._is_offsets else batch.sequence
        of = self._epochs.of_number(batch.epoch)
        producer = ProducerInfo(of.producer_id, of.epoch, sequence)
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

    def write_marker(self, sent: SentMarker) -> None:
        """See `TransactionLeader.write_marker`."""
        producer = self._epochs.of_number(sent.epoch)
        records = EndTransactionMarker(sent.is_commit, sent.coordinator_epoch).memory_records(
            sent.start, producer.producer_id, producer.epoch
        )
        version = sent.transaction_version if self._settings.strict_markers else 0
        self._log.append_as_leader(
            records, _LEADER_EPOCH, AppendOrigin.COORDINATOR, transaction_version=version
        )

    def replicate(self) -> None:
        """See `TransactionLeader.replicate`."""
        self._log.maybe_increment_high_watermark(LogOffsetMetadata(self._log.log_end_offset))

    def elect(self, end: int) -> None:
        """See `TransactionLeader.elect`."""
        watermark = self._log.high_watermark
        self._log = follower_of(self._log, end, self._config, self._clock, self._concurrency)
        self._log.update_high_watermark(watermark)

    def stop(self) -> None:
        """Nothing of `impl` but the coordinators' view of leaders knows it."""

    def restart(self) -> None:
        """See `stop`."""

    def _logged(self, batch: RecordBatch) -> BatchInLog:
        is_marker = batch.is_control_batch
        return BatchInLog(
            kind_of(batch),
            self._epochs.number(batch.producer.producer_id, batch.producer.epoch),
            deserialize(batch).coordinator_epoch if is_marker else 0,
            "" if is_marker else (batch.records[0].value or b"").decode(),
            batch.max_timestamp,
            batch.base_offset,
        )
