"""An operation that waits for an event, at most for a time, and completes exactly once.

Source: DelayedOperation.
"""

from __future__ import annotations

from collections.abc import Callable

from ..concurrency import Concurrency, Lock
from .atomic import AtomicBoolean
from .timer_task import TimerTask


class DelayedOperation(TimerTask):
    """Subclasses say when they are complete and what follows.

    `lock` guards the attempts to complete it. It may be a lock that guards what the operation
    looks at, and may be shared with other operations (a group's lock); by default it has its own.
    """

    __slots__ = ("_completed", "lock")

    def __init__(
        self,
        delay_ms: int,
        concurrency: Concurrency,
        lock: Lock | None = None,
        *,
        name: str = "operation",
    ) -> None:
        super().__init__(delay_ms, concurrency)
        self.lock = lock or concurrency.lock(name)
        self._completed = AtomicBoolean(concurrency.lock(f"{name} completed"))

    # ---- what a subclass says --------------------------------------------------------------

    def try_complete(self) -> bool:
        """Call `force_complete` if the event has come, and return what that says.

        Called with `lock` held, perhaps by several threads in turn.
        """
        raise TypeError(f"{type(self).__name__} must say when it completes")

    def on_complete(self) -> None:
        """Called exactly once, whoever completes it."""

    def on_expiration(self) -> None:
        """Called after `on_complete`, and only if the timer completed it."""

    # ---- what is the same for all ----------------------------------------------------------

    @property
    def is_completed(self) -> bool:
        """Whether somebody has completed it; `on_complete` may still be running."""
        return self._completed.get()

    def force_complete(self) -> bool:
        """Complete now, unless somebody else has. True iff this call did it."""
        if not self._completed.compare_and_set(False, True):
            return False
        self.cancel()
        self.on_complete()
        return True

    def safe_try_complete(self) -> bool:
        """`try_complete`, under the lock.

        KAFKA-8334: who only tried to get the lock gave up while its holder had looked already,
        and the operation completed by its time-out.
        """
        with self.lock:
            return self.try_complete()

    def safe_try_complete_or_else(self, watch: Callable[[], None]) -> bool:
        """Try; if that fails run `watch` and try again, all under the lock.

        The second look finds what has happened after the first one and before the watching, of
        which nobody would tell.
        """
        with self.lock:
            if self.try_complete():
                return True
            watch()
            return self.try_complete()

    def run(self) -> bool:
        """The timer's call. True iff the timer won."""
        if not self.force_complete():
            return False
        self.on_expiration()
        return True
