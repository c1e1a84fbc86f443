"""How late this process is woken: by a machine that has other work, or by its own threads.

What a test waits for is judged by the clock, so time in which nobody could run must be known: a
broker on the same machine has had to wait as well. A thread asks for short sleeps, and keeps by how
much each was too long.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from functools import cache
from itertools import takewhile

_SLEEP = 0.01
_NOT_LATE = 0.005
"""Seconds by which every sleep may be too long; it is not worth keeping."""
_KEPT = 10_000


class Pulse:
    """The delays (s) of this process, with the time (monotonic, s) at which each was over."""

    def __init__(self) -> None:
        self._delays: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        self._slept_at = time.monotonic()

    def beat(self) -> None:
        """Sleep once, and keep by how much it was too long."""
        self._slept_at = before = time.monotonic()
        time.sleep(_SLEEP)
        self.slept(before, time.monotonic())

    def slept(self, before: float, after: float) -> None:
        """A sleep lasted from `before` to `after`."""
        delay = after - before - _SLEEP
        if delay > _NOT_LATE:
            self._delays.append((after, delay))

    def worst_since(self, begin: float) -> float:
        """The longest delay that was over after `begin`, or that still goes on."""
        goes_on = time.monotonic() - self._slept_at - _SLEEP
        newest_first = reversed(tuple(self._delays))
        over = (delay for _, delay in takewhile(lambda kept: kept[0] >= begin, newest_first))
        return max(goes_on, *over, 0.0)


@cache
def pulse() -> Pulse:
    """This process's, which beats from now on."""
    a_pulse = Pulse()

    def beat() -> None:
        while True:
            a_pulse.beat()

    threading.Thread(target=beat, name="pulse", daemon=True).start()
    return a_pulse
