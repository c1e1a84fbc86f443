"""What the application subscribes to, owns, and has consumed (SubscriptionState)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...errors import IllegalStateException
from ...types import NO_PARTITION_LEADER_EPOCH, TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed position: the next offset to read."""

    offset: int
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    metadata: str = ""


class SubscriptionState:
    """Either a subscription, for which the group assigns, or a manual assignment.

    Not thread-safe: only the application's thread uses it.
    """

    def __init__(self) -> None:
        self.unsubscribe()

    def unsubscribe(self) -> None:
        """Want and own nothing."""
        self._subscription: frozenset[str] = frozenset()
        self._group_subscription: frozenset[str] = frozenset()
        self._auto_assigned = False
        self._has_subscription = False
        self._positions: dict[TopicPartition, OffsetAndMetadata | None] = {}
        self._pending_revocation: set[TopicPartition] = set()

    @property
    def has_auto_assigned_partitions(self) -> bool:
        """Whether the group assigns (subscribe), not the application (assign)."""
        return self._auto_assigned

    @property
    def has_subscription(self) -> bool:
        """Whether there is a subscription or an assignment by hand."""
        return self._has_subscription

    @property
    def subscription(self) -> frozenset[str]:
        """The topics subscribed to."""
        return self._subscription

    @property
    def group_subscription(self) -> frozenset[str]:
        """Topics whose metadata this member must watch: as the leader, every member's."""
        return self._group_subscription | self._subscription

    @property
    def assigned_partitions(self) -> frozenset[TopicPartition]:
        """The partitions owned."""
        return frozenset(self._positions)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Let the group assign partitions of `topics`. Raises after a manual `assign`."""
        if self._has_subscription and not self._auto_assigned:
            raise IllegalStateException("partitions are assigned by hand: unsubscribe first")
        self._auto_assigned = self._has_subscription = True
        self._subscription = frozenset(topics)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Own `partitions` without a group. Raises after `subscribe`."""
        if self._auto_assigned:
            raise IllegalStateException("topics are subscribed to: unsubscribe first")
        self._has_subscription = True
        self._take(partitions)

    def group_subscribe(self, topics: Iterable[str]) -> None:
        """The leader watches every member's topics."""
        self._group_subscription = frozenset(topics)

    def reset_group_subscription(self) -> None:
        """No longer the leader."""
        self._group_subscription = frozenset()

    def assign_from_subscribed(self, partitions: Iterable[TopicPartition]) -> None:
        """Own what the group gave; positions of partitions that stay are kept."""
        self._take(partitions)

    def matches_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether every partition is of a topic still subscribed to."""
        return all(partition.topic in self._subscription for partition in partitions)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """The next record to read. Raises IllegalStateException if the partition is not owned."""
        if partition not in self._positions:
            raise IllegalStateException(f"no position for {partition}: it is not assigned")
        self._positions[partition] = OffsetAndMetadata(offset)

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out no more records of partitions about to be given up (KAFKA-14024)."""
        self._pending_revocation = set(partitions)

    def is_pending_revocation(self, partition: TopicPartition) -> bool:
        """Whether the partition is about to be given up."""
        return partition in self._pending_revocation

    def is_fetchable(self, partition: TopicPartition) -> bool:
        """Whether records of the partition may be handed to the application."""
        return (
            self._positions.get(partition) is not None and partition not in self._pending_revocation
        )

    def all_consumed(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """The positions to commit."""
        return {tp: position for tp, position in self._positions.items() if position is not None}

    def _take(self, partitions: Iterable[TopicPartition]) -> None:
        known = self._positions
        self._positions = {partition: known.get(partition) for partition in partitions}
        self._pending_revocation = set()
