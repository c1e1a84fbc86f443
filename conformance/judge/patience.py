"""Ends the evaluation of a formula that would take for ever, so that it becomes a reason."""

from __future__ import annotations

import signal
import threading
from types import FrameType

from conformance.errors import SpecError

__all__ = ["Patience", "TooSlow"]


class TooSlow(SpecError):
    """A formula or action was still being evaluated when its time was over."""


class Patience:
    """A context around one evaluation: it may take so many seconds of the processor's time.

    Raises TooSlow in the middle of it. Where signals do not arrive, which is outside of the main
    thread, nothing is ended. The processor's clock is taken, so that a busy machine changes
    nothing, and another's alarm clock is left alone.
    """

    __slots__ = ("_armed", "_before", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._armed = False

    def __enter__(self) -> None:
        self._armed = threading.current_thread() is threading.main_thread()
        if self._armed:
            self._before = signal.signal(signal.SIGVTALRM, self._over)
            signal.setitimer(signal.ITIMER_VIRTUAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        if self._armed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
            signal.signal(signal.SIGVTALRM, self._before)

    def _over(self, _number: int, _frame: FrameType | None) -> None:
        raise TooSlow(f"it had no value after {self._seconds:g} s of the processor's time")
