"""Apache Kafka's own classes, unmodified, as the system under test (docs/kafka.md)."""

from conformance.systems.kafka.consumers import KafkaConsumerGroupSystem
from conformance.systems.kafka.factory import KafkaFactory, of_version
from conformance.systems.kafka.groups import KafkaGroupSystem
from conformance.systems.kafka.runtime import KafkaRuntimeSystem
from conformance.systems.kafka.runtime_tasks import KafkaTasksSystem
from conformance.systems.kafka.runtime_timers import KafkaTimedGroupsSystem
from conformance.systems.kafka.system import KafkaSystem

__all__ = [
    "KafkaConsumerGroupSystem",
    "KafkaFactory",
    "KafkaGroupSystem",
    "KafkaRuntimeSystem",
    "KafkaSystem",
    "KafkaTasksSystem",
    "KafkaTimedGroupsSystem",
    "of_version",
]
