"""A compacted log with its cleaner, on a disk in memory and a clock that stands still."""

from __future__ import annotations

from impl.cleaner.log_cleaner import LogCleaner
from impl.clock import MockClock
from impl.concurrency import Concurrency, NoConcurrency
from impl.disk import MemoryDisk
from impl.end_transaction_marker import EndTransactionMarker, deserialize
from impl.log import Log
from impl.log_manager import LogManager
from impl.log_types import LogConfig
from impl.producer_state.producer_append_info import AppendOrigin
from impl.records import MemoryRecords, ProducerInfo, Record, RecordBatch
from impl.scheduler import ImmediateScheduler, Scheduler
from impl.types import LogOffsetMetadata, TopicPartition

DIRECTORY = "logs"
PARTITION = TopicPartition("t", 0)
RETENTION_MS = 100
Shown = tuple[int, str]
"""An offset, and `key=value`, `key deleted`, `commit` or `abort`."""


class CompactedWorld:
    """One log directory; the log of `PARTITION` is there from the beginning."""

    def __init__(
        self,
        *,
        segment_bytes: int = 1 << 20,
        scheduler: Scheduler | None = None,
        concurrency: Concurrency | None = None,
    ) -> None:
        self.disk = MemoryDisk()
        self.clock = MockClock(1_000)
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            compact=True,
            delete_retention_ms=RETENTION_MS,
            min_cleanable_dirty_ratio=0.0,
        )
        self._scheduler = scheduler or ImmediateScheduler()
        self._concurrency = concurrency or NoConcurrency()
        self.restart()

    def restart(self) -> None:
        """The broker's process begins, on what the disk has."""
        self.logs = LogManager(
            self.disk,
            (DIRECTORY,),
            self._scheduler,
            self._concurrency,
            default_config=self.config,
            clock=self.clock,
        )
        self.log = self.logs.get_or_create_log(PARTITION)
        self.cleaner = LogCleaner(self.logs.cleaner, self.clock)

    # ---- what is appended --------------------------------------------------------------------

    def append(self, *records: str) -> None:
        """One batch; `k=v` is a value, `k` a tombstone, `=v` a value without a key."""
        batch = RecordBatch.create(tuple(map(self._record, records)))
        self.log.append_as_leader(MemoryRecords((batch,)), 0)

    def append_of(self, producer: int, *records: str, transactional: bool = True) -> None:
        """The same of a producer, with its next sequence."""
        entry = self.log.producer_state_manager.active_producers.get(producer)
        sequence = 0 if entry is None else entry.last_seq + 1
        batch = RecordBatch.create(
            tuple(map(self._record, records)),
            producer=ProducerInfo(producer, 0, sequence),
            is_transactional=transactional,
        )
        guard = self.log.maybe_start_transaction_verification(producer, sequence, 0, False)
        self.log.append_as_leader(MemoryRecords((batch,)), 0, verification_guard=guard)

    def _record(self, text: str) -> Record:
        key, is_value, value = text.partition("=")
        return Record(
            value.encode() if is_value else None,
            key.encode() if key else None,
            self.clock.milliseconds(),
        )

    def end(self, producer: int, *, commits: bool) -> None:
        """The marker of the producer's transaction."""
        marker = EndTransactionMarker(commits, 0)
        records = marker.memory_records(self.clock.milliseconds(), producer, 0)
        self.log.append_as_leader(records, 0, AppendOrigin.COORDINATOR)

    def replicate(self) -> None:
        """All is committed."""
        self.log.maybe_increment_high_watermark(LogOffsetMetadata(self.log.log_end_offset))

    # ---- the cleaner -------------------------------------------------------------------------

    def clean(self) -> bool:
        """Close the active segment, commit, and clean; whether anything was dirty."""
        self.log.roll()
        self.replicate()
        return self.cleaner.clean_filthiest_log()


def shown(log: Log) -> list[Shown]:
    """The records of the log."""
    return [each for batch in log.batches() for each in _shown(batch)]


def _shown(batch: RecordBatch) -> list[Shown]:
    if batch.is_control_batch:
        kinds = ["commit" if deserialize(batch).is_commit else "abort"] if batch.records else []
        return [(batch.base_offset, kind) for kind in kinds]
    return [(batch.base_offset + record.offset_delta, _text(record)) for record in batch.records]


def _text(record: Record) -> str:
    key = (record.key or b"").decode()
    return f"{key} deleted" if record.value is None else f"{key}={record.value.decode()}"


def spans(log: Log) -> list[tuple[int, int, int]]:
    """Of each batch its first and its last offset, and how many records it has."""
    return [(b.base_offset, b.last_offset, len(b.records)) for b in log.batches()]
