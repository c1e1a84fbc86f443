"""Records, coordinators and requests as values of Transactions.tla.

The specification numbers transactions, and a record tells which request it comes from. An
implementation knows neither; but it notes when a transaction began and when its record was last
changed, and no two steps are taken at one time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.systems.shared.transaction.instance import TransactionBatch, batch_of
from conformance.systems.transaction.parts import (
    NOTHING_PENDING,
    BatchInLog,
    Coordinator,
    InFlightAppend,
    SentMarker,
    TransactionPartition,
    Verification,
)
from conformance.tla import Fn, Value
from impl.transaction.transaction_metadata import TxnTransitMetadata
from impl.transaction.transaction_state import TransactionState

NO_CLIENT = "none"
_PRODUCER = "t"
_UNKNOWN = TxnTransitMetadata(-1, 0, -1)


@dataclass(frozen=True, slots=True)
class StepOrigin:
    """Whose step it was: the transaction that it may begin, the instance that asked for an epoch,
    the transaction whose EndTxn it handled."""

    txn: int = 0
    client: str = NO_CLIENT
    request: int = 0


Origins = Mapping[int, StepOrigin]
"""By the time of the step, in ms."""


def record_of(record: TxnTransitMetadata, origins: Origins) -> Value:
    """A record of the log."""
    is_tombstone = record.txn_state is TransactionState.DEAD
    origin = StepOrigin() if is_tombstone else origins[record.txn_last_update_timestamp]
    return _record(record, origins, origin)


def _record(record: TxnTransitMetadata, origins: Origins, origin: StepOrigin) -> Value:
    start = record.txn_start_timestamp
    return Fn(
        {
            "state": record.txn_state.state_name,
            "epoch": record.producer_epoch,
            "parts": frozenset(partition.topic for partition in record.topic_partitions),
            "txn": origins[start].txn if start >= 0 else 0,
            "client": origin.client,
            "request": origin.request,
        }
    )


def coordinator_of(broker: Coordinator, origins: Origins) -> Value:
    """What a broker knows of the id. Who loads a record does not know who has asked for it.

    An id without an epoch is in memory only: nobody was told of it.
    """
    known = broker.known
    current = _UNKNOWN if known is None else known.current
    is_own = current.txn_last_update_timestamp > broker.loaded_at and current.producer_epoch >= 0
    origin = origins[current.txn_last_update_timestamp] if is_own else StepOrigin()
    return Fn(
        {
            "tenure": broker.tenure,
            "loaded": known is not None,
            "now": _record(current, origins, origin),
            "pending": NOTHING_PENDING if known is None else known.pending,
        }
    )


def append_of(append: InFlightAppend, origins: Origins) -> Value:
    """An append whose call-back is to come; the specification counts places from 1."""
    return Fn(
        {
            "broker": append.broker,
            "tenure": append.tenure,
            "record": record_of(append.record, origins),
            "at": append.offset + 1,
        }
    )


def log_of(partition: TransactionPartition, origins: Origins) -> Value:
    """The records of a partition."""
    return tuple(_logged(batch, origins) for batch in partition.leader.batches)


def _logged(batch: BatchInLog, origins: Origins) -> Value:
    if batch.is_marker:
        txn, sequence = origins[batch.time].txn, -1
    else:
        txn, sequence = map(int, batch.value.split())
    return Fn(
        {
            "kind": batch.kind,
            "producer": _PRODUCER,
            "epoch": batch.epoch,
            "coordinatorEpoch": batch.coordinator_epoch,
            "sequence": sequence,
            "txn": txn,
        }
    )


def end_of(txn: int, epoch: int, *, commits: bool) -> Value:
    """An EndTxn request."""
    return Fn({"type": "EndTxn", "epoch": epoch, "commits": commits, "txn": txn})


def marker_of(sent: SentMarker, txn: int) -> Value:
    """A marker on its way to a partition."""
    return Fn(
        {
            "type": "Marker",
            "partition": sent.partition,
            "kind": sent.kind,
            "epoch": sent.epoch,
            "coordinatorEpoch": sent.coordinator_epoch,
            "txn": txn,
        }
    )


def verification_of(verification: Verification) -> Value:
    """A batch that is being verified."""
    return Fn({"batch": batch_of(verification.batch), "isVerified": verification.is_verified})


def verified(batch: TransactionBatch) -> Value:
    """A batch of which the coordinator has said that the partition is in the transaction."""
    return Fn({"batch": batch_of(batch), "isVerified": True})
