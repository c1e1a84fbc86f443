"""One file of a log: its batches on disk, and decoded in memory.

Source: LogSegment. The decoded batches stand for Kafka's page cache and for its offset and time
indexes: an offset is found by binary search over the batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from .disk import Disk, File
from .records import MemoryRecords, RecordBatch, decode_batches
from .scheduler import Scheduler
from .transaction_index import TransactionIndex
from .types import NO_TIMESTAMP, LogOffsetMetadata

DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
"""Of a segment that the cleaner writes."""
SWAP_SUFFIX = ".swap"
"""Of one that is whole, and takes the place of others."""
_LAST_OFFSET = attrgetter("last_offset")


class LogSegment:
    """Batches from `base_offset` on, in the file `<20 digits>.log`."""

    __slots__ = (
        "_disk",
        "_file",
        "_positions",
        "base_offset",
        "batches",
        "path",
        "size",
        "txn_index",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: int, suffix: str = "") -> None:
        self._disk = disk
        self.base_offset = base_offset
        self.path = segment_path(directory, base_offset) + suffix
        self._file: File = disk.open(self.path)
        self.txn_index = TransactionIndex(disk, directory, base_offset, suffix)
        self.batches: list[RecordBatch] = []
        self._positions: list[int] = []
        self.size = 0

    def load(self, check_crc: bool) -> int:
        """Read the file; cut it at the first batch that is torn, disordered or (if asked) corrupt.

        Returns the bytes that were cut off.
        """
        self.batches.clear()
        self._positions.clear()
        self.size = 0
        for batch in decode_batches(self._file.read(0, self._file.size())):
            if batch.base_offset < self.next_offset or (check_crc and not batch.is_valid()):
                break
            self._remember(batch)
        cut = self._file.size() - self.size
        self._file.truncate(self.size)
        self.txn_index.load()
        self.txn_index.truncate_to(self.next_offset)
        return cut

    @property
    def next_offset(self) -> int:
        """The offset after the last record (LogSegment.readNextOffset)."""
        return self.batches[-1].last_offset + 1 if self.batches else self.base_offset

    @property
    def largest_timestamp(self) -> int:
        """The greatest timestamp of the records, in ms; `NO_TIMESTAMP` without records."""
        return max((batch.max_timestamp for batch in self.batches), default=NO_TIMESTAMP)

    def append(self, batches: tuple[RecordBatch, ...]) -> None:
        """Add whole batches at the end."""
        self._file.append(b"".join([batch.to_bytes() for batch in batches]))
        for batch in batches:
            self._remember(batch)

    def _remember(self, batch: RecordBatch) -> None:
        self.batches.append(batch)
        self._positions.append(self.size)
        self.size += batch.size_in_bytes

    def index_of(self, offset: int) -> int:
        """Index of the first batch that ends at or after `offset`."""
        return bisect_left(self.batches, offset, key=_LAST_OFFSET)

    def position_of(self, offset: int) -> int:
        """Bytes before the batch that holds `offset`."""
        index = self.index_of(offset)
        return self._positions[index] if index < len(self._positions) else self.size

    def offset_metadata(self, offset: int) -> LogOffsetMetadata:
        """Where `offset` lies."""
        return LogOffsetMetadata(offset, self.base_offset, self.position_of(offset))

    def read(
        self, start_offset: int, max_bytes: int, max_offset: int, min_one_message: bool
    ) -> MemoryRecords:
        """Whole batches from the one that holds `start_offset`, all below `max_offset`.

        At most `max_bytes`, but for the first batch if `min_one_message`.
        """
        batches = self.batches
        first = end = self.index_of(start_offset)
        size = 0
        while end < len(batches) and batches[end].last_offset < max_offset:
            size += batches[end].size_in_bytes
            if size > max_bytes and not (min_one_message and end == first):
                break
            end += 1
        return MemoryRecords(batches[first:end]) if end > first else MemoryRecords.EMPTY

    def truncate_to(self, offset: int) -> int:
        """Remove the batch that holds `offset` and all after it; return the bytes removed."""
        index = self.index_of(offset)
        if index == len(self.batches):
            return 0
        before = self.size
        self.size = self._positions[index]
        del self.batches[index:], self._positions[index:]
        self._file.truncate(self.size)
        self.txn_index.truncate_to(self.next_offset)
        return before - self.size

    def find_offset_by_timestamp(self, timestamp: int, start_offset: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record from `start_offset` on that is not older."""
        for batch in self.batches[self.index_of(start_offset) :]:
            if batch.max_timestamp < timestamp:
                continue
            for record in batch.records:
                offset = batch.base_offset + record.offset_delta
                if record.timestamp >= timestamp and offset >= start_offset:
                    return record.timestamp, offset
        return None

    def max_timestamp_from(self, start_offset: int) -> int:
        """Of the youngest record from `start_offset` on; NO_TIMESTAMP if there is none."""
        return max(
            (
                record.timestamp
                for batch in self.batches[self.index_of(start_offset) :]
                for record in batch.records
                if batch.base_offset + record.offset_delta >= start_offset
            ),
            default=NO_TIMESTAMP,
        )

    def epoch_at(self, offset: int) -> int | None:
        """The leader epoch of the batch that holds `offset`."""
        index = self.index_of(offset)
        epoch = self.batches[index].partition_leader_epoch if index < len(self.batches) else -1
        return epoch if epoch >= 0 else None

    def flush(self) -> None:
        """Make the batches durable."""
        self._file.flush()
        self.txn_index.flush()

    def move_to(self, directory: str) -> None:
        """Follow the renaming of the log's directory."""
        self.path = segment_path(directory, self.base_offset)
        self.txn_index.move_to(directory)

    def close(self) -> None:
        """Give the files back."""
        self._file.close()
        self.txn_index.close()

    def change_file_suffixes(self, old_suffix: str, new_suffix: str) -> None:
        """Rename the files, whose names end in the old suffix."""
        path = self.path.removesuffix(old_suffix) + new_suffix
        self._disk.rename(self.path, path)
        self.path = path
        self.txn_index.change_file_suffix(old_suffix, new_suffix)

    def delete(self) -> None:
        """Remove the files."""
        self._file.close()
        self._disk.remove(self.path)
        self.txn_index.delete()


def segment_path(directory: str, base_offset: int) -> str:
    """The path of a segment's file."""
    return f"{directory}/{base_offset:020d}.log"


def delete_segment_files(segments: Sequence[LogSegment], scheduler: Scheduler) -> None:
    """Rename the files at once, and remove them later: somebody may still read them
    (LocalLog.deleteSegmentFiles)."""
    if not segments:
        return
    for segment in segments:
        segment.change_file_suffixes("", DELETED_SUFFIX)

    def delete() -> None:
        for segment in segments:
            segment.delete()

    scheduler.schedule_once("delete-file", delete)
