"""Who waits for which key: shards of watch lists, each with a lock (WatcherList, Watchers)."""

from __future__ import annotations

import zlib
from collections.abc import Hashable
from typing import Generic, TypeVar

from ..concurrency import Concurrency, Lock
from .delayed_operation import DelayedOperation

Key = Hashable
OperationT = TypeVar("OperationT", bound=DelayedOperation)


class Watchers(Generic[OperationT]):
    """The operations of one key, in the order of their coming.

    Its lock is held for single changes only, never while an operation is tried: completing one
    may call anything (KAFKA-3994).
    """

    __slots__ = ("_lock", "_operations")

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._operations: dict[OperationT, None] = {}

    def count_watched(self) -> int:
        """How many there are, completed ones included."""
        return len(self._operations)

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self._operations

    def operations(self) -> tuple[OperationT, ...]:
        """All operations, as they are now."""
        with self._lock:
            return tuple(self._operations)

    def watch(self, operation: OperationT) -> None:
        """Add an operation; one that is here already stays where it is."""
        with self._lock:
            self._operations[operation] = None

    def try_complete_watched(self) -> int:
        """Try all, drop what is complete; how many this call completed."""
        completed = 0
        over = []
        for operation in self.operations():
            if operation.is_completed:
                over.append(operation)
            elif operation.safe_try_complete():
                over.append(operation)
                completed += 1
        self._drop(over)
        return completed

    def cancel(self) -> tuple[OperationT, ...]:
        """Drop all, and take what is not complete out of the timer; gives those."""
        with self._lock:
            operations = tuple(self._operations)
            self._operations.clear()
        cancelled = tuple(operation for operation in operations if not operation.is_completed)
        for operation in cancelled:
            operation.cancel()
        return cancelled

    def purge_completed(self) -> int:
        """Drop what is complete; returns how many."""
        completed = [operation for operation in self.operations() if operation.is_completed]
        self._drop(completed)
        return len(completed)

    def _drop(self, operations: list[OperationT]) -> None:
        if not operations:
            return
        with self._lock:
            for operation in operations:
                self._operations.pop(operation, None)


class WatcherList(Generic[OperationT]):
    """One shard: the keys whose hash falls here."""

    __slots__ = ("_concurrency", "_lock", "_watchers_by_key")

    def __init__(self, name: str, concurrency: Concurrency) -> None:
        self._concurrency = concurrency
        self._lock = concurrency.lock(name)
        self._watchers_by_key: dict[Key, Watchers[OperationT]] = {}

    def watch(self, key: Key, operation: OperationT) -> None:
        """Add an operation. Not between finding its list and adding may the list be removed."""
        with self._lock:
            watchers = self._watchers_by_key.get(key)
            if watchers is None:
                watchers = Watchers(self._concurrency.lock(f"watchers of {key}"))
                self._watchers_by_key[key] = watchers
            watchers.watch(operation)

    def get(self, key: Key) -> Watchers[OperationT] | None:
        """The operations of a key, if there ever were any since its list was last empty."""
        with self._lock:
            return self._watchers_by_key.get(key)

    def remove(self, key: Key) -> Watchers[OperationT] | None:
        """Take a key's whole list out."""
        with self._lock:
            return self._watchers_by_key.pop(key, None)

    def remove_if_empty(self, key: Key, watchers: Watchers[OperationT]) -> None:
        """Forget a key that nobody watches; another list of this key, or a new watcher, stays."""
        with self._lock:
            if self._watchers_by_key.get(key) is watchers and watchers.is_empty:
                del self._watchers_by_key[key]

    def all_watchers(self) -> tuple[tuple[Key, Watchers[OperationT]], ...]:
        """Every key of this shard with its operations."""
        with self._lock:
            return tuple(self._watchers_by_key.items())


class WatcherLists(Generic[OperationT]):
    """All watch lists of a purgatory, in shards by the hash of their key."""

    __slots__ = ("_shards",)

    def __init__(self, name: str, shards: int, concurrency: Concurrency) -> None:
        self._shards: tuple[WatcherList[OperationT], ...] = tuple(
            WatcherList(f"{name} shard {number}", concurrency) for number in range(shards)
        )

    def of(self, key: Key) -> WatcherList[OperationT]:
        """The shard of a key: the same in every process, for schedules that can be repeated."""
        return self._shards[zlib.crc32(repr(key).encode()) % len(self._shards)]

    def count_watched(self) -> int:
        """The lengths of all lists together."""
        return sum(
            watchers.count_watched()
            for shard in self._shards
            for _, watchers in shard.all_watchers()
        )

    def by_key(self) -> dict[Key, tuple[OperationT, ...]]:
        """All lists as they are now, shard by shard in the order of their keys' coming."""
        return {
            key: watchers.operations()
            for shard in self._shards
            for key, watchers in shard.all_watchers()
        }

    def purge_completed(self) -> int:
        """Drop what is complete from every list; returns how many entries that were."""
        return sum(self._purge(shard) for shard in self._shards)

    def _purge(self, shard: WatcherList[OperationT]) -> int:
        purged = 0
        for key, watchers in shard.all_watchers():
            purged += watchers.purge_completed()
            if watchers.is_empty:
                shard.remove_if_empty(key, watchers)
        return purged
