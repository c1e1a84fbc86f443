"""The log of one replica: append, truncate, read, high watermark, log start offset, epochs.

Source: UnifiedLog and LocalLog. Batches carry leader epochs, which the epoch cache indexes; a log
in an old message format (before magic 2) has no epoch cache (KAFKA-7897, KAFKA-7601).
"""

from __future__ import annotations

from bisect import bisect_right

from .checkpoint import LeaderEpochCheckpointFile
from .clock import Clock
from .concurrency import Concurrency
from .disk import Disk, parent
from .errors import (
    IllegalArgumentException,
    InvalidRecordException,
    OffsetOutOfRangeException,
)
from .leader_epoch_file_cache import LeaderEpochFileCache
from .log_segment import CLEANED_SUFFIX, SWAP_SUFFIX, LogSegment, delete_segment_files
from .log_types import (
    FetchDataInfo,
    FetchIsolation,
    LogConfig,
    OffsetsOutOfOrderException,
    UnexpectedAppendOffsetException,
)
from .producer_state.producer_append_info import AppendOrigin
from .producer_state.producer_state_manager import ProducerStateManager
from .producer_state.transactions import SENTINEL, AbortedTxn, VerificationGuard
from .records import MAGIC_VALUE_V2, NO_PRODUCER, MemoryRecords, RecordBatch, in_format
from .retention import RULES, RetainedSegments, RetentionRule
from .scheduler import Scheduler
from .types import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
    FileTimestampAndOffset,
    LogAppendInfo,
    LogOffsetMetadata,
    OffsetAndEpoch,
    TopicPartition,
)

_MAX_OFFSET_DELTA = 2**31 - 1


