"""The partitions' records: what producers have sent, or batches that are made up for a consumer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from ..clock import Clock
from ..concurrency import NoConcurrency
from ..disk import MemoryDisk
from ..errors import ApiException, Errors
from ..log import Log
from ..log_loader import load_log
from ..log_types import FetchIsolation
from ..producer_state.producer_append_info import AppendOrigin
from ..producer_state.producer_state_entry import ProducerStateEntry
from ..producer_state.transactions import AbortedTxn, VerificationGuard
from ..record_format import Record
from ..records import MAGIC_VALUE_V2, MemoryRecords, RecordBatch, decode_batches
from ..scheduler import ImmediateScheduler
from ..types import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_TIMESTAMP,
    FetchPartitionData,
    FileTimestampAndOffset,
    LogOffsetMetadata,
    OffsetAndEpoch,
    TopicPartition,
)

LEADER_EPOCH = 0
"""The first of a partition."""
_FIRST_TIMESTAMP = 1_700_000_000_000
"""Of the record at offset 0, in milliseconds; each later one is a millisecond younger."""
_RECORDS_AFTER_MS = 100
"""So long a fetch waits for records that are made up: a consumer reads without pause else."""
_NO_OFFSET = -1
_HIGH_WATERMARK = -1
"""DeleteRecords' offset that stands for the high watermark."""
_FETCH_BYTES = 1 << 20


GuardOf = Callable[[Log, RecordBatch], VerificationGuard]
"""The guard with which a batch may be appended. Raises `ApiException` if it may not."""


@dataclass(frozen=True, slots=True)
class EncodedRecords:
    """Batches as they are sent; nothing is decoded before somebody asks for them."""

    encoded: bytes

    @property
    def size_in_bytes(self) -> int:
        """Bytes of all batches."""
        return len(self.encoded)

    def batches(self) -> tuple[RecordBatch, ...]:
        """The batches, in order of offset."""
        return tuple(decode_batches(self.encoded))


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """One partition of a Fetch answer; `aborted` is None unless read_committed was asked for."""

    error: Errors
    records: bytes = b""
    high_watermark: int = _NO_OFFSET
    last_stable_offset: int = _NO_OFFSET
    log_start_offset: int = _NO_OFFSET
    aborted: tuple[AbortedTxn, ...] | None = None

    def data(self) -> FetchPartitionData:
        """What a fetch session compares."""
        return FetchPartitionData(
            self.error, self.high_watermark, self.log_start_offset, EncodedRecords(self.records)
        )


class PartitionLogs(Protocol):
    """The log of every partition; `committed` asks with isolation.level=read_committed."""

    def offset_for(
        self, partition: TopicPartition, timestamp: int, *, committed: bool
    ) -> FileTimestampAndOffset | None:
        """What ListOffsets answers; None if no record that may be read is as young."""

    def read(self, partition: TopicPartition, offset: int, *, committed: bool) -> ReadRecords:
        """The batches from this offset on; OFFSET_OUT_OF_RANGE outside the log."""

    def wait_ms(
        self, asked: Iterable[tuple[TopicPartition, int]], longest: int, *, committed: bool
    ) -> int:
        """For how long a fetch of these partitions, each from an offset on, waits for records."""

    def append(
        self, partition: TopicPartition, records: bytes, guard_of: GuardOf
    ) -> tuple[Errors, int]:
        """Append what a producer sent; the error, and the offset of the first record or -1."""

    def write_marker(
        self, partition: TopicPartition, marker: MemoryRecords, transaction_version: int
    ) -> Errors:
        """Append the marker of a transaction."""

    def delete_records(self, partition: TopicPartition, offset: int) -> tuple[Errors, int]:
        """Delete what lies before an offset, or all with -1; the error, and the log start or -1."""

    def end_offset_for_epoch(
        self, partition: TopicPartition, leader_epoch: int
    ) -> OffsetAndEpoch | None:
        """Where a leader epoch ends; None for one that is not known."""

    def leader_epoch(self, partition: TopicPartition) -> int:
        """The present one."""

    def elect_leaders(self) -> None:
        """Every partition is led in its next epoch."""

    def producers(self, partition: TopicPartition) -> Collection[ProducerStateEntry]:
        """What the partition remembers of producers."""


