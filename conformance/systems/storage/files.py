"""What lies on the disk, as the specification has it; and a machine that dies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.systems.storage.broker import (
    BATCH_BYTES,
    LOG_DIRECTORY,
    PARTITION_DIRECTORY,
    TOPIC_PARTITION,
)
from conformance.tla import Fn, Value
from impl.checkpoint import LeaderEpochCheckpointFile, OffsetCheckpointFile
from impl.disk import File, MemoryDisk, Surviving, Unflushed, everything
from impl.errors import KafkaStorageException
from impl.log_manager import CLEAN_SHUTDOWN_FILE
from impl.log_segment import DELETED_SUFFIX, segment_path
from impl.records import decode_batches

_LOG_SUFFIX = ".log"
_NO_OFFSET = -1


def bases(disk: MemoryDisk, suffix: str = _LOG_SUFFIX) -> list[int]:
    """Base offsets of the log's files that end so."""
    names = disk.names(PARTITION_DIRECTORY)
    return [int(name.split(".")[0]) for name in names if name.endswith(suffix)]


def segments(disk: MemoryDisk) -> Value:
    """Base offset, records, and how many of them were flushed, of each segment file."""
    return tuple(_segment(disk, base) for base in bases(disk))


def _segment(disk: MemoryDisk, base: int) -> Value:
    path = segment_path(PARTITION_DIRECTORY, base)
    file = disk.open(path)
    batches = decode_batches(file.read(0, file.size()))
    epochs = tuple(batch.partition_leader_epoch for batch in batches)
    torn = file.size() > len(epochs) * BATCH_BYTES
    return Fn(
        {
            "base": base,
            "records": epochs,
            "durable": min(len(epochs), disk.flushed(path) // BATCH_BYTES),
            "torn": torn,
        }
    )


def deleted(disk: MemoryDisk) -> Value:
    """Bases of the files that are to be removed."""
    return frozenset(bases(disk, _LOG_SUFFIX + DELETED_SUFFIX))


def epochs(disk: MemoryDisk) -> Value:
    """What the file of epochs says."""
    entries = LeaderEpochCheckpointFile(disk, PARTITION_DIRECTORY).read()
    return tuple(Fn({"epoch": entry.epoch, "start": entry.start_offset}) for entry in entries)


def checkpoint(name: str) -> Callable[[MemoryDisk], Value]:
    """The log's entry in a checkpoint of the directory."""

    def read(disk: MemoryDisk) -> Value:
        offsets = OffsetCheckpointFile(disk, LOG_DIRECTORY, name).read()
        return offsets.get(TOPIC_PARTITION, _NO_OFFSET)

    return read


def has_mark(disk: MemoryDisk) -> bool:
    """Whether the last process shut down in order."""
    return disk.exists(f"{LOG_DIRECTORY}/{CLEAN_SHUTDOWN_FILE}")


def losing(disk: MemoryDisk, number: int, kept: int, *, torn: bool) -> Surviving:
    """Of one segment, from 1, only the first records survive, and the half of a batch if `torn`.

    All else survives.
    """
    path = segment_path(PARTITION_DIRECTORY, bases(disk)[number - 1])
    flushed = disk.flushed(path) // BATCH_BYTES

    def surviving(operations: tuple[Unflushed, ...]) -> Sequence[int]:
        last = _appended_by(operations, path, flushed)[kept]
        amounts = list(everything(operations))
        for index in range(last, len(operations)):
            if operations[index].path == path and operations[index].kind in ("append", "truncate"):
                amounts[index] = 0
        if torn:
            amounts[last] = operations[last].size // 2
        return amounts

    return surviving


def _appended_by(operations: tuple[Unflushed, ...], path: str, flushed: int) -> list[int]:
    """Of each record of the file the operation that appended it; -1 if that is durable."""
    owners = [-1] * flushed
    for index, operation in enumerate(operations):
        if operation.path == path and operation.kind == "append":
            owners.append(index)
        elif operation.path == path and operation.kind == "truncate":
            del owners[operation.size // BATCH_BYTES :]
    return owners


class UnwillingDisk:
    """Another disk, on which calls for the log's segment files fail as `fails` says."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk
        self.fails = False

    def demand(self, path: str) -> None:
        """Raise KafkaStorageException if a call for the path fails now."""
        if self.fails and path.endswith(_LOG_SUFFIX):
            raise KafkaStorageException(f"{path}: input/output error")

    def open(self, path: str) -> File:
        """See `Disk.open`."""
        self.demand(path)
        return _UnwillingFile(self, path, self._disk.open(path))

    def exists(self, path: str) -> bool:
        """See `Disk.exists`."""
        return self._disk.exists(path)

    def names(self, directory: str) -> list[str]:
        """See `Disk.names`."""
        return self._disk.names(directory)

    def rename(self, source: str, target: str) -> None:
        """See `Disk.rename`."""
        self._disk.rename(source, target)

    def remove(self, path: str) -> None:
        """See `Disk.remove`."""
        self._disk.remove(path)

    def sync_directory(self, directory: str) -> None:
        """See `Disk.sync_directory`."""
        self._disk.sync_directory(directory)


class _UnwillingFile:
    def __init__(self, disk: UnwillingDisk, path: str, file: File) -> None:
        self._disk = disk
        self._path = path
        self._file = file

    def size(self) -> int:
        return self._file.size()

    def read(self, position: int, size: int) -> bytes:
        return self._file.read(position, size)

    def append(self, data: bytes) -> None:
        self._file.append(data)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def flush(self) -> None:
        self._disk.demand(self._path)
        self._file.flush()

    def close(self) -> None:
        self._file.close()
