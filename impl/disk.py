"""The disk as a constructor argument, and its exact double in memory (real files: `real_disk`).

What is written but not flushed can be lost in a crash: a file's bytes until `File.flush`, and the
making, renaming and removing of directory entries until `Disk.sync_directory` of their parent.
`MemoryDisk.crash` loses exactly what its caller chooses; `real_disk.ShadowedDisk` does the same to
real files. Paths are relative to the disk's root, with slashes. Directories themselves are made as
needed and are durable at once.

Of one file's unflushed operations a prefix survives, its last append possibly torn; of the
directory operations any subset (ext4 and XFS keep their order, POSIX promises none).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .errors import KafkaStorageException


class File(Protocol):
    """An open file; survives the renaming of its path."""

    def size(self) -> int:
        """Bytes in the file."""

    def read(self, position: int, size: int) -> bytes:
        """At most `size` bytes from `position`; fewer at the end of the file."""

    def append(self, data: bytes) -> None:
        """Write `data` at the end; not durable before `flush`."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes; not durable before `flush`."""

    def flush(self) -> None:
        """Make the file's bytes durable (fsync)."""

    def close(self) -> None:
        """Give the handle back without flushing."""


class Disk(Protocol):
    """A tree of files. Every failure of the operating system is a `KafkaStorageException`."""

    def open(self, path: str) -> File:
        """Open the file, making it (and its directories) if it is absent."""

    def exists(self, path: str) -> bool:
        """Whether the path names a file or a directory."""

    def names(self, directory: str) -> list[str]:
        """Names in the directory, sorted; empty if it is absent."""

    def rename(self, source: str, target: str) -> None:
        """Move a file (over an existing target) or a directory (to a free name), atomically."""

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that it holds; absent is no error."""

    def sync_directory(self, directory: str) -> None:
        """Make the directory's entries durable."""


Kind = Literal["append", "truncate", "create", "rename", "remove"]


@dataclass(frozen=True, slots=True)
class Unflushed:
    """One operation that a crash may lose; `size` in bytes: appended, or length truncated to."""

    kind: Kind
    path: str
    size: int = 0
    target: str = ""


Surviving = Callable[[tuple[Unflushed, ...]], Sequence[int]]
"""How much of each unflushed operation survives, given all of them in order.

Bytes of an append; of the others 0 (lost) or 1 (survives).
"""


def everything(operations: tuple[Unflushed, ...]) -> Sequence[int]:
    """Nothing is lost: the process died, the machine lived."""
    return [_whole(operation) for operation in operations]


def nothing(operations: tuple[Unflushed, ...]) -> Sequence[int]:
    """All that was not flushed is lost: the machine died at the worst moment."""
    return [0] * len(operations)


def first(count: int) -> Surviving:
    """The first operations survive."""
    return lambda ops: [_whole(op) if i < count else 0 for i, op in enumerate(ops)]


def each(surviving: Callable[[Unflushed], int]) -> Surviving:
    """Every operation is judged by itself."""
    return lambda operations: [surviving(operation) for operation in operations]


def bytes_of(kept: Mapping[str, int]) -> Surviving:
    """Everything survives, but of each named file's unflushed appends only the first bytes."""

    def surviving(operations: tuple[Unflushed, ...]) -> Sequence[int]:
        remaining = dict(kept)
        result = []
        for operation in operations:
            amount = _whole(operation)
            if operation.kind == "append" and operation.path in remaining:
                amount = min(remaining[operation.path], amount)
                remaining[operation.path] -= amount
            result.append(amount)
        return result

    return surviving


def _whole(operation: Unflushed) -> int:
    return operation.size if operation.kind == "append" else 1


class _Inode:
    """A file's bytes as processes see them, as the platter holds them, and what lies between."""

    __slots__ = ("data", "durable", "pending")

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.pending: list[_Write] = []

    def flush(self) -> None:
        for write in self.pending:
            write.apply(self.durable)
        self.pending.clear()

    def lose(self, surviving: Callable[[_Write], int]) -> None:
        for write in self.pending:
            kept = surviving(write)
            write.apply(self.durable, kept)
            if kept < write.whole:
                break
        self.pending.clear()
        self.data = bytearray(self.durable)


class _Write:
    """An unflushed append (`content`) or truncation (no content)."""

    __slots__ = ("content", "path", "sequence", "size")

    def __init__(self, sequence: int, path: str, content: bytes | None, size: int) -> None:
        self.sequence = sequence
        self.path = path
        self.content = content
        self.size = size

    @property
    def whole(self) -> int:
        return 1 if self.content is None else self.size

    def apply(self, data: bytearray, kept: int | None = None) -> None:
        if self.content is not None:
            data += self.content if kept is None else self.content[:kept]
        elif kept is None or kept:
            del data[self.size :]

    def describe(self) -> Unflushed:
        return Unflushed("truncate" if self.content is None else "append", self.path, self.size)


class _Entry:
    """An unflushed directory operation: links and unlinks of one atomic step."""

    __slots__ = ("kind", "links", "path", "sequence", "target", "unlinks")

    def __init__(self, sequence: int, kind: Kind, path: str, target: str = "") -> None:
        self.sequence = sequence
        self.kind = kind
        self.path = path
        self.target = target
        self.links: dict[str, _Inode] = {}
        self.unlinks: list[str] = []

    def apply(self, names: dict[str, _Inode]) -> None:
        for path in self.unlinks:
            names.pop(path, None)
        names.update(self.links)

    def touches(self, directory: str) -> bool:
        return parent(self.path) == directory or (
            self.target != "" and parent(self.target) == directory
        )

    def describe(self) -> Unflushed:
        return Unflushed(self.kind, self.path, target=self.target)


