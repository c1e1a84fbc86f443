"""What a broker tells clients of the cluster, from the controller's UpdateMetadata requests.

Source: ZkMetadataCache. Whether a request is too old is the caller's question.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .concurrency import Concurrency
from .control_requests import (
    LEADER_DURING_DELETE,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)
from .types import UNKNOWN_BROKER_EPOCH, TopicPartition


@dataclass(frozen=True, slots=True)
class MetadataSnapshot:
    """One consistent view; replaced as a whole, so that readers need no lock."""

    partition_states: dict[TopicPartition, UpdateMetadataPartitionState] = field(
        default_factory=dict
    )
    topic_ids: dict[str, str] = field(default_factory=dict)
    controller_id: int | None = None
    alive_brokers: dict[int, UpdateMetadataBroker] = field(default_factory=dict)


class ZkMetadataCache:
    """The cache of one broker. ZooKeeper's UpdateMetadata knows no fenced brokers."""

    def __init__(self, concurrency: Concurrency) -> None:
        self._lock = concurrency.lock("metadata-snapshot")
        self._snapshot = MetadataSnapshot()

    @property
    def snapshot(self) -> MetadataSnapshot:
        """The present view."""
        return self._snapshot

    def update_metadata(self, request: UpdateMetadataRequest) -> list[TopicPartition]:
        """Take the request over; the partitions that it says are being deleted, now unknown."""
        with self._lock:
            old = self._snapshot
            partitions, topic_ids = dict(old.partition_states), dict(old.topic_ids)
            topic_ids.update(request.topic_ids)
            deleted = []
            for state in request.partition_states:
                if state.leader == LEADER_DURING_DELETE:
                    partitions.pop(state.topic_partition, None)
                    topic_ids.pop(state.topic_partition.topic, None)
                    deleted.append(state.topic_partition)
                else:
                    partitions[state.topic_partition] = state
            self._snapshot = MetadataSnapshot(
                partitions,
                topic_ids,
                request.controller_id,
                {broker.id: broker for broker in request.live_brokers},
            )
            return deleted

    def get_partition_info(
        self, topic_partition: TopicPartition
    ) -> UpdateMetadataPartitionState | None:
        """The partition, None if it is unknown or being deleted."""
        return self._snapshot.partition_states.get(topic_partition)

    def has_alive_broker(self, broker_id: int) -> bool:
        """Whether the controller counts the broker among the live ones."""
        return broker_id in self._snapshot.alive_brokers

    # ---- what partitions ask (replica.MetadataCache) ---------------------------------------

    def is_broker_fenced(self, _broker_id: int, /) -> bool:
        """Never: fencing is KRaft's."""
        return False

    def is_broker_shutting_down(self, _broker_id: int, /) -> bool:
        """Never told."""
        return False

    def get_alive_broker_epoch(self, broker_id: int, /) -> int | None:
        """UpdateMetadata tells who is alive, and no broker's epoch."""
        return UNKNOWN_BROKER_EPOCH if self.has_alive_broker(broker_id) else None
