"""One pass over a compacted log: which records stay, and which batches stay without records.

Source: Cleaner (doClean, buildOffsetMap, cleanSegments, cleanInto) and MemoryRecords.filterTo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..clock import Clock
from ..log import Log
from ..log_segment import LogSegment
from ..records import Record, RecordBatch
from ..types import TopicPartition
from .cleaned_transaction_metadata import CleanedTransactionMetadata
from .log_to_clean import LogToClean


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """By key, the offset of its last record in the dirty part."""

    offsets: dict[bytes, int]
    latest_offset: int

    def is_latest(self, key: bytes, offset: int) -> bool:
        """Whether no later record of the key is known."""
        return offset >= self.offsets.get(key, -1)


@dataclass(frozen=True, slots=True)
class _Pass:
    """What decides about each batch."""

    offset_map: OffsetMap
    transactions: CleanedTransactionMetadata
    last_records_of_active_producers: dict[int, tuple[int | None, int]]
    high_watermark: int
    now_ms: int
    delete_retention_ms: int


class Cleaner:
    """Cleans logs; `check_done` raises where a pass must end early.

    `retains_last_batch`: the batch that ends at the high watermark stays, as it does from 3.9.2 on
    (KAFKA-17076, KAFKA-20452).
    """

    def __init__(
        self,
        clock: Clock,
        check_done: Callable[[TopicPartition], None],
        *,
        retains_last_batch: bool = True,
    ) -> None:
        self._clock = clock
        self._check_done = check_done
        self._retains_last_batch = retains_last_batch

    def clean(self, cleanable: LogToClean) -> int:
        """Clean, and give the offset up to which the log is clean now."""
        log = cleanable.log
        offset_map = self.build_offset_map(cleanable)
        end_offset = offset_map.latest_offset + 1
        for group in group_segments_by_size(
            log.log_segments(log.base_offset, end_offset), log.config.segment_bytes
        ):
            self.clean_segments(log, group, offset_map)
        return end_offset

    def build_offset_map(self, cleanable: LogToClean) -> OffsetMap:
        """The last records of the keys in the dirty part; aborted records do not count."""
        log, start = cleanable.log, cleanable.first_dirty_offset
        end = cleanable.first_uncleanable_offset
        transactions = CleanedTransactionMetadata()
        transactions.add_aborted_transactions(log.collect_aborted_transactions(start, end))
        offsets: dict[bytes, int] = {}
        for segment in log.log_segments(start, end):
            self._check_done(log.topic_partition)
            for batch in segment.batches:
                if batch.is_control_batch:
                    transactions.on_control_batch_read(batch)
                elif not transactions.on_batch_read(batch):
                    offsets |= {
                        record.key: batch.base_offset + record.offset_delta
                        for record in batch.records
                        if record.key is not None
                        and batch.base_offset + record.offset_delta >= start
                    }
        return OffsetMap(offsets, end - 1)

    def clean_segments(self, log: Log, segments: list[LogSegment], offset_map: OffsetMap) -> None:
        """Copy what stays into one segment, which takes the place of the others."""
        cleaned = log.create_new_cleaned_segment(segments[0].base_offset)
        transactions = CleanedTransactionMetadata(cleaned.txn_index)
        end = segments[-1].next_offset
        transactions.add_aborted_transactions(
            log.collect_aborted_transactions(segments[0].base_offset, end)
        )
        this_pass = _Pass(
            offset_map,
            transactions,
            log.last_records_of_active_producers(),
            log.high_watermark,
            self._clock.milliseconds(),
            log.config.delete_retention_ms,
        )
        try:
            for segment in segments:
                self._check_done(log.topic_partition)
                self.clean_into(segment, cleaned, this_pass)
        except LogCleaningAbortedException:
            cleaned.delete()
            raise
        cleaned.flush()
        log.replace_segments(cleaned, segments)

    def clean_into(self, source: LogSegment, dest: LogSegment, this_pass: _Pass) -> None:
        """Append what stays of a segment to the cleaned one."""
        filtered = [self._filter_to(batch, this_pass) for batch in source.batches]
        dest.append(tuple(batch for batch in filtered if batch is not None))

    def _filter_to(self, batch: RecordBatch, this_pass: _Pass) -> RecordBatch | None:
        """The batch as it stays; None: it goes."""
        may_discard = self._should_discard_batch(batch, this_pass.transactions)
        discards = may_discard and (not batch.is_control_batch or _is_due(batch, this_pass.now_ms))
        kept = tuple(
            record
            for record in batch.records
            if not discards
            and (batch.is_control_batch or self._should_retain_record(batch, record, this_pass))
        )
        if kept:
            return _retained(batch, kept, may_discard and batch.is_control_batch, this_pass)
        return batch.cleaned(()) if self._is_retained_empty(batch, this_pass) else None

    @staticmethod
    def _should_discard_batch(batch: RecordBatch, transactions: CleanedTransactionMetadata) -> bool:
        if batch.is_control_batch:
            return transactions.on_control_batch_read(batch)
        return transactions.on_batch_read(batch)

    @staticmethod
    def _should_retain_record(batch: RecordBatch, record: Record, this_pass: _Pass) -> bool:
        offset = batch.base_offset + record.offset_delta
        if offset > this_pass.offset_map.latest_offset:
            return True
        if record.key is None or not this_pass.offset_map.is_latest(record.key, offset):
            return False
        return record.value is not None or not _is_due(batch, this_pass.now_ms)

    def _is_retained_empty(self, batch: RecordBatch, this_pass: _Pass) -> bool:
        """The last sequence of a producer stays known, and the log end reachable."""
        last = this_pass.last_records_of_active_producers.get(batch.producer.producer_id)
        if last is not None:
            offset, epoch = last
            if offset is None and batch.is_control_batch and batch.producer.epoch == epoch:
                return True
            if offset == batch.last_offset:
                return True
        return self._retains_last_batch and batch.next_offset == this_pass.high_watermark


def _is_due(batch: RecordBatch, now_ms: int) -> bool:
    horizon = batch.delete_horizon_ms
    return horizon is not None and horizon <= now_ms


def _retained(
    batch: RecordBatch, kept: tuple[Record, ...], is_marker_of_nothing: bool, this_pass: _Pass
) -> RecordBatch:
    horizon = batch.delete_horizon_ms
    has_tombstone = any(record.value is None for record in kept)
    if horizon is None and (has_tombstone or is_marker_of_nothing):
        return batch.cleaned(kept, this_pass.now_ms + this_pass.delete_retention_ms)
    return batch if len(kept) == len(batch.records) else batch.cleaned(kept, horizon)


def group_segments_by_size(segments: list[LogSegment], max_size: int) -> list[list[LogSegment]]:
    """Neighbours that fit into one segment together."""
    groups: list[list[LogSegment]] = []
    for segment in segments:
        if groups and sum(each.size for each in groups[-1]) + segment.size <= max_size:
            groups[-1].append(segment)
        else:
            groups.append([segment])
    return groups


class LogCleaningAbortedException(Exception):
    """A pass must end: the log is truncated, moved or deleted (LogCleaningAbortedException)."""
