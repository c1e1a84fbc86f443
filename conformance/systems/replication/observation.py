"""Reads the spec's variables off the implementation: the mapping of Replication.tla's table.

Every value is taken from the running objects at each observation. Equal parts are made once and
kept: a state of the spec is a few dozen small records that come again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from conformance.systems.replication.broker import TOPIC_PARTITION, Broker
from conformance.systems.replication.channel import (
    Channel,
    EpochRoundTrip,
    FetchRoundTrip,
    ListOffsetsRoundTrip,
    RoundTrip,
)
from conformance.systems.replication.controller import AlterPartitionItem, Registration
from conformance.tla.values import Fn, Value, make_record
from impl.errors import Errors
from impl.leader_epoch_file_cache import LeaderEpochFileCache
from impl.log import Log
from impl.network import FetchResponse, ListOffsetsResponse, OffsetsForLeaderEpochResponse
from impl.partition import Partition
from impl.partition_state import CommittedPartitionState
from impl.types import LATEST_TIMESTAMP, NO_LEADER, UNDEFINED_EPOCH

NO_EPOCH = -1
NO_OFFSET = -1

Name = Callable[[int], str]
"""A broker's name in the spec."""


@cache
def epoch_entry(epoch: int, start: int) -> Fn:
    """One entry of `epochCache`."""
    return Fn({"epoch": epoch, "start": start})


@cache
def follower(log_end_offset: int, broker_epoch: int) -> Fn:
    """One entry of `followerState`."""
    return Fn({"logEndOffset": log_end_offset, "brokerEpoch": broker_epoch})


@cache
def message(
    type_: str = "None",
    leader: str = "none",
    current_leader_epoch: int = NO_EPOCH,
    broker_epoch: int = 0,
    fetch_offset: int = 0,
    last_epoch: int = NO_EPOCH,
    error: str = "NONE",
    epoch: int = NO_EPOCH,
    end_offset: int = NO_OFFSET,
    records: tuple[int, ...] = (),
    high_watermark: int = 0,
    log_start_offset: int = 0,
) -> Fn:
    """A value of `channel`: a field that a message lacks has NoMessage's value."""
    return Fn(
        {
            "type": type_,
            "leader": leader,
            "currentLeaderEpoch": current_leader_epoch,
            "brokerEpoch": broker_epoch,
            "fetchOffset": fetch_offset,
            "lastEpoch": last_epoch,
            "error": error,
            "epoch": epoch,
            "endOffset": end_offset,
            "records": records,
            "highWatermark": high_watermark,
            "logStartOffset": log_start_offset,
        }
    )


def registration(value: Registration, name: Name) -> Fn:
    """`registration`."""
    return Fn(
        {
            "leader": leader_name(value.leader, name),
            "leaderEpoch": value.leader_epoch,
            "isr": names(value.isr, name),
            "partitionEpoch": value.partition_epoch,
        }
    )


def leader_name(leader: int | None, name: Name) -> str:
    """A leader's name; "none" if there is none or it is not known."""
    return "none" if leader is None or leader == NO_LEADER else name(leader)


def names(brokers: frozenset[int], name: Name) -> frozenset[Value]:
    """A set of brokers by their names."""
    return frozenset(map(name, brokers))


# ---- one broker --------------------------------------------------------------------------------


def leader_epoch(partition: Partition | None) -> int:
    """`leaderEpoch[b]`."""
    return NO_EPOCH if partition is None else partition.leader_epoch


def isr(partition: Partition | None, name: Name) -> frozenset[Value]:
    """`isr[b]`: what the leader takes for committed."""
    return frozenset() if partition is None else names(partition.partition_state.isr, name)


def pending_isr(partition: Partition | None, name: Name) -> frozenset[Value]:
    """`pendingIsr[b]`: the ISR that was sent to the controller and is not yet decided."""
    state = None if partition is None else partition.partition_state
    if state is None or isinstance(state, CommittedPartitionState):
        return frozenset()
    return names(state.sent_leader_and_isr.isr, name)


def partition_epoch(partition: Partition | None) -> int:
    """`partitionEpoch[b]`: of a leader."""
    return partition.partition_epoch if partition is not None and partition.is_leader else 0


def follower_states(partition: Partition | None, brokers: Sequence[int]) -> tuple[Fn, ...]:
    """`followerState[b]`, in the order of `brokers`."""
    unknown = follower(NO_OFFSET, NO_EPOCH)
    if partition is None:
        return (unknown,) * len(brokers)
    found = []
    for broker in brokers:
        replica = partition.get_replica(broker)
        if replica is None:
            found.append(unknown)
        else:
            epoch = replica.state.broker_epoch
            found.append(
                follower(replica.state.log_end_offset, NO_EPOCH if epoch is None else epoch)
            )
    return tuple(found)


def log(value: Log | None) -> tuple[int, ...]:
    """`log[b]`: each record's epoch, from the log start on."""
    if value is None:
        return ()
    start = value.log_start_offset
    return tuple(
        [
            batch.partition_leader_epoch
            for batch in value.batches()
            for offset in range(batch.base_offset, batch.last_offset + 1)
            if offset >= start
        ]
    )


