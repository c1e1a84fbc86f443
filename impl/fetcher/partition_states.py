"""An insertion-ordered map of partitions, in which a partition that was served moves to the end."""

from __future__ import annotations

from collections.abc import ItemsView, KeysView, Mapping
from typing import Generic, TypeVar

from ..types import TopicPartition

S = TypeVar("S")


class PartitionStates(Generic[S]):
    """Partition to state; its order is the order in a fetch, so moving gives round-robin.

    Source: org.apache.kafka.common.internals.PartitionStates. Not synchronized.
    """

    __slots__ = ("_map",)

    def __init__(self) -> None:
        self._map: dict[TopicPartition, S] = {}

    def update_and_move_to_end(self, partition: TopicPartition, state: S) -> None:
        """Set the state; the partition becomes the last one."""
        self._map.pop(partition, None)
        self._map[partition] = state

    def update(self, partition: TopicPartition, state: S) -> None:
        """Set the state in place; a new partition becomes the last one."""
        self._map[partition] = state

    def remove(self, partition: TopicPartition) -> S | None:
        """Forget the partition and return its state, if it had one."""
        return self._map.pop(partition, None)

    def clear(self) -> None:
        """Forget every partition."""
        self._map.clear()

    def set(self, states: Mapping[TopicPartition, S]) -> None:
        """Replace everything, with the partitions of one topic side by side."""
        by_topic: dict[str, dict[TopicPartition, S]] = {}
        for partition, state in states.items():
            by_topic.setdefault(partition.topic, {})[partition] = state
        self._map = {tp: state for group in by_topic.values() for tp, state in group.items()}

    def contains(self, partition: TopicPartition) -> bool:
        """Whether the partition has a state."""
        return partition in self._map

    def state_value(self, partition: TopicPartition) -> S | None:
        """The state, if there is one."""
        return self._map.get(partition)

    def partition_set(self) -> KeysView[TopicPartition]:
        """A live view of the partitions, in order."""
        return self._map.keys()

    def items(self) -> ItemsView[TopicPartition, S]:
        """A live view of partitions and states, in order."""
        return self._map.items()

    def partition_state_map(self) -> Mapping[TopicPartition, S]:
        """The map itself, to read only; it changes with this object."""
        return self._map

    def size(self) -> int:
        """The number of partitions."""
        return len(self._map)
