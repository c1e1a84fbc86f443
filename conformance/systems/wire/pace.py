"""Driving in real time: for how long it is worth to look again, and whether that was long enough.

The same for groups of the classic protocol and of KIP-848.
"""

from __future__ import annotations

import time

from conformance.systems.wire.address import Address
from conformance.systems.wire.lateness import pulse

_ALONE = 10
"""So many times the patience has who runs alone."""
_BUSY_SECONDS = 2.0
"""How much later than it should a timer may run out that a step waits for: nothing else is judged
by it."""
_DELAYS_IN_WINDOW = 4
"""While a state is looked for, so many times the longest delay must have had its time, of the
broker or of this process; else what was not seen says nothing."""
_FIRST_PAUSE, LONGEST_PAUSE = 0.0005, 0.02
"""Seconds between two looks: a request is handled within a millisecond, a timer takes its time."""


class Pace:
    """Of one system, test by test. Times are of the monotonic clock, in seconds."""

    def __init__(self, address: Address) -> None:
        self._usual = address.patience / 1000
        self._alone = _ALONE * self._usual
        self._pulse = pulse()
        self.begin()

    def begin(self) -> None:
        """A test begins."""
        self.patience = self.window = self._usual
        """For how long it is worth to look again after the last step; what came of it in time."""
        self._pause = _FIRST_PAUSE
        self._begun = self.looked_at = self.seen_at = time.monotonic()
        """When the last look began, and when it was over."""

    def be_alone(self) -> None:
        """Look for longer: nobody waits for this test to end."""
        self._usual = self._alone

    def step(self) -> None:
        """A step begins, which waits for nothing as far as is known."""
        self.patience, self._pause = self._usual, _FIRST_PAUSE

    def wait_for(self, milliseconds: float) -> None:
        """The step waits for a timer that is over by itself after so long."""
        self.patience += _BUSY_SECONDS + milliseconds / 1000

    def next_pause(self) -> float:
        """Seconds until the next look: twice as long each time."""
        pause = self._pause
        self._pause = min(2 * pause, LONGEST_PAUSE)
        return pause

    def slow(self, slowest: float) -> str:
        """Why too little time was left for what was looked for; empty if it was enough.

        `slowest`: the longest time that the broker took for what it answers at once.
        """
        delays = {
            "DescribeGroups and the like took": slowest,
            "this process was kept waiting for": self._pulse.worst_since(self._begun),
        }
        for what, seconds in delays.items():
            if seconds * _DELAYS_IN_WINDOW > self.window:
                return (
                    f"{what} up to {seconds:.2f} s, and a state was looked for no longer than "
                    f"{self.window:.2f} s"
                )
        return ""