class Log:
    """A replica's log in one directory; made by `impl.log_loader.load_log`.

    Every method may be called from several threads: one lock guards all changes.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        segments: list[LogSegment],
        log_start_offset: int,
        recovery_point: int,
        leader_epoch_cache: LeaderEpochFileCache | None,
        producer_state_manager: ProducerStateManager,
        config: LogConfig,
        disk: Disk,
        scheduler: Scheduler,
        concurrency: Concurrency,
        clock: Clock,
    ) -> None:
        self.topic_partition = topic_partition
        self.directory = directory
        self.config = config
        self.topic_id: str | None = None
        self.leader_epoch_cache = leader_epoch_cache
        self.producer_state_manager = producer_state_manager
        self._disk = disk
        self._scheduler = scheduler
        self._concurrency = concurrency
        self._clock = clock
        self._lock = concurrency.lock(f"log-{directory}")
        self._segments = segments
        self._closed = False
        self._log_start_offset = log_start_offset
        self._recovery_point = recovery_point
        self._log_end_offset = segments[-1].next_offset
        self._high_watermark = segments[0].offset_metadata(log_start_offset)

    @property
    def log_start_offset(self) -> int:
        """The first offset that clients may read."""
        return self._log_start_offset

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self._log_end_offset

    @property
    def high_watermark(self) -> int:
        """The first offset not known to be committed."""
        return self._high_watermark.message_offset

    @property
    def high_watermark_metadata(self) -> LogOffsetMetadata:
        """The high watermark, and where it lies."""
        return self._high_watermark

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest transaction begins that is undecided or whose end is not replicated.

        What is deleted of it does not count.
        """
        first = self.producer_state_manager.first_unstable_offset
        return None if first is None else max(first, self._log_start_offset)

    @property
    def last_stable_offset(self) -> int:
        """Up to where consumers with isolation.level=read_committed read.

        The high watermark is read once (KAFKA-9807).
        """
        first, watermark = self.first_unstable_offset, self.high_watermark
        return first if first is not None and first < watermark else watermark

    @property
    def all_aborted_txns(self) -> tuple[AbortedTxn, ...]:
        """The abort index, in the order of the markers."""
        with self._lock:
            return tuple(a for s in self._segments for a in s.txn_index.all_aborted_txns)

    @property
    def recovery_point(self) -> int:
        """The first offset not known to be flushed."""
        return self._recovery_point

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self._segments)

    @property
    def base_offset(self) -> int:
        """The first segment's base offset."""
        return self._segments[0].base_offset

    @property
    def active_base_offset(self) -> int:
        """The base offset of the segment that is appended to."""
        return self._segments[-1].base_offset

    @property
    def number_of_segments(self) -> int:
        """How many segments there are; never zero."""
        return len(self._segments)

    def batches(self) -> list[RecordBatch]:
        """All batches, oldest first."""
        with self._lock:
            return [batch for segment in self._segments for batch in segment.batches]

    def append_as_leader(
        self,
        records: MemoryRecords,
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        *,
        verification_guard: VerificationGuard = SENTINEL,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Give the records offsets from the log end on, stamp `leader_epoch`, append.

        A producer's batch that is there already is not appended again: its offsets are answered.
        The first batch of a transaction needs the guard of `maybe_start_transaction_verification`;
        `transaction_version` is that of a marker. Nothing is appended if it raises
        `CorruptRecordException` for a wrong CRC, `InvalidRecordException` for a batch that no
        client may send, `InvalidTxnStateException` without a guard, or what
        `ProducerAppendInfo.append` raises.
        """
        with self._lock:
            stamped = []
            offset = self._log_end_offset
            for batch in records.batches():
                batch.ensure_valid()
                if origin is AppendOrigin.CLIENT:
                    _ensure_of_client(batch)
                for converted in in_format(batch, self.config.message_format):
                    stamped.append(converted.with_offset_and_epoch(offset, leader_epoch))
                    offset = stamped[-1].next_offset
            return self._append(tuple(stamped), origin, verification_guard, transaction_version)

    def maybe_start_transaction_verification(
        self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool
    ) -> VerificationGuard:
        """The guard with which to append once the coordinator has verified the partition.

        The sentinel if there is nothing to verify. Raises `InvalidProducerEpochException`.
        """
        with self._lock:
            return self.producer_state_manager.maybe_start_transaction_verification(
                producer_id, sequence, epoch, supports_epoch_bump
            )

    def append_as_follower(self, records: MemoryRecords) -> LogAppendInfo:
        """Append as the leader stamped them.

        Raises `CorruptRecordException` for a wrong CRC, `OffsetsOutOfOrderException` if the
        offsets do not rise, `UnexpectedAppendOffsetException` if they begin below the log end.
        """
        with self._lock:
            batches = records.batches()
            previous = -1
            for batch in batches:
                batch.ensure_valid()
                if batch.base_offset <= previous:
                    raise OffsetsOutOfOrderException(f"{batch} does not follow offset {previous}")
                previous = batch.last_offset
            if batches and batches[0].base_offset < self._log_end_offset:
                raise UnexpectedAppendOffsetException(
                    batches[0].base_offset, previous, self._log_end_offset
                )
            return self._append(batches, AppendOrigin.REPLICATION)

    def _append(
        self,
        batches: tuple[RecordBatch, ...],
        origin: AppendOrigin,
        guard: VerificationGuard = SENTINEL,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        if not batches:
            return LogAppendInfo(-1, -1, None, 0, self._log_start_offset)
        for batch in batches:
            self._assign_epoch_of(batch)
        size = sum(batch.size_in_bytes for batch in batches)
        last = batches[-1]
        segment = self._maybe_roll(size, batches[0].base_offset, last.last_offset)
        duplicate = self._duplicate_of(batches) if origin is AppendOrigin.CLIENT else None
        if duplicate is not None:
            return LogAppendInfo(*duplicate, self.latest_epoch, 0, self._log_start_offset)
        if origin is not AppendOrigin.REPLICATION:
            for batch in batches:
                self.producer_state_manager.ensure_verified(batch, guard)
        producers = self.producer_state_manager.prepare(batches, origin, transaction_version)
        segment.append(batches)
        self._log_end_offset = last.next_offset
        for aborted in self.producer_state_manager.update(producers, last.next_offset):
            segment.txn_index.append(aborted)
        return LogAppendInfo(
            first_offset=batches[0].base_offset,
            last_offset=last.last_offset,
            last_leader_epoch=last.partition_leader_epoch,
            valid_bytes=size,
            log_start_offset=self._log_start_offset,
            max_timestamp=max(batch.max_timestamp for batch in batches),
            batch_count=len(batches),
        )

    def _duplicate_of(self, batches: tuple[RecordBatch, ...]) -> tuple[int, int] | None:
        """The offsets of the first batch that is there already: a produce has one of each."""
        known = map(self.producer_state_manager.find_duplicate, batches)
        return next((offsets for offsets in known if offsets is not None), None)

    def _assign_epoch_of(self, batch: RecordBatch) -> None:
        cache = self.leader_epoch_cache
        if cache is None:
            return
        if batch.magic >= MAGIC_VALUE_V2:
            if batch.partition_leader_epoch >= 0:
                cache.assign(batch.partition_leader_epoch, batch.base_offset)
        elif not cache.is_empty():
            # KAFKA-7601: after a downgrade of the message format the cached epochs mislead.
            cache.clear_and_flush()

    def _maybe_roll(self, size: int, first_offset: int, last_offset: int) -> LogSegment:
        active = self._segments[-1]
        full = active.size > 0 and active.size + size > self.config.segment_bytes
        if full or last_offset - active.base_offset > _MAX_OFFSET_DELTA:
            return self.roll(first_offset)
        return active

    def roll(self, expected_next_offset: int | None = None) -> LogSegment:
        """Begin a new segment; the one before is flushed in the background."""
        with self._lock:
            base = max(expected_next_offset or 0, self._log_end_offset)
            if base == self._segments[-1].base_offset:
                return self._segments[-1]
            segment = LogSegment(self._disk, self.directory, base)
            self._segments.append(segment)
            self.producer_state_manager.update((), base)
            self.producer_state_manager.take_snapshot()
            self._scheduler.schedule_once("flush-log", lambda: self.flush(base))
            return segment

    def truncate_to(self, target_offset: int) -> bool:
        """Remove all from `target_offset` on (whole batches). True iff there was something.

        Raises `IllegalArgumentException` for a negative offset.
        """
        if target_offset < 0:
            raise IllegalArgumentException(f"cannot truncate to negative offset {target_offset}")
        with self._lock:
            if target_offset >= self._log_end_offset:
                # KAFKA-10706: an epoch that has not written anything must go all the same.
                if self.leader_epoch_cache is not None:
                    self.leader_epoch_cache.truncate_from_end(self._log_end_offset)
                return False
            if self._segments[0].base_offset > target_offset:
                self.truncate_fully_and_start_at(target_offset)
                return True
            self._truncate_segments(target_offset)
            self._log_end_offset = target_offset
            if self.leader_epoch_cache is not None:
                self.leader_epoch_cache.truncate_from_end(target_offset)
            self._log_start_offset = min(target_offset, self._log_start_offset)
            self._recovery_point = min(target_offset, self._recovery_point)
            self.producer_state_manager.rebuild(
                self.batches(), self._log_start_offset, target_offset
            )
            if self.high_watermark > self._log_end_offset:
                self.update_high_watermark(self._log_end_offset)
            return True

    def _truncate_segments(self, target_offset: int) -> None:
        kept = self._segment_index(target_offset) + 1
        delete_segment_files(self._segments[kept:], self._scheduler)
        del self._segments[kept:]
        self._segments[-1].truncate_to(target_offset)

    # ---- what the cleaner needs --------------------------------------------------------------

    def log_segments(self, from_offset: int, to_offset: int) -> list[LogSegment]:
        """The segments from the one that holds `from_offset` to the last that begins below
        `to_offset`."""
        with self._lock:
            if from_offset >= to_offset:
                return []
            following = self._segments[self._segment_index(from_offset) :]
            return [segment for segment in following if segment.base_offset < to_offset]

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        """The aborted transactions that concern the offsets [start, upper bound)."""
        with self._lock:
            aborted: list[AbortedTxn] = []
            for segment in self._segments[self._segment_index(start_offset) :]:
                entries, is_complete = segment.txn_index.collect_aborted_txns(
                    start_offset, upper_bound_offset
                )
                aborted += entries
                if is_complete:
                    break
            return aborted

    def last_records_of_active_producers(self) -> dict[int, tuple[int | None, int]]:
        """By producer id, the offset of its last record (None: only a marker), and its epoch."""
        with self._lock:
            return {
                producer_id: (entry.last_data_offset, entry.producer_epoch)
                for producer_id, entry in self.producer_state_manager.active_producers.items()
            }

    def create_new_cleaned_segment(self, base_offset: int) -> LogSegment:
        """An empty segment that takes the place of others later; one of a broken pass goes."""
        segment = LogSegment(self._disk, self.directory, base_offset, CLEANED_SUFFIX)
        segment.delete()
        return LogSegment(self._disk, self.directory, base_offset, CLEANED_SUFFIX)

    def replace_segments(self, new: LogSegment, old: list[LogSegment]) -> None:
        """A cleaned segment takes the place of those it was made of; a crash in between leaves a
        whole log (LocalLog.replaceSegments)."""
        with self._lock:
            new.change_file_suffixes(CLEANED_SUFFIX, SWAP_SUFFIX)
            self._disk.sync_directory(self.directory)
            kept = [segment for segment in self._segments if segment not in old]
            delete_segment_files(old, self._scheduler)
            self._segments = sorted([new, *kept], key=_base_offset)
            new.change_file_suffixes(SWAP_SUFFIX, "")
            self._disk.sync_directory(self.directory)

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Remove everything; the next record gets `new_offset`."""
        with self._lock:
            # Two tasks: LocalLog makes the new segment between them, and is never without one.
            delete_segment_files(self._segments[:-1], self._scheduler)
            delete_segment_files(self._segments[-1:], self._scheduler)
            self._segments = [LogSegment(self._disk, self.directory, new_offset)]
            if self.leader_epoch_cache is not None:
                self.leader_epoch_cache.clear_and_flush()
            self._log_end_offset = new_offset
            self._log_start_offset = new_offset if log_start_offset is None else log_start_offset
            self._recovery_point = min(new_offset, self._recovery_point)
            self.producer_state_manager.truncate_fully_and_start_at(new_offset)
            # KAFKA-9491: the high watermark must not stay below the new log start.
            self.update_high_watermark(new_offset)

    def update_high_watermark(self, high_watermark: int) -> int:
        """Set the high watermark, kept within [log start, log end]; returns what it is now."""
        with self._lock:
            bounded = max(high_watermark, self._log_start_offset)
            bounded = min(bounded, self._log_end_offset)
            self._set_high_watermark(self._offset_metadata(bounded))
            return bounded

    def _set_high_watermark(self, new: LogOffsetMetadata) -> None:
        self._high_watermark = new
        self.producer_state_manager.on_high_watermark_updated(new.message_offset)

    def maybe_update_high_watermark(self, high_watermark: int) -> int | None:
        """A follower's rule: as told, also downwards; the new value if it changed."""
        with self._lock:
            old = self.high_watermark
            new = self.update_high_watermark(high_watermark)
            return new if new != old else None

    def maybe_increment_high_watermark(self, new: LogOffsetMetadata) -> LogOffsetMetadata | None:
        """A leader's rule: never downwards; the old value if it changed.

        Raises `IllegalArgumentException` above the log end offset.
        """
        with self._lock:
            if new.message_offset > self._log_end_offset:
                raise IllegalArgumentException(
                    f"high watermark {new.message_offset} above log end {self._log_end_offset}"
                )
            old = self._high_watermark
            if old.message_offset < new.message_offset or (
                old.message_offset == new.message_offset
                and old.segment_base_offset < new.segment_base_offset
            ):
                self._set_high_watermark(new)
                return old
            return None

    def maybe_increment_log_start_offset(self, new_log_start_offset: int) -> bool:
        """Move the log start forward; True iff it moved.

        Raises `OffsetOutOfRangeException` above the high watermark.
        """
        with self._lock:
            if new_log_start_offset > self.high_watermark:
                raise OffsetOutOfRangeException(
                    f"log start {new_log_start_offset} above high watermark {self.high_watermark}"
                )
            if new_log_start_offset <= self._log_start_offset:
                return False
            self._log_start_offset = new_log_start_offset
            if self.leader_epoch_cache is not None:
                self.leader_epoch_cache.truncate_from_start(new_log_start_offset)
            self.producer_state_manager.on_log_start_offset_incremented(new_log_start_offset)
            return True

    def delete_old_segments(self) -> int:
        """Delete segments below the log start, then beyond retention.bytes, then beyond
        retention.ms; return how many.

        Only committed segments go; the active one is replaced by an empty one if it goes too.
        """
        with self._lock:
            return sum(map(self._delete_while, RULES))

    def _delete_while(self, breached: RetentionRule) -> int:
        retained = RetainedSegments(
            self._segments,
            self._log_start_offset,
            self.high_watermark,
            self._log_end_offset,
            self.config,
            self._clock.milliseconds(),
        )
        count = retained.number_to_delete(breached)
        if count == 0:
            return 0
        if count == len(self._segments):
            self.roll()
        self.maybe_increment_log_start_offset(
            max(self._segments[count].base_offset, self._log_start_offset)
        )
        delete_segment_files(self._segments[:count], self._scheduler)
        del self._segments[:count]
        self.producer_state_manager.remove_snapshots_before(self.base_offset)
        return count

    def read(
        self,
        start_offset: int,
        max_length: int,
        isolation: FetchIsolation = FetchIsolation.LOG_END,
        min_one_message: bool = True,
    ) -> FetchDataInfo:
        """Batches of one segment from `start_offset` on, at most `max_length` bytes.

        Raises `OffsetOutOfRangeException` outside [log start, log end].
        """
        with self._lock:
            if not self._log_start_offset <= start_offset <= self._log_end_offset:
                raise OffsetOutOfRangeException(
                    f"offset {start_offset} of {self.topic_partition} is outside"
                    f" [{self._log_start_offset}, {self._log_end_offset}]"
                )
            max_offset = self._max_offset(isolation)
            with_aborted = isolation is FetchIsolation.TXN_COMMITTED
            if start_offset >= max_offset:
                metadata = self._offset_metadata(start_offset)
                return FetchDataInfo(metadata, MemoryRecords.EMPTY, () if with_aborted else None)
            index = self._segment_index(start_offset)
            metadata = self._segments[index].offset_metadata(start_offset)
            records = MemoryRecords.EMPTY
            # A truncation inside a batch leaves a gap at the end of a segment: go on to the next.
            while records is MemoryRecords.EMPTY and index < len(self._segments):
                segment = self._segments[index]
                records = segment.read(start_offset, max_length, max_offset, min_one_message)
                if records is MemoryRecords.EMPTY and segment.next_offset > start_offset:
                    break
                index += 1
            aborted = self._aborted_txns(start_offset, records) if with_aborted else None
            return FetchDataInfo(metadata, records, aborted)

    def _max_offset(self, isolation: FetchIsolation) -> int:
        if isolation is FetchIsolation.LOG_END:
            return self._log_end_offset
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.high_watermark
        return self.last_stable_offset

    def _aborted_txns(self, start_offset: int, records: MemoryRecords) -> tuple[AbortedTxn, ...]:
        """The aborted transactions that records of the read may belong to."""
        batches = records.batches()
        upper_bound = batches[-1].next_offset if batches else start_offset
        return tuple(self.collect_aborted_transactions(start_offset, upper_bound))

    def fetch_offset_by_timestamp(self, timestamp: int) -> FileTimestampAndOffset | None:
        """The first record not older than `timestamp` (ms); log start or end for -2 and -1, and for
        -3 the first of the youngest records."""
        with self._lock:
            start = self._log_start_offset
            if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
                return FileTimestampAndOffset(NO_TIMESTAMP, start, self._epoch_at(start))
            if timestamp == LATEST_TIMESTAMP:
                return FileTimestampAndOffset(NO_TIMESTAMP, self._log_end_offset, self.latest_epoch)
            remaining = self._segments[self._segment_index(start) :]
            if timestamp == MAX_TIMESTAMP:
                timestamp = max(segment.max_timestamp_from(start) for segment in remaining)
                if timestamp == NO_TIMESTAMP:
                    return None
            for segment in remaining:
                found = segment.find_offset_by_timestamp(timestamp, start)
                if found is not None:
                    return FileTimestampAndOffset(*found, segment.epoch_at(found[1]))
            return None

    def _epoch_at(self, offset: int) -> int | None:
        cache = self.leader_epoch_cache
        return None if cache is None else cache.epoch_for_offset(offset)

    def convert_to_offset_metadata(self, offset: int) -> LogOffsetMetadata:
        """Where `offset` lies. Raises `OffsetOutOfRangeException` outside the log."""
        with self._lock:
            if not self._segments[0].base_offset <= offset <= self._log_end_offset:
                raise OffsetOutOfRangeException(f"offset {offset} is not in {self.topic_partition}")
            return self._offset_metadata(offset)

    def _offset_metadata(self, offset: int) -> LogOffsetMetadata:
        if offset == self._log_end_offset:
            active = self._segments[-1]
            return LogOffsetMetadata(offset, active.base_offset, active.size)
        return self._segments[self._segment_index(offset)].offset_metadata(offset)

    def _segment_index(self, offset: int) -> int:
        segments = self._segments
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return max(bisect_right(segments, offset, key=_base_offset) - 1, 0)

    @property
    def latest_epoch(self) -> int | None:
        """The newest leader epoch of the log."""
        cache = self.leader_epoch_cache
        return None if cache is None else cache.latest_epoch()

    def end_offset_for_epoch(self, leader_epoch: int) -> OffsetAndEpoch | None:
        """The greatest epoch <= `leader_epoch` and its end offset, or None if that is unknown."""
        with self._lock:
            cache = self.leader_epoch_cache
            if cache is None:
                return None
            found = cache.end_offset_for(leader_epoch, self._log_end_offset)
            return found if found.offset >= 0 else None

    def maybe_assign_epoch_start_offset(self, leader_epoch: int, start_offset: int) -> None:
        """Note where an epoch begins; an old message format has no epochs (KAFKA-7897)."""
        with self._lock:
            if self.leader_epoch_cache is not None:
                self.leader_epoch_cache.assign(leader_epoch, start_offset)

    def update_config(self, config: LogConfig) -> None:
        """Change the topic's settings; changing the message format makes or drops the cache."""
        with self._lock:
            self.config = config
            if config.message_format < MAGIC_VALUE_V2:
                self.leader_epoch_cache = None
                self._disk.remove(f"{self.directory}/{LeaderEpochCheckpointFile.NAME}")
            elif self.leader_epoch_cache is None:
                self.leader_epoch_cache = open_epoch_cache(
                    self._disk, self.directory, self._scheduler, self._concurrency
                )

    def flush(self, up_to_offset: int | None = None, *, force: bool = False) -> None:
        """Make everything before the offset (default: the log end) durable.

        What lies before the recovery point is durable already, but for a truncation that was the
        last change: `force` makes that durable too, as a clean shutdown must.
        """
        with self._lock:
            end = self._log_end_offset if up_to_offset is None else up_to_offset
            if self._closed or (end <= self._recovery_point and not force):
                return
            for segment in self._segments[self._segment_index(self._recovery_point) :]:
                if segment.base_offset < end or force:
                    segment.flush()
            self._disk.sync_directory(self.directory)
            self._recovery_point = min(end, self._log_end_offset)

    def rename_directory(self, directory: str) -> None:
        """Move the log to another directory of the disk."""
        with self._lock:
            self._disk.rename(self.directory, directory)
            self._disk.sync_directory(parent(directory))
            self.directory = directory
            for segment in self._segments:
                segment.move_to(directory)
            self.producer_state_manager.move_to(directory)
            if self.leader_epoch_cache is not None:
                self.leader_epoch_cache.move_to(LeaderEpochCheckpointFile(self._disk, directory))

    def remove_expired_producers(self) -> None:
        """Forget producers that have been silent for longer than producer.id.expiration.ms."""
        with self._lock:
            self.producer_state_manager.remove_expired_producers()

    def close(self) -> None:
        """Give the files back; the producers' state is kept for the next start."""
        with self._lock:
            if not self._closed:
                self.producer_state_manager.take_snapshot()
            self._closed = True
            for segment in self._segments:
                segment.close()

    def delete(self) -> None:
        """Remove the log from the disk."""
        with self._lock:
            self.close()
            self._disk.remove(self.directory)


def open_epoch_cache(
    disk: Disk, directory: str, scheduler: Scheduler, concurrency: Concurrency
) -> LeaderEpochFileCache:
    """The epoch cache of the log in `directory`, read from its checkpoint."""
    checkpoint = LeaderEpochCheckpointFile(disk, directory)
    return LeaderEpochFileCache(checkpoint, scheduler, concurrency.lock(f"epochs-{directory}"))


def _ensure_of_client(batch: RecordBatch) -> None:
    """UnifiedLog.analyzeAndValidateRecords: numbered from 0; LogValidator.validateBatch: no marker,
    and with a sequence if it has a producer id."""
    if batch.magic < MAGIC_VALUE_V2:
        return
    if batch.base_offset != 0:
        raise InvalidRecordException(f"a client's batch begins at offset {batch.base_offset}")
    if batch.is_control_batch:
        raise InvalidRecordException("clients are not allowed to write control records")
    producer_id, _, sequence = batch.producer
    if producer_id != NO_PRODUCER.producer_id and sequence < 0:
        raise InvalidRecordException(f"a client's batch has the sequence {sequence}")


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset
