"""aiokafka. Its loop runs while something is asked of it, and in rests: there it heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from conformance.workload.plan import InstancePlan, PlannedRecord, ProducerKind
from conformance.workload.ports import (
    ANSWER_S,
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

T = TypeVar("T")
_LOOP = asyncio.new_event_loop()
"""One for the process: a transformer's producer and consumer share it."""


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end. Raises ClientProblem."""
    try:
        return _LOOP.run_until_complete(asyncio.wait_for(work, ANSWER_S))
    except (KafkaError, TimeoutError) as error:
        raise ClientProblem(repr(error)) from error


def _rest(seconds: float) -> None:
    _LOOP.run_until_complete(asyncio.sleep(seconds))


class AiokafkaProducer:
    """Its producer."""

    def __init__(self, bootstrap: str, plan: InstancePlan) -> None:
        further: dict[str, Any] = {}
        if plan.transactional_id:
            further["transactional_id"] = plan.transactional_id
            further["transaction_timeout_ms"] = TRANSACTION_MS

        async def started() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                client_id=plan.process,
                acks=plan.acks if plan.acks == "all" else int(plan.acks),
                enable_idempotence=plan.kind is not ProducerKind.PLAIN,
                linger_ms=2,
                request_timeout_ms=REQUEST_MS,
                **further,
            )
            await producer.start()
            return producer

        self._producer = _run(started())

    def rest(self, seconds: float) -> None:
        _rest(seconds)

    def send(self, records: Sequence[PlannedRecord]) -> list[DeliveryReport]:
        return _run(self._send(records))

    async def _send(self, records: Sequence[PlannedRecord]) -> list[DeliveryReport]:
        futures = [
            await self._producer.send(
                r.topic, r.value.encode(), key=record_key(r), partition=r.partition
            )
            for r in records
        ]
        await asyncio.wait(futures, timeout=ANSWER_S - 2.0)
        return [_answer(future) for future in futures]

    def begin(self) -> None:
        _run(self._producer.begin_transaction())

    def commit(self) -> None:
        _run(self._producer.commit_transaction())

    def abort(self) -> None:
        _run(self._producer.abort_transaction())

    def send_offsets(self, positions: Mapping[Partition, int], consumer: ConsumerPort) -> None:
        assert isinstance(consumer, AiokafkaConsumer)
        offsets = {TopicPartition(*p): at for p, at in positions.items()}
        _run(self._producer.send_offsets_to_transaction(offsets, consumer.group))

    def close(self) -> None:
        _run(self._producer.stop())


def _answer(future: asyncio.Future[Any]) -> DeliveryReport:
    if not future.done():
        return DeliveryReport(False, error="no answer in time")
    error = None if future.cancelled() else future.exception()
    if future.cancelled() or error is not None:
        refused = isinstance(error, MessageSizeTooLargeError)
        return DeliveryReport(False, error=repr(error), refused=refused)
    metadata = future.result()
    known = metadata is not None and metadata.offset is not None and metadata.offset >= 0
    return DeliveryReport(True, metadata.offset if known else None)


class _AiokafkaAssignments(ConsumerRebalanceListener):  # type: ignore[misc]  # no types
    """Its callbacks come from a task in the background."""

    def __init__(self, listener: ConsumerListener) -> None:
        self._listener = listener

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._listener.assigned(sorted((p.topic, p.partition) for p in assigned))

    async def on_partitions_revoked(self, _revoked: Iterable[Any]) -> None:
        self._listener.assigned(())


class AiokafkaConsumer:
    """Its consumer."""

    def __init__(self, bootstrap: str, plan: InstancePlan) -> None:
        self.group = plan.group

        async def started() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
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
            await consumer.start()
            return consumer

        self._consumer = _run(started())

    def rest(self, seconds: float) -> None:
        _rest(seconds)

    def subscribe(self, topics: Sequence[str], listener: ConsumerListener) -> None:
        async def subscribe() -> None:
            self._consumer.unsubscribe()
            self._consumer.subscribe(list(topics), listener=_AiokafkaAssignments(listener))

        _run(subscribe())

    def assign(self, partitions: Sequence[Partition]) -> None:
        chosen = [TopicPartition(*partition) for partition in partitions]

        async def assign() -> None:
            self._consumer.assign(chosen)
            await self._consumer.seek_to_beginning(*chosen)

        _run(assign())

    def poll(self, most: int, seconds: float, listener: ConsumerListener) -> None:
        batches = _run(self._consumer.getmany(timeout_ms=int(seconds * 1000), max_records=most))
        records = [
            PolledRecord(r.topic, r.partition, r.offset, r.value.decode())
            for batch in batches.values()
            for r in batch
        ]
        if records:
            listener.polled(records)

    def commit(self, positions: Mapping[Partition, int]) -> None:
        _run(self._consumer.commit({TopicPartition(*p): at for p, at in positions.items()}))

    def fetch(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        answers = {p: _run(self._consumer.committed(TopicPartition(*p))) for p in partitions}
        return {p: at for p, at in answers.items() if at is not None}

    def seek(self, partition: Partition, offset: int) -> None:
        async def seek() -> None:
            self._consumer.seek(TopicPartition(*partition), offset)

        _run(seek())

    def close(self) -> None:
        _run(self._consumer.stop())
