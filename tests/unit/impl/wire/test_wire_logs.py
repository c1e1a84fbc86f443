"""Records that a consumer reads through the wire server's broker, in every version of Fetch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from impl.clock import SystemClock
from impl.errors import Errors
from impl.records import decode_batches
from impl.types import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, BrokerEndPoint, TopicPartition
from impl.wire.broker import OFFERED, Broker, BrokerConfig
from impl.wire.entities import (
    MalformedFrame,
    Received,
    TrailingBytes,
    make,
    milliseconds,
    module_of,
    read_request,
    read_response,
    request_frame,
    response_frame,
)
from impl.wire.logs import PartitionLogs, RecordLogs

ORDERS = TopicPartition("orders", 0)
VERSIONS = range(OFFERED["fetch"][1], OFFERED["fetch"][2] + 1)


def broker(batch: int) -> Broker:
    def at_once(_: int, call: Callable[[], None]) -> None:
        call()

    config = BrokerConfig(BrokerEndPoint(0, "h", 1), {"orders": 1}, batch=batch)
    return Broker(config, SystemClock(), at_once)


def asked(subject: Broker, body: Any) -> Any:
    """The answer to a request, both through their bytes."""
    received = read_request(request_frame(body, 1, "c")[4:])
    answers: list[Any] = []
    subject.handle(received, "h", answers.append)
    return read_response(response_frame(answers[0], 1)[4:], type(answers[0]))[1]


def topic_id(subject: Broker) -> Any:
    module = module_of("metadata", 13, "request")
    wanted = make(module.MetadataRequestTopic, topic_id=None, name="orders")
    body = make(module.MetadataRequest, topics=(wanted,), include_topic_authorized_operations=False)
    (topic,) = asked(subject, body).topics
    return topic.topic_id


def fetch(version: int, offset: int, id: Any) -> Any:
    module = module_of("fetch", version, "request")
    partition = make(
        module.FetchPartition, partition=0, fetch_offset=offset, partition_max_bytes=1000
    )
    topic = make(module.FetchTopic, topic="orders", topic_id=id, partitions=(partition,))
    return make(
        module.FetchRequest,
        max_wait=milliseconds(10),
        min_bytes=1,
        topics=(topic,),
        forgotten_topics_data=(),
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fetch_at_the_end_reads_a_batch_that_was_not_there(version: int) -> None:
    subject = broker(batch=3)
    answer = asked(subject, fetch(version, 0, topic_id(subject)))
    (partition,) = answer.responses[0].partitions
    (batch,) = decode_batches(bytes(partition.records))
    batch.ensure_valid()
    assert (batch.base_offset, batch.last_offset, partition.high_watermark) == (0, 2, 3)
    assert latest(subject.logs) == 3


def latest(logs: PartitionLogs) -> int:
    known = logs.offset_for(ORDERS, LATEST_TIMESTAMP, committed=False)
    assert known is not None
    return known.offset


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 13])
def test_a_topic_id_that_nobody_gave_is_unknown(version: int) -> None:
    subject = broker(batch=3)
    answer = asked(subject, fetch(version, 0, uuid4()))
    (partition,) = answer.responses[0].partitions
    assert partition.error_code.value == Errors.UNKNOWN_TOPIC_ID


def test_a_log_ends_behind_what_was_read_of_it() -> None:
    logs = RecordLogs(3)
    assert logs.read(ORDERS, 1, committed=False).error is Errors.OFFSET_OUT_OF_RANGE
    first = logs.read(ORDERS, 0, committed=False)
    assert logs.read(ORDERS, 2, committed=False) == first, "within the batch: the batch"
    earliest = logs.offset_for(ORDERS, EARLIEST_TIMESTAMP, committed=False)
    assert earliest is not None
    assert (earliest.offset, latest(logs)) == (0, 3)


def heartbeat(version: int) -> bytes:
    module = module_of("heartbeat", version, "request")
    body = make(module.HeartbeatRequest, group_id="g", generation_id=1, member_id="m")
    return request_frame(body, 1, "c")[4:]


@pytest.mark.parametrize("version", range(5))
def test_a_cut_request_names_the_field_that_is_missing(version: int) -> None:
    frame = heartbeat(version)
    last = {3: "GroupInstanceId", 4: "tagged fields"}.get(version, "MemberId")
    with pytest.raises(MalformedFrame, match=rf"heartbeat {version}: {last} at byte \d+ of"):
        read_request(frame[:-1])
    # Header version 2 has tagged fields behind the client's name, of one byte.
    cut = "tagged fields at byte 9" if version == 4 else "ClientId at byte 8"
    with pytest.raises(MalformedFrame, match=f"{cut} of 9"):
        read_request(frame[:9])


@pytest.mark.parametrize("version", range(5))
def test_bytes_behind_the_last_field_are_named_and_the_request_is_read(version: int) -> None:
    frame = heartbeat(version)
    with pytest.raises(TrailingBytes, match="2 bytes too many") as raised:
        read_request(frame + b"\1\1")
    received: Received = raised.value.received
    assert received == read_request(frame)
