"""A shard of values by key that may be written in transactions, as committed offsets are."""

from __future__ import annotations

from .coordinator_shard import CoordinatorRecord, CoordinatorResult
from .pending_values import PendingValues
from .timeline import SnapshotRegistry


class TransactionalStoreShard:
    """Operations return the records that change the store; `replay` changes it."""

    def __init__(self, registry: SnapshotRegistry) -> None:
        self.values: PendingValues[bytes, bytes] = PendingValues(registry)

    def put(self, values: dict[bytes, bytes | None]) -> CoordinatorResult:
        """Set the values, or take out those that are None."""
        return CoordinatorResult(tuple(map(CoordinatorRecord, values, values.values())))

    def replay(
        self, offset: int, producer_id: int, _producer_epoch: int, record: CoordinatorRecord
    ) -> None:
        """See `CoordinatorShard.replay`."""
        self.values.replay(offset, producer_id, record.key, record.value)

    def replay_end_transaction_marker(
        self, producer_id: int, _producer_epoch: int, *, is_commit: bool
    ) -> None:
        """See `CoordinatorShard.replay_end_transaction_marker`."""
        self.values.replay_end_transaction_marker(producer_id, is_commit=is_commit)

    def on_loaded(self) -> None:
        """See `CoordinatorShard.on_loaded`."""

    def on_unloaded(self) -> None:
        """See `CoordinatorShard.on_unloaded`."""
