"""Makes the spec's values of brokers' views: the mapping of Replication.tla's table.

A state of the spec is a few dozen small records that come again and again, so each value is
made once per view and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.systems.protocol import Observation
from conformance.systems.shared.replication.controller import NO_LEADER, PartitionRegistration
from conformance.systems.shared.replication.views import (
    NO_EPOCH,
    AlterPartitionView,
    BrokerView,
    MessageView,
)
from conformance.tla import Fn, Value

_REMEMBERED = 200_000


class ReplicationObserver:
    """Values for views; `names` are the brokers' names in the spec, in the order of their ids."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._rows: dict[BrokerView, tuple[Value, ...]] = {}
        self._states: dict[tuple[object, ...], Observation] = {}

    def observe(
        self, registration: PartitionRegistration, views: tuple[BrokerView, ...]
    ) -> Observation:
        """The observed variables; immutable, as it is shared by all equal observations."""
        key = (registration, views)
        known = self._states.get(key)
        if known is None:
            if len(self._states) >= _REMEMBERED:
                self._states.clear()
                self._rows.clear()
            known = self._states[key] = self._state(registration, views)
        return known

    def _state(
        self, registration: PartitionRegistration, views: tuple[BrokerView, ...]
    ) -> Observation:
        columns = zip(*map(self._row, views), strict=True)
        values = [self._by_name(column) for column in columns]
        head = self._registration(registration)
        return Observation({"registration": head, **dict(zip(_OF_BROKERS, values, strict=True))})

    def _row(self, view: BrokerView) -> tuple[Value, ...]:
        row = self._rows.get(view)
        if row is None:
            row = self._rows[view] = tuple(value(self, view) for value in _OF_BROKERS.values())
        return row

    def _registration(self, value: PartitionRegistration) -> Fn:
        return Fn(
            {
                "leader": self.leader(value.leader),
                "leaderEpoch": value.leader_epoch,
                "isr": self.brokers(value.isr),
                "partitionEpoch": value.partition_epoch,
            }
        )

    def followers(self, view: BrokerView) -> Fn:
        """What a leader knows of each follower."""
        ends = [Fn({"logEndOffset": end, "brokerEpoch": epoch}) for end, epoch in view.followers]
        return self._by_name(ends)

    def message(self, value: MessageView) -> Fn:
        """The fetcher's request, or the answer to it."""
        return Fn(
            {
                "type": value.type,
                "leader": self.leader(value.leader),
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

    def alter_partition(self, value: AlterPartitionView) -> Fn:
        """The ISR change in flight, or the controller's answer."""
        epochs: dict[Value, Value] = dict.fromkeys(self._names, NO_EPOCH)
        epochs.update({self._names[broker - 1]: epoch for broker, epoch in value.broker_epochs})
        return Fn(
            {
                "type": value.type,
                "leaderEpoch": value.leader_epoch,
                "partitionEpoch": value.partition_epoch,
                "isr": self.brokers(value.isr),
                "brokerEpochs": Fn(epochs),
                "error": value.error,
            }
        )

    def _by_name(self, values: Sequence[Value]) -> Fn:
        return Fn(dict(zip(self._names, values, strict=True)))

    def leader(self, leader: int | None) -> str:
        """A broker's name, or that there is no leader."""
        return "none" if leader is None or leader == NO_LEADER else self._names[leader - 1]

    def brokers(self, brokers: frozenset[int]) -> frozenset[Value]:
        """Their names."""
        return frozenset(self._names[broker - 1] for broker in brokers)


def _epoch_cache(view: BrokerView) -> Value:
    return tuple(Fn({"epoch": epoch, "start": start}) for epoch, start in view.epoch_cache)


_OF_BROKERS: dict[str, Callable[[ReplicationObserver, BrokerView], Value]] = {
    "online": lambda _, view: view.online,
    "brokerEpoch": lambda _, view: view.broker_epoch,
    "leaderEpoch": lambda _, view: view.leader_epoch,
    "leader": lambda to, view: to.leader(view.leader),
    "isr": lambda to, view: to.brokers(view.isr),
    "partitionEpoch": lambda _, view: view.partition_epoch,
    "pendingIsr": lambda to, view: to.brokers(view.pending_isr),
    "followerState": lambda to, view: to.followers(view),
    "log": lambda _, view: view.log,
    "logStartOffset": lambda _, view: view.log_start_offset,
    "highWatermark": lambda _, view: view.high_watermark,
    "epochCache": lambda _, view: _epoch_cache(view),
    "fetchState": lambda _, view: view.fetch_state,
    "fetchOffset": lambda _, view: view.fetch_offset,
    "channel": lambda to, view: to.message(view.message),
    "alterPartition": lambda to, view: to.alter_partition(view.alter_partition),
}
"""Each variable that is a function of the brokers, and how a broker's view shows it."""

VARIABLES = ("registration", *_OF_BROKERS)
"""Observed. Not observed: `leaderAndIsr` (requests that the controller may still deliver, on no
broker yet) and the ghosts."""
