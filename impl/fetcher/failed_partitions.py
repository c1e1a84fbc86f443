"""The partitions that a manager's threads gave up, and why."""

from __future__ import annotations

from collections.abc import Iterable

from ..concurrency import Concurrency
from ..types import TopicPartition


class FailedPartitions:
    """Set of partitions shared by all fetcher threads of one manager (FailedPartitions, KIP-461).

    A partition leaves it only when it is added to a thread again or removed from the manager.
    """

    __slots__ = ("_causes", "_lock")

    def __init__(self, concurrency: Concurrency) -> None:
        self._lock = concurrency.lock("failed-partitions")
        self._causes: dict[TopicPartition, BaseException | None] = {}

    def add(self, partition: TopicPartition, cause: BaseException | None = None) -> None:
        """Record a failure; `cause` is for people, no rule depends on it."""
        with self._lock:
            self._causes[partition] = cause

    def remove_all(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the failures of the given partitions."""
        with self._lock:
            for partition in partitions:
                self._causes.pop(partition, None)

    def contains(self, partition: TopicPartition) -> bool:
        """Whether the partition has failed."""
        with self._lock:
            return partition in self._causes

    def cause(self, partition: TopicPartition) -> BaseException | None:
        """The exception that made the partition fail, if it is known."""
        with self._lock:
            return self._causes.get(partition)

    def partitions(self) -> frozenset[TopicPartition]:
        """The failed partitions now."""
        with self._lock:
            return frozenset(self._causes)

    @property
    def size(self) -> int:
        """The number of failed partitions."""
        with self._lock:
            return len(self._causes)
