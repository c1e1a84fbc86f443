"""Timers of a shard, each under a key: when one runs out, an operation of the shard is scheduled.

Source: CoordinatorTimer and CoordinatorTimerImpl (up to 4.2 EventBasedCoordinatorTimer).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..errors import Errors, RejectedExecutionException
from .coordinator_runtime import CoordinatorTimer, WriteOperation
from .coordinator_shard import CoordinatorResult

RETRY_BACKOFF_MS = 500
"""An operation that failed is tried again so much later."""
_GONE = frozenset({Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS})

TimeoutOperation = Callable[[], CoordinatorResult]
ScheduleWrite = Callable[[str, WriteOperation, Callable[[Exception | None, object], None]], None]
"""CoordinatorRuntime.schedule_write_operation."""


class KeyedTimer(Protocol):
    """What a shard sees of its timers."""

    def schedule(self, key: str, delay_ms: int, operation: TimeoutOperation) -> None:
        """Start the timer of this key, in place of the one that runs."""

    def cancel(self, key: str) -> None:
        """Stop it, if it runs."""

    def cancel_all(self) -> None:
        """Stop all."""


@dataclass(frozen=True, slots=True, eq=False)
class TimeoutTask:
    """A running timer; calling it lets it run out."""

    owner: EventBasedCoordinatorTimer
    key: str
    operation: TimeoutOperation

    def __call__(self) -> None:
        """The time is over."""
        self.owner.expire(self)


class EventBasedCoordinatorTimer:
    """Timers whose operations are events of the shard, so that they meet no request half-way."""

    def __init__(self, timer: CoordinatorTimer, schedule_write: ScheduleWrite) -> None:
        self._timer = timer
        self._schedule_write = schedule_write
        self._tasks: dict[str, TimeoutTask] = {}

    def schedule(self, key: str, delay_ms: int, operation: TimeoutOperation) -> None:
        """See `KeyedTimer.schedule`."""
        task = self._tasks[key] = TimeoutTask(self, key, operation)
        self._timer.add(delay_ms, task)

    def cancel(self, key: str) -> None:
        """See `KeyedTimer.cancel`."""
        self._tasks.pop(key, None)

    def cancel_all(self) -> None:
        """See `KeyedTimer.cancel_all`."""
        self._tasks.clear()

    @property
    def running(self) -> dict[str, TimeoutTask]:
        """The timers that run, by key."""
        return dict(self._tasks)

    def expire(self, task: TimeoutTask) -> None:
        """Schedule the operation, unless the timer was stopped or started again."""
        if self._tasks.get(task.key) is task:
            self._schedule_write("Timeout", lambda _shard: self._run(task), self._retried(task))

    def _run(self, task: TimeoutTask) -> CoordinatorResult:
        if self._tasks.get(task.key) is not task:  # a request came first
            raise RejectedExecutionException(f"the timer {task.key} was overridden or cancelled")
        del self._tasks[task.key]
        return task.operation()

    def _retried(self, task: TimeoutTask) -> Callable[[Exception | None, object], None]:
        def done(error: Exception | None, _response: object) -> None:
            if error is not None and _is_to_be_retried(error):
                self.schedule(task.key, RETRY_BACKOFF_MS, task.operation)

        return done


def _is_to_be_retried(error: Exception) -> bool:
    if isinstance(error, RejectedExecutionException):
        return False
    return Errors.for_exception(error) not in _GONE
