"""A timer for a single caller: every deadline can be listed, and they are exact.

Source: Kafka's test double MockTimer: a task is due iff now > deadline.
"""

from __future__ import annotations

import heapq

from ..clock import Clock
from ..concurrency import Concurrency
from .timer_task import TimerTask


class _Entry:
    __slots__ = ("_share", "_timer", "sequence")

    def __init__(self, timer: DeadlineTimer, sequence: int, share: TimerShare | None) -> None:
        self._timer = timer
        self._share = share
        self.sequence = sequence

    def remove(self) -> None:
        self._timer.remove(self.sequence)

    def left(self) -> None:
        """It is no longer in the timer."""
        if self._share is not None:
            self._share.size -= 1


class DeadlineTimer:
    """All deadlines, in the order (deadline, order of adding)."""

    def __init__(self, clock: Clock, concurrency: Concurrency) -> None:
        self._clock = clock
        self._lock = concurrency.lock("timer")
        self._sequence = 0
        self._live: dict[int, tuple[TimerTask, _Entry]] = {}
        self._heap: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        """See `Timer.size`."""
        return len(self._live)

    def add(self, task: TimerTask, share: TimerShare | None = None) -> None:
        """Run the task once `delay_ms` has passed; without a delay at the next tick."""
        now = self._clock.milliseconds()
        with self._lock:
            self._sequence += 1
            entry = _Entry(self, self._sequence, share)
            task.deadline_ms = now + task.delay_ms if task.delay_ms > 0 else now - 1
            self._live[self._sequence] = task, entry
            if share is not None:
                share.size += 1
            heapq.heappush(self._heap, (task.deadline_ms, self._sequence))
            if len(self._heap) > 2 * len(self._live) + 64:
                self._drop_cancelled()
        # Without the lock: who cancels takes the task's lock first and this one then.
        task.set_timer_task_entry(entry)

    def _drop_cancelled(self) -> None:
        self._heap = [entry for entry in self._heap if entry[1] in self._live]
        heapq.heapify(self._heap)

    def remove(self, sequence: int) -> None:
        """Forget a task; one that is not in the timer is no error."""
        with self._lock:
            self._take(sequence)

    def _take(self, sequence: int) -> TimerTask | None:
        task, entry = self._live.pop(sequence, (None, None))
        if entry is not None:
            entry.left()
        return task

    def pending(self) -> tuple[TimerTask, ...]:
        """All tasks that wait, the next due first."""
        with self._lock:
            live = [(task.deadline_ms, number, task) for number, (task, _) in self._live.items()]
        live.sort(key=lambda item: item[:2])
        return tuple(task for _, _, task in live)

    def next_deadline_ms(self) -> int | None:
        """When the next task is due, if there is one."""
        with self._lock:
            self._skip_cancelled()
            return self._heap[0][0] if self._heap else None

    def expire_due(self) -> int:
        """Run all tasks with now > deadline, also those that they add; how many did anything."""
        count = 0
        while (task := self._next_due()) is not None:
            count += task.run()
        return count

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`; the clock is its owner's, so this does not wait."""
        del timeout_ms
        return self.expire_due() > 0

    def shutdown(self) -> None:
        """See `Timer.shutdown`."""
        with self._lock:
            for sequence in tuple(self._live):
                self._take(sequence)

    def _next_due(self) -> TimerTask | None:
        now = self._clock.milliseconds()
        with self._lock:
            self._skip_cancelled()
            if not self._heap or now <= self._heap[0][0]:
                return None
            return self._take(heapq.heappop(self._heap)[1])

    def _skip_cancelled(self) -> None:
        while self._heap and self._heap[0][1] not in self._live:
            heapq.heappop(self._heap)


class TimerShare:
    """What one purgatory has in a timer that several share: one order of all, a size for each."""

    __slots__ = ("_timer", "size")

    def __init__(self, timer: DeadlineTimer) -> None:
        self._timer = timer
        self.size = 0

    def add(self, task: TimerTask) -> None:
        """See `Timer.add`."""
        self._timer.add(task, self)

    def advance_clock(self, timeout_ms: int) -> bool:
        """See `Timer.advance_clock`: it is one clock for all."""
        return self._timer.advance_clock(timeout_ms)

    def shutdown(self) -> None:
        """The timer belongs to all; its owner shuts it down."""
