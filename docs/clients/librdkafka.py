"""librdkafka's consumer for `kconform client`: BOOTSTRAP TOPIC GROUP [INSTANCE]."""

import json
import os
import signal
import sys

from confluent_kafka import Consumer

bootstrap, topic, group, *instance = [word for word in sys.argv[1:] if word]
callbacks = open(os.environ["KCONFORM_CALLBACKS"], "a", buffering=1)
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))


def tell(event):
    def told(_consumer, partitions):
        given = [[one.topic, one.partition] for one in partitions]
        callbacks.write(json.dumps({"event": event, "partitions": given}) + "\n")

    return told


settings = {
    "bootstrap.servers": bootstrap,
    "group.id": group,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 250,
    "auto.commit.interval.ms": 300,
    "partition.assignment.strategy": "range",
}
if instance:
    settings["group.instance.id"] = instance[0]
consumer = Consumer(settings)
consumer.subscribe(
    [topic], on_assign=tell("assigned"), on_revoke=tell("revoked"), on_lost=tell("lost")
)
while not ended:
    consumer.poll(0.05)
consumer.close()
