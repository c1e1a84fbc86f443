"""The partitions' records, in batches that are written as a consumer reads them."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from conformance.kafka.batches import batch_bytes

LEADER_EPOCH = 0
EARLIEST_TIMESTAMP = -2
"""ListOffsets asks with it for the first offset (ListOffsetsRequest.EARLIEST_TIMESTAMP)."""
_FIRST_TIMESTAMP = 1_700_000_000_000
"""Of the record at offset 0, in milliseconds; each later one is a millisecond younger."""

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
        values = [f"record {number}".encode() for number in range(base, base + self._batch)]
        return ErrorCode.none, batch_bytes(
            values,
            first_ms=_FIRST_TIMESTAMP + base,
            base_offset=base,
            leader_epoch=LEADER_EPOCH,
        )
