"""The partitions' records: what producers have sent, or batches that are made up for a consumer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from ..clock import Clock
from ..concurrency import NoConcurrency
from ..disk import MemoryDisk
from ..errors import ApiException, Errors
from ..log import Log
from ..log_loader import load_log
from ..producer_state.producer_state_entry import ProducerStateEntry
from ..record_format import Record
from ..records import MAGIC_VALUE_V2, MemoryRecords, RecordBatch, decode_batches
from ..scheduler import ImmediateScheduler
from ..types import LogOffsetMetadata, TopicPartition

LEADER_EPOCH = 0
EARLIEST_TIMESTAMP = -2
"""ListOffsets asks with it for the first offset (ListOffsetsRequest.EARLIEST_TIMESTAMP)."""
_FIRST_TIMESTAMP = 1_700_000_000_000
"""Of the record at offset 0, in milliseconds; each later one is a millisecond younger."""
_RECORDS_AFTER_MS = 100
"""So long a fetch waits for records that are made up: a consumer reads without pause else."""
_NO_OFFSET = -1
_FETCH_BYTES = 1 << 20


class PartitionLogs(Protocol):
    """The log of every partition; all begin at offset 0."""

    def end(self, partition: TopicPartition) -> int:
        """The high watermark, which is the log end offset where nobody replicates."""

    def offset_for(self, partition: TopicPartition, timestamp: int) -> int:
        """What ListOffsets answers: the first offset, or the end for every other time."""

    def read(self, partition: TopicPartition, offset: int) -> tuple[Errors, bytes]:
        """The batches from this offset on; OFFSET_OUT_OF_RANGE outside the log."""

    def wait_ms(self, asked: Iterable[tuple[TopicPartition, int]], longest: int) -> int:
        """For how long a fetch of these partitions, each from an offset on, waits for records."""

    def append(self, partition: TopicPartition, records: bytes) -> tuple[Errors, int]:
        """Append what a producer sent; the error, and the offset of the first record or -1."""

    def producers(self, partition: TopicPartition) -> Collection[ProducerStateEntry]:
        """What the partition remembers of idempotent producers."""


class ProducedLogs:
    """Logs of what producers send, with their producer state; a partition has one replica."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._disk = MemoryDisk()
        self._logs: dict[TopicPartition, Log] = {}

    def _log(self, partition: TopicPartition) -> Log:
        if partition not in self._logs:
            self._logs[partition] = load_log(
                partition,
                f"{partition.topic}-{partition.partition}",
                self._disk,
                ImmediateScheduler(),
                NoConcurrency(),
                clock=self._clock,
            )
        return self._logs[partition]

    def end(self, partition: TopicPartition) -> int:
        """The high watermark: that of a leader without followers."""
        return self._log(partition).high_watermark

    def offset_for(self, partition: TopicPartition, timestamp: int) -> int:
        """The first offset, or the end for every other time."""
        return 0 if timestamp == EARLIEST_TIMESTAMP else self.end(partition)

    def read(self, partition: TopicPartition, offset: int) -> tuple[Errors, bytes]:
        """What producers have sent from this offset on."""
        try:
            fetched = self._log(partition).read(offset, _FETCH_BYTES)
        except ApiException as error:
            return error.error, b""
        return Errors.NONE, b"".join(batch.to_bytes() for batch in fetched.records.batches())

    def wait_ms(self, asked: Iterable[tuple[TopicPartition, int]], longest: int) -> int:
        """Nothing where there is an answer; else max.wait passes (DelayedFetch)."""
        waits = all(offset == self.end(partition) for partition, offset in asked)
        return longest if waits else 0

    def append(self, partition: TopicPartition, records: bytes) -> tuple[Errors, int]:
        """One batch of magic 2, as Produce has it from version 3 on (ProduceRequest.validate)."""
        log = self._log(partition)
        try:
            batches = decode_batches(records)
            if len(batches) != 1 or batches[0].magic < MAGIC_VALUE_V2:
                return Errors.INVALID_RECORD, _NO_OFFSET
            info = log.append_as_leader(MemoryRecords(batches), LEADER_EPOCH)
        except ApiException as error:
            return error.error, _NO_OFFSET
        log.maybe_increment_high_watermark(LogOffsetMetadata(log.log_end_offset))
        return Errors.NONE, info.first_offset

    def producers(self, partition: TopicPartition) -> Collection[ProducerStateEntry]:
        """The entries in memory (DescribeProducers)."""
        return self._log(partition).producer_state_manager.active_producers.values()


class RecordLogs:
    """Logs that nobody has written.

    A fetch at the end of a log appends a batch of `batch` records and reads it, so that no log ends
    for a consumer, and none holds more than was read of it.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._ends: dict[TopicPartition, int] = {}

    def end(self, partition: TopicPartition) -> int:
        """The log end offset: the offset behind the last record that was read."""
        return self._ends.get(partition, 0)

    def offset_for(self, partition: TopicPartition, timestamp: int) -> int:
        """What ListOffsets answers: the first offset, or the end for every other time."""
        return 0 if timestamp == EARLIEST_TIMESTAMP else self.end(partition)

    def read(self, partition: TopicPartition, offset: int) -> tuple[Errors, bytes]:
        """The batch with this offset, in Kafka's layout; OFFSET_OUT_OF_RANGE outside the log."""
        end = self.end(partition)
        if not 0 <= offset <= end:
            return Errors.OFFSET_OUT_OF_RANGE, b""
        base = offset - offset % self._batch
        self._ends[partition] = max(end, base + self._batch)
        records = [
            Record(f"record {number}".encode(), None, _FIRST_TIMESTAMP + number)
            for number in range(base, base + self._batch)
        ]
        return Errors.NONE, RecordBatch.create(records, base, LEADER_EPOCH).to_bytes()

    def wait_ms(self, asked: Iterable[tuple[TopicPartition, int]], longest: int) -> int:
        """A short while."""
        del asked
        return min(longest, _RECORDS_AFTER_MS)

    def append(self, partition: TopicPartition, records: bytes) -> tuple[Errors, int]:
        """Refused: the records are made up."""
        del partition, records
        return Errors.INVALID_REQUEST, _NO_OFFSET

    def producers(self, partition: TopicPartition) -> Collection[ProducerStateEntry]:
        """None."""
        del partition
        return ()
