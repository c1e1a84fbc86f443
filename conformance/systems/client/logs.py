"""The partitions' records, in batches that are written as a consumer reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import BytesIO

from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.schema.errors import ErrorCode
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

LEADER_EPOCH = 0
EARLIEST_TIMESTAMP = -2
"""ListOffsets asks with it for the first offset (ListOffsetsRequest.EARLIEST_TIMESTAMP)."""
_FIRST_TIME = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
"""Of the record at offset 0; each later one is a millisecond younger."""

Partition = tuple[str, int]
"""A topic's name and the partition's number."""


class RecordLogs:
    """The log of every partition; all begin at offset 0.

    A fetch at the end of a log appends a batch of `batch` records and reads it, so that no log ends
    for a consumer, and none holds more than was read of it.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._ends: dict[Partition, int] = {}

    def end(self, partition: Partition) -> int:
        """The log end offset: the offset behind the last record that was read."""
        return self._ends.get(partition, 0)

    def offset_for(self, partition: Partition, timestamp: int) -> int:
        """What ListOffsets answers: the first offset, or the end for every other time."""
        return 0 if timestamp == EARLIEST_TIMESTAMP else self.end(partition)

    def read(self, partition: Partition, offset: int) -> tuple[ErrorCode, bytes]:
        """The batch with this offset, in Kafka's layout; OFFSET_OUT_OF_RANGE outside the log."""
        end = self.end(partition)
        if not 0 <= offset <= end:
            return ErrorCode.offset_out_of_range, b""
        base = offset - offset % self._batch
        self._ends[partition] = max(end, base + self._batch)
        return ErrorCode.none, _batch_bytes(base, self._batch)


def _batch_bytes(base: int, count: int) -> bytes:
    buffer = BytesIO()
    records = tuple(_record(base + number) for number in range(count))
    write_new_batch(
        buffer,
        NewRecordBatch(
            producer_id=i64(-1),
            producer_epoch=i16(-1),
            partition_leader_epoch=i32(LEADER_EPOCH),
            base_sequence=i32(-1),
            records=records,
            attributes=i16(0),
        ),
    )
    return buffer.getvalue()


def _record(offset: int) -> Record:
    return Record(
        attributes=i8(0),
        timestamp=TZAwareMicros.parse(_FIRST_TIME + timedelta(milliseconds=offset)),
        offset=i64(offset),
        key=None,
        value=f"record {offset}".encode(),
        headers=(),
    )
