"""Producer snapshots: the file `<20 digits>.snapshot` of a log's directory, version 1.

Source: ProducerStateManager.writeSnapshot, readSnapshot. Of each producer only its last batch is
kept.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ..disk import Disk
from ..errors import CorruptRecordException
from ..record_format import crc32c
from .producer_state_entry import BatchMetadata, ProducerStateEntry

SUFFIX = ".snapshot"
_VERSION = 1
_HEADER = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_TRANSACTION = -1
_NO_BATCH = BatchMetadata(-1, -1, 0, -1)


def snapshot_path(directory: str, offset: int) -> str:
    """The path of the snapshot at an offset."""
    return f"{directory}/{offset:020d}{SUFFIX}"


def snapshot_offsets(disk: Disk, directory: str) -> list[int]:
    """The offsets of the directory's snapshots, in order."""
    names = [name for name in disk.names(directory) if name.endswith(SUFFIX)]
    return sorted(int(name.removesuffix(SUFFIX)) for name in names)


def write_snapshot(disk: Disk, path: str, entries: Iterable[ProducerStateEntry]) -> None:
    """Write and flush the file."""
    packed = [_pack(entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    file = disk.open(path)
    file.truncate(0)
    file.append(_HEADER.pack(_VERSION, crc32c(body)) + body)
    file.flush()
    file.close()


def _pack(entry: ProducerStateEntry) -> bytes:
    last = entry.batch_metadata[-1] if entry.batch_metadata else _NO_BATCH
    first = entry.current_txn_first_offset
    return _ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_seq,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        _NO_TRANSACTION if first is None else first,
    )


def read_snapshot(disk: Disk, path: str) -> list[ProducerStateEntry]:
    """The entries. Raises `CorruptRecordException` if the file is not whole or not of version 1."""
    file = disk.open(path)
    data = file.read(0, file.size())
    file.close()
    try:
        version, crc = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        (count,) = _COUNT.unpack_from(body)
        whole = len(body) == _COUNT.size + count * _ENTRY.size
    except struct.error:
        raise CorruptRecordException(f"{path} is cut off") from None
    if version != _VERSION or crc != crc32c(body) or not whole:
        raise CorruptRecordException(f"{path} is not a producer snapshot of version {_VERSION}")
    return [_unpack(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _unpack(
    producer_id: int,
    epoch: int,
    last_seq: int,
    last_offset: int,
    delta: int,
    timestamp: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> ProducerStateEntry:
    batches = () if last_offset < 0 else (BatchMetadata(last_seq, last_offset, delta, timestamp),)
    first = None if txn_first_offset == _NO_TRANSACTION else txn_first_offset
    return ProducerStateEntry(producer_id, epoch, batches, timestamp, coordinator_epoch, first)
