"""One replica of a compacted partition, on a disk of its own, and the records that are in it."""

from __future__ import annotations

from conformance.systems.protocol import ActionRefused
from impl.checkpoint import OffsetCheckpointFile
from impl.cleaner.log_cleaner import LogCleaner
from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk
from impl.end_transaction_marker import EndTransactionMarker
from impl.group.group_loader import read_groups
from impl.group.group_offsets import OffsetAndMetadata
from impl.group.group_records import offset_commit_key, offset_commit_value
from impl.log import Log
from impl.log_manager import LogManager
from impl.log_types import LogConfig
from impl.producer_state.producer_append_info import AppendOrigin
from impl.records import NO_PRODUCER, MemoryRecords, ProducerInfo, Record, RecordBatch
from impl.scheduler import ImmediateScheduler
from impl.types import TopicPartition

DAY_MS = 86_400_000
"""delete.retention.ms and producer.id.expiration.ms, as they are by default."""
PRODUCER_ID, _PRODUCER_EPOCH = 1, 0
_GROUP = "g"
_PARTITION = TopicPartition("__consumer_offsets", 0)
_DIRECTORY = "logs"
_CONFIG = LogConfig(compact=True, delete_retention_ms=DAY_MS, min_cleanable_dirty_ratio=0.0)
_ONE_BATCH = 1
_KEYS = {number: offset_commit_key(_GROUP, TopicPartition("t", number)) for number in range(1, 10)}
NUMBERS = {key: number for number, key in _KEYS.items()}
"""Keys of committed positions, by which a coordinator knows the specification's keys."""
_VALUE = offset_commit_value(OffsetAndMetadata(0))


class CompactedReplica:
    """A broker's log of the partition, and its cleaner."""

    def __init__(self, clock: MockClock, *, retains_last_batch: bool) -> None:
        self._clock = clock
        self.logs = LogManager(
            MemoryDisk(),
            (_DIRECTORY,),
            ImmediateScheduler(),
            NoConcurrency(),
            default_config=_CONFIG,
            clock=clock,
        )
        self.log = self.logs.get_or_create_log(_PARTITION)
        self._cleaner = LogCleaner(self.logs.cleaner, clock, retains_last_batch=retains_last_batch)

    @property
    def checkpoint(self) -> int | None:
        """What the file of the cleaner says."""
        file = self.logs.checkpoint_file(_DIRECTORY, OffsetCheckpointFile.CLEANER_OFFSET)
        return file.read().get(_PARTITION)

    @property
    def last_data_offset(self) -> int | None:
        """Of the producer, if it is known."""
        entry = self.log.producer_state_manager.active_producers.get(PRODUCER_ID)
        return None if entry is None else entry.last_data_offset

    # ---- actions ---------------------------------------------------------------------------

    def append(self, key: int, *, is_deleted: bool) -> None:
        """A record of nobody's transaction."""
        self._append(RecordBatch.create((self._record(key, is_deleted=is_deleted),)))

    def append_in_transaction(self, key: int) -> None:
        """A record of the producer, whose transaction the coordinator has verified."""
        entry = self.log.producer_state_manager.active_producers.get(PRODUCER_ID)
        sequence = 0 if entry is None else entry.last_seq + 1
        producer = ProducerInfo(PRODUCER_ID, _PRODUCER_EPOCH, sequence)
        guard = self.log.maybe_start_transaction_verification(
            PRODUCER_ID, sequence, _PRODUCER_EPOCH, False
        )
        batch = RecordBatch.create(
            (self._record(key, is_deleted=False),), producer=producer, is_transactional=True
        )
        self.log.append_as_leader(MemoryRecords((batch,)), 0, verification_guard=guard)

    def append_marker(self, *, commits: bool) -> None:
        """The end of the producer's transaction."""
        marker = EndTransactionMarker(commits, 0)
        records = marker.memory_records(self._clock.milliseconds(), PRODUCER_ID, _PRODUCER_EPOCH)
        self.log.append_as_leader(records, 0, AppendOrigin.COORDINATOR)

    def _record(self, key: int, *, is_deleted: bool) -> Record:
        value = None if is_deleted else _VALUE
        return Record(value, _KEYS[key], self._clock.milliseconds())

    def _append(self, batch: RecordBatch) -> None:
        self.log.append_as_leader(MemoryRecords((batch,)), 0)

    def roll(self) -> None:
        """A new segment; refused where the active one is empty."""
        if self.log.active_base_offset == self.log.log_end_offset:
            raise ActionRefused("the active segment is empty")
        self.log.roll()

    def fetch_from(self, leader: Log) -> None:
        """The leader's next batch, and its high watermark."""
        records = leader.read(self.log.log_end_offset, _ONE_BATCH).records
        first = records.batches()[:1]
        self.log.append_as_follower(MemoryRecords(first))
        self.log.update_high_watermark(leader.high_watermark)

    def clean(self) -> None:
        """One pass; refused where nothing is dirty."""
        if not self._cleaner.clean_filthiest_log():
            raise ActionRefused("nothing is dirty")

    def load(self) -> dict[int, int]:
        """By key, the log offset of the position that a coordinator finds."""
        commits = read_groups(self.log, _ONE_BATCH).offsets.get(_GROUP, {})
        return {
            partition.partition: commit.appended_batch_offset
            for partition, commit in commits.items()
            if commit.appended_batch_offset is not None
        }


def is_of_producer(batch: RecordBatch) -> bool:
    """Whether the batch is part of a transaction, or ends one."""
    return batch.producer.producer_id != NO_PRODUCER.producer_id
