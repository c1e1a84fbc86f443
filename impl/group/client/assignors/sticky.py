"""As balanced as possible, then as few moves as possible (StickyAssignor, KIP-54)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from ....errors import KafkaException
from ....types import TopicPartition
from ..buffer import ByteBuffer
from ..consumer_protocol import (
    DEFAULT_GENERATION,
    Assignment,
    Subscription,
    deserialize_partitions,
    serialize_partitions,
)
from .assignor import (
    Assigned,
    PartitionAssignor,
    PartitionCounts,
    partitions_of,
    sorted_members,
)


class StickyAssignor(PartitionAssignor):
    """Balanced: no member could take a partition from one that has two or more than itself.

    What members owned travels in their user data, since an eager member has given up its
    partitions when it joins. Two claims to a partition: the later generation wins, and of the
    same generation neither (KAFKA-12984).
    """

    def __init__(self) -> None:
        self._own: tuple[TopicPartition, ...] | None = None
        self.generation_id = DEFAULT_GENERATION

    @property
    def name(self) -> str:
        """`sticky`."""
        return "sticky"

    def subscription_user_data(self) -> bytes | None:
        """The last assignment and its generation (StickyAssignorUserDataV1)."""
        if self._own is None:
            return None
        return serialize_partitions(self._own) + struct.pack(">i", self.generation_id)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        """Remember it for the next join."""
        self._own = assignment.partitions
        self.generation_id = generation_id

    def assign(
        self, partition_counts: PartitionCounts, subscriptions: Mapping[str, Subscription]
    ) -> Assigned:
        """Keep what can be kept, hand out the rest, level out."""
        wanted = {
            member: frozenset(subscriptions[member].topics)
            for member in sorted_members(subscriptions)
        }
        topics = sorted(frozenset[str]().union(*wanted.values()))
        partitions = partitions_of(topics, partition_counts)
        owned = {member: self.member_data(subscriptions[member]) for member in wanted}
        assigned = _kept(owned, wanted, frozenset(partitions))
        owners = {p: member for member, owned in assigned.items() for p in owned}
        for partition in partitions:
            if partition not in owners:
                _give(partition, wanted, assigned)
        while _move_one(wanted, assigned, owners):
            pass
        return assigned

    def member_data(self, subscription: Subscription) -> MemberData:
        """Generation and partitions of a member's last assignment; nothing if it cannot be read."""
        if subscription.owned_partitions or subscription.user_data is None:
            return subscription.generation_id, subscription.owned_partitions
        buffer = ByteBuffer(subscription.user_data)
        try:
            owned = deserialize_partitions(buffer)
            generation_id = DEFAULT_GENERATION
            if buffer.remaining:
                generation_id = int.from_bytes(buffer.read(4), "big", signed=True)
        except (KafkaException, UnicodeDecodeError):
            return DEFAULT_GENERATION, ()
        return generation_id, owned


Wanted = Mapping[str, frozenset[str]]
MemberData = tuple[int, tuple[TopicPartition, ...]]
"""The generation of a member's last assignment, and the partitions (AbstractStickyAssignor)."""


def _kept(
    members: Mapping[str, MemberData],
    wanted: Wanted,
    existing: frozenset[TopicPartition],
) -> Assigned:
    """What each member owned and may still own."""
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in wanted:
        generation_id, owned = members[member]
        for partition in owned:
            if partition not in existing or partition.topic not in wanted[member]:
                continue
            earlier, owner = claims.get(partition, (generation_id - 1, None))
            if generation_id > earlier:
                claims[partition] = (generation_id, member)
            elif generation_id == earlier and owner != member:
                claims[partition] = (generation_id, None)
    assigned: Assigned = {member: [] for member in wanted}
    for partition in sorted(claims):
        _, owner = claims[partition]
        if owner is not None:
            assigned[owner].append(partition)
    return assigned


def _subscribers(topic: str, wanted: Wanted) -> Iterable[str]:
    return (member for member, topics in wanted.items() if topic in topics)


def _give(partition: TopicPartition, wanted: Wanted, assigned: Assigned) -> None:
    """To the subscriber with the fewest partitions."""
    member = min(_subscribers(partition.topic, wanted), key=lambda m: len(assigned[m]))
    assigned[member].append(partition)


def _move_one(wanted: Wanted, assigned: Assigned, owners: Mapping[TopicPartition, str]) -> bool:
    """Move one partition from a fuller member to an emptier one; False: balanced.

    Each move lowers the sum of squares, so the moves come to an end. Partitions that have moved
    already, or were new, are moved before those that their owner has kept.
    """
    for giver in sorted(assigned, key=lambda member: -len(assigned[member])):
        moved_first = sorted(assigned[giver], key=lambda p: owners.get(p) == giver)
        for partition in moved_first:
            taker = min(_subscribers(partition.topic, wanted), key=lambda m: len(assigned[m]))
            if len(assigned[giver]) > len(assigned[taker]) + 1:
                assigned[giver].remove(partition)
                assigned[taker].append(partition)
                return True
    return False
