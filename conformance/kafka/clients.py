"""Real clients as processes of their own: `python -m conformance.kafka.clients ROLE JSON`.

A client writes what it sees as NDJSON on standard output, with `time.monotonic_ns`, which is one
clock with the brokers' `System.nanoTime` on one machine. SIGTERM makes it close in order (leave its
group), SIGKILL is its crash. The libraries are the extra `clients` of this distribution.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from conformance.errors import EnvironmentProblem

MODULES = {"confluent-kafka": "confluent_kafka", "kafka-python": "kafka", "aiokafka": "aiokafka"}
"""Python libraries by their name on PyPI; `java` is the consumer in Kafka's own jars."""

Options = Mapping[str, Any]


def require(library: str) -> None:
    """Raise EnvironmentProblem if the library is not installed."""
    module = MODULES[library]
    if importlib.util.find_spec(module) is None:
        raise EnvironmentProblem(
            f"The client library {library} is not installed. Run "
            "`pip install 'kafka-conformance[clients]'`, or name another library in the scenario."
        )


def tell(event: str, **further: object) -> None:
    """One line of the client's record."""
    line = {"time": time.monotonic_ns(), "event": event, **further}
    print(json.dumps(line), flush=True)


class StopSignal:
    """Becomes true with SIGTERM or SIGINT."""

    def __init__(self) -> None:
        self._ended = False
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)

    def _end(self, _signal: int, _frame: FrameType | None) -> None:
        self._ended = True

    def __bool__(self) -> bool:
        return self._ended


def confluent_producer(options: Options, ended: StopSignal) -> None:
    """librdkafka's producer."""
    from confluent_kafka import Producer

    settings = {
        "bootstrap.servers": options["bootstrap"],
        "client.id": options["name"],
        "acks": str(options["acks"]),
        "linger.ms": 0,
        "batch.num.messages": options["batch"],
        "message.timeout.ms": 10_000,
        "enable.idempotence": options["idempotent"],
    }
    producer = Producer(settings)

    def delivered(number: int) -> Callable[[object, Any], None]:
        def report(error: object, message: Any) -> None:
            if error is not None:
                tell("failed", number=number, error=str(error))
            else:
                tell(
                    "acknowledged",
                    number=number,
                    partition=message.partition(),
                    offset=message.offset(),
                )

        return report

    number = 0
    while not ended:
        tell("send", number=number)
        producer.produce(options["topic"], str(number), callback=delivered(number))
        number += 1
        due = time.monotonic() + 1.0 / options["rate"]
        while (left := due - time.monotonic()) > 0:
            producer.poll(left)
    producer.flush(5.0)


def kafka_python_producer(options: Options, ended: StopSignal) -> None:
    """The producer of kafka-python."""
    from kafka import KafkaProducer

    acks = options["acks"]
    producer = KafkaProducer(
        bootstrap_servers=options["bootstrap"].split(","),
        client_id=options["name"],
        acks=acks if acks == "all" else int(acks),
        linger_ms=0,
        retries=0 if not options["idempotent"] else 5,
        enable_idempotence=options["idempotent"],
        delivery_timeout_ms=10_000,
        request_timeout_ms=5_000,
    )
    number = 0
    while not ended:
        tell("send", number=number)
        try:
            sent = producer.send(options["topic"], str(number).encode()).get(11.0)
            tell("acknowledged", number=number, partition=sent.partition, offset=sent.offset)
        except Exception as error:  # noqa: BLE001  the library's errors have no common base
            tell("failed", number=number, error=repr(error))
        number += 1
        time.sleep(1.0 / options["rate"])
    producer.close(5.0)


def aiokafka_producer(options: Options, ended: StopSignal) -> None:
    """The producer of aiokafka."""

    async def produce() -> None:
        from aiokafka import AIOKafkaProducer

        acks = options["acks"]
        producer = AIOKafkaProducer(
            bootstrap_servers=options["bootstrap"],
            client_id=options["name"],
            acks=acks if acks == "all" else int(acks),
            enable_idempotence=options["idempotent"],
            request_timeout_ms=5_000,
        )
        await producer.start()
        number = 0
        while not ended:
            tell("send", number=number)
            try:
                sent = await producer.send_and_wait(options["topic"], str(number).encode())
                tell("acknowledged", number=number, partition=sent.partition, offset=sent.offset)
            except Exception as error:  # noqa: BLE001  as above
                tell("failed", number=number, error=repr(error))
            number += 1
            await asyncio.sleep(1.0 / options["rate"])
        await producer.stop()

    asyncio.run(produce())


