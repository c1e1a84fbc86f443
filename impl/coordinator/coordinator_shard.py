"""What a coordinator's state machine is to the runtime: it makes records, and replays them.

Source: CoordinatorShard, CoordinatorRecord, CoordinatorResult.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .timeline import SnapshotRegistry


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A key, and its value; a tombstone has none. Both as they are written."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class CoordinatorResult:
    """What a write operation gives: the records to append, and the answer for its caller.

    An operation that has changed the shard itself says `replay_records=False` (classic groups).
    The records of an atomic result stand in one batch, or nowhere.
    """

    records: tuple[CoordinatorRecord, ...] = ()
    response: object = None
    replay_records: bool = True
    is_atomic: bool = True


class CoordinatorShard(Protocol):
    """The state machine of one partition; all that it keeps lies in timeline structures."""

    def replay(
        self, offset: int, producer_id: int, producer_epoch: int, record: CoordinatorRecord
    ) -> None:
        """Change the state as a record says; `offset` is the record's. Both of the producer are -1
        unless it is written in a transaction."""

    def replay_end_transaction_marker(
        self, producer_id: int, producer_epoch: int, *, is_commit: bool
    ) -> None:
        """The producer's transaction has ended: its records count, or they never do."""

    def on_loaded(self) -> None:
        """The log is replayed: the shard serves from now on."""

    def on_unloaded(self) -> None:
        """The shard is about to be dropped."""


ShardBuilder = Callable[[SnapshotRegistry], CoordinatorShard]
"""Makes a fresh shard whose structures belong to the registry (CoordinatorShardBuilder)."""
