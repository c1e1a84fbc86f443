"""Ends the evaluation of a formula that would take for ever, so that it becomes a reason."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from conformance.errors import SpecError

__all__ = ["EvaluationTimeout", "Patience"]


class EvaluationTimeout(SpecError):
    """A formula or action was still being evaluated when its time was over."""


class Patience:
    """A context around one evaluation: it may take so many seconds of the processor's time.

    Raises EvaluationTimeout in the middle of it. Outside of the main thread no signal arrives, so
    nothing is ended. The processor's clock is taken, so that a busy machine changes
    nothing, and another's alarm clock is left alone. Around many evaluations, `for_many` makes
    each of them cheap.
    """

    __slots__ = ("_armed", "_before", "_ready", "_seconds")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._armed = False
        self._ready = False

    @contextmanager
    def for_many(self) -> Iterator[None]:
        """Take the signal over once, and give it back at the end."""
        if self._ready or not _in_main_thread():
            yield
            return
        before = signal.signal(signal.SIGVTALRM, self._over)
        self._ready = True
        try:
            yield
        finally:
            self._ready = False
            signal.signal(signal.SIGVTALRM, before)

    def __enter__(self) -> None:
        if self._ready:
            signal.setitimer(signal.ITIMER_VIRTUAL, self._seconds)
            return
        self._armed = _in_main_thread()
        if self._armed:
            self._before = signal.signal(signal.SIGVTALRM, self._over)
            signal.setitimer(signal.ITIMER_VIRTUAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        if self._ready or self._armed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        if self._armed:
            self._armed = False
            signal.signal(signal.SIGVTALRM, self._before)

    def _over(self, _number: int, _frame: FrameType | None) -> None:
        raise EvaluationTimeout(f"it had none after {self._seconds:g} s of the processor's time")


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
