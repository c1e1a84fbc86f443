"""Which of a log's oldest segments go, and by which rule (UnifiedLog.deleteOldSegments)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .log_segment import LogSegment
from .log_types import LogConfig


@dataclass(frozen=True, slots=True)
class RetainedSegments:
    """A log's segments, oldest first, and what decides about them; offsets, and ms for times."""

    segments: Sequence[LogSegment]
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    config: LogConfig
    now_ms: int

    def number_to_delete(self, breached: RetentionRule) -> int:
        """How many of the oldest segments go by this rule."""
        count = 0
        while count < len(self.segments) and self._may_go(count) and breached(self, count):
            count += 1
        return count

    def _may_go(self, index: int) -> bool:
        """Whether the segment is committed, and not an active one without records."""
        if index + 1 < len(self.segments):
            return self.segments[index + 1].base_offset <= self.high_watermark
        return self.segments[index].size > 0 and self.log_end_offset <= self.high_watermark

    def is_below_log_start(self, index: int) -> bool:
        """Whether nobody may read it any more."""
        following = self.segments[index + 1 : index + 2]
        return bool(following) and following[0].base_offset <= self.log_start_offset

    def is_surplus(self, index: int) -> bool:
        """Whether retention.bytes are left without it and those before it."""
        retention = self.config.retention_bytes
        kept = sum(segment.size for segment in self.segments[index + 1 :])
        return retention is not None and kept >= retention

    def is_old(self, index: int) -> bool:
        """Whether its newest record is older than retention.ms."""
        retention = self.config.retention_ms
        if retention is None:
            return False
        return self.now_ms - self.segments[index].largest_timestamp > retention


RetentionRule = Callable[[RetainedSegments, int], bool]
"""Whether a segment is to go, by its index."""

RULES: tuple[RetentionRule, ...] = (
    RetainedSegments.is_below_log_start,
    RetainedSegments.is_surplus,
    RetainedSegments.is_old,
)
"""In Kafka's order."""
