"""Deadlines on the injected clock, and the back-off between tries."""

from __future__ import annotations

import random
from dataclasses import dataclass

from ...clock import Clock

FOREVER_MS = 2**63 - 1


class Timer:
    """Time left until a deadline, as of the last `update` (org.apache.kafka.common.utils.Timer)."""

    __slots__ = ("_clock", "_current_ms", "_deadline_ms", "_timeout_ms")

    def __init__(self, clock: Clock, timeout_ms: int) -> None:
        self._clock = clock
        self._current_ms = clock.milliseconds()
        self.reset(timeout_ms)

    def reset(self, timeout_ms: int) -> None:
        """Start again with a new time-out. Raises ValueError if it is negative."""
        if timeout_ms < 0:
            raise ValueError(f"a timer cannot run for {timeout_ms} ms")
        self._timeout_ms = timeout_ms
        self._deadline_ms = min(self._current_ms + timeout_ms, FOREVER_MS)

    def update_and_reset(self, timeout_ms: int) -> None:
        """Look at the clock, then start again from now."""
        self.update()
        self.reset(timeout_ms)

    def update(self, now_ms: int | None = None) -> None:
        """Look at the clock (or be told its time); time never runs backwards."""
        now_ms = self._clock.milliseconds() if now_ms is None else now_ms
        self._current_ms = max(now_ms, self._current_ms)

    @property
    def current_time_ms(self) -> int:
        """The time at the last update."""
        return self._current_ms

    @property
    def remaining_ms(self) -> int:
        """Milliseconds left; 0 if expired."""
        return max(0, self._deadline_ms - self._current_ms)

    @property
    def is_expired(self) -> bool:
        """Whether the deadline has been reached."""
        return self._current_ms >= self._deadline_ms

    @property
    def not_expired(self) -> bool:
        """Whether time is left."""
        return not self.is_expired

    def sleep(self, duration_ms: int) -> None:
        """Sleep, but not beyond the deadline."""
        self._clock.sleep(min(duration_ms, self.remaining_ms))
        self.update()


@dataclass(frozen=True, slots=True)
class ExponentialBackoff:
    """Waits that double from `initial_ms` to `max_ms`, each spread by a factor of 1 +- jitter.

    Source: org.apache.kafka.common.utils.ExponentialBackoff (KIP-580); `rng` makes it repeatable.
    """

    initial_ms: int
    max_ms: int
    rng: random.Random
    multiplier: int = 2
    jitter: float = 0.2

    def backoff(self, attempts: int) -> int:
        """The wait in ms after `attempts` earlier failures."""
        term: float = min(self.initial_ms * self.multiplier ** min(attempts, 62), self.max_ms)
        spread = self.rng.uniform(1 - self.jitter, 1 + self.jitter)
        return min(int(term * spread), self.max_ms)
