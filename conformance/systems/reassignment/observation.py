"""The controller's decisions and the leader's view as the spec's values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from conformance.systems.reassignment.leader import LeaderBroker, SentFetch
from conformance.tla import Fn, Value, make_function
from impl.controller.replication_control_manager import (
    BrokerRegistration,
    PartitionRegistration,
    ReplicationControlManager,
)
from impl.errors import Errors
from impl.partition_state import CommittedPartitionState, LeaderAndIsr, PendingExpandIsr
from impl.replica import Replica

Name = Callable[[int], str]
"""Of a broker, by its id."""
_NO_EPOCH = -1
_NO_DELTA = Fn({"partitionEpoch": -1})
_NO_CHANGE = Fn({"type": "None", "isr": frozenset[Value]()})
NO_POSITION = Fn({"end": -1, "epoch": _NO_EPOCH, "caughtUp": False, "lastEnd": -1})
NO_FETCH = Fn({"offset": -1, "brokerEpoch": _NO_EPOCH, "leaderEpoch": _NO_EPOCH})


def names(name: Name, ids: Collection[int]) -> Value:
    """A set of brokers."""
    return frozenset(map(name, ids))


def registration_of(name: Name, partition: PartitionRegistration) -> Value:
    """What the controller has decided."""
    return Fn(
        {
            "replicas": names(name, partition.replicas),
            "adding": names(name, partition.adding_replicas),
            "removing": names(name, partition.removing_replicas),
            "isr": names(name, partition.isr),
            "leaderEpoch": partition.leader_epoch,
            "partitionEpoch": partition.partition_epoch,
        }
    )


def brokers_of(name: Name, brokers: Mapping[int, BrokerRegistration]) -> Value:
    """Each broker's state and epoch."""
    return make_function(
        {name(id_): Fn({"state": b.state.value, "epoch": b.epoch}) for id_, b in brokers.items()}
    )


def delta_of(name: Name, leader: LeaderBroker) -> Value:
    """The change that is published and not applied."""
    return _NO_DELTA if leader.delta is None else registration_of(name, leader.delta)


def heard_of(name: Name, controller: ReplicationControlManager) -> Value:
    """Brokers that may be told to stop."""
    return names(name, [id_ for id_ in controller.brokers if controller.may_shut_down(id_)])


def view_of(name: Name, leader: LeaderBroker) -> Value:
    """The leader's partition."""
    partition = leader.partition
    state, start = partition.partition_state, partition.leader_epoch_start_offset
    assert start is not None, "the broker leads"
    pending = _NO_CHANGE
    if not isinstance(state, CommittedPartitionState):
        expands = isinstance(state, PendingExpandIsr)
        proposed = names(name, state.sent_leader_and_isr.isr)
        pending = Fn({"type": "Expand" if expands else "Shrink", "isr": proposed})
    return Fn(
        {
            "replicas": names(name, partition.assignment),
            "isr": names(name, partition.in_sync_replica_ids),
            "pending": pending,
            "leaderEpoch": partition.leader_epoch,
            "partitionEpoch": partition.partition_epoch,
            "epochStart": start,
        }
    )


def position_of(leader: LeaderBroker, follower: int) -> Value:
    """What the leader knows of a follower."""
    replica = leader.partition.get_replica(follower)
    return NO_POSITION if replica is None else _position(leader, replica)


def _position(leader: LeaderBroker, replica: Replica) -> Value:
    state = replica.state
    recently = leader.now_ms - leader.lag_ms
    return Fn(
        {
            "end": state.log_end_offset,
            "epoch": _NO_EPOCH if state.broker_epoch is None else state.broker_epoch,
            "caughtUp": state.last_caught_up_time_ms >= recently,
            "lastEnd": state.last_fetch_leader_log_end_offset
            if state.last_fetch_time_ms >= recently
            else -1,
        }
    )


def alter_of(name: Name, leader: LeaderBroker, brokers: Collection[int]) -> Value:
    """AlterPartition: none, a request or an answer."""
    exchange = leader.exchange
    if exchange is None:
        return _alter(name, brokers, "None")
    decision = exchange.decision
    if decision is None:
        epochs = dict(exchange.proposed.isr_with_broker_epoch)
        return _alter(name, brokers, "Request", exchange.proposed, epochs)
    if isinstance(decision, Errors):
        return _alter(name, brokers, "Answer", error=decision.name)
    return _alter(name, brokers, "Answer", decision)


def _alter(
    name: Name,
    brokers: Collection[int],
    kind: str,
    content: LeaderAndIsr | None = None,
    epochs: Mapping[int, int] | None = None,
    error: str = "NONE",
) -> Value:
    known = epochs or {}
    return Fn(
        {
            "type": kind,
            "isr": names(name, content.isr if content else ()),
            "epochs": make_function({name(id_): known.get(id_, _NO_EPOCH) for id_ in brokers}),
            "leaderEpoch": content.leader_epoch if content else 0,
            "partitionEpoch": content.partition_epoch if content else 0,
            "error": error,
        }
    )


def fetch_of(sent: SentFetch | None) -> Value:
    """A fetch on its way."""
    if sent is None:
        return NO_FETCH
    return Fn(
        {
            "offset": sent.offset,
            "brokerEpoch": sent.broker_epoch,
            "leaderEpoch": sent.leader_epoch,
        }
    )
