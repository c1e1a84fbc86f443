"""The contract of an assignor, and what the assignors share (ConsumerPartitionAssignor)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from enum import IntEnum

from ....types import TopicPartition
from ..consumer_protocol import Assignment, Subscription

PartitionCounts = Mapping[str, int]
"""Number of partitions of each topic that exists."""
Assigned = dict[str, list[TopicPartition]]
"""Partitions by member id."""


class RebalanceProtocol(IntEnum):
    """What a member gives up when it joins (KIP-429); the greater number is the later protocol."""

    EAGER = 0
    COOPERATIVE = 1


class PartitionAssignor(ABC):
    """Pure as to its arguments; a sticky one remembers its own member's last assignment."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The protocol's name in the join."""

    @abstractmethod
    def assign(
        self, partition_counts: PartitionCounts, subscriptions: Mapping[str, Subscription]
    ) -> Assigned:
        """Each member id's partitions; every member has an entry, topics unknown are left out."""

    @property
    def supported_protocols(self) -> frozenset[RebalanceProtocol]:
        """The rebalance protocols under which the assignor may be used."""
        return frozenset({RebalanceProtocol.EAGER})

    def subscription_user_data(self) -> bytes | None:
        """What the leader's assignor is to know of this member."""
        return None

    def on_assignment(  # noqa: B027 - only a sticky assignor has something to remember
        self, assignment: Assignment, generation_id: int
    ) -> None:
        """This member has got its assignment."""


def consumers_per_topic(subscriptions: Mapping[str, Subscription]) -> dict[str, list[str]]:
    """The subscribers of each topic, in order of `MemberInfo`: instance ids first, then ids."""
    per_topic: dict[str, list[str]] = {}
    for member in sorted_members(subscriptions):
        for topic in dict.fromkeys(subscriptions[member].topics):
            per_topic.setdefault(topic, []).append(member)
    return per_topic


def sorted_members(subscriptions: Mapping[str, Subscription]) -> list[str]:
    """Static members by instance id, then dynamic ones by member id: stable over restarts."""

    def key(member: str) -> tuple[bool, str]:
        instance = subscriptions[member].group_instance_id
        return (instance is None, member if instance is None else instance)

    return sorted(subscriptions, key=key)


def partitions_of(topics: Iterable[str], partition_counts: PartitionCounts) -> list[TopicPartition]:
    """Every partition of the topics that exist, topic by topic."""
    return [
        TopicPartition(topic, partition)
        for topic in topics
        for partition in range(partition_counts.get(topic, 0))
    ]
