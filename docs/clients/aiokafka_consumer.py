"""A consumer of aiokafka for `kconform client`: BOOTSTRAP TOPIC GROUP [INSTANCE]."""

import asyncio
import json
import os
import signal
import sys

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

bootstrap, topic, group, *instance = [word for word in sys.argv[1:] if word]
callbacks = open(os.environ["KCONFORM_CALLBACKS"], "a", buffering=1)


def tell(event, partitions):
    given = sorted([one.topic, one.partition] for one in partitions)
    callbacks.write(json.dumps({"event": event, "partitions": given}) + "\n")


class Listener(ConsumerRebalanceListener):
    async def on_partitions_assigned(self, assigned):
        tell("assigned", assigned)

    async def on_partitions_revoked(self, revoked):
        tell("revoked", revoked)


async def consume():
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        session_timeout_ms=6000,
        heartbeat_interval_ms=250,
        auto_commit_interval_ms=300,
        partition_assignment_strategy=[RangePartitionAssignor],
        group_instance_id=instance[0] if instance else None,
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not ended.is_set():
        await consumer.getmany(timeout_ms=50)
    await consumer.stop()


asyncio.run(consume())
