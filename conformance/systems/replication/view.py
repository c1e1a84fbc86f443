"""What is read off a broker's running objects: plain numbers and tuples, nothing computed.

Reading is apart from making TLA+ values, because the same views come again and again while
values are costly to make: `observation` makes each once.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.systems.replication.broker import TOPIC_ID, TOPIC_PARTITION, Broker
from conformance.systems.replication.channel import (
    EpochRoundTrip,
    FetchRoundTrip,
    ListOffsetsRoundTrip,
    RoundTrip,
)
from conformance.systems.shared.replication.views import (
    NO_ALTER_PARTITION,
    NO_EPOCH,
    NO_OFFSET,
    BrokerView,
    MessageView,
    alter_partition_view,
)
from impl.errors import Errors
from impl.leader_epoch_file_cache import LeaderEpochFileCache
from impl.log import Log
from impl.partition import Partition
from impl.partition_state import CommittedPartitionState
from impl.types import LATEST_TIMESTAMP, UNDEFINED_EPOCH


class InconsistentState(Exception):
    """What an object says of itself cannot be."""


_NO_MESSAGE = MessageView()
_UNKNOWN = (NO_OFFSET, NO_EPOCH)


def running(broker: Broker, log: Log, trip: RoundTrip | None, brokers: Sequence[int]) -> BrokerView:
    """The view of a broker whose process runs."""
    partition = broker.partition
    state, offset = _fetch_state(broker)
    if partition is None:
        known: tuple[int, int | None, frozenset[int], int, frozenset[int]]
        known = (NO_EPOCH, None, frozenset(), 0, frozenset())
        followers = (_UNKNOWN,) * len(brokers)
    else:
        known = (
            partition.leader_epoch,
            partition.leader_replica_id,
            partition.partition_state.isr,
            partition.partition_epoch if partition.is_leader else 0,
            _pending_isr(partition),
        )
        followers = tuple([_follower(partition, other) for other in brokers])
    return BrokerView(
        True,
        broker.epoch,
        *known,
        followers,
        _records(log),
        log.log_start_offset,
        log.high_watermark,
        _epoch_cache(log.leader_epoch_cache),
        state,
        offset,
        _message(trip),
        alter_partition_view(broker.alter_partition),
    )


def stopped(broker: Broker, log: Log, trip: RoundTrip | None, brokers: Sequence[int]) -> BrokerView:
    """The view of a broker whose process ended: what is on its disk, what it has sent."""
    return BrokerView(
        False,
        broker.epoch,
        NO_EPOCH,
        None,
        frozenset(),
        0,
        frozenset(),
        (_UNKNOWN,) * len(brokers),
        _records(log),
        log.log_start_offset,
        log.high_watermark,
        _epoch_cache(log.leader_epoch_cache),
        "None",
        0,
        _message(trip),
        NO_ALTER_PARTITION,
    )


def _pending_isr(partition: Partition) -> frozenset[int]:
    state = partition.partition_state
    if not state.is_inflight:
        return frozenset()
    if isinstance(state, CommittedPartitionState):
        raise InconsistentState("a committed ISR is not in flight")
    return state.sent_leader_and_isr.isr


def _follower(partition: Partition, broker: int) -> tuple[int, int]:
    replica = partition.get_replica(broker)
    if replica is None:
        return _UNKNOWN
    epoch = replica.state.broker_epoch
    return replica.state.log_end_offset, NO_EPOCH if epoch is None else epoch


def _records(log: Log) -> tuple[int, ...]:
    """Each record's epoch, from the log start on."""
    start = log.log_start_offset
    return tuple(
        [
            batch.partition_leader_epoch
            for batch in log.batches()
            for offset in range(batch.base_offset, batch.last_offset + 1)
            if offset >= start
        ]
    )


def _epoch_cache(cache: LeaderEpochFileCache | None) -> tuple[tuple[int, int], ...]:
    if cache is None:
        return ()
    return tuple([(entry.epoch, entry.start_offset) for entry in cache.epoch_entries()])


def _fetch_state(broker: Broker) -> tuple[str, int]:
    thread = broker.fetcher()
    state = None if thread is None else thread.fetch_state(TOPIC_PARTITION)
    if state is not None:
        return state.state.value, state.fetch_offset
    if broker.fetcher_manager.failed_partitions.contains(TOPIC_PARTITION):
        return "Failed", 0
    return ("Offline" if broker.is_offline else "None"), 0


def _message(trip: RoundTrip | None) -> MessageView:
    match trip:
        case None:
            return _NO_MESSAGE
        case FetchRoundTrip():
            return _fetch(trip)
        case EpochRoundTrip():
            return _epoch(trip)
        case ListOffsetsRoundTrip():
            return _list_offsets(trip)


def _epoch(trip: EpochRoundTrip) -> MessageView:
    asked = trip.request[TOPIC_PARTITION]
    epoch = _or_none(asked.current_leader_epoch)
    if trip.response is None:
        return MessageView(
            "EpochRequest", trip.leader, epoch, trip.broker_epoch, last_epoch=asked.leader_epoch
        )
    end = trip.response.partitions[TOPIC_PARTITION]
    return MessageView(
        "EpochResponse",
        trip.leader,
        epoch,
        error=end.error.name,
        epoch=end.leader_epoch,
        end_offset=end.end_offset,
    )


def _fetch(trip: FetchRoundTrip) -> MessageView:
    asked = trip.fetch.partition_data[TOPIC_PARTITION]
    epoch, offset = _or_none(asked.current_leader_epoch), asked.fetch_offset
    if asked.topic_id != TOPIC_ID:
        raise InconsistentState(f"a fetch names the topic {asked.topic_id}")
    if trip.response is None:
        sent_by = trip.fetch.request.broker_epoch
        last_epoch = _or_none(asked.last_fetched_epoch)
        return MessageView("FetchRequest", trip.leader, epoch, sent_by, offset, last_epoch)
    data = trip.response.partitions[TOPIC_PARTITION]
    if data.error is not Errors.NONE:
        return MessageView(
            "FetchResponse", trip.leader, epoch, fetch_offset=offset, error=data.error.name
        )
    end = data.diverging_epoch
    if end is not None:  # its other fields are not read by a follower
        return MessageView(
            "FetchResponse",
            trip.leader,
            epoch,
            fetch_offset=offset,
            epoch=end.leader_epoch,
            end_offset=end.end_offset,
        )
    return MessageView(
        "FetchResponse",
        trip.leader,
        epoch,
        fetch_offset=offset,
        records=tuple([batch.partition_leader_epoch for batch in data.records.batches()]),
        high_watermark=data.high_watermark,
        log_start_offset=data.log_start_offset,
    )


def _list_offsets(trip: ListOffsetsRoundTrip) -> MessageView:
    kind = "Latest" if trip.request.timestamp == LATEST_TIMESTAMP else "Earliest"
    epoch, fetch_epoch = trip.request.current_leader_epoch, _or_none(trip.fetch_epoch)
    if trip.response is None:
        return MessageView(
            f"{kind}Request", trip.leader, epoch, trip.broker_epoch, last_epoch=fetch_epoch
        )
    return MessageView(
        f"{kind}Response",
        trip.leader,
        epoch,
        last_epoch=fetch_epoch,
        error=trip.response.error.name,
        end_offset=trip.response.offset,
    )


def _or_none(epoch: int | None) -> int:
    return UNDEFINED_EPOCH if epoch is None else epoch
