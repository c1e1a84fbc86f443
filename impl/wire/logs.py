"""The partitions' records: none at all, or batches that are written as a consumer reads them."""

from __future__ import annotations

from ..errors import Errors
from ..record_format import Record
from ..records import RecordBatch
from ..types import TopicPartition

LEADER_EPOCH = 0
EARLIEST_TIMESTAMP = -2
"""ListOffsets asks with it for the first offset (ListOffsetsRequest.EARLIEST_TIMESTAMP)."""
_FIRST_TIMESTAMP = 1_700_000_000_000
"""Of the record at offset 0, in milliseconds; each later one is a millisecond younger."""


class RecordLogs:
    """The log of every partition; all begin at offset 0.

    A fetch at the end of a log appends a batch of `batch` records and reads it, so that no log ends
    for a consumer, and none holds more than was read of it. With 0 the logs stay empty.
    """

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._ends: dict[TopicPartition, int] = {}

    @property
    def are_empty(self) -> bool:
        """Whether nothing is ever there to read."""
        return self._batch == 0

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
        if self.are_empty:
            return Errors.NONE, b""
        base = offset - offset % self._batch
        self._ends[partition] = max(end, base + self._batch)
        records = [
            Record(f"record {number}".encode(), None, _FIRST_TIMESTAMP + number)
            for number in range(base, base + self._batch)
        ]
        return Errors.NONE, RecordBatch.create(records, base, LEADER_EPOCH).to_bytes()
