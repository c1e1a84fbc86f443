"""The leader of a partition: its log, and batches that it verifies."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused
from conformance.systems.transaction.broker import PRODUCER_ID
from conformance.systems.transaction.replica import follower_of, load_replica
from impl.clock import Clock
from impl.end_transaction_marker import EndTransactionMarker, deserialize
from impl.log import Log
from impl.producer_state.producer_append_info import AppendOrigin
from impl.producer_state.producer_state_manager import ProducerStateManagerConfig
from impl.producer_state.transactions import SENTINEL, VerificationGuard
from impl.records import MemoryRecords, ProducerInfo, Record, RecordBatch
from impl.transaction.transaction_marker_channel_manager import TxnMarkerEntry
from impl.types import LogOffsetMetadata, TopicPartition

_LEADER_EPOCH = 0
_NO_SEQUENCE = -1
_NO_ENTRY = -1
_MAX_COPIES = 2


@dataclass(frozen=True, slots=True, order=True)
class TransactionBatch:
    """A Produce (or TxnOffsetCommit) request of one record."""

    partition: str
    epoch: int
    sequence: int
    txn: int


@dataclass(frozen=True, slots=True)
class Verification:
    """A batch that waits for the coordinator, with the guard that it was given."""

    batch: TransactionBatch
    guard: VerificationGuard
    is_verified: bool = False


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """What of a model's constants concerns partitions."""

    verifies: bool
    version: int
    strict_markers: bool
    changes_leaders: bool


