"""kafka-python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafka import (
    ConsumerRebalanceListener,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka.errors import KafkaError, MessageSizeTooLargeError

from conformance.workload.plan import InstancePlan, PlannedRecord, ProducerKind
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
    except KafkaError as error:
        raise ClientProblem(repr(error)) from error


class KafkaPythonProducer:
    """Its producer."""

    def __init__(self, bootstrap: str, plan: InstancePlan) -> None:
        further: dict[str, Any] = {}
        if plan.transactional_id:
            further["transactional_id"] = plan.transactional_id
            further["transaction_timeout_ms"] = TRANSACTION_MS
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            client_id=plan.process,
            acks=plan.acks if plan.acks == "all" else int(plan.acks),
            enable_idempotence=plan.kind is not ProducerKind.PLAIN,
            linger_ms=2,
            delivery_timeout_ms=DELIVERY_MS,
            request_timeout_ms=REQUEST_MS,
            max_block_ms=DELIVERY_MS,
            **further,
        )
        if plan.transactional_id:
            _asked(self._producer.init_transactions)

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)

    def send(self, records: Sequence[PlannedRecord]) -> list[DeliveryReport]:
        futures = [
            _asked(
                self._producer.send,
                r.topic,
                r.value.encode(),
                key=record_key(r),
                partition=r.partition,
            )
            for r in records
        ]
        until = time.monotonic() + ANSWER_S
        return [self._answer(future, until) for future in futures]

    def _answer(self, future: Any, until: float) -> DeliveryReport:
        try:
            metadata = future.get(max(0.0, until - time.monotonic()))
        except KafkaError as error:
            refused = isinstance(error, MessageSizeTooLargeError)
            return DeliveryReport(False, error=repr(error), refused=refused)
        known = metadata.offset is not None and metadata.offset >= 0
        return DeliveryReport(True, metadata.offset if known else None)

    def begin(self) -> None:
        _asked(self._producer.begin_transaction)

    def commit(self) -> None:
        _asked(self._producer.commit_transaction)

    def abort(self) -> None:
        _asked(self._producer.abort_transaction)

    def send_offsets(self, positions: Mapping[Partition, int], consumer: ConsumerPort) -> None:
        assert isinstance(consumer, KafkaPythonConsumer)
        metadata = consumer.group_metadata()
        _asked(self._producer.send_offsets_to_transaction, _offsets(positions), metadata)

    def close(self) -> None:
        _asked(self._producer.close, timeout=5.0)


def _offsets(positions: Mapping[Partition, int]) -> dict[Any, Any]:
    return {TopicPartition(*p): OffsetAndMetadata(at, "", -1) for p, at in positions.items()}


class _KafkaPythonAssignments(ConsumerRebalanceListener):  # type: ignore[misc]  # no types
    """Its callbacks come in a poll, before its records. Assignors are eager: all or nothing."""

    def __init__(self, listener: ConsumerListener) -> None:
        self._listener = listener

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._listener.assigned(sorted((p.topic, p.partition) for p in assigned))

    def on_partitions_revoked(self, _revoked: Iterable[Any]) -> None:
        self._listener.assigned(())


class KafkaPythonConsumer:
    """Its consumer."""

    def __init__(self, bootstrap: str, plan: InstancePlan) -> None:
        from kafka.coordinator.assignors.range import RangePartitionAssignor

        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap.split(","),
            client_id=plan.process,
            group_id=plan.group or None,
            isolation_level=plan.isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=SESSION_MS // 4,
            partition_assignment_strategy=[RangePartitionAssignor],
            fetch_max_wait_ms=100,
        )

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)

    def subscribe(self, topics: Sequence[str], listener: ConsumerListener) -> None:
        _asked(self._consumer.unsubscribe)
        _asked(self._consumer.subscribe, list(topics), listener=_KafkaPythonAssignments(listener))

    def assign(self, partitions: Sequence[Partition]) -> None:
        chosen = [TopicPartition(*partition) for partition in partitions]
        _asked(self._consumer.assign, chosen)
        _asked(self._consumer.seek_to_beginning, *chosen)

    def poll(self, most: int, seconds: float, listener: ConsumerListener) -> None:
        batches = _asked(self._consumer.poll, timeout_ms=int(seconds * 1000), max_records=most)
        records = [
            PolledRecord(r.topic, r.partition, r.offset, r.value.decode())
            for batch in batches.values()
            for r in batch
        ]
        if records:
            listener.polled(records)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        _asked(self._consumer.commit, _offsets(positions))

    def fetch(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        answers = {p: _asked(self._consumer.committed, TopicPartition(*p)) for p in partitions}
        return {p: at for p, at in answers.items() if at is not None}

    def seek(self, partition: Partition, offset: int) -> None:
        _asked(self._consumer.seek, TopicPartition(*partition), offset)

    def group_metadata(self) -> Any:
        """For the producer of a transaction."""
        return self._consumer.group_metadata()

    def close(self) -> None:
        _asked(self._consumer.close)
