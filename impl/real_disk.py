"""Real files: for production, and with a shadow that makes their crashes exact."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .disk import File, MemoryDisk, Surviving, Unflushed, parent
from .errors import KafkaStorageException


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise KafkaStorageException(str(error)) from error


class _RealFile:
    __slots__ = ("_descriptor", "_size")

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._size = os.fstat(self._descriptor).st_size

    def size(self) -> int:
        return self._size

    def read(self, position: int, size: int) -> bytes:
        with _storage_errors():
            return os.pread(self._descriptor, size, position)

    def append(self, data: bytes) -> None:
        with _storage_errors():
            view = memoryview(data)
            while view:
                written = os.pwrite(self._descriptor, view, self._size)
                self._size += written
                view = view[written:]

    def truncate(self, size: int) -> None:
        if size < self._size:
            with _storage_errors():
                os.ftruncate(self._descriptor, size)
            self._size = size

    def flush(self) -> None:
        with _storage_errors():
            os.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class DirectoryDisk:
    """Real files below a directory."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: set[str] = set()

    def open(self, path: str) -> File:
        """See `Disk.open`."""
        with _storage_errors():
            self._make_directory(parent(path))
            return _RealFile(self._root / path)

    def exists(self, path: str) -> bool:
        """See `Disk.exists`."""
        return (self._root / path).exists()

    def names(self, directory: str) -> list[str]:
        """See `Disk.names`."""
        with _storage_errors():
            folder = self._root / directory
            return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def rename(self, source: str, target: str) -> None:
        """See `Disk.rename`."""
        with _storage_errors():
            self._make_directory(parent(target))
            (self._root / source).replace(self._root / target)
        self._made.clear()

    def remove(self, path: str) -> None:
        """See `Disk.remove`."""
        with _storage_errors():
            full = self._root / path
            if full.is_dir():
                shutil.rmtree(full)
                self._made.clear()
            else:
                full.unlink(missing_ok=True)

    def sync_directory(self, directory: str) -> None:
        """See `Disk.sync_directory`."""
        with _storage_errors():
            self._make_directory(directory)
            self._sync(self._root / directory)

    def _make_directory(self, directory: str) -> None:
        if directory not in self._made:
            folder = self._root / directory
            missing = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            for path in missing:
                self._sync(path.parent)
            self._made.add(directory)

    @staticmethod
    def _sync(folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _ShadowedFile:
    __slots__ = ("_real", "_shadow")

    def __init__(self, real: File, shadow: File) -> None:
        self._real = real
        self._shadow = shadow

    def size(self) -> int:
        return self._real.size()

    def read(self, position: int, size: int) -> bytes:
        return self._real.read(position, size)

    def append(self, data: bytes) -> None:
        self._real.append(data)
        self._shadow.append(data)

    def truncate(self, size: int) -> None:
        self._real.truncate(size)
        self._shadow.truncate(size)

    def flush(self) -> None:
        self._real.flush()
        self._shadow.flush()

    def close(self) -> None:
        self._real.close()


class ShadowedDisk:
    """Real files whose crashes can be chosen: a `MemoryDisk` keeps track of the unflushed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real = DirectoryDisk(root)
        self._shadow = MemoryDisk()

    def open(self, path: str) -> File:
        """See `Disk.open`."""
        return _ShadowedFile(self._real.open(path), self._shadow.open(path))

    def exists(self, path: str) -> bool:
        """See `Disk.exists`."""
        return self._real.exists(path)

    def names(self, directory: str) -> list[str]:
        """See `Disk.names`."""
        return self._real.names(directory)

    def rename(self, source: str, target: str) -> None:
        """See `Disk.rename`."""
        self._real.rename(source, target)
        self._shadow.rename(source, target)

    def remove(self, path: str) -> None:
        """See `Disk.remove`."""
        self._real.remove(path)
        self._shadow.remove(path)

    def sync_directory(self, directory: str) -> None:
        """See `Disk.sync_directory`."""
        self._real.sync_directory(directory)
        self._shadow.sync_directory(directory)

    def unflushed(self) -> tuple[Unflushed, ...]:
        """See `MemoryDisk.unflushed`."""
        return self._shadow.unflushed()

    def crash(self, surviving: Surviving) -> None:
        """See `MemoryDisk.crash`; the real files are rewritten to what survives."""
        self._shadow.crash(surviving)
        for name in self._real.names(""):
            self._real.remove(name)
        for path, content in self._shadow.contents().items():
            file = self._real.open(path)
            file.append(content)
            file.close()

    def contents(self) -> dict[str, bytes]:
        """Path to bytes of every real file."""
        files = (path for path in self._root.rglob("*") if path.is_file())
        return {str(path.relative_to(self._root)): path.read_bytes() for path in sorted(files)}

    def durable(self) -> dict[str, bytes]:
        """See `MemoryDisk.durable`."""
        return self._shadow.durable()
