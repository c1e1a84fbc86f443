"""Each topic's partitions in one stretch per member (RangeAssignor)."""

from __future__ import annotations

from collections.abc import Mapping

from ..consumer_protocol import Subscription
from .assignor import (
    Assigned,
    PartitionAssignor,
    PartitionCounts,
    consumers_per_topic,
    partitions_of,
)


class RangeAssignor(PartitionAssignor):
    """The first members of a topic get one partition more; topics of equal size stay aligned."""

    @property
    def name(self) -> str:
        """`range`."""
        return "range"

    def assign(
        self, partition_counts: PartitionCounts, subscriptions: Mapping[str, Subscription]
    ) -> Assigned:
        """Divide topic by topic."""
        assigned: Assigned = {member: [] for member in subscriptions}
        for topic, members in consumers_per_topic(subscriptions).items():
            partitions = partitions_of([topic], partition_counts)
            share, extra = divmod(len(partitions), len(members))
            start = 0
            for position, member in enumerate(members):
                end = start + share + (position < extra)
                assigned[member].extend(partitions[start:end])
                start = end
        return assigned
