"""A broker's shard and its partition as the spec's values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from conformance.systems.runtime.partition import (
    PendingLoads,
    PendingTimeouts,
    QueuedEvents,
    Replica,
)
from conformance.systems.shared.shard import fresh_shard
from conformance.tla import Fn, Value, make_function
from impl.coordinator.coordinator_runtime import (
    CoordinatorBatch,
    CoordinatorContext,
    CoordinatorRuntime,
    CoordinatorState,
    DeferredEvent,
)
from impl.coordinator.coordinator_shard import CoordinatorShard
from impl.coordinator.snapshottable_coordinator import SnapshottableCoordinator
from impl.coordinator.timeline import LATEST_EPOCH
from impl.records import Record, RecordBatch

_NO_EPOCH = -1


class ShardView(Protocol):
    """How a shard's state and its records look to the specification."""

    empty: Value
    """The state of a shard whose log is empty."""

    def memory(self, shard: CoordinatorShard, offset: int) -> Value:
        """The state at an offset."""

    def record(self, batch: RecordBatch, record: Record, /) -> Mapping[Value, Value]:
        """What a record of a batch says: key, value, and what the shard needs of its place. Its
        write is its timestamp."""


@dataclass(slots=True)
class RuntimeBroker:
    """One broker: its part of the partition, its runtime, and what is queued for it."""

    replica: Replica
    events: QueuedEvents
    loads: PendingLoads
    timer: PendingTimeouts
    runtime: CoordinatorRuntime
    view: ShardView
    roles: list[tuple[bool, int]] = field(default_factory=list)
    """Elections (True) and resignations whose events are queued, with their epochs."""


def log_of(broker: RuntimeBroker) -> Value:
    """Records, each with its write, its leader epoch, and whether its batch ends there."""
    return tuple(
        Fn(
            _record(broker.view, batch, record)
            | {
                "epoch": batch.partition_leader_epoch,
                "last": record.offset_delta == len(batch.records) - 1,
            }
        )
        for batch in broker.replica.log.batches()
        for record in batch.records
    )


def _record(view: ShardView, batch: RecordBatch, record: Record) -> dict[Value, Value]:
    return {**view.record(batch, record), "write": record.timestamp}


def roles_of(broker: RuntimeBroker) -> Value:
    """Elections and resignations, oldest first."""
    return tuple(Fn({"load": load, "epoch": epoch}) for load, epoch in broker.roles)


def state_of(broker: RuntimeBroker) -> str:
    """A context that was never elected is none to the spec."""
    context = broker.runtime.context
    if context is None or context.state is CoordinatorState.INITIAL:
        return "NONE"
    return str(context.state.value)


def tenure_of(broker: RuntimeBroker) -> int:
    """The context's leader epoch; 0 if it has none."""
    context = broker.runtime.context
    return 0 if context is None else max(context.epoch, 0)


def listener_of(broker: RuntimeBroker) -> Value:
    """Whether there is a listener, whether it has retired, and the watermark that it keeps."""
    adaptor = broker.replica.adaptor
    context = broker.runtime.context
    if adaptor is None or context is None or context.high_watermark_listener is None:
        return Fn({"kind": "NONE", "number": -1})
    number = context.high_watermark_listener.last_high_watermark
    return Fn({"kind": "RETIRED" if adaptor.retired else "LIVE", "number": number})


def shard_of(broker: RuntimeBroker) -> Value:
    """The shard while it is served; a fresh one otherwise: nobody asks a shard that is loaded."""
    context = broker.runtime.context
    if context is None or context.state is not CoordinatorState.ACTIVE:
        return fresh_shard(broker.view.empty)
    assert context.coordinator is not None, "an active context has a coordinator"
    return _shard(broker.view, context, context.coordinator)


def _shard(
    view: ShardView, context: CoordinatorContext, coordinator: SnapshottableCoordinator
) -> Value:
    shard, batch = coordinator.shard, context.current_batch
    offsets = coordinator.snapshot_registry.epochs_list()
    return Fn(
        {
            "memory": view.memory(shard, LATEST_EPOCH),
            "snapshots": make_function({at: view.memory(shard, at) for at in offsets}),
            "written": coordinator.last_written_offset,
            "committed": coordinator.last_committed_offset,
            "batch": () if batch is None else _open_batch(view, batch),
            "joined": frozenset() if batch is None else _writes(batch.deferred),
            "deferred": frozenset(
                Fn({"at": at, "write": write})
                for at, events in context.deferred_events.items()
                for write in _writes(events)
            ),
        }
    )


def _open_batch(view: ShardView, batch: CoordinatorBatch) -> Value:
    if not batch.records:
        return ()
    (made,) = batch.memory_records().batches()
    placed = made.with_offset_and_epoch(batch.base_offset, _NO_EPOCH)
    return tuple(Fn(_record(view, placed, record)) for record in placed.records)


def _writes(deferred: Iterable[DeferredEvent]) -> frozenset[int]:
    return frozenset(map(_write_of, deferred))


@dataclass(frozen=True, slots=True)
class WriteNumber:
    """The response of a write that gets its number when its event runs, as those of timers do."""

    number: int


def _write_of(deferred: DeferredEvent) -> int:
    """An event's name is the number of its write, unless its response says it."""
    response = deferred.response
    return response.number if isinstance(response, WriteNumber) else int(deferred.event.name)
