"""A shard with its offsets, and the snapshots between what is committed and what is written.

Source: SnapshottableCoordinator.
"""

from __future__ import annotations

from ..errors import IllegalStateException
from .coordinator_shard import CoordinatorRecord, CoordinatorShard, ShardBuilder
from .timeline import SnapshotRegistry


class SnapshottableCoordinator:
    """`last_written_offset` is the log's end as the shard knows it; both offsets are next ones."""

    def __init__(self, builder: ShardBuilder) -> None:
        self.snapshot_registry = SnapshotRegistry()
        self.shard: CoordinatorShard = builder(self.snapshot_registry)
        self.last_written_offset = 0
        self.last_committed_offset = 0
        self.snapshot_registry.get_or_create_snapshot(0)

    def replay(
        self, offset: int, producer_id: int, producer_epoch: int, record: CoordinatorRecord
    ) -> None:
        """Let the shard replay a record."""
        self.shard.replay(offset, producer_id, producer_epoch, record)

    def replay_end_transaction_marker(
        self, producer_id: int, producer_epoch: int, *, is_commit: bool
    ) -> None:
        """Let the shard replay the end of a transaction."""
        self.shard.replay_end_transaction_marker(producer_id, producer_epoch, is_commit=is_commit)

    def revert_last_written_offset(self, offset: int) -> None:
        """Go back to the snapshot at `offset`. Raises IllegalStateException above the present."""
        if offset > self.last_written_offset:
            raise IllegalStateException(
                f"new offset {offset} must be at or below {self.last_written_offset}"
            )
        self.snapshot_registry.revert_to_snapshot(offset)
        self.last_written_offset = offset

    def update_last_written_offset(self, offset: int) -> None:
        """Take a snapshot there. Raises IllegalStateException unless the offset is higher."""
        if offset <= self.last_written_offset:
            raise IllegalStateException(
                f"new offset {offset} must be above {self.last_written_offset}"
            )
        self.last_written_offset = offset
        self.snapshot_registry.get_or_create_snapshot(offset)

    def update_last_committed_offset(self, offset: int) -> None:
        """Forget the snapshots below. Raises IllegalStateException outside
        [last committed, last written]."""
        if not self.last_committed_offset <= offset <= self.last_written_offset:
            raise IllegalStateException(
                f"new committed offset {offset} must be within "
                f"[{self.last_committed_offset}, {self.last_written_offset}]"
            )
        self.last_committed_offset = offset
        self.snapshot_registry.delete_snapshots_up_to(offset)
