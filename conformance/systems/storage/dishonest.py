"""What no honest peer sends, and how the broker refuses it: LogStorageSteps.Refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.systems.protocol import ActionRefused
from conformance.systems.storage.broker import TOPIC_PARTITION, StorageBroker
from impl.errors import ApiException, Errors
from impl.log_types import OffsetsOutOfOrderException, UnexpectedAppendOffsetException
from impl.partition import FetchParams
from impl.records import MemoryRecords, RecordBatch
from impl.types import ZERO_UUID, FetchPartitionRequest

_CONSUMER = FetchParams(-1)
_ELSEWHERE_OFFSET = 7


def refusal(broker: StorageBroker, message: str) -> str:
    """What the message is answered; NONE if the broker takes it."""
    messages = _TO_LEADER if broker.partition.is_leader else _TO_FOLLOWER
    send = messages.get(message)
    if send is None:
        raise ActionRefused(f"nobody sends {message} to this broker")
    try:
        return send(broker).name
    except UnexpectedAppendOffsetException:
        return "UNEXPECTED_APPEND_OFFSET"
    except OffsetsOutOfOrderException:
        return "OFFSETS_OUT_OF_ORDER"
    except ApiException as error:
        return error.error.name


def _corrupt(batch: RecordBatch) -> RecordBatch:
    return RecordBatch(
        batch.base_offset,
        batch.partition_leader_epoch,
        batch.magic,
        batch.crc ^ 1,
        batch.body,
        batch.records,
        batch.last_offset - batch.base_offset,
        batch.max_timestamp,
    )


def _produce(broker: StorageBroker, batch: RecordBatch) -> Errors:
    broker.replicas.append_records(TOPIC_PARTITION, MemoryRecords((batch,)))
    return Errors.NONE


def _fetch(broker: StorageBroker, offset: int, epochs_ahead: int = 0) -> Errors:
    asked = FetchPartitionRequest(
        ZERO_UUID, offset, -1, 1, broker.partition.leader_epoch + epochs_ahead
    )
    answers = broker.replicas.read_from_log(_CONSUMER, {TOPIC_PARTITION: asked}, 1)
    return answers[TOPIC_PARTITION].error


def _answer(broker: StorageBroker, *batches: RecordBatch, log_start_offset: int = 0) -> Errors:
    broker.process(*batches, log_start_offset=log_start_offset)
    return Errors.NONE


def _next(broker: StorageBroker, further: int = 0) -> RecordBatch:
    partition = broker.partition
    return broker.batch(broker.log.log_end_offset + further, partition.leader_epoch)


_TO_LEADER: Mapping[str, Callable[[StorageBroker], Errors]] = {
    "CorruptBatch": lambda broker: _produce(broker, _corrupt(broker.batch())),
    "BatchOfOtherOffset": lambda broker: _produce(broker, broker.batch(_ELSEWHERE_OFFSET)),
    "DeleteAboveHighWatermark": lambda broker: broker.delete_records(broker.log.high_watermark + 1),
    "DeleteBelowZero": lambda broker: broker.delete_records(-2),
    "FetchAboveLogEnd": lambda broker: _fetch(broker, broker.log.log_end_offset + 1),
    "FetchBelowLogStart": lambda broker: _fetch(broker, broker.log.log_start_offset - 1),
    "FetchOfLaterEpoch": lambda broker: _fetch(broker, broker.log.log_start_offset, 1),
}

_TO_FOLLOWER: Mapping[str, Callable[[StorageBroker], Errors]] = {
    "CorruptBatch": lambda broker: _answer(broker, _corrupt(_next(broker))),
    "OverlappingBatch": lambda broker: _answer(broker, _next(broker, -1)),
    "DisorderedBatches": lambda broker: _answer(broker, _next(broker, 1), _next(broker)),
    "LogStartAboveHighWatermark": lambda broker: _answer(
        broker, log_start_offset=broker.log.high_watermark + 1
    ),
    "DeleteRecordsOfFollower": lambda broker: broker.delete_records(0),
}
