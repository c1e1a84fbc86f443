"""Background work of the broker as a constructor argument: done at once, or when told.

Kafka's KafkaScheduler flushes logs and truncated epoch checkpoints in the background;
what it has not yet done is lost in a crash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol


class Scheduler(Protocol):
    """Runs a task once, later."""

    def schedule_once(self, name: str, task: Callable[[], None]) -> None:
        """Run `task` once; `name` serves logs and those who choose the order."""


class ImmediateScheduler:
    """Runs each task at once, in the caller's thread."""

    __slots__ = ()

    def schedule_once(self, _name: str, task: Callable[[], None]) -> None:
        """Run `task` now."""
        task()


class DeferredScheduler:
    """Keeps the tasks until someone runs them; dropping it is what a crash does to them."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: deque[tuple[str, Callable[[], None]]] = deque()

    def schedule_once(self, name: str, task: Callable[[], None]) -> None:
        """Keep `task` for `run_pending`."""
        self._tasks.append((name, task))

    def pending(self) -> tuple[str, ...]:
        """Names of the tasks not yet run, oldest first."""
        return tuple(name for name, _ in self._tasks)

    def run_pending(self) -> int:
        """Run all tasks, oldest first, also those that they schedule; return how many."""
        count = 0
        while self._tasks:
            _, task = self._tasks.popleft()
            task()
            count += 1
        return count
