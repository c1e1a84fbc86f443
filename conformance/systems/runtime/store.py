"""A shard that stores values by key, as spec/CoordinatorStore.tla has it."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.tla import Value, make_function
from impl.coordinator.coordinator_runtime import MAX_RECORD_OVERHEAD, RECORD_BATCH_OVERHEAD
from impl.coordinator.coordinator_shard import CoordinatorResult, CoordinatorShard
from impl.coordinator.session_shard import SessionShard
from impl.coordinator.store_shard import StoreShard
from impl.coordinator.timeline import SnapshotRegistry
from impl.records import Record, RecordBatch

KEYS = ("k1", "k2")
TASK_KEY = "k1"
"""The key of the only task in models of CoordinatorTasks.tla."""
_TOMBSTONE = 0
WIDTH = 4
"""Bytes of a value, so that all values have one size."""
_PLAIN_RECORD = MAX_RECORD_OVERHEAD + len("k1") + WIDTH


class StoredValues:
    """The store in a model; see `ModelShard`."""

    def __init__(self, max_batch: int) -> None:
        self.empty: Value = make_function(dict.fromkeys(KEYS, _TOMBSTONE))
        # A tombstone is smaller than a value: where a batch takes one record, any record fills it.
        size = max_batch * _PLAIN_RECORD if max_batch > 1 else 1
        self.max_message_bytes = RECORD_BATCH_OVERHEAD + size

    def build(self, registry: SnapshotRegistry) -> CoordinatorShard:
        """See `ModelShard.build`."""
        return StoreShard(registry)

    def operation(self, shard: CoordinatorShard, kind: Value, number: int) -> CoordinatorResult:
        """What a write of a kind does (StoreOperation)."""
        assert isinstance(shard, StoreShard), "the model's shard is a store"
        value = self.encode(number)
        if kind == "nothing":
            return CoordinatorResult()
        if kind == "two":
            return shard.put({b"k1": value, b"k2": value})
        if kind == "parts":
            return shard.put_parts(((b"k1", value), (b"k2", value), (b"k1", value)))
        if kind == "delete":
            return shard.put({b"k1": None})
        if kind == "direct":
            return shard.put_at_once({b"k1": value})
        if kind == "large":
            return shard.put_at_once({b"k1": value.rjust(self.max_message_bytes)})
        return shard.put({b"k1": value})

    @staticmethod
    def encode(number: int) -> bytes:
        """A value as the store has it."""
        return str(number).rjust(WIDTH).encode()

    def memory(self, shard: CoordinatorShard, offset: int) -> Value:
        """See `ShardView.memory`."""
        assert isinstance(shard, StoreShard), "the model's shard is a store"
        entries = shard.entries(offset)
        return make_function({key: _value(entries.get(key.encode())) for key in KEYS})

    def record(self, _batch: RecordBatch, record: Record) -> Mapping[Value, Value]:
        """See `ShardView.record`."""
        assert record.key is not None, "the store writes keys"
        return {"key": record.key.decode(), "value": _value(record.value)}


class StoredSessions(StoredValues):
    """The store whose values have timers, and may be given to a task (CoordinatorTasks.tla)."""

    def operation(self, shard: CoordinatorShard, kind: Value, number: int) -> CoordinatorResult:
        """What a write of a kind does (TasksOperation)."""
        if kind != "offload":
            return super().operation(shard, kind, number)
        assert isinstance(shard, SessionShard), "the model's shard has sessions"
        return shard.offload(TASK_KEY.encode(), b"k2")

    def record(self, _batch: RecordBatch, record: Record) -> Mapping[Value, Value]:
        """See `ShardView.record`. A tombstone's key is padded."""
        assert record.key is not None, "the store writes keys"
        return {"key": record.key.decode().strip(), "value": _value(record.value)}


def _value(stored: bytes | None) -> int:
    return _TOMBSTONE if stored is None else int(stored)
