"""Hierarchical timing wheels: adding and removing cost the same however much waits.

A wheel has `wheel_size` buckets of `tick_ms` each. What is due beyond its end goes to an overflow
wheel, whose tick is as long as this whole wheel, and comes back when its bucket is due there.
Source: TimingWheel, TimerTaskList, TimerTaskEntry.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..concurrency import Concurrency
from .atomic import AtomicInteger
from .delay_queue import DelayQueue
from .timer_task import TimerTask

_NEVER = -1


class TimerTaskEntry:
    """A task's place in one bucket, or on its way from one bucket to another."""

    __slots__ = ("bucket", "expiration_ms", "task")

    def __init__(self, task: TimerTask, expiration_ms: int) -> None:
        self.task = task
        self.expiration_ms = expiration_ms
        self.bucket: TimerTaskList | None = None
        task.deadline_ms = expiration_ms
        task.set_timer_task_entry(self)

    @property
    def is_cancelled(self) -> bool:
        """Whether its task was cancelled, or added once more."""
        return not self.task.has_entry(self)

    def remove(self) -> None:
        """Leave the timer."""
        # Another thread may be moving it to another bucket: until it is in none.
        while (bucket := self.bucket) is not None:
            bucket.remove(self)


class TimerTaskList:
    """One bucket. `counter` is shared by all buckets of a timer: it counts what waits."""

    __slots__ = ("_counter", "_entries", "_expiration_ms", "_lock")

    def __init__(self, counter: AtomicInteger, concurrency: Concurrency) -> None:
        self._counter = counter
        self._entries: dict[TimerTaskEntry, None] = {}
        self._expiration_ms = _NEVER
        self._lock = concurrency.lock("timer bucket")

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def expiration_ms(self) -> int:
        """The time from which on its tasks are due, or go to a finer wheel."""
        return self._expiration_ms

    def set_expiration(self, expiration_ms: int) -> bool:
        """Whether this is new, so that the bucket has to be queued; called under the timer's lock.

        A bucket serves one round of its wheel after another; within a round it is queued once.
        """
        changed = self._expiration_ms != expiration_ms
        self._expiration_ms = expiration_ms
        return changed

    def add(self, entry: TimerTaskEntry) -> None:
        """Take an entry, out of the bucket that it was in."""
        entry.remove()
        with self._lock:
            self._entries[entry] = None
            entry.bucket = self
            self._counter.add(1)

    def remove(self, entry: TimerTaskEntry) -> None:
        """Let an entry go; one that is elsewhere stays there."""
        with self._lock:
            if entry.bucket is self:
                del self._entries[entry]
                entry.bucket = None
                self._counter.add(-1)

    def entries(self) -> tuple[TimerTaskEntry, ...]:
        """What is in it, in the order of adding."""
        with self._lock:
            return tuple(self._entries)

    def flush(self) -> tuple[TimerTaskEntry, ...]:
        """Empty the bucket, so that it can be queued again; gives what was in it."""
        with self._lock:
            entries = tuple(self._entries)
            for entry in entries:
                self.remove(entry)
            self._expiration_ms = _NEVER
            return entries


class TimingWheel:
    """One wheel, with those above it. The clock is that of `advance_clock`, a multiple of a tick.

    Not synchronized: the timer calls it under its lock.
    """

    __slots__ = (
        "_buckets",
        "_concurrency",
        "_counter",
        "_interval_ms",
        "_overflow_wheel",
        "_queue",
        "_tick_ms",
        "_wheel_size",
        "current_time_ms",
    )

    def __init__(
        self,
        tick_ms: int,
        wheel_size: int,
        start_ms: int,
        counter: AtomicInteger,
        queue: DelayQueue[TimerTaskList],
        concurrency: Concurrency,
    ) -> None:
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self._interval_ms = tick_ms * wheel_size
        self._counter = counter
        self._queue = queue
        self._concurrency = concurrency
        self._buckets = tuple(TimerTaskList(counter, concurrency) for _ in range(wheel_size))
        self._overflow_wheel: TimingWheel | None = None
        self.current_time_ms = start_ms - start_ms % tick_ms

    def add(self, entry: TimerTaskEntry) -> bool:
        """Put the entry into its bucket; False if it is cancelled, or due already."""
        if entry.is_cancelled or entry.expiration_ms < self.current_time_ms + self._tick_ms:
            return False
        if entry.expiration_ms >= self.current_time_ms + self._interval_ms:
            return self._overflow().add(entry)
        virtual_id = entry.expiration_ms // self._tick_ms
        bucket = self._buckets[virtual_id % self._wheel_size]
        bucket.add(entry)
        if bucket.set_expiration(virtual_id * self._tick_ms):
            self._queue.offer(bucket, bucket.expiration_ms)
        return True

    def advance_clock(self, time_ms: int) -> None:
        """Go on to the tick of `time_ms`, which a bucket that is due gives; never back."""
        if time_ms >= self.current_time_ms + self._tick_ms:
            self.current_time_ms = time_ms - time_ms % self._tick_ms
            if self._overflow_wheel is not None:
                self._overflow_wheel.advance_clock(self.current_time_ms)

    def entries(self) -> Iterator[TimerTaskEntry]:
        """All that waits in this wheel and those above it, bucket by bucket."""
        for bucket in self._buckets:
            yield from bucket.entries()
        if self._overflow_wheel is not None:
            yield from self._overflow_wheel.entries()

    def _overflow(self) -> TimingWheel:
        if self._overflow_wheel is None:
            self._overflow_wheel = TimingWheel(
                self._interval_ms,
                self._wheel_size,
                self.current_time_ms,
                self._counter,
                self._queue,
                self._concurrency,
            )
        return self._overflow_wheel
