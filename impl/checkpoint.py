"""Checkpoint files: their grammar, and their replacement in one atomic step.

Source: CheckpointFile, LeaderEpochCheckpointFile, OffsetCheckpointFile. A file is a version line, a
line with the number of entries, and one line for each entry. It is replaced by writing
`<file>.tmp`, flushing it and renaming it over the target; a `.tmp` left by a crash is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from .disk import Disk, parent
from .errors import KafkaStorageException
from .types import EpochEntry, TopicPartition

CURRENT_VERSION = 0

T = TypeVar("T")


class CheckpointFile(Generic[T]):
    """A checkpoint of entries; `parse_fields` raises ValueError for wrong fields of a line."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        format_entry: Callable[[T], str],
        parse_fields: Callable[[list[str]], T],
    ) -> None:
        self._disk = disk
        self.path = path
        self._format = format_entry
        self._parse = parse_fields

    def directory_exists(self) -> bool:
        """Whether the file's directory is (still) there."""
        return self._disk.exists(parent(self.path))

    def write(self, entries: Iterable[T]) -> None:
        """Replace the file. After a crash at any point either the old or the new one is read."""
        lines = [self._format(entry) for entry in entries]
        text = "\n".join((str(CURRENT_VERSION), str(len(lines)), *lines)) + "\n"
        temporary = self.path + ".tmp"
        file = self._disk.open(temporary)
        file.truncate(0)
        file.append(text.encode())
        file.flush()
        file.close()
        self._disk.rename(temporary, self.path)
        self._disk.sync_directory(parent(self.path))

    def read(self) -> list[T]:
        """The entries; none if the file is absent, empty or ends after its version line.

        Raises `KafkaStorageException` that names the line for every other deviation.
        """
        if not self._disk.exists(self.path):
            return []
        file = self._disk.open(self.path)
        content = file.read(0, file.size())
        file.close()
        return _CheckpointReadBuffer(self.path, content, self._parse).read()


class _CheckpointReadBuffer(Generic[T]):
    def __init__(self, path: str, content: bytes, parse: Callable[[list[str]], T]) -> None:
        self._path = path
        self._lines = content.decode(errors="replace").splitlines()
        self._parse = parse

    def read(self) -> list[T]:
        if not self._lines:
            return []
        version = self._integer(self._lines[0])
        if version != CURRENT_VERSION:
            raise KafkaStorageException(
                f"Unrecognized version of the checkpoint file {self._path}: {version}"
                f" (expected {CURRENT_VERSION})"
            )
        if len(self._lines) == 1:
            return []
        expected = self._integer(self._lines[1])
        entries = [self._entry(line) for line in self._lines[2:]]
        if len(entries) != expected:
            raise KafkaStorageException(
                f"Expected {expected} entries in checkpoint file {self._path},"
                f" but found only {len(entries)}"
            )
        return entries

    def _integer(self, line: str) -> int:
        try:
            return _parse_integer(line)
        except ValueError:
            raise self._malformed(line) from None

    def _entry(self, line: str) -> T:
        try:
            return self._parse(line.split())
        except ValueError:
            raise self._malformed(line) from None

    def _malformed(self, line: str) -> KafkaStorageException:
        return KafkaStorageException(f"Malformed line in checkpoint file {self._path}: {line!r}")


def _parse_integer(field: str) -> int:
    # int() takes underscores and blanks, which Kafka's parser does not.
    if not field.lstrip("+-").isdecimal():
        raise ValueError(field)
    return int(field)


def _format_epoch(entry: EpochEntry) -> str:
    return f"{entry.epoch} {entry.start_offset}"


def _parse_epoch(fields: list[str]) -> EpochEntry:
    epoch, start_offset = fields
    return EpochEntry(_parse_integer(epoch), _parse_integer(start_offset))


class LeaderEpochCheckpointFile(CheckpointFile[EpochEntry]):
    """`leader-epoch-checkpoint` of one log directory: `<leader epoch> <start offset>` lines."""

    NAME = "leader-epoch-checkpoint"

    def __init__(self, disk: Disk, log_directory: str) -> None:
        super().__init__(disk, f"{log_directory}/{self.NAME}", _format_epoch, _parse_epoch)


def _format_offset(entry: tuple[TopicPartition, int]) -> str:
    return f"{entry[0].topic} {entry[0].partition} {entry[1]}"


def _parse_offset(fields: list[str]) -> tuple[TopicPartition, int]:
    topic, partition, offset = fields
    return TopicPartition(topic, _parse_integer(partition)), _parse_integer(offset)


class OffsetCheckpointFile:
    """One offset for each partition of a broker's log directory: `<topic> <partition> <offset>`."""

    HIGH_WATERMARK = "replication-offset-checkpoint"
    RECOVERY_POINT = "recovery-point-offset-checkpoint"
    LOG_START_OFFSET = "log-start-offset-checkpoint"
    CLEANER_OFFSET = "cleaner-offset-checkpoint"

    def __init__(self, disk: Disk, directory: str, name: str) -> None:
        self._file = CheckpointFile(disk, f"{directory}/{name}", _format_offset, _parse_offset)

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the file."""
        self._file.write(offsets.items())

    def read(self) -> dict[TopicPartition, int]:
        """The offsets; see `CheckpointFile.read`."""
        return dict(self._file.read())
