"""Idempotent producers at the wire server's broker, in every version that it offers."""

from __future__ import annotations

from typing import Any

import pytest

from impl.clock import SystemClock
from impl.errors import Errors
from impl.record_format import ProducerInfo, Record
from impl.records import RecordBatch
from impl.types import BrokerEndPoint
from impl.wire.broker import OFFERED, Broker, BrokerConfig
from impl.wire.entities import make, milliseconds, module_of, read_request, request_frame
from tests.unit.impl.wire.test_wire_logs import asked, fetch, topic_id

VERSIONS = range(OFFERED["produce"][1], OFFERED["produce"][2] + 1)
PRODUCER = 1000


def broker() -> Broker:
    config = BrokerConfig(BrokerEndPoint(0, "h", 1), {"orders": 1})
    return Broker(config, SystemClock(), lambda _, call: call())


def batch(sequence: int, epoch: int = 0, records: int = 1) -> bytes:
    written = [Record(b"v", None, 1_700_000_000_000)] * records
    return RecordBatch.create(written, producer=ProducerInfo(PRODUCER, epoch, sequence)).to_bytes()


def forged(**kinds: bool) -> bytes:
    """A batch without a sequence of a producer, or of another kind than a client's."""
    producer = ProducerInfo(PRODUCER, 0, 0 if kinds else -1)
    return RecordBatch.create([Record(b"v")], producer=producer, **kinds).to_bytes()


def produce(version: int, records: bytes, id: Any, *, acks: int = -1, index: int = 0) -> Any:
    module = module_of("produce", version, "request")
    partition = make(module.PartitionProduceData, index=index, records=records)
    topic = make(module.TopicProduceData, name="orders", topic_id=id, partition_data=(partition,))
    return make(
        module.ProduceRequest,
        transactional_id=None,
        acks=acks,
        timeout=milliseconds(10),
        topic_data=(topic,),
    )


def answered(subject: Broker, body: Any) -> tuple[Errors, int]:
    ((partition,),) = (topic.partition_responses for topic in asked(subject, body).responses)
    return Errors(int(partition.error_code)), partition.base_offset


@pytest.mark.parametrize("version", VERSIONS)
def test_a_retry_is_answered_as_the_batch_was(version: int) -> None:
    subject = broker()
    id = topic_id(subject)
    answers = [
        answered(subject, produce(version, batch(sequence, epoch), id))
        for sequence, epoch in [(0, 0), (1, 0), (0, 0), (3, 0), (0, 1), (2, 0)]
    ]
    out_of_order = (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    fenced = (Errors.INVALID_PRODUCER_EPOCH, -1)
    taken, next_taken, bumped = (Errors.NONE, 0), (Errors.NONE, 1), (Errors.NONE, 2)
    assert answers == [taken, next_taken, taken, out_of_order, bumped, fenced]


@pytest.mark.parametrize(
    ("records", "acks", "index", "error"),
    [
        (batch(0), 2, 0, Errors.INVALID_REQUIRED_ACKS),
        (batch(0), -1, 1, Errors.UNKNOWN_TOPIC_OR_PARTITION),
        (batch(0) + batch(1), -1, 0, Errors.INVALID_RECORD),
        (b"", -1, 0, Errors.INVALID_RECORD),
        (forged(), -1, 0, Errors.INVALID_RECORD),
        (forged(is_control=True), -1, 0, Errors.INVALID_RECORD),
        (forged(is_transactional=True), -1, 0, Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (batch(0)[:-1] + b"?", -1, 0, Errors.CORRUPT_MESSAGE),
    ],
)
def test_what_no_client_sends_has_an_error_and_changes_nothing(
    records: bytes, acks: int, index: int, error: Errors
) -> None:
    subject = broker()
    body = produce(9, records, None, acks=acks, index=index)
    assert answered(subject, body) == (error, -1)
    assert described(subject) == []


def test_nobody_waits_for_an_answer_with_acks_zero() -> None:
    subject = broker()
    answers: list[Any] = []

    body = produce(9, batch(0), None, acks=0)
    subject.handle(read_request(request_frame(body, 1, "c")[4:]), "h", answers.append)
    assert answers == [None]
    assert described(subject) == [(PRODUCER, 0, 0)]


def described(subject: Broker) -> list[tuple[int, int, int]]:
    module = module_of("describe_producers", 0, "request")
    topic = make(module.TopicRequest, name="orders", partition_indexes=(0,))
    body = make(module.DescribeProducersRequest, topics=(topic,))
    ((partition,),) = (topic.partitions for topic in asked(subject, body).topics)
    return [
        (state.producer_id, state.producer_epoch, state.last_sequence)
        for state in partition.active_producers
    ]


def test_what_was_produced_is_fetched_at_once() -> None:
    waits: list[int] = []
    config = BrokerConfig(BrokerEndPoint(0, "h", 1), {"orders": 1})

    def after(wait: int, call: Any) -> None:
        waits.append(wait)
        call()

    subject = Broker(config, SystemClock(), after)
    answered(subject, produce(9, batch(0, records=2), None))
    ((partition,),) = (topic.partitions for topic in asked(subject, fetch(12, 0, None)).responses)
    assert (partition.high_watermark, len(bytes(partition.records)) > 0) == (2, True)
    asked(subject, fetch(12, 2, None))
    assert waits == [0, 10], "at the end of the log a fetch waits"


@pytest.mark.parametrize("version", range(OFFERED["init_producer_id"][2] + 1))
def test_each_producer_id_is_given_once(version: int) -> None:
    subject = broker()
    module = module_of("init_producer_id", version, "request")

    def given(transactional_id: str | None) -> tuple[Errors, int, int]:
        body = make(
            module.InitProducerIdRequest,
            transactional_id=transactional_id,
            transaction_timeout=milliseconds(10),
        )
        answer = asked(subject, body)
        return Errors(int(answer.error_code)), answer.producer_id, answer.producer_epoch

    assert [given(None), given(None)] == [(Errors.NONE, 1000, 0), (Errors.NONE, 1001, 0)]
    assert [given("t"), given("t")] == [(Errors.NONE, 1002, 0), (Errors.NONE, 1002, 1)]