def confluent_consumer(options: Options, ended: StopSignal) -> None:
    """librdkafka's consumer."""
    from confluent_kafka import Consumer

    settings = {
        "bootstrap.servers": options["bootstrap"],
        "client.id": options["name"],
        "group.id": options["group"],
        "session.timeout.ms": options["session_ms"],
        "heartbeat.interval.ms": max(100, options["session_ms"] // 5),
        "max.poll.interval.ms": max(options["session_ms"], options["max_poll_ms"]),
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
    }
    if options["instance"]:
        settings["group.instance.id"] = options["instance"]
    consumer = Consumer(settings)

    def partitions(event: str) -> Callable[[object, Any], None]:
        return lambda _, given: tell(event, partitions=[[p.topic, p.partition] for p in given])

    consumer.subscribe(
        [options["topic"]],
        on_assign=partitions("assigned"),
        on_revoke=partitions("revoked"),
        on_lost=partitions("lost"),
    )
    while not ended:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            tell("read", partition=message.partition(), offset=message.offset())
    consumer.close()
    tell("closed")


def kafka_python_consumer(options: Options, ended: StopSignal) -> None:
    """The consumer of kafka-python."""
    from kafka import ConsumerRebalanceListener, KafkaConsumer

    class KafkaPythonListener(ConsumerRebalanceListener):  # type: ignore[misc]  # no types
        def on_partitions_assigned(self, assigned: Any) -> None:
            tell("assigned", partitions=sorted([p.topic, p.partition] for p in assigned))

        def on_partitions_revoked(self, revoked: Any) -> None:
            tell("revoked", partitions=sorted([p.topic, p.partition] for p in revoked))

    further = {"group_instance_id": options["instance"]} if options["instance"] else {}
    consumer = KafkaConsumer(
        bootstrap_servers=options["bootstrap"].split(","),
        client_id=options["name"],
        group_id=options["group"],
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=max(100, options["session_ms"] // 5),
        max_poll_interval_ms=max(options["session_ms"], options["max_poll_ms"]),
        auto_offset_reset="earliest",
        auto_commit_interval_ms=500,
        **further,
    )
    consumer.subscribe([options["topic"]], listener=KafkaPythonListener())
    while not ended:
        for records in consumer.poll(100).values():
            for record in records:
                tell("read", partition=record.partition, offset=record.offset)
    consumer.close()
    tell("closed")


def aiokafka_consumer(options: Options, ended: StopSignal) -> None:
    """The consumer of aiokafka."""

    async def consume() -> None:
        from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

        class AiokafkaListener(ConsumerRebalanceListener):  # type: ignore[misc]  # no types
            async def on_partitions_assigned(self, assigned: Any) -> None:
                tell("assigned", partitions=sorted([p.topic, p.partition] for p in assigned))

            async def on_partitions_revoked(self, revoked: Any) -> None:
                tell("revoked", partitions=sorted([p.topic, p.partition] for p in revoked))

        further = {"group_instance_id": options["instance"]} if options["instance"] else {}
        consumer = AIOKafkaConsumer(
            bootstrap_servers=options["bootstrap"],
            client_id=options["name"],
            group_id=options["group"],
            session_timeout_ms=options["session_ms"],
            heartbeat_interval_ms=max(100, options["session_ms"] // 5),
            max_poll_interval_ms=max(options["session_ms"], options["max_poll_ms"]),
            rebalance_timeout_ms=options["max_poll_ms"],
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
            **further,
        )
        await consumer.start()
        consumer.subscribe([options["topic"]], listener=AiokafkaListener())
        while not ended:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    tell("read", partition=record.partition, offset=record.offset)
        await consumer.stop()
        tell("closed")

    asyncio.run(consume())


ROLES: Mapping[tuple[str, str], Callable[[Options, StopSignal], None]] = {
    ("producer", "confluent-kafka"): confluent_producer,
    ("producer", "kafka-python"): kafka_python_producer,
    ("producer", "aiokafka"): aiokafka_producer,
    ("consumer", "confluent-kafka"): confluent_consumer,
    ("consumer", "kafka-python"): kafka_python_consumer,
    ("consumer", "aiokafka"): aiokafka_consumer,
}


def main() -> None:
    """Run one client until a signal ends it."""
    options = json.loads(sys.argv[2])
    ended = StopSignal()
    tell("started", **options)
    ROLES[sys.argv[1], options["library"]](options, ended)


if __name__ == "__main__":
    main()
