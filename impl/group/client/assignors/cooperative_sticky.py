"""Sticky, for members that keep what they own while they join (CooperativeStickyAssignor)."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from ..consumer_protocol import DEFAULT_GENERATION, Subscription
from .assignor import Assigned, PartitionCounts, RebalanceProtocol
from .sticky import MemberData, StickyAssignor


class CooperativeStickyAssignor(StickyAssignor):
    """A partition that changes its owner is given to nobody, until its owner has given it up."""

    @property
    def name(self) -> str:
        """`cooperative-sticky`."""
        return "cooperative-sticky"

    @property
    def supported_protocols(self) -> frozenset[RebalanceProtocol]:
        """Both: a group goes over from one to the other."""
        return frozenset(RebalanceProtocol)

    def subscription_user_data(self) -> bytes | None:
        """The last generation; what is owned stands in the subscription itself."""
        return struct.pack(">i", self.generation_id)

    def member_data(self, subscription: Subscription) -> MemberData:
        """The generation stands in the subscription from version 2 on, and in user data before."""
        generation_id = subscription.generation_id
        data = subscription.user_data
        if generation_id == DEFAULT_GENERATION and data is not None and len(data) >= 4:
            generation_id = int.from_bytes(data[:4], "big", signed=True)
        return generation_id, subscription.owned_partitions

    def assign(
        self, partition_counts: PartitionCounts, subscriptions: Mapping[str, Subscription]
    ) -> Assigned:
        """As sticky, without what another member still owns."""
        assigned = super().assign(partition_counts, subscriptions)
        owners = {
            partition: member
            for member, subscription in subscriptions.items()
            for partition in subscription.owned_partitions
            if partition not in assigned[member]
        }
        return {
            member: [p for p in partitions if owners.get(p, member) == member]
            for member, partitions in assigned.items()
        }
