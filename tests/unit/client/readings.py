"""A clock of the loop whose readings a test gives."""

from __future__ import annotations

from conformance.client.clock import BEAT, LoopClock


class Readings:
    """The readings of a machine's clock and of a process's own, and the loop's clock on them."""

    def __init__(self) -> None:
        self._at, self._worked = 1_000.0, 20.0
        self.clock = LoopClock(lambda: self._at, lambda: self._worked)

    def in_time(self, seconds: float) -> None:
        """The loop comes round at each beat."""
        for _ in range(round(seconds / BEAT)):
            self.late(BEAT)

    def late(self, seconds: float, *, working: float = 0.0) -> None:
        """The loop comes round once, after so long, of which it worked for a part."""
        self.busy(seconds, working=working)
        self.clock.beat()

    def busy(self, seconds: float, *, working: float = 0.0) -> None:
        """So much passes, and the loop does not come round."""
        self._at += seconds
        self._worked += working