class ProducedLogs:
    """Logs of what producers send, with their producer state; a partition has one replica."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._disk = MemoryDisk()
        self._logs: dict[TopicPartition, Log] = {}
        self._epochs: dict[TopicPartition, int] = {}

    def log(self, partition: TopicPartition) -> Log:
        """The partition's log, made if absent."""
        if partition not in self._logs:
            self._logs[partition] = load_log(
                partition,
                f"{partition.topic}-{partition.partition}",
                self._disk,
                ImmediateScheduler(),
                NoConcurrency(),
                clock=self._clock,
            )
            self._logs[partition].maybe_assign_epoch_start_offset(LEADER_EPOCH, 0)
        return self._logs[partition]

    def _end(self, partition: TopicPartition, *, committed: bool) -> int:
        """Up to where may be read."""
        log = self.log(partition)
        return log.last_stable_offset if committed else log.high_watermark

    def offset_for(
        self, partition: TopicPartition, timestamp: int, *, committed: bool
    ) -> FileTimestampAndOffset | None:
        """See `PartitionLogs.offset_for` (Partition.fetchOffsetForTimestamp)."""
        end = self._end(partition, committed=committed)
        if timestamp == LATEST_TIMESTAMP:
            return FileTimestampAndOffset(NO_TIMESTAMP, end, self.leader_epoch(partition))
        known = self.log(partition).fetch_offset_by_timestamp(timestamp)
        is_start = timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP)
        return known if known is not None and (is_start or known.offset < end) else None

    def read(self, partition: TopicPartition, offset: int, *, committed: bool) -> ReadRecords:
        """What producers have sent from this offset on."""
        log = self.log(partition)
        isolation = FetchIsolation.TXN_COMMITTED if committed else FetchIsolation.HIGH_WATERMARK
        try:
            fetched = log.read(offset, _FETCH_BYTES, isolation)
        except ApiException as error:
            return ReadRecords(error.error)
        return ReadRecords(
            Errors.NONE,
            b"".join(batch.to_bytes() for batch in fetched.records.batches()),
            log.high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            fetched.aborted_transactions,
        )

    def wait_ms(
        self, asked: Iterable[tuple[TopicPartition, int]], longest: int, *, committed: bool
    ) -> int:
        """Nothing where there is an answer; else max.wait passes (DelayedFetch)."""
        waits = all(
            self._end(partition, committed=committed)
            <= offset
            <= self.log(partition).log_end_offset
            for partition, offset in asked
        )
        return longest if waits else 0

    def append(
        self, partition: TopicPartition, records: bytes, guard_of: GuardOf
    ) -> tuple[Errors, int]:
        """One batch of magic 2, as Produce has it from version 3 on (ProduceRequest.validate)."""
        log = self.log(partition)
        try:
            batches = decode_batches(records)
            if len(batches) != 1 or batches[0].magic < MAGIC_VALUE_V2:
                return Errors.INVALID_RECORD, _NO_OFFSET
            guard = guard_of(log, batches[0])
            epoch = self.leader_epoch(partition)
            info = log.append_as_leader(MemoryRecords(batches), epoch, verification_guard=guard)
        except ApiException as error:
            return error.error, _NO_OFFSET
        _replicate(log)
        return Errors.NONE, info.first_offset

    def write_marker(
        self, partition: TopicPartition, marker: MemoryRecords, transaction_version: int
    ) -> Errors:
        """See `PartitionLogs.write_marker` (KafkaApis.handleWriteTxnMarkersRequest)."""
        log = self.log(partition)
        try:
            log.append_as_leader(
                marker,
                self.leader_epoch(partition),
                AppendOrigin.COORDINATOR,
                transaction_version=transaction_version,
            )
        except ApiException as error:
            return error.error
        _replicate(log)
        return Errors.NONE

    def delete_records(self, partition: TopicPartition, offset: int) -> tuple[Errors, int]:
        """See `PartitionLogs.delete_records` (Partition.deleteRecordsOnLeader)."""
        log = self.log(partition)
        target = log.high_watermark if offset == _HIGH_WATERMARK else offset
        if target < 0:
            return Errors.OFFSET_OUT_OF_RANGE, _NO_OFFSET
        try:
            log.maybe_increment_log_start_offset(target)
        except ApiException as error:
            return error.error, _NO_OFFSET
        return Errors.NONE, log.log_start_offset

    def end_offset_for_epoch(
        self, partition: TopicPartition, leader_epoch: int
    ) -> OffsetAndEpoch | None:
        """See `PartitionLogs.end_offset_for_epoch`."""
        return self.log(partition).end_offset_for_epoch(leader_epoch)

    def leader_epoch(self, partition: TopicPartition) -> int:
        """See `PartitionLogs.leader_epoch`."""
        return self._epochs.get(partition, LEADER_EPOCH)

    def elect_leaders(self) -> None:
        """See `PartitionLogs.elect_leaders` (Partition.makeLeader)."""
        for partition, log in self._logs.items():
            epoch = self._epochs[partition] = self.leader_epoch(partition) + 1
            log.maybe_assign_epoch_start_offset(epoch, log.log_end_offset)

    def producers(self, partition: TopicPartition) -> Collection[ProducerStateEntry]:
        """The entries in memory (DescribeProducers)."""
        return self.log(partition).producer_state_manager.active_producers.values()


