"""Records, coordinators and requests as values of Transactions.tla.

The specification numbers transactions, and a record tells which request it comes from. The
implementation knows neither; but it notes when a transaction began and when its record was last
changed, and no two steps are taken at one time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.systems.transaction.broker import CoordinatorBroker
from conformance.systems.transaction.log_system import kind_of
from conformance.systems.transaction.partition import (
    PartitionLeader,
    TransactionBatch,
    Verification,
)
from conformance.systems.transaction.state_log import PendingAppend
from conformance.tla import Fn, Value
from impl.end_transaction_marker import deserialize
from impl.records import RecordBatch
from impl.transaction.transaction_marker_channel_manager import TxnMarkerEntry
from impl.transaction.transaction_metadata import TransactionMetadata, TxnTransitMetadata
from impl.transaction.transaction_state import PREPARES, TransactionState

NO_CLIENT = "none"
_PRODUCER = "t"
_NONE = "None"
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


def _name(state: TransactionState) -> str:
    return "".join(map(str.capitalize, state.name.split("_")))


def record_of(record: TxnTransitMetadata, origins: Origins) -> Value:
    """A record of the log."""
    return _record(record, origins, origins[record.txn_last_update_timestamp])


def _record(record: TxnTransitMetadata, origins: Origins, origin: StepOrigin) -> Value:
    start = record.txn_start_timestamp
    return Fn(
        {
            "state": _name(record.txn_state),
            "epoch": record.producer_epoch,
            "parts": frozenset(partition.topic for partition in record.topic_partitions),
            "txn": origins[start].txn if start >= 0 else 0,
            "client": origin.client,
            "request": origin.request,
        }
    )


def coordinator_of(broker: CoordinatorBroker, origins: Origins) -> Value:
    """What a broker knows of the id. Who loads a record does not know who has asked for it."""
    metadata = broker.metadata
    current = _UNKNOWN if metadata is None else metadata.current
    is_own = current.txn_last_update_timestamp > broker.loaded_at
    origin = origins[current.txn_last_update_timestamp] if is_own else StepOrigin()
    return Fn(
        {
            "tenure": broker.tenure,
            "loaded": metadata is not None,
            "now": _record(current, origins, origin),
            "pending": _NONE if metadata is None else _pending(broker, metadata),
        }
    )


def _pending(broker: CoordinatorBroker, metadata: TransactionMetadata) -> str:
    state = metadata.pending_state
    if state is None:
        return _NONE
    if state is TransactionState.PREPARE_EPOCH_FENCE:
        return "Fence"
    waits = metadata.state in PREPARES and broker.channel.has_pending_markers(
        metadata.transactional_id
    )
    return "Complete" if waits else _name(state)


def append_of(append: PendingAppend, origins: Origins) -> Value:
    """An append whose call-back is to come; the specification counts places from 1."""
    return Fn(
        {
            "broker": append.broker,
            "tenure": append.tenure,
            "record": record_of(append.record, origins),
            "at": append.offset + 1,
        }
    )


def log_of(leader: PartitionLeader, origins: Origins) -> Value:
    """The records of a partition."""
    return tuple(_logged(batch, origins) for batch in leader.log.batches())


def _logged(batch: RecordBatch, origins: Origins) -> Value:
    if batch.is_control_batch:
        txn, sequence = origins[batch.max_timestamp].txn, -1
        coordinator_epoch = deserialize(batch).coordinator_epoch
    else:
        txn, sequence = map(int, (batch.records[0].value or b"").split())
        coordinator_epoch = 0
    return Fn(
        {
            "kind": kind_of(batch),
            "producer": _PRODUCER,
            "epoch": batch.producer.epoch,
            "coordinatorEpoch": coordinator_epoch,
            "sequence": sequence,
            "txn": txn,
        }
    )


def batch_of(batch: TransactionBatch) -> Value:
    """A batch that was sent."""
    return Fn(
        {
            "type": "Produce",
            "partition": batch.partition,
            "epoch": batch.epoch,
            "sequence": batch.sequence,
            "txn": batch.txn,
        }
    )


def end_of(txn: int, epoch: int, *, commits: bool) -> Value:
    """An EndTxn request."""
    return Fn({"type": "EndTxn", "epoch": epoch, "commits": commits, "txn": txn})


def marker_of(partition: str, marker: TxnMarkerEntry, txn: int) -> Value:
    """A marker on its way to a partition."""
    return Fn(
        {
            "type": "Marker",
            "partition": partition,
            "kind": "Committed" if marker.is_commit else "Aborted",
            "epoch": marker.producer_epoch,
            "coordinatorEpoch": marker.coordinator_epoch,
            "txn": txn,
        }
    )


def verification_of(verification: Verification) -> Value:
    """A batch that is being verified."""
    return Fn({"batch": batch_of(verification.batch), "isVerified": verification.is_verified})
