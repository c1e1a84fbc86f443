"""A consumer of kafka-python for `kconform client`: BOOTSTRAP TOPIC GROUP [INSTANCE]."""

import json
import os
import signal
import sys

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor

bootstrap, topic, group, *instance = [word for word in sys.argv[1:] if word]
callbacks = open(os.environ["KCONFORM_CALLBACKS"], "a", buffering=1)
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))


def tell(event, partitions):
    given = sorted([one.topic, one.partition] for one in partitions)
    callbacks.write(json.dumps({"event": event, "partitions": given}) + "\n")


class Listener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned):
        tell("assigned", assigned)

    def on_partitions_revoked(self, revoked):
        tell("revoked", revoked)

    def on_partitions_lost(self, lost):
        tell("lost", lost)


consumer = KafkaConsumer(
    bootstrap_servers=bootstrap,
    group_id=group,
    session_timeout_ms=6000,
    heartbeat_interval_ms=250,
    auto_commit_interval_ms=300,
    partition_assignment_strategy=[RangePartitionAssignor],
    **({"group_instance_id": instance[0]} if instance else {}),
)
consumer.subscribe([topic], listener=Listener())
while not ended:
    consumer.poll(50)
consumer.close()
