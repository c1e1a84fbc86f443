"""Lists and opens the files of an incident: read only, no link followed, regular files only."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from conformance.errors import DataError, UserError
from conformance.printable import path_text

Buffer = mmap.mmap | bytes
"""A file's bytes; an empty file cannot be mapped and is b''."""

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER_FLAGS = _FLAGS | os.O_DIRECTORY
_MAX_DEPTH = 32


class UnreadableFile(DataError):
    """A file that is not opened, or changed under our hands; the message is the reason."""


UNREAD_FOLDER = "folder: "
"""Begins the reason of a folder in error."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file that was listed."""

    broker: str
    root: str
    """The folder that was named, absolute."""
    path: str
    """Below the root, as the file system has it (surrogates for bytes that are not UTF-8)."""
    size: int
    mtime: int
    """Milliseconds since 1970."""
    status: Literal["", "skipped", "error"] = ""
    reason: str = ""
    is_log: bool = False
    """Whether it is a server log; its root is the folder that it lies in."""
    below: str = ""
    """Where the root lies below the folder that all roots of its broker share; '' for one root."""

    @property
    def named(self) -> str:
        """The path below that shared folder: two log directories of a broker stay two."""
        return f"{self.below}/{self.path}" if self.below else self.path

    def refused(self, reason: str) -> ListedFile:
        """The same file, in error."""
        return replace(self, status="error", reason=reason)

    @property
    def shown(self) -> str:
        """The path as the tables have it."""
        return path_text(f"{self.root}/{self.path}" if self.is_log else self.named)


def listed(broker: str, folder: str) -> Iterator[ListedFile]:
    """Everything below a folder but folders, sorted by path. Raises UserError if it is none."""
    root = os.path.realpath(folder)
    if not os.path.isdir(root):  # noqa: PTH112 - a path may hold bytes that are not UTF-8
        raise UserError(
            f"{broker}={folder} is not a folder. Name the copy of the broker's log directory, or "
            "a folder above its log directories."
        )
    waiting = [("", 0)]
    while waiting:
        below, depth = waiting.pop()
        folders: list[tuple[str, int]] = []
        try:
            with os.scandir(os.path.join(root, below)) as entries:  # noqa: PTH118
                dir_entries = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            why = f"{UNREAD_FOLDER}{error.strerror}"
            yield ListedFile(broker, root, below, 0, 0, "error", why)
            continue
        for entry in dir_entries:
            path = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir(follow_symlinks=False):
                if depth == _MAX_DEPTH:
                    yield ListedFile(broker, root, path, 0, 0, "error", "folders nested too deeply")
                else:
                    folders.append((path, depth + 1))
            else:
                yield _entry(broker, root, path, entry)
        waiting.extend(reversed(folders))


def _entry(broker: str, root: str, path: str, entry: os.DirEntry[str]) -> ListedFile:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        return ListedFile(broker, root, path, 0, 0, "error", error.strerror or "no status")
    size, mtime = status.st_size, status.st_mtime_ns // 1_000_000
    if stat.S_ISLNK(status.st_mode):
        return _link(broker, root, path, mtime)
    if not stat.S_ISREG(status.st_mode):
        return ListedFile(broker, root, path, size, mtime, "skipped", "no regular file")
    return ListedFile(broker, root, path, size, mtime)


def _link(broker: str, root: str, path: str, mtime: int) -> ListedFile:
    target = os.path.realpath(os.path.join(root, path))  # noqa: PTH118
    if os.path.commonpath([root, target]) == root:
        return ListedFile(
            broker, root, path, 0, mtime, "skipped", "a link; its target is listed itself"
        )
    reason = "a link that leads out of the folder; copy its target here to have it read"
    return ListedFile(broker, root, path, 0, mtime, "error", reason)


@contextmanager
def opened(file: ListedFile) -> Iterator[Buffer]:
    """The file's bytes, mapped. Raises Refused, which tells why it was not read."""
    with descriptor(file) as number:
        # Not closed: numpy's views keep it, and the last of them lets it go.
        yield mmap.mmap(number, file.size, access=mmap.ACCESS_READ) if file.size else b""


@contextmanager
def descriptor(file: ListedFile) -> Iterator[int]:
    """The file, open for reading. Raises Refused, which tells why it was not opened."""
    try:
        number = _open(file)
    except OSError as error:
        raise UnreadableFile(f"cannot be opened: {error.strerror}") from error
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableFile("no regular file any more")
        if status.st_size != file.size:
            raise UnreadableFile(
                f"changed since it was listed: {file.size} bytes, now {status.st_size}"
            )
        yield number
    finally:
        os.close(number)


def _open(file: ListedFile) -> int:
    """Open one folder after the other, so that no part of the path may be a link."""
    *folders, name = file.path.split("/")
    folder = os.open(file.root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
    try:
        for step in folders:
            inner = os.open(step, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)
