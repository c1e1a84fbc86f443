"""A disk that fails at a chosen call, for good or once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from conformance.systems.replication.broker import CrashableDisk
from impl.disk import File, Surviving
from impl.errors import KafkaStorageException

T = TypeVar("T")


class FailingDisk:
    """Another disk, of which the calls that change something under `directory` are counted.

    `fail_at(n)`: the n-th such call from now on, from 1, raises; and all after it, unless `once`.
    """

    def __init__(self, disk: CrashableDisk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._calls = 0
        self._fails_at: int | None = None
        self._once = False

    def fail_at(self, call: int, *, once: bool) -> None:
        """Count from now on."""
        self._calls, self._fails_at, self._once = 0, call, once

    def repair(self) -> None:
        """From now on no call fails."""
        self._fails_at = None

    @property
    def has_failed(self) -> bool:
        """Whether the call to fail at has come."""
        return self._fails_at is not None and self._calls >= self._fails_at

    def change(self, path: str, call: Callable[[], T]) -> T:
        """Make a call, or fail."""
        if self._fails_at is not None and path.startswith(self._directory):
            self._calls += 1
            if self._calls == self._fails_at or (self._calls > self._fails_at and not self._once):
                raise KafkaStorageException(f"{path}: input/output error")
        return call()

    def open(self, path: str) -> File:
        """See `Disk.open`."""
        return _FailingFile(self, path, self.change(path, lambda: self._disk.open(path)))

    def exists(self, path: str) -> bool:
        """See `Disk.exists`."""
        return self._disk.exists(path)

    def names(self, directory: str) -> list[str]:
        """See `Disk.names`."""
        return self._disk.names(directory)

    def rename(self, source: str, target: str) -> None:
        """See `Disk.rename`."""
        self.change(source, lambda: self._disk.rename(source, target))

    def remove(self, path: str) -> None:
        """See `Disk.remove`."""
        self.change(path, lambda: self._disk.remove(path))

    def sync_directory(self, directory: str) -> None:
        """See `Disk.sync_directory`."""
        self.change(directory, lambda: self._disk.sync_directory(directory))

    def crash(self, surviving: Surviving) -> None:
        """See `CrashableDisk.crash`."""
        self._disk.crash(surviving)

    def contents(self) -> Mapping[str, bytes]:
        """See `CrashableDisk.contents`."""
        return self._disk.contents()

    def durable(self) -> Mapping[str, bytes]:
        """See `CrashableDisk.durable`."""
        return self._disk.durable()


class _FailingFile:
    def __init__(self, disk: FailingDisk, path: str, file: File) -> None:
        self._disk = disk
        self._path = path
        self._file = file

    def size(self) -> int:
        return self._file.size()

    def read(self, position: int, size: int) -> bytes:
        return self._file.read(position, size)

    def append(self, data: bytes) -> None:
        self._disk.change(self._path, lambda: self._file.append(data))

    def truncate(self, size: int) -> None:
        self._disk.change(self._path, lambda: self._file.truncate(size))

    def flush(self) -> None:
        self._disk.change(self._path, self._file.flush)

    def close(self) -> None:
        self._file.close()
