"""The coordinator's assignors: who is to have which partition.

Source: PartitionAssignor, RangeAssignor, UniformAssignor, and the images that they look topics up
in. A partition of a topic that nobody reads is given to nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ...types import TopicIdPartition
from .member import NO_PARTITIONS, Partitions

GroupAssignment = Mapping[str, Partitions]
"""By member id."""


class TopicsImage(Protocol):
    """The topics that there are (MetadataImage.topics)."""

    def topic_id(self, name: str) -> str | None:
        """The topic's id; None if there is no such topic."""

    def num_partitions(self, topic_id: str) -> int:
        """How many partitions it has; 0 if there is no such topic."""

    def topic_names(self) -> frozenset[str]:
        """All topics."""

    @property
    def version(self) -> int:
        """The image's offset in the metadata log: higher after each change."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member as an assignor sees it: the ids of its topics, and what it was to have before."""

    instance_id: str | None
    subscribed_topic_ids: frozenset[str]
    former: Partitions = NO_PARTITIONS


GroupSpec = Mapping[str, MemberSpec]
"""By member id."""


class PartitionAssignor(Protocol):
    """PartitionAssignor: pure, so that the same group gets the same target."""

    @property
    def name(self) -> str:
        """As members ask for it."""

    def assign(self, group: GroupSpec, topics: TopicsImage) -> GroupAssignment:
        """A part for each member, possibly an empty one."""


def _subscribers(group: GroupSpec) -> dict[str, list[str]]:
    """By topic id, the members that read it, in the order of their names."""
    subscribers: dict[str, list[str]] = {}
    for member_id in sorted(group, key=lambda name: (group[name].instance_id or name, name)):
        for topic_id in group[member_id].subscribed_topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    return subscribers


class RangeAssignor:
    """Each topic is cut into ranges; members are sorted by instance id or member id."""

    name = "range"

    def assign(self, group: GroupSpec, topics: TopicsImage) -> GroupAssignment:
        """See `PartitionAssignor.assign`."""
        shares: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in group}
        for topic_id, members in _subscribers(group).items():
            least, more = divmod(topics.num_partitions(topic_id), len(members))
            start = 0
            for place, member_id in enumerate(members):
                end = start + least + (place < more)
                shares[member_id] |= {TopicIdPartition(topic_id, p) for p in range(start, end)}
                start = end
        return {member_id: frozenset(share) for member_id, share in shares.items()}


class UniformAssignor:
    """Even shares, and as few moves as possible: who has more than its share gives some up."""

    name = "uniform"

    def assign(self, group: GroupSpec, topics: TopicsImage) -> GroupAssignment:
        """See `PartitionAssignor.assign`."""
        subscribers = _subscribers(group)
        partitions = [
            TopicIdPartition(topic_id, number)
            for topic_id in sorted(subscribers)
            for number in range(topics.num_partitions(topic_id))
        ]
        existing = frozenset(partitions)
        least, more = divmod(len(partitions), max(len(group), 1))
        owners: dict[TopicIdPartition, str] = {}
        sizes: Counter[str] = Counter()
        for member_id in sorted(group):
            # So many members may keep one partition more than the least.
            full = sum(size > least for size in sizes.values())
            most = least + (full < more)
            kept = [p for p in sorted(group[member_id].former) if p in existing]
            for partition in kept[:most]:
                if member_id in subscribers[partition.topic_id]:
                    owners[partition] = member_id
                    sizes[member_id] += 1
        for partition in partitions:
            if partition not in owners:
                smallest = _smallest(subscribers[partition.topic_id], sizes, least)
                owners[partition] = smallest
                sizes[smallest] += 1
        return {
            member_id: frozenset(p for p, owner in owners.items() if owner == member_id)
            for member_id in group
        }


def _smallest(members: Sequence[str], sizes: Mapping[str, int], least: int) -> str:
    """The first of those that have the fewest; what does not go round is left to the last ones.

    So does UniformHomogeneousAssignmentBuilder since KAFKA-18688.
    """
    fewest = min(sizes[name] for name in members)
    equals = [name for name in members if sizes[name] == fewest]
    return equals[0] if fewest < least else equals[-1]
