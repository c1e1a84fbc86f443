"""All partitions in turn to all members (RoundRobinAssignor)."""

from __future__ import annotations

from collections.abc import Mapping

from ..consumer_protocol import Subscription
from .assignor import (
    Assigned,
    PartitionAssignor,
    PartitionCounts,
    partitions_of,
    sorted_members,
)


class RoundRobinAssignor(PartitionAssignor):
    """A member that does not subscribe to a partition's topic is passed over."""

    @property
    def name(self) -> str:
        """`roundrobin`."""
        return "roundrobin"

    def assign(
        self, partition_counts: PartitionCounts, subscriptions: Mapping[str, Subscription]
    ) -> Assigned:
        """Deal the partitions, ordered by topic and number, like cards."""
        assigned: Assigned = {member: [] for member in subscriptions}
        members = sorted_members(subscriptions)
        topics = sorted({topic for s in subscriptions.values() for topic in s.topics})
        turn = 0
        for partition in partitions_of(topics, partition_counts):
            while partition.topic not in subscriptions[members[turn % len(members)]].topics:
                turn += 1
            assigned[members[turn % len(members)]].append(partition)
            turn += 1
        return assigned