def _replicate(log: Log) -> None:
    """A leader without followers."""
    log.maybe_increment_high_watermark(LogOffsetMetadata(log.log_end_offset))


class RecordLogs:
    """Logs that nobody has written; they begin at offset 0.

    A fetch at the end of a log appends a batch of `batch` records and reads it, so that no log ends
    for a consumer, and none holds more than was read of it.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._ends: dict[TopicPartition, int] = {}

    def offset_for(
        self, partition: TopicPartition, timestamp: int, *, committed: bool
    ) -> FileTimestampAndOffset | None:
        """The first offset, or for every other time the offset behind what was read."""
        del committed
        offset = 0 if timestamp == EARLIEST_TIMESTAMP else self._ends.get(partition, 0)
        return FileTimestampAndOffset(NO_TIMESTAMP, offset, LEADER_EPOCH)

    def read(self, partition: TopicPartition, offset: int, *, committed: bool) -> ReadRecords:
        """The batch with this offset, in Kafka's layout; OFFSET_OUT_OF_RANGE outside the log."""
        end = self._ends.get(partition, 0)
        if not 0 <= offset <= end:
            return ReadRecords(Errors.OFFSET_OUT_OF_RANGE)
        base = offset - offset % self._batch
        end = self._ends[partition] = max(end, base + self._batch)
        records = [
            Record(f"record {number}".encode(), None, _FIRST_TIMESTAMP + number)
            for number in range(base, base + self._batch)
        ]
        batch = RecordBatch.create(records, base, LEADER_EPOCH).to_bytes()
        return ReadRecords(Errors.NONE, batch, end, end, 0, () if committed else None)

    def wait_ms(
        self, asked: Iterable[tuple[TopicPartition, int]], longest: int, *, committed: bool
    ) -> int:
        """A short while."""
        del asked, committed
        return min(longest, _RECORDS_AFTER_MS)

    def append(
        self, partition: TopicPartition, records: bytes, guard_of: GuardOf
    ) -> tuple[Errors, int]:
        """Refused: the records are made up."""
        del partition, records, guard_of
        return Errors.INVALID_REQUEST, _NO_OFFSET

    def write_marker(
        self, partition: TopicPartition, marker: MemoryRecords, transaction_version: int
    ) -> Errors:
        """Refused, as by a log that has no room for it."""
        del partition, marker, transaction_version
        return Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT

    def delete_records(self, partition: TopicPartition, offset: int) -> tuple[Errors, int]:
        """Refused: nothing is kept."""
        del partition, offset
        return Errors.INVALID_REQUEST, _NO_OFFSET

    def end_offset_for_epoch(
        self, partition: TopicPartition, leader_epoch: int
    ) -> OffsetAndEpoch | None:
        """There is one epoch."""
        if leader_epoch != LEADER_EPOCH:
            return None
        return OffsetAndEpoch(self._ends.get(partition, 0), LEADER_EPOCH)

    def leader_epoch(self, partition: TopicPartition) -> int:
        """There is one epoch."""
        del partition
        return LEADER_EPOCH

    def elect_leaders(self) -> None:
        """Nobody else leads."""

    def producers(self, partition: TopicPartition) -> Collection[ProducerStateEntry]:
        """None."""
        del partition
        return ()