def parent(path: str) -> str:
    """The directory of the path."""
    return path.rpartition("/")[0]


class _MemoryFile:
    __slots__ = ("_disk", "_inode", "_path")

    def __init__(self, disk: MemoryDisk, path: str, inode: _Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode

    def size(self) -> int:
        return len(self._inode.data)

    def read(self, position: int, size: int) -> bytes:
        return bytes(self._inode.data[position : position + size])

    def append(self, data: bytes) -> None:
        self._inode.data += data
        write = _Write(self._disk.next_sequence(), self._path, data, len(data))
        self._inode.pending.append(write)

    def truncate(self, size: int) -> None:
        if size < len(self._inode.data):
            del self._inode.data[size:]
            write = _Write(self._disk.next_sequence(), self._path, None, size)
            self._inode.pending.append(write)

    def flush(self) -> None:
        self._inode.flush()

    def close(self) -> None:
        """Nothing to give back: the bytes stay with the disk."""


class MemoryDisk:
    """A disk in memory whose crashes lose exactly what the caller chooses."""

    def __init__(self) -> None:
        self._names: dict[str, _Inode] = {}
        self._durable: dict[str, _Inode] = {}
        self._entries: list[_Entry] = []
        self._sequence = 0

    def next_sequence(self) -> int:
        """The place of the next operation in the order of all operations."""
        self._sequence += 1
        return self._sequence

    def open(self, path: str) -> File:
        """See `Disk.open`."""
        inode = self._names.get(path)
        if inode is None:
            inode = _Inode()
            entry = self._entry("create", path)
            entry.links[path] = inode
            entry.apply(self._names)
        return _MemoryFile(self, path, inode)

    def exists(self, path: str) -> bool:
        """See `Disk.exists`."""
        return path in self._names or any(name.startswith(path + "/") for name in self._names)

    def names(self, directory: str) -> list[str]:
        """See `Disk.names`."""
        prefix = directory + "/" if directory else ""
        below = (name[len(prefix) :] for name in self._names if name.startswith(prefix))
        return sorted({name.partition("/")[0] for name in below})

    def rename(self, source: str, target: str) -> None:
        """See `Disk.rename`."""
        moved = self._tree(source)
        if not moved:
            raise KafkaStorageException(f"{source}: no such file")
        entry = self._entry("rename", source, target)
        entry.unlinks.extend(moved)
        entry.links.update({target + path[len(source) :]: moved[path] for path in moved})
        entry.apply(self._names)

    def remove(self, path: str) -> None:
        """See `Disk.remove`."""
        removed = self._tree(path)
        if removed:
            entry = self._entry("remove", path)
            entry.unlinks.extend(removed)
            entry.apply(self._names)

    def sync_directory(self, directory: str) -> None:
        """See `Disk.sync_directory`."""
        remaining = []
        for entry in self._entries:
            if entry.touches(directory):
                entry.apply(self._durable)
            else:
                remaining.append(entry)
        self._entries = remaining

    def unflushed(self) -> tuple[Unflushed, ...]:
        """Every operation that a crash may lose, in the order in which it was done."""
        return tuple(operation.describe() for operation in self._pending())

    def crash(self, surviving: Surviving) -> None:
        """Lose what `surviving` does not keep; handles opened before are dead."""
        pending = self._pending()
        amounts = surviving(tuple(operation.describe() for operation in pending))
        kept = {id(operation): amount for operation, amount in zip(pending, amounts, strict=True)}
        for inode in self._inodes():
            inode.lose(lambda write: kept[id(write)])
        for entry in self._entries:
            if kept[id(entry)]:
                entry.apply(self._durable)
        self._entries.clear()
        self._names = dict(self._durable)

    def flushed(self, path: str) -> int:
        """How many of the file's first bytes no crash takes."""
        inode = self._names[path]
        cuts = [write.size for write in inode.pending if write.content is None]
        return min([len(inode.durable), *cuts])

    def contents(self) -> dict[str, bytes]:
        """Path to bytes of every file, as processes see them."""
        return {path: bytes(inode.data) for path, inode in sorted(self._names.items())}

    def durable(self) -> dict[str, bytes]:
        """Path to bytes of every file, as a crash that loses all it can would leave them."""
        return {path: bytes(inode.durable) for path, inode in sorted(self._durable.items())}

    def _entry(self, kind: Kind, path: str, target: str = "") -> _Entry:
        entry = _Entry(self.next_sequence(), kind, path, target)
        self._entries.append(entry)
        return entry

    def _tree(self, path: str) -> dict[str, _Inode]:
        if path in self._names:
            return {path: self._names[path]}
        below = path + "/"
        return {name: inode for name, inode in self._names.items() if name.startswith(below)}

    def _inodes(self) -> list[_Inode]:
        linked = [inode for entry in self._entries for inode in entry.links.values()]
        every = [*self._names.values(), *self._durable.values(), *linked]
        return list({id(inode): inode for inode in every}.values())

    def _pending(self) -> list[_Write | _Entry]:
        operations: list[_Write | _Entry] = list(self._entries)
        for inode in self._inodes():
            operations.extend(inode.pending)
        return sorted(operations, key=lambda operation: operation.sequence)