class PartitionLeader:
    """What is written to an offsets partition has no sequence, and comes from its coordinator."""

    def __init__(
        self, name: str, clock: Clock, settings: PartitionSettings, *, is_offsets: bool
    ) -> None:
        self.name = name
        self.topic_partition = TopicPartition(name, 0)
        self._clock = clock
        self._settings = settings
        self._is_offsets = is_offsets
        self._config = ProducerStateManagerConfig(
            transaction_verification_enabled=settings.verifies
        )
        self.log: Log = load_replica(self._config, clock, name)
        self._verifications: dict[TransactionBatch, Verification] = {}

    # ---- batches ---------------------------------------------------------------------------

    @property
    def verifications(self) -> list[Verification]:
        """Those whose guard still counts, in the order of their batches."""
        entry = self.log.producer_state_manager.verification_state_entry(PRODUCER_ID)
        if entry is None:
            return []
        known = (self._verifications[batch] for batch in sorted(self._verifications))
        return [verification for verification in known if verification.guard is entry.guard]

    @property
    def entry_epoch(self) -> int:
        """The epoch of the entry that is being verified; -1 if there is none."""
        entry = self.log.producer_state_manager.verification_state_entry(PRODUCER_ID)
        return _NO_ENTRY if entry is None else entry.epoch

    def start_verification(self, batch: TransactionBatch) -> None:
        """A batch arrives that must be verified."""
        guard = self.log.maybe_start_transaction_verification(
            PRODUCER_ID,
            _NO_SEQUENCE if self._is_offsets else batch.sequence,
            batch.epoch,
            self._settings.version >= 2,
        )
        if guard is SENTINEL:
            raise ActionRefused(f"{batch} needs no verification")
        self._verifications[batch] = Verification(batch, guard)

    def verify(self, batch: TransactionBatch) -> None:
        """The coordinator has said that the partition is in the transaction."""
        known = self._verifications[batch]
        self._verifications[batch] = Verification(batch, known.guard, is_verified=True)

    def append(self, batch: TransactionBatch) -> None:
        """Append with the batch's guard; one that waits for the coordinator has none."""
        known = self._verifications.get(batch)
        guard = SENTINEL if known is None or not known.is_verified else known.guard
        record = Record(f"{batch.txn} {batch.sequence}".encode())
        sequence = 0 if self._is_offsets else batch.sequence
        producer = ProducerInfo(PRODUCER_ID, batch.epoch, sequence)
        appended = RecordBatch.create((record,), producer=producer, is_transactional=True)
        end = self.log.log_end_offset
        self.log.append_as_leader(
            MemoryRecords((appended,)),
            _LEADER_EPOCH,
            AppendOrigin.COORDINATOR if self._is_offsets else AppendOrigin.CLIENT,
            verification_guard=guard,
        )
        if self.log.log_end_offset == end:
            raise ActionRefused(f"{batch} is there already")
        self._verifications.pop(batch, None)
        self._replicate_at_once()

    def is_acknowledged(self, batch: TransactionBatch) -> bool:
        """Whether it is below the high watermark."""
        value = f"{batch.txn} {batch.sequence}".encode()
        return any(
            logged.base_offset < self.log.high_watermark
            and logged.producer.epoch == batch.epoch
            and not logged.is_control_batch
            and logged.records[0].value == value
            for logged in self.log.batches()
        )

    # ---- markers, replication --------------------------------------------------------------

    def write_marker(self, marker: TxnMarkerEntry, timestamp: int) -> None:
        """KafkaApis.handleWriteTxnMarkersRequest; before 4.2 the request has no version."""
        records = EndTransactionMarker(marker.is_commit, marker.coordinator_epoch).memory_records(
            timestamp, marker.producer_id, marker.producer_epoch
        )
        version = marker.transaction_version if self._settings.strict_markers else 0
        self.log.append_as_leader(
            records, _LEADER_EPOCH, AppendOrigin.COORDINATOR, transaction_version=version
        )
        self._replicate_at_once()

    def has_place_for(self, batch: TransactionBatch) -> bool:
        """Whether the batch may arrive: those of one epoch come in order, and again."""
        if self._is_offsets:
            return self._copies_of(batch) < _MAX_COPIES
        return batch.sequence <= self._next_sequence(batch.epoch)

    def is_next(self, batch: TransactionBatch) -> bool:
        """Whether the batch, if it may arrive, is not there yet."""
        return self._is_offsets or batch.sequence == self._next_sequence(batch.epoch)

    def _next_sequence(self, epoch: int) -> int:
        own = (batch for batch in self.log.batches() if batch.producer.epoch == epoch)
        return sum(not batch.is_control_batch for batch in own)

    def is_verifying(self, batch: TransactionBatch) -> bool:
        """Whether the batch waits for the coordinator already."""
        return any(verification.batch == batch for verification in self.verifications)

    def _copies_of(self, batch: TransactionBatch) -> int:
        value = f"{batch.txn} {batch.sequence}".encode()
        return sum(
            not logged.is_control_batch and logged.records[0].value == value
            for logged in self.log.batches()
        )

    def copies_of(self, marker: TxnMarkerEntry, timestamp: int) -> int:
        """How often the marker is in the log."""
        key = (marker.producer_epoch, marker.coordinator_epoch, marker.is_commit, timestamp)
        return self._markers_below(self.log.log_end_offset).count(key)

    def replicated_markers(self) -> list[tuple[int, int, bool, int]]:
        """Producer epoch, coordinator epoch, whether it commits, and time of each marker."""
        return self._markers_below(self.log.high_watermark)

    def _markers_below(self, offset: int) -> list[tuple[int, int, bool, int]]:
        return [
            (
                batch.producer.epoch,
                deserialize(batch).coordinator_epoch,
                deserialize(batch).is_commit,
                batch.max_timestamp,
            )
            for batch in self.log.batches()
            if batch.is_control_batch and batch.base_offset < offset
        ]

    def _replicate_at_once(self) -> None:
        if not self._settings.changes_leaders:
            self.replicate()

    def replicate(self) -> None:
        """All replicas have all of the log."""
        self.log.maybe_increment_high_watermark(LogOffsetMetadata(self.log.log_end_offset))

    def elect(self, end: int) -> None:
        """A follower leads that has the log up to `end`. Guards are not replicated."""
        watermark = self.log.high_watermark
        self.log = follower_of(self.log, end, self._config, self._clock)
        self.log.update_high_watermark(watermark)
