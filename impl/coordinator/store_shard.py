"""The smallest shard: values by key, and tombstones."""

from __future__ import annotations

from collections.abc import Sequence

from .coordinator_shard import CoordinatorRecord, CoordinatorResult
from .timeline import LATEST_EPOCH, SnapshotRegistry, TimelineHashMap


class StoreShard:
    """Operations return the records that change the store; `replay` changes it."""

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._values: TimelineHashMap[bytes, bytes] = TimelineHashMap(registry)

    def put(self, values: dict[bytes, bytes | None]) -> CoordinatorResult:
        """Set the values, or take out those that are None."""
        return CoordinatorResult(tuple(map(CoordinatorRecord, values, values.values())))

    def put_at_once(self, values: dict[bytes, bytes | None]) -> CoordinatorResult:
        """The same, changing the store before the records are appended."""
        result = self.put(values)
        for record in result.records:
            self._set(record)
        return CoordinatorResult(result.records, replay_records=False)

    def put_parts(self, values: Sequence[tuple[bytes, bytes]]) -> CoordinatorResult:
        """Set the values one after the other: each of them stands for itself."""
        records = tuple(CoordinatorRecord(key, value) for key, value in values)
        return CoordinatorResult(records, is_atomic=False)

    def entries(self, committed_offset: int = LATEST_EPOCH) -> dict[bytes, bytes]:
        """All values at an offset."""
        return self._values.entries(committed_offset)

    def replay(
        self, _offset: int, _producer_id: int, _producer_epoch: int, record: CoordinatorRecord
    ) -> None:
        """See `CoordinatorShard.replay`. What this shard keeps knows no transactions."""
        self._set(record)

    def replay_end_transaction_marker(
        self, _producer_id: int, _producer_epoch: int, *, is_commit: bool
    ) -> None:
        """See `CoordinatorShard.replay_end_transaction_marker`."""

    def _set(self, record: CoordinatorRecord) -> None:
        if record.value is None:
            self._values.remove(record.key)
        else:
            self._values.put(record.key, record.value)

    def on_loaded(self) -> None:
        """See `CoordinatorShard.on_loaded`."""

    def on_unloaded(self) -> None:
        """See `CoordinatorShard.on_unloaded`."""
