"""What ZooKeeper keeps for the controllers, who come and go (KafkaZkClient)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import ApiException, Errors
from ..types import TopicPartition
from .context import LeaderIsrAndControllerEpoch, ReplicaAssignment


class ControllerMovedException(ApiException):
    """Another controller has been elected: nothing that this one decides counts any more."""

    code = Errors.STALE_CONTROLLER_EPOCH


@dataclass(slots=True)
class ZooKeeperState:
    """The znodes. Writes name the writer's controller epoch; a former one's fail (KAFKA-6082)."""

    controller_epoch: int = 0
    broker_epochs: dict[int, int] = field(default_factory=dict)
    """The registered brokers, each with the epoch of its registration (KIP-380)."""
    assignments: dict[TopicPartition, ReplicaAssignment] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    partition_states: dict[TopicPartition, LeaderIsrAndControllerEpoch] = field(
        default_factory=dict
    )
    topics_to_be_deleted: set[str] = field(default_factory=set)

    def register_controller_and_increment_controller_epoch(self) -> int:
        """A controller is elected; its epoch."""
        self.controller_epoch += 1
        return self.controller_epoch

    def create_topic(
        self, topic: str, topic_id: str, assignments: dict[TopicPartition, ReplicaAssignment]
    ) -> None:
        """A client wants a topic."""
        self.topic_ids[topic] = topic_id
        self.assignments.update(assignments)

    def set_partition_state(
        self, topic_partition: TopicPartition, state: LeaderIsrAndControllerEpoch
    ) -> None:
        """Write a decision. Raises `ControllerMovedException`."""
        self._check(state.controller_epoch)
        self.partition_states[topic_partition] = state

    def set_assignment(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment, controller_epoch: int
    ) -> None:
        """Write which brokers have the replicas. Raises `ControllerMovedException`."""
        self._check(controller_epoch)
        self.assignments[topic_partition] = assignment

    def delete_topic(self, topic: str, controller_epoch: int) -> None:
        """Nothing of the topic is left on any broker. Raises `ControllerMovedException`."""
        self._check(controller_epoch)
        for topic_partition in [tp for tp in self.assignments if tp.topic == topic]:
            del self.assignments[topic_partition]
            self.partition_states.pop(topic_partition, None)
        self.topic_ids.pop(topic, None)
        self.topics_to_be_deleted.discard(topic)

    def _check(self, controller_epoch: int) -> None:
        if controller_epoch != self.controller_epoch:
            raise ControllerMovedException(
                f"controller epoch {controller_epoch} is over, now is {self.controller_epoch}"
            )
