"""The control record that ends a transaction in one partition (EndTransactionMarker).

Key: version, type (0 abort, 1 commit). Value: version, coordinator epoch.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .errors import InvalidRecordException
from .records import MemoryRecords, ProducerInfo, Record, RecordBatch

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0
_NO_SEQUENCE = -1


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """COMMIT or ABORT, and the epoch of the coordinator that sent it."""

    is_commit: bool
    coordinator_epoch: int

    def memory_records(
        self, timestamp: int, producer_id: int, producer_epoch: int
    ) -> MemoryRecords:
        """The control batch (MemoryRecords.withEndTransactionMarker)."""
        key = _KEY.pack(_VERSION, self.is_commit)
        record = Record(_VALUE.pack(_VERSION, self.coordinator_epoch), key, timestamp)
        producer = ProducerInfo(producer_id, producer_epoch, _NO_SEQUENCE)
        batch = RecordBatch.create(
            (record,), producer=producer, is_transactional=True, is_control=True
        )
        return MemoryRecords((batch,))


def deserialize(batch: RecordBatch) -> EndTransactionMarker:
    """The marker of a control batch. Raises `InvalidRecordException` for anything else."""
    try:
        (record,) = batch.records
        _, kind = _KEY.unpack_from(record.key or b"")
        _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except (ValueError, struct.error):
        raise InvalidRecordException(f"{batch} is no end of a transaction") from None
    if kind not in (0, 1):
        raise InvalidRecordException(f"{batch} has a control record of type {kind}")
    return EndTransactionMarker(kind == 1, coordinator_epoch)
