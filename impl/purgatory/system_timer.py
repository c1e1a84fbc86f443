"""A timer of timing wheels, whose tasks an executor thread runs (SystemTimer)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable

from ..clock import Clock
from ..concurrency import Concurrency
from ..fetcher.shutdownable_thread import ShutdownableThread
from ..scheduler import Scheduler
from .atomic import AtomicInteger
from .delay_queue import DelayQueue
from .timer_task import TimerTask
from .timing_wheel import TimerTaskEntry, TimerTaskList, TimingWheel

_log = logging.getLogger(__name__)


class SystemTimer:
    """Runs tasks on `executor` once they are due: never early, late by less than a tick.

    Nothing moves but by `advance_clock`. Without an executor, a thread of its own runs the tasks.
    """

    def __init__(
        self,
        executor_name: str,
        clock: Clock,
        concurrency: Concurrency,
        *,
        tick_ms: int = 1,
        wheel_size: int = 20,
        executor: Scheduler | None = None,
    ) -> None:
        self._name = f"executor-{executor_name}"
        self._clock = clock
        # Kafka lets adders share a lock that advancing takes alone; here all take turns.
        self._lock = concurrency.lock(f"{self._name} timer")
        self._own_executor = SingleThreadExecutor(self._name, concurrency) if not executor else None
        self._executor: Scheduler = executor or self._started_executor()
        self._counter = AtomicInteger(concurrency.lock(f"{self._name} counter"))
        self._queue: DelayQueue[TimerTaskList] = DelayQueue(clock, concurrency)
        self._wheel = TimingWheel(
            tick_ms, wheel_size, clock.milliseconds(), self._counter, self._queue, concurrency
        )

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`."""
        with self._lock:
            entry = TimerTaskEntry(task, self._clock.milliseconds() + task.delay_ms)
            is_due = not self._wheel.add(entry)
        if is_due:
            self._execute(entry)

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`."""
        bucket = self._queue.poll(timeout_ms)
        if bucket is None:
            return False
        due: list[TimerTaskEntry] = []
        with self._lock:
            while bucket is not None:
                self._wheel.advance_clock(bucket.expiration_ms)
                due += [entry for entry in bucket.flush() if not self._wheel.add(entry)]
                bucket = self._queue.poll()
        # After the lock: an executor may run a task at once, and the task may call the timer.
        for entry in due:
            self._execute(entry)
        return True

    @property
    def size(self) -> int:
        """See `Timer.size`."""
        return self._counter.get()

    def pending(self) -> tuple[TimerTask, ...]:
        """All tasks that wait, the next due first; tasks of one tick in any order."""
        with self._lock:
            waiting = sorted(self._wheel.entries(), key=lambda entry: entry.expiration_ms)
        return tuple(entry.task for entry in waiting)

    def shutdown(self) -> None:
        """See `Timer.shutdown`; waits for the task that is running."""
        if self._own_executor is not None:
            self._own_executor.shutdown()

    def _execute(self, entry: TimerTaskEntry) -> None:
        def run() -> None:
            entry.task.run()

        if not entry.is_cancelled:
            self._executor.schedule_once(self._name, run)

    def _started_executor(self) -> SingleThreadExecutor:
        assert self._own_executor is not None
        self._own_executor.start()
        return self._own_executor


class SingleThreadExecutor(ShutdownableThread):
    """Runs what is handed to it in one thread, in order; a task that raises is logged."""

    def __init__(self, name: str, concurrency: Concurrency) -> None:
        super().__init__(name, concurrency)
        self._lock = concurrency.lock(f"{name} tasks")
        self._changed = self._lock.new_condition()
        self._tasks: deque[Callable[[], None]] = deque()

    def schedule_once(self, _name: str, task: Callable[[], None]) -> None:
        """Run `task` after all that came before it."""
        with self._lock:
            self._tasks.append(task)
            self._changed.notify_all()

    def do_work(self) -> None:
        """Wait for a task, and run it."""
        with self._lock:
            while not self._tasks and self.is_running:
                if not self._changed.wait():
                    return
            if not self.is_running:
                return
            task = self._tasks.popleft()
        try:
            task()
        except Exception as error:  # noqa: BLE001 - one task's failure is not the others'
            _log.error("[%s]: a task failed", self.name, exc_info=error)

    def initiate_shutdown(self) -> bool:
        """Ask the thread to stop; tasks not yet begun are dropped."""
        first = super().initiate_shutdown()
        with self._lock:
            self._changed.notify_all()
        return first
