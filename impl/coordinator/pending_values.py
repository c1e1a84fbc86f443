"""Values by key, and those that wait for the end of the transaction that wrote them.

Source: OffsetMetadataManager.Offsets, its replay and replayEndTransactionMarker. A transaction is
known by its producer id.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..records import NO_PRODUCER
from .timeline import LATEST_EPOCH, SnapshotRegistry, TimelineHashMap

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ValueAt(Generic[Value]):
    """A value, and the offset of its record."""

    value: Value
    record_offset: int


class PendingValues(Generic[Key, Value]):
    """All of it can be read at any epoch that has a snapshot. Values must not change."""

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._values: TimelineHashMap[Key, ValueAt[Value]] = TimelineHashMap(registry)
        self._pending: TimelineHashMap[tuple[int, Key], ValueAt[Value]] = TimelineHashMap(registry)

    def get(self, key: Key, epoch: int = LATEST_EPOCH) -> Value | None:
        """The value that is in force."""
        entry = self._values.get(key, epoch)
        return None if entry is None else entry.value

    def entries(self, epoch: int = LATEST_EPOCH) -> dict[Key, ValueAt[Value]]:
        """All values that are in force."""
        return self._values.entries(epoch)

    def pending(self, epoch: int = LATEST_EPOCH) -> dict[tuple[int, Key], ValueAt[Value]]:
        """By producer id and key, the values of transactions that have not ended."""
        return self._pending.entries(epoch)

    def replay(self, offset: int, producer_id: int, key: Key, value: Value | None) -> None:
        """A record at `offset`. A tombstone takes what is pending of its key in any transaction."""
        if value is None:
            self._values.remove(key)
            for place in self.pending():
                if place[1] == key:
                    self._pending.remove(place)
        elif producer_id == NO_PRODUCER.producer_id:
            self._values.put(key, ValueAt(value, offset))
        else:
            self._pending.put((producer_id, key), ValueAt(value, offset))

    def replay_end_transaction_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """A value that was committed comes into force unless a newer one is: transactions may end
        in another order than they wrote in."""
        for place, entry in self.pending().items():
            if place[0] != producer_id:
                continue
            self._pending.remove(place)
            current = self._values.get(place[1])
            if is_commit and (current is None or entry.record_offset > current.record_offset):
                self._values.put(place[1], entry)
