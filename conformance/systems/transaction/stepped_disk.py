"""A disk that a process leaves behind when it dies, between any two of its writes too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from impl.concurrency import Concurrency
from impl.disk import MemoryDisk

Files = Mapping[str, bytes]
"""Path to content."""


class SteppedDisk(MemoryDisk):
    """A disk in memory; whoever writes can be stopped at each write."""

    def __init__(self, concurrency: Concurrency) -> None:
        super().__init__()
        self._concurrency = concurrency

    def next_sequence(self) -> int:
        """See `MemoryDisk.next_sequence`: each write asks for its place."""
        self._concurrency.checkpoint("write")
        return super().next_sequence()


def disk_with(files: Files, concurrency: Concurrency) -> SteppedDisk:
    """A disk of its own with these files: who has the other one open writes there no more."""
    disk = SteppedDisk(concurrency)
    for path, content in files.items():
        file = disk.open(path)
        file.append(content)
        file.flush()
    return disk


def with_those_of(files: Files, before: Files, is_kept: Callable[[str], bool]) -> Files:
    """These files, but those whose path `is_kept` are as they were before."""
    others = {path: content for path, content in files.items() if not is_kept(path)}
    return others | {path: content for path, content in before.items() if is_kept(path)}
