"""The sessions of a group's members that run out while a test runs."""

from __future__ import annotations

import time

from conformance.systems.wire.pace import Pace


class RunningSessions:
    """By member, when the session that its last request began is over (monotonic, s)."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._ends: dict[str, float] = {}

    def begin(self, member: str, length: int, asked: float) -> None:
        """A request that was sent at `asked` (s), or later, began a session of `length` ms. A
        length of 0 is of one that does not run out while the test runs."""
        self._ends.pop(member, None)
        if length:
            self._ends[member] = asked + length / 1000

    def forget(self, member: str) -> float:
        """The member is gone, or soon will be; when its session is over, now if it has none."""
        return self._ends.pop(member, time.monotonic())

    def wait_until(self, end: float) -> None:
        """Wait for a time; descriptions show then what became of the member."""
        time.sleep(max(end - time.monotonic(), 0.0))
        self._pace.wait_for(0)

    @property
    def over(self) -> str:
        """Which session may be over although nobody waited for it; empty if none."""
        for member, end in self._ends.items():
            if self._pace.seen_at > end:
                return f"the session of {member} was over"
        return ""
