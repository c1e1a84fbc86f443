"""Ends a call of the implementation that would never end, so that it becomes a divergence."""

from __future__ import annotations

import atexit
import signal
import threading
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import ClassVar

PROCESSOR_SECONDS = 2.0
"""Of the processor's time, however busy the machine: a thousand times what any step takes."""

WALL_SECONDS = 30.0
"""By the clock: for a call that waits, for a lock or for an answer, and uses no processor."""


class StepNeverEnds(Exception):
    """Raised in the middle of the implementation, by a signal."""


class CallWatch:
    """A context around calls: one that lasts from one tick of a timer to the next is ended.

    So a call may take as long as a tick, and never takes longer than two. It is ended again and
    again, as the implementation may catch what is raised and loop on. Entering costs next to
    nothing: the timers tick by themselves, and stop when nobody has called for a whole tick.
    """

    __slots__ = ("_calls", "_inside", "_processor", "_seen", "_wall")

    _ticking: ClassVar[CallWatch | None] = None
    """The one that the process's timers belong to: a process has one of each kind."""

    def __init__(
        self, processor_seconds: float = PROCESSOR_SECONDS, wall_seconds: float = WALL_SECONDS
    ) -> None:
        self._processor, self._wall = processor_seconds, wall_seconds
        self._calls = 0
        self._inside = False
        self._seen: dict[int, int] = {}

    def __enter__(self) -> None:
        self._calls += 1
        self._inside = True
        if CallWatch._ticking is not self:
            self._start()

    def __exit__(self, *_: object) -> None:
        self._inside = False

    def _start(self) -> None:
        if CallWatch._ticking is None:
            atexit.unregister(_silence)
            atexit.register(_silence)
        CallWatch._ticking = self
        self._seen.clear()
        signal.signal(signal.SIGVTALRM, self._tick)
        signal.setitimer(signal.ITIMER_VIRTUAL, self._processor, self._processor)
        if self._alarm_is_free():
            signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, self._wall, self._wall)

    @staticmethod
    def _alarm_is_free() -> bool:
        """Whoever has set the alarm clock (a test's time limit) ends what waits by that."""
        handler = signal.getsignal(signal.SIGALRM)
        return handler is signal.SIG_DFL or isinstance(
            getattr(handler, "__self__", None), CallWatch
        )

    def _tick(self, number: int, _frame: FrameType | None) -> None:
        same_call = self._seen.get(number) == self._calls
        self._seen[number] = self._calls
        if not same_call:
            return
        if self._inside:
            spent = f"{self._wall:g} s"
            if number == signal.SIGVTALRM:
                spent = f"{self._processor:g} s of the processor's time"
            raise StepNeverEnds(f"the step has not ended after {spent}")
        self._stop()

    def _stop(self) -> None:
        CallWatch._ticking = None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        if signal.getsignal(signal.SIGALRM) == self._tick:
            signal.setitimer(signal.ITIMER_REAL, 0.0)


def _silence() -> None:
    """While Python shuts down it no longer handles signals: a tick would kill the process."""
    if CallWatch._ticking is not None:
        CallWatch._ticking._stop()


def watch(wall_seconds: float = WALL_SECONDS) -> AbstractContextManager[None]:
    """A watch where signals arrive, which is the main thread; elsewhere nothing is ended."""
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return CallWatch(wall_seconds=wall_seconds)
