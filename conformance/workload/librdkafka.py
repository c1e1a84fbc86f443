"""confluent-kafka, which is librdkafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from conformance.workload.plan import GroupProtocol, InstancePlan, PlannedRecord, ProducerKind
from conformance.workload.ports import (
    ANSWER_S,
    DELIVERY_MS,
    REQUEST_MS,
    SESSION_MS,
    TRANSACTION_MS,
    ClientProblem,
    ConsumerListener,
    ConsumerPort,
    DeliveryReport,
    Partition,
    PolledRecord,
    record_key,
)


def _asked(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call the library; what it reports is ClientProblem."""
    try:
        return call(*arguments, **named)
    except KafkaException as error:
        raise ClientProblem(str(error)) from error


def _until(call: Callable[[float], None]) -> None:
    """Call again as long as the library says that this may help. Raises ClientProblem."""
    until = time.monotonic() + ANSWER_S
    while True:
        try:
            call(max(0.1, until - time.monotonic()))
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > until:
                raise ClientProblem(str(error)) from error
        else:
            return


class LibrdkafkaProducer:
    """Its producer."""

    def __init__(self, bootstrap: str, plan: InstancePlan) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": plan.process,
            "acks": plan.acks,
            "linger.ms": 2,
            "enable.idempotence": plan.kind is not ProducerKind.PLAIN,
            "message.timeout.ms": DELIVERY_MS,
            "request.timeout.ms": REQUEST_MS,
            "socket.timeout.ms": REQUEST_MS,
            "log_level": 2,
        }
        if plan.transactional_id:
            settings["transactional.id"] = plan.transactional_id
            settings["transaction.timeout.ms"] = TRANSACTION_MS
        self._producer = Producer(settings)
        if plan.transactional_id:
            _until(self._producer.init_transactions)

    def rest(self, seconds: float) -> None:
        self._producer.poll(0)
        time.sleep(seconds)

    def send(self, records: Sequence[PlannedRecord]) -> list[DeliveryReport]:
        answers = [DeliveryReport(False, error="no answer in time")] * len(records)

        def delivery(place: int) -> Callable[[Any, Any], None]:
            def report(error: Any, message: Any) -> None:
                offset = message.offset()
                known = offset is not None and offset >= 0
                answers[place] = DeliveryReport(
                    error is None,
                    offset if error is None and known else None,
                    "" if error is None else str(error),
                    error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE,
                )

            return report

        for place, record in enumerate(records):
            _asked(
                self._producer.produce,
                record.topic,
                record.value.encode(),
                record_key(record),
                partition=record.partition,
                on_delivery=delivery(place),
            )
        self._producer.flush(ANSWER_S)
        return list(answers)

    def begin(self) -> None:
        _asked(self._producer.begin_transaction)

    def commit(self) -> None:
        _until(self._producer.commit_transaction)

    def abort(self) -> None:
        _until(self._producer.abort_transaction)

    def send_offsets(self, positions: Mapping[Partition, int], consumer: ConsumerPort) -> None:
        assert isinstance(consumer, LibrdkafkaConsumer)
        metadata = consumer.group_metadata()
        _until(
            lambda seconds: self._producer.send_offsets_to_transaction(
                _positions(positions), metadata, seconds
            )
        )

    def close(self) -> None:
        self._producer.flush(ANSWER_S)


def _positions(positions: Mapping[Partition, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number, at) for (topic, number), at in positions.items()]


def _partitions(given: Sequence[TopicPartition]) -> set[Partition]:
    return {(p.topic, p.partition) for p in given}


class LibrdkafkaConsumer:
    """Its consumer. Callbacks come amid a poll, between records.

    They name all partitions with the classic protocol, and what changes with the other one.
    """

    def __init__(self, bootstrap: str, plan: InstancePlan) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": plan.process,
            "group.id": plan.group or f"{plan.process}-alone",
            "group.protocol": str(plan.group_protocol),
            "isolation.level": plan.isolation,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "socket.timeout.ms": REQUEST_MS * 2,
            "fetch.wait.max.ms": 100,
            "log_level": 2,
        }
        if plan.group_protocol is GroupProtocol.CLASSIC:  # else the broker settles these
            settings["session.timeout.ms"] = SESSION_MS
            settings["heartbeat.interval.ms"] = SESSION_MS // 4
            settings["partition.assignment.strategy"] = "range"
        self._consumer = Consumer(settings)
        self._collected: list[PolledRecord] = []
        self._owned: set[Partition] = set()

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)

    def subscribe(self, topics: Sequence[str], listener: ConsumerListener) -> None:
        def assigned(_: object, given: Sequence[TopicPartition]) -> None:
            change(self._owned | _partitions(given))

        def revoked(_: object, given: Sequence[TopicPartition]) -> None:
            change(self._owned - _partitions(given))

        def change(owned: set[Partition]) -> None:
            self._hand_over(listener)
            self._owned = owned
            listener.assigned(sorted(owned))

        self._owned = set()
        _asked(self._consumer.unsubscribe)
        _asked(
            self._consumer.subscribe,
            list(topics),
            on_assign=assigned,
            on_revoke=revoked,
            on_lost=revoked,
        )

    def assign(self, partitions: Sequence[Partition]) -> None:
        _asked(self._consumer.assign, _positions(dict.fromkeys(partitions, 0)))

    def poll(self, most: int, seconds: float, listener: ConsumerListener) -> None:
        wait = seconds
        for _ in range(most):
            message = _asked(self._consumer.poll, wait)
            if message is None:
                break
            wait = 0.0
            if message.error() is None:
                self._collected.append(
                    PolledRecord(
                        message.topic(),
                        message.partition(),
                        message.offset(),
                        message.value().decode(),
                    )
                )
        self._hand_over(listener)

    def _hand_over(self, listener: ConsumerListener) -> None:
        if self._collected:
            listener.polled(tuple(self._collected))
            self._collected.clear()

    def commit(self, positions: Mapping[Partition, int]) -> None:
        answers = _asked(self._consumer.commit, offsets=_positions(positions), asynchronous=False)
        failed = [answer.error for answer in answers or () if answer.error is not None]
        if failed:
            raise ClientProblem(str(failed[0]))

    def fetch(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        wanted = _positions(dict.fromkeys(partitions, 0))
        answers = _asked(self._consumer.committed, wanted, timeout=ANSWER_S)
        if any(answer.error is not None for answer in answers):
            raise ClientProblem(str(answers))
        return {(p.topic, p.partition): p.offset for p in answers if p.offset >= 0}

    def seek(self, partition: Partition, offset: int) -> None:
        _asked(self._consumer.seek, TopicPartition(*partition, offset))

    def group_metadata(self) -> Any:
        """For the producer of a transaction."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        _asked(self._consumer.close)
