"""Time as a constructor argument: the system's clock, and one that only moves when told."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the implementation may know of time."""

    def milliseconds(self) -> int:
        """Milliseconds since some fixed moment; never falls."""

    def sleep(self, ms: int) -> None:
        """Let `ms` milliseconds pass."""


class SystemClock:
    """Time since 1970 as it was when the clock was made, and from then on the monotonic clock."""

    def __init__(self) -> None:
        self._began = time.time_ns() - time.monotonic_ns()

    def milliseconds(self) -> int:
        """Milliseconds since 1970; consumers look records up by their times."""
        return (self._began + time.monotonic_ns()) // 1_000_000

    def sleep(self, ms: int) -> None:
        """Block the calling thread."""
        time.sleep(ms / 1000)


class MockClock:
    """A clock that stands still until `sleep` moves it (MockTime without auto-tick)."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def milliseconds(self) -> int:
        """The current time of this clock."""
        return self._now_ms

    def sleep(self, ms: int) -> None:
        """Move this clock forward by `ms` at once."""
        if ms < 0:
            raise ValueError(f"time does not run backwards: {ms} ms")
        self._now_ms += ms
