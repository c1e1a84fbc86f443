"""What a reading consumer's objects hold, as the spec's values: ConsumerPositions.tla's mapping."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from conformance.systems.positions.client import BACKOFF_MS
from conformance.systems.positions.reader import ReadingConsumer, error_name, topic_partition
from conformance.tla import Fn, Value
from impl.consumer.fetcher import BufferedFetch
from impl.errors import Errors
from impl.group.client.network_client import ClientRequest
from impl.group.client.subscription_state import TopicPartitionState
from impl.network import FetchRequest, ListOffsetsRequest, OffsetsForLeaderEpochRequest
from impl.types import EARLIEST_TIMESTAMP

if TYPE_CHECKING:
    from conformance.systems.positions.reads import ReadsSystem

NO_OFFSET = -1
NO_EPOCH = 0
_NO_REQUEST: Value = Fn({"asked": frozenset(), "answer": "none"})


def _retry(reader: ReadingConsumer, state: TopicPartitionState) -> str:
    now_ms = reader.clock.milliseconds()
    if state.next_retry_time_ms is None or not state.awaits_retry(now_ms):
        return "now"
    return "backoff" if state.next_retry_time_ms - now_ms <= BACKOFF_MS else "sent"


def _partition(reader: ReadingConsumer, state: TopicPartitionState | None) -> Value:
    """Its TopicPartitionState, or that it is not assigned."""
    position = None if state is None else state.position
    leader = None if position is None else position.current_leader
    strategy = None if state is None else state.reset_strategy
    return Fn(
        {
            "state": "NONE" if state is None else state.fetch_state.name,
            "offset": NO_OFFSET if position is None else position.offset,
            "epoch": (position and position.offset_epoch) or NO_EPOCH,
            "leader": (leader and leader.epoch) or NO_EPOCH,
            "known": leader is not None and leader.leader is not None,
            "strategy": "none" if strategy is None else strategy.value,
            "retry": "now" if state is None else _retry(reader, state),
            "paused": state is not None and state.paused,
        }
    )


def _tps(system: ReadsSystem) -> Value:
    reader = system.reader
    return tuple(
        _partition(reader, reader.subscriptions.state(topic_partition(number)))
        for number in system.partitions
    )


def _metadata(system: ReadsSystem) -> Value:
    metadata = system.reader.metadata
    return tuple(
        Fn(
            {
                "epoch": metadata.cached_leader_epoch(topic_partition(number)) or NO_EPOCH,
                "seen": metadata.last_seen_leader_epoch(topic_partition(number)) or NO_EPOCH,
            }
        )
        for number in system.partitions
    )


def _lookup(system: ReadsSystem) -> Value:
    pending = system.reader.coordinator._pending_committed_offset_request
    if pending is None:
        return _NO_REQUEST
    answer = "sent"
    if pending.response.is_done:
        answer = "failed" if pending.response.failed else "done"
    asked = frozenset(partition.partition for partition in pending.partitions)
    return Fn({"asked": asked, "answer": answer})


def _request(system: ReadsSystem, sent: ClientRequest) -> Value:
    fields: dict[Value, Value] = {"offset": NO_OFFSET, "epoch": NO_EPOCH, "strategy": "none"}
    match sent.request:
        case ListOffsetsRequest(partition=partition, current_leader_epoch=leader, timestamp=time):
            strategy = "earliest" if time == EARLIEST_TIMESTAMP else "latest"
            fields |= {"kind": "list", "strategy": strategy, "leader": leader}
        case OffsetsForLeaderEpochRequest(partitions=partitions):
            ((partition, asked),) = partitions.items()
            offset = system.offsets_asked_about[sent]
            leader = asked.current_leader_epoch or NO_EPOCH
            fields |= {
                "kind": "epochs",
                "offset": offset,
                "epoch": asked.leader_epoch,
                "leader": leader,
            }
        case FetchRequest(to_send=to_send):
            ((partition, wanted),) = to_send.items()
            leader = wanted.current_leader_epoch or NO_EPOCH
            fields |= {"kind": "fetch", "offset": wanted.fetch_offset, "leader": leader}
        case other:
            raise TypeError(f"no leader is asked {other}")
    return Fn(fields | {"partition": partition.partition})


def _buffered(fetch: BufferedFetch) -> Value:
    offset = fetch.fetch_offset
    if fetch.completed is not None:
        offset = fetch.completed.next_fetch_offset
    batches = fetch.data.records.batches() if fetch.data.error is Errors.NONE else ()
    return Fn(
        {
            "partition": fetch.partition.partition,
            "offset": offset,
            "records": tuple(b.partition_leader_epoch for b in batches if b.base_offset >= offset),
            "error": fetch.data.error.name,
            "ready": fetch.completed is not None,
        }
    )


def _failure(system: ReadsSystem) -> Value:
    fetcher = system.reader.offset_fetcher
    return Fn(
        {
            "reset": error_name(fetcher._reset_failure),
            "validation": error_name(fetcher._validation_failure),
        }
    )


def _consumed(system: ReadsSystem) -> Value:
    consumed = system.reader.subscriptions.all_consumed()
    positions = (consumed.get(topic_partition(number)) for number in system.partitions)
    return tuple(NO_OFFSET if each is None else each.offset for each in positions)


def _result(system: ReadsSystem) -> Value:
    records = tuple(
        Fn({"partition": record.topic_partition.partition, "offset": record.offset})
        for record in system.reader.records
    )
    return Fn({"records": records, "error": error_name(system.reader.error)})


OF_READER: dict[str, Callable[[ReadsSystem], Value]] = {
    "tps": _tps,
    "metadata": _metadata,
    "outdated": lambda system: (
        system.reader.offset_fetcher._validated_version != system.reader.metadata.update_version
    ),
    "refresh": lambda system: system.reader.metadata.update_requested,
    "lookup": _lookup,
    "sent": lambda system: tuple(
        _request(system, each) for each in system.reader.asked_of_leaders()
    ),
    "buffer": lambda system: tuple(map(_buffered, system.reader.fetcher.buffer)),
    "failure": _failure,
    "consumed": _consumed,
    "result": _result,
}
"""Each variable, and how the objects show it; the leaders' own are not the consumer's."""
