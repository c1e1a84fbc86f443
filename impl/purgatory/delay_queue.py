"""Hands things out once their time has come, the earliest first (java.util.concurrent)."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

from ..clock import Clock
from ..concurrency import Concurrency

ItemT = TypeVar("ItemT")


class DelayQueue(Generic[ItemT]):
    """Items with the time, in ms of `clock`, from which on they may be taken."""

    __slots__ = ("_changed", "_clock", "_heap", "_lock", "_sequence")

    def __init__(self, clock: Clock, concurrency: Concurrency) -> None:
        self._clock = clock
        self._lock = concurrency.lock("delay queue")
        self._changed = self._lock.new_condition()
        self._heap: list[tuple[int, int, ItemT]] = []
        self._sequence = 0

    def offer(self, item: ItemT, expiration_ms: int) -> None:
        """Hand `item` out from `expiration_ms` on; of equal times the first offered comes first."""
        with self._lock:
            self._sequence += 1
            heapq.heappush(self._heap, (expiration_ms, self._sequence, item))
            if self._heap[0][1] == self._sequence:
                self._changed.notify_all()

    def poll(self, timeout_ms: int = 0) -> ItemT | None:
        """The next item that is due, after waiting for one at most `timeout_ms`."""
        with self._lock:
            until = self._clock.milliseconds() + timeout_ms
            while (item := self._take_due()) is None:
                wait_ms = self._milliseconds_to_wait(until)
                if wait_ms <= 0:
                    return None
                if not self._changed.wait(wait_ms):
                    return self._take_due()
            return item

    def _take_due(self) -> ItemT | None:
        if self._heap and self._heap[0][0] <= self._clock.milliseconds():
            return heapq.heappop(self._heap)[2]
        return None

    def _milliseconds_to_wait(self, until_ms: int) -> int:
        first = min(until_ms, self._heap[0][0]) if self._heap else until_ms
        return first - self._clock.milliseconds()
