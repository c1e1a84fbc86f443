"""Tasks of a shard that run beside its events: the result of each comes back as a write operation.

Source: CoordinatorExecutor and CoordinatorExecutorImpl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import RejectedExecutionException
from .coordinator_runtime import WriteOperation
from .coordinator_shard import CoordinatorResult

TaskRunnable = Callable[[], Any]
"""Must change nothing of the shard: it runs in another thread, possibly."""
TaskOperation = Callable[[Any, Exception | None], CoordinatorResult]
"""The shard's operation with the task's result, or with what it raised."""
ScheduleWrite = Callable[[str, WriteOperation, Callable[[Exception | None, object], None]], None]
"""CoordinatorRuntime.schedule_write_operation."""


class ExecutorService(Protocol):
    """Runs tasks, at once or later."""

    def submit(self, task: Callable[[], None]) -> None:
        """Run the task once."""


class SameThreadExecutor:
    """Runs a task when it is submitted. Its result waits for its turn among the events."""

    def submit(self, task: Callable[[], None]) -> None:
        """See `ExecutorService.submit`."""
        task()


class CoordinatorExecutor(Protocol):
    """What a shard sees of its executor."""

    def schedule(self, key: str, task: TaskRunnable, operation: TaskOperation) -> bool:
        """Run the task, unless one with this key is under way: whether it will run."""

    def is_scheduled(self, key: str) -> bool:
        """Whether a task with this key is under way: its result is not written."""

    def cancel(self, key: str) -> None:
        """Nobody wants the result of the task with this key."""

    def cancel_all(self) -> None:
        """Nobody wants any results."""


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """Two tasks are the same one only if they are one object."""

    key: str
    run: TaskRunnable
    operation: TaskOperation


class CoordinatorExecutorImpl:
    """One task at a time for each key."""

    def __init__(self, service: ExecutorService, schedule_write: ScheduleWrite) -> None:
        self._service = service
        self._schedule_write = schedule_write
        self._tasks: dict[str, _Task] = {}

    def schedule(self, key: str, task: TaskRunnable, operation: TaskOperation) -> bool:
        """See `CoordinatorExecutor.schedule`."""
        if key in self._tasks:
            return False
        scheduled = self._tasks[key] = _Task(key, task, operation)
        self._service.submit(lambda: self._run(scheduled))
        return True

    def is_scheduled(self, key: str) -> bool:
        """See `CoordinatorExecutor.is_scheduled`."""
        return key in self._tasks

    @property
    def scheduled(self) -> dict[str, TaskRunnable]:
        """The tasks that are under way, by key."""
        return {key: task.run for key, task in self._tasks.items()}

    def cancel(self, key: str) -> None:
        """See `CoordinatorExecutor.cancel`."""
        self._tasks.pop(key, None)

    def cancel_all(self) -> None:
        """See `CoordinatorExecutor.cancel_all`."""
        self._tasks.clear()

    def _run(self, task: _Task) -> None:
        if self._tasks.get(task.key) is not task:
            return
        result, error = None, None
        try:
            result = task.run()
        except Exception as raised:  # noqa: BLE001  the operation gets it
            error = raised
        self._schedule_write(
            task.key,
            lambda _shard: self._complete(task, result, error),
            lambda failed, _response: self._forget(task, failed),
        )

    def _complete(self, task: _Task, result: object, error: Exception | None) -> CoordinatorResult:
        if self._tasks.get(task.key) is not task:
            raise RejectedExecutionException(f"the task {task.key} was overridden or cancelled")
        del self._tasks[task.key]
        return task.operation(result, error)

    def _forget(self, task: _Task, failed: Exception | None) -> None:
        """A write that has failed: the task may be scheduled again."""
        if failed is not None and self._tasks.get(task.key) is task:
            del self._tasks[task.key]
