"""Maps and values that can be read, and put back, as they were at an earlier offset.

Source: org.apache.kafka.timeline.SnapshotRegistry, TimelineHashMap and TimelineObject.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from ..errors import IllegalStateException

LATEST_EPOCH = (1 << 63) - 1
"""SnapshotRegistry.LATEST_EPOCH."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
_Changes = dict[Hashable, object]
_ABSENT = object()


class SnapshotRegistry:
    """Snapshots by epoch (an offset). Each keeps what was changed since: the former values."""

    def __init__(self) -> None:
        self._snapshots: dict[int, dict[int, _Changes]] = {}
        self._maps: list[TimelineHashMap[Hashable, object]] = []

    def epochs_list(self) -> list[int]:
        """The epochs that have a snapshot, oldest first."""
        return list(self._snapshots)

    def get_or_create_snapshot(self, epoch: int) -> None:
        """Keep the present state as that of `epoch`. Raises IllegalStateException if a later
        epoch has a snapshot."""
        newest = next(reversed(self._snapshots), epoch)
        if epoch < newest:
            raise IllegalStateException(f"can't create a snapshot at {epoch}: {newest} has one")
        self._snapshots.setdefault(epoch, {})

    def revert_to_snapshot(self, epoch: int) -> None:
        """Put every map back. Raises IllegalStateException if the epoch has no snapshot."""
        if epoch not in self._snapshots:
            raise IllegalStateException(f"no snapshot at {epoch}: {self.epochs_list()} have one")
        for later in reversed(self.epochs_list()):
            if later < epoch:
                break
            for index, changes in self._snapshots[later].items():
                self._maps[index].put_back(changes)
            if later > epoch:
                del self._snapshots[later]
        self._snapshots[epoch] = {}

    def delete_snapshots_up_to(self, epoch: int) -> None:
        """Forget the snapshots before `epoch`."""
        for earlier in self.epochs_list():
            if earlier < epoch:
                del self._snapshots[earlier]

    def register(self, timeline_map: TimelineHashMap[Hashable, object]) -> int:
        """Take a map in; its changes are kept under the number that is returned."""
        self._maps.append(timeline_map)
        return len(self._maps) - 1

    def note(self, index: int, key: Hashable, former: object) -> None:
        """Before a change: the newest snapshot keeps the former value, once."""
        if self._snapshots:
            newest = self._snapshots[next(reversed(self._snapshots))]
            newest.setdefault(index, {}).setdefault(key, former)

    def changes_since(self, index: int, epoch: int) -> list[_Changes]:
        """What the snapshots at or after `epoch` keep of a map, oldest first.

        Raises IllegalStateException if the epoch has no snapshot.
        """
        if epoch not in self._snapshots:
            raise IllegalStateException(f"no snapshot at {epoch}: {self.epochs_list()} have one")
        return [
            changes.get(index, {}) for later, changes in self._snapshots.items() if later >= epoch
        ]


class TimelineHashMap(Generic[Key, Value]):
    """A map whose entries can be read at any epoch that has a snapshot. Values must not change."""

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._entries: dict[Hashable, object] = {}
        self._index = registry.register(self)  # type: ignore[arg-type]  # kept by its changes alone

    def put(self, key: Key, value: Value) -> None:
        """Set the latest value."""
        self._registry.note(self._index, key, self._entries.get(key, _ABSENT))
        self._entries[key] = value

    def remove(self, key: Key) -> None:
        """Take the key out of the latest state, if it is there."""
        if key in self._entries:
            self._registry.note(self._index, key, self._entries[key])
            del self._entries[key]

    def get(self, key: Key, epoch: int = LATEST_EPOCH) -> Value | None:
        """The value at an epoch; None if there was none."""
        value = self._entries.get(key, _ABSENT)
        if epoch != LATEST_EPOCH:
            changes = self._registry.changes_since(self._index, epoch)
            value = next((former[key] for former in changes if key in former), value)
        return None if value is _ABSENT else value  # type: ignore[return-value]  # what `put` took

    def entries(self, epoch: int = LATEST_EPOCH) -> dict[Key, Value]:
        """All entries at an epoch."""
        entries = dict(self._entries)
        if epoch != LATEST_EPOCH:
            for changes in reversed(self._registry.changes_since(self._index, epoch)):
                _apply(entries, changes)
        return entries  # type: ignore[return-value]  # what `put` took

    def put_back(self, changes: _Changes) -> None:
        """Undo changes; nothing is noted."""
        _apply(self._entries, changes)


class TimelineObject(Generic[Value]):
    """A single value that can be read at any epoch that has a snapshot."""

    def __init__(self, registry: SnapshotRegistry, initial: Value) -> None:
        self._initial = initial
        self._map: TimelineHashMap[str, Value] = TimelineHashMap(registry)

    def set(self, value: Value) -> None:
        """Set the latest value."""
        self._map.put("", value)

    def get(self, epoch: int = LATEST_EPOCH) -> Value:
        """The value at an epoch."""
        value = self._map.get("", epoch)
        return self._initial if value is None else value


def _apply(entries: dict[Hashable, object], former: _Changes) -> None:
    for key, value in former.items():
        if value is _ABSENT:
            entries.pop(key, None)
        else:
            entries[key] = value