def epoch_cache(value: LeaderEpochFileCache | None) -> tuple[Fn, ...]:
    """`epochCache[b]`."""
    if value is None:
        return ()
    return tuple([epoch_entry(e.epoch, e.start_offset) for e in value.epoch_entries()])


def fetch_state(broker: Broker) -> tuple[str, int]:
    """`fetchState[b]` and `fetchOffset[b]`."""
    thread = broker.fetcher()
    if thread is not None:
        state = thread.fetch_state(TOPIC_PARTITION)
        if state is not None:
            return state.state.value, state.fetch_offset
    failed = broker.fetcher_manager.failed_partitions.contains(TOPIC_PARTITION)
    return ("Failed" if failed else "None"), 0


# ---- messages ----------------------------------------------------------------------------------


def channel(value: Channel, name: Name) -> Fn:
    """`channel[f]`."""
    return message() if value.trip is None else _round_trip(value.trip, name(value.trip.leader))


def _round_trip(trip: RoundTrip, leader: str) -> Fn:
    match trip:
        case EpochRoundTrip():
            asked = trip.request[TOPIC_PARTITION]
            epoch = _or_none(asked.current_leader_epoch)
            if trip.response is None:
                return message(
                    "EpochRequest", leader, epoch, trip.broker_epoch, last_epoch=asked.leader_epoch
                )
            return _epoch_response(trip.response, leader, epoch)
        case FetchRoundTrip():
            return _fetch(trip, leader)
        case ListOffsetsRoundTrip():
            return _list_offsets(trip, leader)


def _epoch_response(response: OffsetsForLeaderEpochResponse, leader: str, epoch: int) -> Fn:
    end = response.partitions[TOPIC_PARTITION]
    return message(
        "EpochResponse",
        leader,
        epoch,
        error=end.error.name,
        epoch=end.leader_epoch,
        end_offset=end.end_offset,
    )


def _fetch(trip: FetchRoundTrip, leader: str) -> Fn:
    asked = trip.fetch.partition_data[TOPIC_PARTITION]
    epoch = _or_none(asked.current_leader_epoch)
    if trip.response is None:
        return message(
            "FetchRequest",
            leader,
            epoch,
            trip.fetch.request.broker_epoch,
            asked.fetch_offset,
            _or_none(asked.last_fetched_epoch),
        )
    return _fetch_response(trip.response, leader, epoch, asked.fetch_offset)


def _fetch_response(response: FetchResponse, leader: str, epoch: int, offset: int) -> Fn:
    data = response.partitions[TOPIC_PARTITION]
    if data.error is not Errors.NONE:
        return message("FetchResponse", leader, epoch, fetch_offset=offset, error=data.error.name)
    end = data.diverging_epoch
    if end is not None:
        # Its other fields are not read by a follower.
        return message(
            "FetchResponse",
            leader,
            epoch,
            fetch_offset=offset,
            epoch=end.leader_epoch,
            end_offset=end.end_offset,
        )
    return message(
        "FetchResponse",
        leader,
        epoch,
        fetch_offset=offset,
        records=tuple([batch.partition_leader_epoch for batch in data.records.batches()]),
        high_watermark=data.high_watermark,
        log_start_offset=data.log_start_offset,
    )


def _list_offsets(trip: ListOffsetsRoundTrip, leader: str) -> Fn:
    latest = trip.request.timestamp == LATEST_TIMESTAMP
    epoch = trip.request.current_leader_epoch
    response: ListOffsetsResponse | None = trip.response
    if response is None:
        return message(
            "LatestRequest" if latest else "EarliestRequest", leader, epoch, trip.broker_epoch
        )
    return message(
        "LatestResponse" if latest else "EarliestResponse",
        leader,
        epoch,
        error=response.error.name,
        end_offset=response.offset,
    )


def alter_partition(item: AlterPartitionItem | None, brokers: Sequence[int], name: Name) -> Fn:
    """`alterPartition[b]`."""
    unknown = {name(broker): NO_EPOCH for broker in brokers}
    if item is None:
        return _alter_partition("None", NO_EPOCH, 0, frozenset(), unknown, "NONE")
    sent = item.proposed
    members = names(sent.isr, name)
    if item.decision is None:
        epochs = unknown | {name(b): e for b, e in sent.isr_with_broker_epoch}
        return _alter_partition(
            "Request", sent.leader_epoch, sent.partition_epoch, members, epochs, "NONE"
        )
    error = item.decision.name if isinstance(item.decision, Errors) else "NONE"
    return _alter_partition(
        "Response", sent.leader_epoch, sent.partition_epoch, members, unknown, error
    )


def _alter_partition(
    type_: str,
    epoch: int,
    version: int,
    members: frozenset[Value],
    epochs: dict[str, int],
    error: str,
) -> Fn:
    return Fn(
        {
            "type": type_,
            "leaderEpoch": epoch,
            "partitionEpoch": version,
            "isr": members,
            "brokerEpochs": make_record(**epochs),
            "error": error,
        }
    )


def _or_none(epoch: int | None) -> int:
    return UNDEFINED_EPOCH if epoch is None else epoch
