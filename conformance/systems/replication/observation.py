"""Makes the spec's values of brokers' views: the mapping of Replication.tla's table.

A state of the spec is a few dozen small records that come again and again, so each value is
made once per view and kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.systems.protocol import Observation
from conformance.systems.replication.controller import Registration
from conformance.systems.replication.view import (
    NO_EPOCH,
    AlterPartitionView,
    BrokerView,
    MessageView,
)
from conformance.tla import Fn, Value
from impl.types import NO_LEADER

VARIABLES = (
    "registration",
    "online",
    "brokerEpoch",
    "leaderEpoch",
    "leader",
    "isr",
    "partitionEpoch",
    "pendingIsr",
    "followerState",
    "log",
    "logStartOffset",
    "highWatermark",
    "epochCache",
    "fetchState",
    "fetchOffset",
    "channel",
    "alterPartition",
)
"""Observed. Not observed: `leaderAndIsr` (requests that the controller may still deliver, on no
broker yet) and the ghosts."""

_REMEMBERED = 200_000


class Observer:
    """Values for views; `names` are the brokers' names in the spec, in the order of their ids."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._rows: dict[BrokerView, tuple[Value, ...]] = {}
        self._states: dict[tuple[object, ...], Observation] = {}

    def observe(self, registration: Registration, views: tuple[BrokerView, ...]) -> Observation:
        """The observed variables; immutable, as it is shared by all equal observations."""
        key = (registration, views)
        known = self._states.get(key)
        if known is None:
            if len(self._states) >= _REMEMBERED:
                self._states.clear()
                self._rows.clear()
            known = self._states[key] = self._state(registration, views)
        return known

    def _state(self, registration: Registration, views: tuple[BrokerView, ...]) -> Observation:
        columns = zip(*map(self._row, views), strict=True)
        values = [self._by_name(column) for column in columns]
        head = self._registration(registration)
        return Observation(dict(zip(VARIABLES, [head, *values], strict=True)))

    def _row(self, view: BrokerView) -> tuple[Value, ...]:
        row = self._rows.get(view)
        if row is None:
            row = self._rows[view] = self._make_row(view)
        return row

    def _make_row(self, view: BrokerView) -> tuple[Value, ...]:
        followers = [
            Fn({"logEndOffset": end, "brokerEpoch": epoch}) for end, epoch in view.followers
        ]
        cache = [Fn({"epoch": epoch, "start": start}) for epoch, start in view.epoch_cache]
        return (
            view.online,
            view.broker_epoch,
            view.leader_epoch,
            self._leader(view.leader),
            self._set(view.isr),
            view.partition_epoch,
            self._set(view.pending_isr),
            self._by_name(followers),
            view.log,
            view.log_start_offset,
            view.high_watermark,
            tuple(cache),
            view.fetch_state,
            view.fetch_offset,
            self._message(view.message),
            self._alter_partition(view.alter_partition),
        )

    def _registration(self, value: Registration) -> Fn:
        return Fn(
            {
                "leader": self._leader(value.leader),
                "leaderEpoch": value.leader_epoch,
                "isr": self._set(value.isr),
                "partitionEpoch": value.partition_epoch,
            }
        )

    def _message(self, value: MessageView) -> Fn:
        return Fn(
            {
                "type": value.type,
                "leader": self._leader(value.leader),
                "currentLeaderEpoch": value.current_leader_epoch,
                "brokerEpoch": value.broker_epoch,
                "fetchOffset": value.fetch_offset,
                "lastEpoch": value.last_epoch,
                "error": value.error,
                "epoch": value.epoch,
                "endOffset": value.end_offset,
                "records": value.records,
                "highWatermark": value.high_watermark,
                "logStartOffset": value.log_start_offset,
            }
        )

    def _alter_partition(self, value: AlterPartitionView) -> Fn:
        epochs: dict[Value, Value] = dict.fromkeys(self._names, NO_EPOCH)
        epochs.update({self._names[broker - 1]: epoch for broker, epoch in value.broker_epochs})
        return Fn(
            {
                "type": value.type,
                "leaderEpoch": value.leader_epoch,
                "partitionEpoch": value.partition_epoch,
                "isr": self._set(value.isr),
                "brokerEpochs": Fn(epochs),
                "error": value.error,
            }
        )

    def _by_name(self, values: Sequence[Value]) -> Fn:
        return Fn(dict(zip(self._names, values, strict=True)))

    def _leader(self, leader: int | None) -> str:
        return "none" if leader is None or leader == NO_LEADER else self._names[leader - 1]

    def _set(self, brokers: frozenset[int]) -> frozenset[Value]:
        return frozenset(self._names[broker - 1] for broker in brokers)
