"""The clock of an example. It stands still while this process waits for a processor.

A client's patience, session and time to read are measured with it. So a busy machine, on which the
loop answers late, takes nothing from the time that a client has. The loop's own work counts, as
clients go on meanwhile; of long work only the beginning does, as they soon wait for an answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["BEAT", "WORK", "LoopClock"]

BEAT = 0.05
"""Seconds between two beats of a loop that has nothing to do and is in time."""
WORK = 0.5
"""Seconds of work between two beats that count."""


@dataclass(slots=True)
class LoopClock:
    """Seconds since its beginning. Between two beats it counts what the loop slept and worked."""

    read: Callable[[], float] = time.monotonic
    work: Callable[[], float] = time.process_time
    """Seconds of the processor that this process has had."""
    late_by: float = 0.0
    """Seconds by which a beat was late, at worst, whatever the loop did meanwhile."""
    _counted: float = 0.0
    _beaten_at: float = field(init=False)
    _worked: float = field(init=False)

    def __post_init__(self) -> None:
        self._beaten_at, self._worked = self.read(), self.work()

    def now(self) -> float:
        """The seconds that count."""
        return self._counted + self._counts(self.read(), self.work())

    def beat(self) -> None:
        """The loop comes round: it has read and answered what there was."""
        reading, worked = self.read(), self.work()
        self._counted += self._counts(reading, worked)
        self.late_by = max(self.late_by, reading - self._beaten_at - BEAT)
        self._beaten_at, self._worked = reading, worked

    def _counts(self, reading: float, worked: float) -> float:
        return min(reading - self._beaten_at, BEAT + min(worked - self._worked, WORK))
