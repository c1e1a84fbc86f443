"""What a controller believes of the cluster (ControllerContext)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..control_requests import UpdateMetadataBroker
from ..types import TopicPartition


@dataclass(frozen=True, slots=True)
class LeaderIsrAndControllerEpoch:
    """A partition's state as ZooKeeper has it, and which controller wrote it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    controller_epoch: int


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """The replicas of a partition in the order of preference, and a reassignment's two sides."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


@dataclass(slots=True)
class ControllerContext:
    """Changed by the controller's event thread only, so it has no lock."""

    epoch: int = 0
    live_or_shutting_down_brokers: dict[int, UpdateMetadataBroker] = field(default_factory=dict)
    live_broker_epochs: dict[int, int] = field(default_factory=dict)
    shutting_down_broker_ids: set[int] = field(default_factory=set)
    partition_assignments: dict[TopicPartition, ReplicaAssignment] = field(default_factory=dict)
    partition_leadership_info: dict[TopicPartition, LeaderIsrAndControllerEpoch] = field(
        default_factory=dict
    )
    topic_ids: dict[str, str] = field(default_factory=dict)
    topics_to_be_deleted: set[str] = field(default_factory=set)
    topics_with_deletion_started: set[str] = field(default_factory=set)
    replicas_on_offline_dirs: dict[int, set[TopicPartition]] = field(default_factory=dict)

    # ---- brokers ---------------------------------------------------------------------------

    @property
    def live_broker_ids(self) -> frozenset[int]:
        """Brokers that run and are not shutting down."""
        return frozenset(self.live_or_shutting_down_brokers) - self.shutting_down_broker_ids

    @property
    def live_or_shutting_down_broker_ids(self) -> frozenset[int]:
        """Brokers that run."""
        return frozenset(self.live_or_shutting_down_brokers)

    def add_live_broker(self, broker: UpdateMetadataBroker, epoch: int) -> None:
        """The broker has registered, with this broker epoch (KIP-380)."""
        self.live_or_shutting_down_brokers[broker.id] = broker
        self.live_broker_epochs[broker.id] = epoch

    def remove_live_broker(self, broker_id: int) -> None:
        """The broker's registration is gone."""
        self.live_or_shutting_down_brokers.pop(broker_id, None)
        self.live_broker_epochs.pop(broker_id, None)
        self.shutting_down_broker_ids.discard(broker_id)
        self.replicas_on_offline_dirs.pop(broker_id, None)

    def is_replica_online(self, broker_id: int, topic_partition: TopicPartition) -> bool:
        """Whether the broker is live and has not said that the replica's directory failed."""
        offline = self.replicas_on_offline_dirs.get(broker_id, set())
        return broker_id in self.live_broker_ids and topic_partition not in offline

    # ---- topics ----------------------------------------------------------------------------

    def partition_replica_assignment(self, topic_partition: TopicPartition) -> tuple[int, ...]:
        """The replicas, in the order of preference; none for an unknown partition."""
        assignment = self.partition_assignments.get(topic_partition)
        return () if assignment is None else assignment.replicas

    def partitions_for_topic(self, topic: str) -> tuple[TopicPartition, ...]:
        """The topic's partitions."""
        return tuple(tp for tp in self.partition_assignments if tp.topic == topic)

    def is_topic_queued_up_for_deletion(self, topic: str) -> bool:
        """Whether somebody has asked to delete the topic."""
        return topic in self.topics_to_be_deleted

    def is_topic_deletion_in_progress(self, topic: str) -> bool:
        """Whether brokers have been told to delete the topic."""
        return topic in self.topics_with_deletion_started

    def queue_topic_deletion(self, topic: str) -> None:
        """Somebody has asked to delete the topic."""
        self.topics_to_be_deleted.add(topic)

    def begin_topic_deletion(self, topic: str) -> None:
        """Brokers are being told."""
        self.topics_with_deletion_started.add(topic)

    def remove_topic(self, topic: str) -> None:
        """Forget the topic."""
        for topic_partition in self.partitions_for_topic(topic):
            del self.partition_assignments[topic_partition]
            self.partition_leadership_info.pop(topic_partition, None)
        self.topic_ids.pop(topic, None)
        self.topics_to_be_deleted.discard(topic)
        self.topics_with_deletion_started.discard(topic)

    def topic_ids_of(self, topics: frozenset[str]) -> Mapping[str, str]:
        """The ids of those of the topics that have one."""
        return {topic: self.topic_ids[topic] for topic in sorted(topics & self.topic_ids.keys())}
