"""The assignment interval of one group of KIP-848 while a test runs (KAFKA-20291).

It begins with each target that a heartbeat makes, and its length is the broker's. Nothing shows
that it is over: so a step that says so waits, and a path whose other steps took longer is late.
"""

from __future__ import annotations

import time

from conformance.systems.wire.pace import Pace

_MARGIN_SECONDS = 0.005
"""The broker's clock counts milliseconds."""


class RunningInterval:
    """Of one test. `length`: group.consumer.assignment.interval.ms; 0 if there is none."""

    def __init__(self, length: int, pace: Pace) -> None:
        self._seconds = length / 1000
        self._pace = pace
        self._epoch = 0
        self._begun: tuple[float, float] | None = None
        """Before and after the answer to the heartbeat that made the target (monotonic, s)."""

    def target_seen(self, epoch: int, asked: float) -> None:
        """After a heartbeat that was sent at `asked` (s) the target is that of this epoch."""
        if epoch != self._epoch:
            self._epoch, self._begun = epoch, (asked, time.monotonic())

    def wait(self) -> None:
        """Until it is over."""
        if self._begun is not None:
            _, answered = self._begun
            end = answered + self._seconds + _MARGIN_SECONDS
            time.sleep(max(end - time.monotonic(), 0.0))
        self._begun = None

    @property
    def over(self) -> str:
        """Why it may be over although nobody waited for that; empty if it is not."""
        if self._begun is None or not self._seconds:
            return ""
        asked, _ = self._begun
        is_over = self._pace.seen_at > asked + self._seconds
        return "the assignment interval was over" if is_over else ""
