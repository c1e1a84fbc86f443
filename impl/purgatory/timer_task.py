"""What a timer runs, and how it is taken out of the timer again (TimerTask)."""

from __future__ import annotations

from typing import Protocol

from ..concurrency import Concurrency

NO_DEADLINE = -1


class TimerEntry(Protocol):
    """The place of a task in a timer."""

    def remove(self) -> None:
        """Leave the timer; an entry that has left it already is no error."""


class TimerTask:
    """Something to run after `delay_ms`. It is in one timer at a time.

    `deadline_ms` is when it is due, on the timer's clock, once it has been added.
    """

    __slots__ = ("_entry", "_entry_lock", "deadline_ms", "delay_ms")

    def __init__(self, delay_ms: int, concurrency: Concurrency) -> None:
        self.delay_ms = delay_ms
        self.deadline_ms = NO_DEADLINE
        self._entry: TimerEntry | None = None
        self._entry_lock = concurrency.lock("timer task")

    def run(self) -> bool:
        """Called once, when it is due. Whether it did anything."""
        raise TypeError(f"{type(self).__name__} must say what it does when it is due")

    def cancel(self) -> None:
        """Leave the timer. A task that the timer is about to run may still run."""
        with self._entry_lock:
            if self._entry is not None:
                self._entry.remove()
            self._entry = None

    def set_timer_task_entry(self, entry: TimerEntry) -> None:
        """Enter a timer; the entry that it had before is taken out."""
        with self._entry_lock:
            if self._entry is not None and self._entry is not entry:
                self._entry.remove()
            self._entry = entry

    @property
    def is_scheduled(self) -> bool:
        """Whether it is in a timer, or was until it fell due."""
        return self._entry is not None

    def has_entry(self, entry: TimerEntry) -> bool:
        """Whether this is its entry, and it has not been cancelled."""
        return self._entry is entry


class Timer(Protocol):
    """Runs tasks when they are due."""

    def add(self, task: TimerTask, /) -> None:
        """Run `task` once its delay has passed; at once if there is none."""

    def advance_clock(self, timeout_ms: int, /) -> bool:
        """Hand over what is due, after waiting for it at most `timeout_ms`. Whether any was."""

    @property
    def size(self) -> int:
        """How many tasks wait."""

    def shutdown(self) -> None:
        """Run nothing more; what waits is dropped."""
