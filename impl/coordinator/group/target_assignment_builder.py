"""The target assignment of a group: its assignor's word, and the records that say what is new.

Source: TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..coordinator_shard import CoordinatorRecord
from .assignors import GroupAssignment, MemberSpec, PartitionAssignor, TopicsImage
from .member import NO_PARTITIONS, ConsumerGroupMember, Partitions
from .records import new_target_assignment_metadata_record, new_target_assignment_record
from .regular_expressions import ResolvedRegularExpressions, names_read_by


@dataclass(frozen=True, slots=True)
class TargetAssignmentBuilder:
    """One computation for a group in an epoch; `target`: the one that there is; `resolved`: what
    its regular expressions match."""

    group_id: str
    group_epoch: int
    members: Mapping[str, ConsumerGroupMember]
    target: Mapping[str, Partitions]
    assignor: PartitionAssignor
    topics: TopicsImage
    resolved: ResolvedRegularExpressions

    def build(self, now_ms: int) -> tuple[tuple[CoordinatorRecord, ...], GroupAssignment]:
        """Records of the members whose part is another one, by id; the epoch's; and all parts."""
        assignment = self.assignor.assign(
            {member_id: self._spec(member) for member_id, member in self.members.items()},
            self.topics,
        )
        parts = {
            member_id: assignment.get(member_id, NO_PARTITIONS)
            for member_id in sorted(self.members)
        }
        changed = tuple(
            new_target_assignment_record(self.group_id, member_id, part)
            for member_id, part in parts.items()
            if self.target.get(member_id) != part
        )
        epoch = new_target_assignment_metadata_record(self.group_id, self.group_epoch, now_ms)
        return (*changed, epoch), parts

    def _spec(self, member: ConsumerGroupMember) -> MemberSpec:
        former = self.target.get(member.member_id, NO_PARTITIONS)
        return MemberSpec(
            member.instance_id,
            topic_ids(names_read_by(member, self.resolved), self.topics),
            former,
        )


def topic_ids(names: frozenset[str], topics: TopicsImage) -> frozenset[str]:
    """The ids of those topics that exist (TopicIds)."""
    ids = map(topics.topic_id, names)
    return frozenset(topic_id for topic_id in ids if topic_id is not None)
