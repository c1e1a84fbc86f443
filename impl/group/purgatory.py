"""Delayed operations on the injected clock: completed by an event, or by the timer, exactly once.

Source: DelayedOperation, DelayedOperationPurgatory and, for the timer, Kafka's own test double
MockTimer: an operation is due iff now > deadline. Every timer can be listed, and fired one by one.

An operation is guarded by one lock, the same that guards all that it looks at (its group's), so
one attempt to complete it under that lock before watching it is enough, and completing it takes it
out of the timer and of its watch list in the same step.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

from impl.clock import Clock
from impl.concurrency import Concurrency, Lock

Key = tuple[str, str]


class DelayedOperation:
    """Something that waits for an event of its key, at most `delay_ms`."""

    __slots__ = ("_forget", "deadline_ms", "delay_ms", "is_completed", "key", "lock", "sequence")

    kind: ClassVar[str] = "delayed operation"

    def __init__(self, delay_ms: int, lock: Lock, key: Key) -> None:
        self.delay_ms = delay_ms
        self.lock = lock
        self.key = key
        self.is_completed = False
        self.deadline_ms = -1
        self.sequence = -1
        self._forget: Callable[[DelayedOperation], None] | None = None

    def try_complete(self) -> bool:
        """Call `force_complete` if the event has come; whether this call completed it."""
        raise TypeError(f"{type(self).__name__} must say when it completes")

    def on_complete(self) -> None:
        """Called exactly once, whoever completes it."""

    def on_expiration(self) -> None:
        """Called after `on_complete`, and only if the timer completed it."""

    def force_complete(self) -> bool:
        """Complete now. True iff this call did it."""
        with self.lock:
            if self.is_completed:
                return False
            self.is_completed = True
            if self._forget is not None:
                self._forget(self)
            self.on_complete()
            return True

    def run(self) -> bool:
        """The timer's call. True iff the timer won."""
        with self.lock:
            if not self.force_complete():
                return False
            self.on_expiration()
            return True

    def watched_by(self, forget: Callable[[DelayedOperation], None]) -> None:
        """Whom to tell of the completion."""
        self._forget = forget

    def cancel(self) -> None:
        """Never complete it: its owner is gone."""
        with self.lock:
            self.is_completed = True
            if self._forget is not None:
                self._forget(self)


class Timer:
    """All deadlines of one coordinator, in the order (deadline, order of adding)."""

    def __init__(self, clock: Clock, concurrency: Concurrency) -> None:
        self._clock = clock
        self._lock = concurrency.lock("timer")
        self._sequence = 0
        self._live: dict[int, DelayedOperation] = {}
        self._heap: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._live)

    def add(self, operation: DelayedOperation) -> None:
        """Run the operation once `delay_ms` has passed; without a delay at the next tick."""
        now = self._clock.milliseconds()
        delay = operation.delay_ms
        with self._lock:
            self._sequence += 1
            operation.sequence = self._sequence
            operation.deadline_ms = now + delay if delay > 0 else now - 1
            self._live[self._sequence] = operation
            heapq.heappush(self._heap, (operation.deadline_ms, self._sequence))
            if len(self._heap) > 2 * len(self._live) + 64:
                self._drop_cancelled()

    def _drop_cancelled(self) -> None:
        self._heap = [entry for entry in self._heap if entry[1] in self._live]
        heapq.heapify(self._heap)

    def remove(self, operation: DelayedOperation) -> None:
        """Forget the operation; one that is not in the timer is no error."""
        with self._lock:
            self._live.pop(operation.sequence, None)

    def pending(self) -> tuple[DelayedOperation, ...]:
        """All operations that wait, the next due first."""
        with self._lock:
            live = list(self._live.values())
        live.sort(key=lambda operation: (operation.deadline_ms, operation.sequence))
        return tuple(live)

    def next_deadline_ms(self) -> int | None:
        """When the next operation is due, if there is one."""
        with self._lock:
            self._skip_cancelled()
            return self._heap[0][0] if self._heap else None

    def expire_due(self) -> int:
        """Run all operations with now > deadline, also those that they add; return how many."""
        count = 0
        while (operation := self._next_due()) is not None:
            count += operation.run()
        return count

    def _next_due(self) -> DelayedOperation | None:
        now = self._clock.milliseconds()
        with self._lock:
            self._skip_cancelled()
            if not self._heap or now <= self._heap[0][0]:
                return None
            return self._live.pop(heapq.heappop(self._heap)[1])

    def _skip_cancelled(self) -> None:
        while self._heap and self._heap[0][1] not in self._live:
            heapq.heappop(self._heap)


OperationT = TypeVar("OperationT", bound=DelayedOperation)


class DelayedOperationPurgatory(Generic[OperationT]):
    """Operations watched by key, each with a deadline in the timer."""

    def __init__(self, name: str, timer: Timer, concurrency: Concurrency) -> None:
        self._timer = timer
        self._lock = concurrency.lock(f"purgatory-{name}")
        self._watchers: dict[Key, list[OperationT]] = {}

    def __len__(self) -> int:
        """How many operations are watched."""
        return sum(len(operations) for operations in self._watchers.values())

    def try_complete_else_watch(self, operation: OperationT) -> bool:
        """Complete the operation, or keep it under its key until an event or its deadline."""
        with operation.lock:
            if operation.try_complete():
                return True
            with self._lock:
                self._watchers.setdefault(operation.key, []).append(operation)
            operation.watched_by(self._forget)
            self._timer.add(operation)
            return False

    def check_and_complete(self, key: Key) -> int:
        """Try the operations of a key whose event has come; return how many this completed."""
        return sum(operation.try_complete() for operation in self._watched(key))

    def cancel_for_key(self, key: Key) -> None:
        """Drop the operations of a key without completing them."""
        for operation in self._watched(key):
            operation.cancel()

    def _watched(self, key: Key) -> tuple[OperationT, ...]:
        with self._lock:
            return tuple(self._watchers.get(key, ()))

    def _forget(self, operation: DelayedOperation) -> None:
        self._timer.remove(operation)
        with self._lock:
            remaining = [op for op in self._watchers.get(operation.key, ()) if op is not operation]
            if remaining:
                self._watchers[operation.key] = remaining
            else:
                self._watchers.pop(operation.key, None)
