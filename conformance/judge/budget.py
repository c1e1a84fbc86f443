"""Limits on the search for one recording's explanation: processor time, states and memory."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Budget", "JudgeLimits", "LimitReached"]


@dataclass(frozen=True, slots=True)
class JudgeLimits:
    """How far a search goes. All but `silent` and `each` end it without a verdict."""

    silent: int = 0
    """The maximum number of consecutive steps without an event."""
    candidates: int = 20_000
    """The maximum number of states that the search keeps at once."""
    seconds: float = 120.0
    """Of the processor, for each search of one recording: one depth first for each number of
    unseen steps up to `silent`, and two of all behaviours. A busy machine changes nothing."""
    states: int = 1_000_000
    """The maximum number of states that one search visits; a state counts at each visit."""
    evaluation: float = 30.0
    """Seconds of the processor for one formula or action in one state."""
    each: int | None = None
    """The maximum number of consecutive steps without an event that belong to one process."""
    memory: int = 4_000
    """The process may grow by this many megabytes while it judges one recording."""


class LimitReached(Exception):
    """A recording's search has reached a limit; the text says which."""


class MemorySpent(LimitReached):
    """No other search of this recording may begin."""


@dataclass(slots=True)
class Budget:
    """The rest of one search's limits."""

    limits: JudgeLimits
    states: int
    """The number of states that the search may still visit."""
    most: int
    """The maximum number of candidates at once; a `strict` search ends beyond it."""
    strict: bool = False
    base: int = 0
    """Bytes that the process held before."""
    tell: Callable[[int], None] = lambda _: None
    """Told how many events are explained."""
    tried: int = 0
    reasons: dict[str, None] = field(default_factory=dict)
    """Why the search is not exhaustive."""
    seconds: float = 0.0
    """Of the processor, that may pass until the end."""
    _deadline: float = 0.0
    _asked: int = 0

    def __post_init__(self) -> None:
        """The time runs from now on."""
        self._deadline = time.process_time() + (self.seconds or self.limits.seconds)

    @classmethod
    def of(cls, limits: JudgeLimits) -> Budget:
        """All that the limits allow."""
        return cls(limits, limits.states, limits.candidates, base=resident())

    @property
    def left(self) -> float:
        """Seconds of the processor until the end."""
        return self._deadline - time.process_time()

    def in_time(self) -> None:
        """Raise Spent if the time is over, or the memory used up."""
        if time.process_time() > self._deadline:
            raise LimitReached(f"{self.limits.seconds:g} seconds of the processor were not enough")
        self._asked += 1
        if self._asked % _ASKED == 0 and resident() - self.base > self.limits.memory * 1_000_000:
            raise MemorySpent(f"{self.limits.memory:,} megabytes of memory were not enough")

    def tries(self, states: int) -> None:
        """Count states that were looked at; raise Spent if it is enough."""
        self.tried += states
        if self.tried > self.states:
            raise LimitReached(f"more than {self.states:,} states were looked at")

    def holds(self, candidates: int, where: str) -> None:
        """Raise Spent if a strict search has more candidates at once than it may have."""
        if self.strict and candidates > self.most:
            raise LimitReached(f"more than {self.most:,} candidates {where}")

    def falls_short(self, reasons: Iterable[str]) -> None:
        """Note why something was left out."""
        self.reasons.update(dict.fromkeys(reasons))


_ASKED = 4096
"""Memory is measured once after this many readings of the clock."""
_STATM = Path("/proc/self/statm")


def resident() -> int:
    """The bytes that this process has in memory, or its maximum so far if no more is known."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
