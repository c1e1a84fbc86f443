"""A shard whose values may be written in transactions (spec/CoordinatorTransactions.tla)."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.runtime.store import StoredValues
from conformance.tla import Value, make_function, make_record
from impl.coordinator.coordinator_shard import CoordinatorResult, CoordinatorShard
from impl.coordinator.pending_values import ValueAt
from impl.coordinator.timeline import SnapshotRegistry
from impl.coordinator.transactional_store_shard import TransactionalStoreShard
from impl.end_transaction_marker import deserialize
from impl.records import NO_PRODUCER, Record, RecordBatch

_NO_PRODUCER = 0


class TransactionalValues(StoredValues):
    """The store in a model; see `ModelShard`."""

    def __init__(self, max_batch: int) -> None:
        super().__init__(max_batch)
        self.empty = make_record(offsets=make_function({}), pending=make_function({}))

    def build(self, registry: SnapshotRegistry) -> CoordinatorShard:
        """See `ModelShard.build`."""
        return TransactionalStoreShard(registry)

    def operation(self, shard: CoordinatorShard, kind: Value, number: int) -> CoordinatorResult:
        """What a write of a kind does (ValuesOperation)."""
        assert isinstance(shard, TransactionalStoreShard), "the model's shard knows transactions"
        value = self.encode(number)
        values: Mapping[Value, dict[bytes, bytes | None]] = {
            "put": {b"k1": value},
            "two": {b"k1": value, b"k2": value},
            "delete": {b"k1": None},
            "nothing": {},
        }
        return shard.put(values[kind])

    def memory(self, shard: CoordinatorShard, offset: int) -> Value:
        """See `ShardView.memory`."""
        assert isinstance(shard, TransactionalStoreShard), "the model's shard knows transactions"
        values, pending = shard.values.entries(offset), shard.values.pending(offset)
        return make_record(
            offsets=make_function({key.decode(): _entry(entry) for key, entry in values.items()}),
            pending=make_function(
                {
                    (producer, key.decode()): _entry(entry)
                    for (producer, key), entry in pending.items()
                }
            ),
        )

    def record(self, batch: RecordBatch, record: Record) -> Mapping[Value, Value]:
        """See `ShardView.record`. The producer is in the batch's header."""
        producer, is_control = batch.producer.producer_id, batch.is_control_batch
        return {
            **(_marker(batch) if is_control else super().record(batch, record)),
            "producer": _NO_PRODUCER if producer == NO_PRODUCER.producer_id else producer,
            "control": is_control,
            "at": batch.base_offset + record.offset_delta,
        }


def _marker(batch: RecordBatch) -> Mapping[Value, Value]:
    """A marker's key is the result."""
    return {"key": "COMMIT" if deserialize(batch).is_commit else "ABORT", "value": 0}


def _entry(entry: ValueAt[bytes]) -> Value:
    return make_record(value=int(entry.value), at=entry.record_offset)
