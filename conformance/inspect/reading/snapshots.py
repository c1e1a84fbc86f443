"""Producer snapshots: which producers a partition knew at an offset.

Source: org.apache.kafka.storage.internals.log.ProducerStateManager (readSnapshot), KIP-98.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from crc32c import crc32c

from conformance.errors import DataError

_ENTRY = np.dtype(
    [
        ("producer_id", ">i8"),
        ("epoch", ">i2"),
        ("last_sequence", ">i4"),
        ("last_offset", ">i8"),
        ("offset_delta", ">i4"),
        ("timestamp", ">i8"),
        ("coordinator_epoch", ">i4"),
        ("current_txn_first_offset", ">i8"),
    ]
)
_CRC_AT, _ENTRIES_AT = 2, 10


def producers(data: bytes) -> list[dict[str, Any]]:
    """The entries, by the columns of the table. Raises DataError where Kafka would."""
    if len(data) < _ENTRIES_AT:
        raise DataError(f"{len(data)} bytes are too few")
    version = int.from_bytes(data[:_CRC_AT], "big", signed=True)
    if version != 1:
        raise DataError(f"version {version} is not known")
    stored = int.from_bytes(data[_CRC_AT : _CRC_AT + 4], "big")
    if stored != crc32c(data[_CRC_AT + 4 :]):
        raise DataError(f"stored CRC {stored} is not that of the bytes")
    count = int.from_bytes(data[_CRC_AT + 4 : _ENTRIES_AT], "big", signed=True)
    if count < 0 or _ENTRIES_AT + count * _ENTRY.itemsize != len(data):
        raise DataError(f"{count} entries do not fill {len(data)} bytes")
    entries = np.frombuffer(data, _ENTRY, count, _ENTRIES_AT)
    return [dict(zip(_ENTRY.names or (), entry, strict=True)) for entry in entries.tolist()]
