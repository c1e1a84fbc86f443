"""Logs, producer states and the client as the spec's values."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.systems.produce.replica import ProducerReplica
from conformance.tla import Fn, Value, make_function
from impl.producer.transaction_manager import ProducerBatch, TransactionManager
from impl.producer_state.producer_state_entry import ProducerStateEntry
from impl.records import RecordBatch

PRODUCER_ID = 7
_NO_ENTRY = Fn({"epoch": -1, "batches": ()})


def log_of(replica: ProducerReplica) -> Value:
    """Batches, each with its producer's numbers, its first offset and its leader epoch."""
    return tuple(map(_logged, replica.log.batches()))


def _logged(batch: RecordBatch) -> Value:
    _, epoch, sequence = batch.producer
    return Fn(
        {
            "epoch": epoch,
            "seq": sequence,
            "size": len(batch.records),
            "value": _number(batch.records[0].value),
            "offset": batch.base_offset,
            "leaderEpoch": batch.partition_leader_epoch,
        }
    )


def _number(value: bytes | None) -> int:
    assert value is not None, "the application sends numbers"
    return int(value)


def producer_of(replica: ProducerReplica) -> Value:
    """The producer's entry in memory."""
    return _entry(replica.log.producer_state_manager.active_producers.values())


def snapshots_of(replica: ProducerReplica) -> Value:
    """The entry in each snapshot file, by offset."""
    manager = replica.log.producer_state_manager
    files: dict[Value, Value] = {o: _entry(manager.snapshot(o)) for o in manager.snapshots}
    return make_function(files)


def _entry(entries: Iterable[ProducerStateEntry]) -> Value:
    own = [entry for entry in entries if entry.producer_id == PRODUCER_ID]
    if not own:
        return _NO_ENTRY
    (entry,) = own
    batches = tuple(
        Fn({"first": known.first_seq, "last": known.last_seq, "offset": known.first_offset})
        for known in entry.batch_metadata
    )
    return Fn({"epoch": entry.producer_epoch, "batches": batches})


def client_of(manager: TransactionManager, values: int) -> Value:
    """The producer's own bookkeeping, and how many batches the application has sent."""
    return Fn(
        {
            "epoch": manager.producer_epoch,
            "next": manager.next_sequence,
            "lastAcked": manager.last_acked_sequence,
            "pending": tuple(map(_sent, manager.in_flight_batches)),
            "values": values,
        }
    )


def _sent(batch: ProducerBatch) -> Value:
    return Fn(
        {
            "epoch": batch.producer_epoch,
            "seq": batch.base_sequence,
            "size": len(batch.records),
            "value": value_of(batch),
        }
    )


def value_of(batch: ProducerBatch) -> int:
    """What the application sent with the batch."""
    return _number(batch.records[0].value)


def answer_of(batch: ProducerBatch, error: str, offset: int) -> Value:
    """What a leader answered a batch."""
    return Fn(
        {
            "epoch": batch.producer_epoch,
            "seq": batch.base_sequence,
            "error": error,
            "offset": offset,
        }
    )
