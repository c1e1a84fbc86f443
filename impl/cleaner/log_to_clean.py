"""A log, and which part of it a pass cleans (LogToClean)."""

from __future__ import annotations

from dataclasses import dataclass

from ..log import Log


@dataclass(frozen=True, slots=True)
class LogToClean:
    """Cleaned before `first_dirty_offset`; `first_uncleanable_offset` begins a segment."""

    log: Log
    first_dirty_offset: int
    first_uncleanable_offset: int

    @property
    def cleanable_bytes(self) -> int:
        """Of the segments to clean that were not."""
        return self._bytes(self.first_dirty_offset, self.first_uncleanable_offset)

    @property
    def cleanable_ratio(self) -> float:
        """The dirty part of what a pass reads; 0 without anything to read."""
        dirty = self.cleanable_bytes
        total = self._bytes(self.log.base_offset, self.first_dirty_offset) + dirty
        return dirty / total if total else 0.0

    def _bytes(self, from_offset: int, to_offset: int) -> int:
        return sum(segment.size for segment in self.log.log_segments(from_offset, to_offset))


def calculate_cleanable_bytes(log: Log, uncleanable_offset: int) -> int:
    """The base offset of the segment that holds the offset, at most that of the active one."""
    *_, last = log.log_segments(log.base_offset, uncleanable_offset + 1)
    return last.base_offset
