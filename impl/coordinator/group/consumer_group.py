"""A consumer group as its records have made it.

Source: ConsumerGroup, ModernGroup. All of it lies in timeline structures; what is derived from the
members (who is a static one, who holds a partition) is kept as they are replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ...errors import Errors, IllegalStateException
from ...types import TopicIdPartition
from ..timeline import LATEST_EPOCH, SnapshotRegistry, TimelineHashMap, TimelineObject
from .member import NO_PARTITIONS, ConsumerGroupMember, Partitions
from .records import ConsumerGroupMetadataValue, TargetAssignmentMetadataValue
from .regular_expressions import ResolvedRegularExpression

FIRST_GROUP_EPOCH = 1
"""Of a group that nobody has joined: its first member makes it the next (KAFKA-20268), or the
first result of its regular expression. Its target of that epoch gives nothing to anybody."""
NO_PARTITION_EPOCH = -1
_ADMIN_EPOCH = -1

CommitPartitionValidator = Callable[[TopicIdPartition], None]
"""Raises STALE_MEMBER_EPOCH for a partition whose commit must not be taken."""


class ConsumerGroupState(Enum):
    """ConsumerGroup.ConsumerGroupState, by the names that ListGroups shows."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerGroup:
    """A group and its members; `replay` of the manager changes it, and nothing else."""

    def __init__(self, registry: SnapshotRegistry, group_id: str) -> None:
        self.group_id = group_id
        self.has_metadata_expired = True
        """Whether its topics may have changed. No record says so: after a load it is not known."""
        self._metadata = TimelineObject(registry, ConsumerGroupMetadataValue(FIRST_GROUP_EPOCH))
        self._target_metadata = TimelineObject(
            registry, TargetAssignmentMetadataValue(FIRST_GROUP_EPOCH)
        )
        self._members: TimelineHashMap[str, ConsumerGroupMember] = TimelineHashMap(registry)
        self._static_members: TimelineHashMap[str, str] = TimelineHashMap(registry)
        self._target_assignment: TimelineHashMap[str, Partitions] = TimelineHashMap(registry)
        self._partition_epochs: TimelineHashMap[TopicIdPartition, int] = TimelineHashMap(registry)
        self._resolved: TimelineHashMap[str, ResolvedRegularExpression] = TimelineHashMap(registry)

    # ---- what it is --------------------------------------------------------------------------

    def metadata(self, committed_offset: int = LATEST_EPOCH) -> ConsumerGroupMetadataValue:
        """The group's epoch and the hash of its topics."""
        return self._metadata.get(committed_offset)

    def target_metadata(
        self, committed_offset: int = LATEST_EPOCH
    ) -> TargetAssignmentMetadataValue:
        """The target's epoch and time."""
        return self._target_metadata.get(committed_offset)

    @property
    def group_epoch(self) -> int:
        """Rises whenever the group has to be assigned anew."""
        return self.metadata().epoch

    @property
    def assignment_epoch(self) -> int:
        """The group epoch that the target was computed for."""
        return self.target_metadata().assignment_epoch

    def members(self, committed_offset: int = LATEST_EPOCH) -> dict[str, ConsumerGroupMember]:
        """By member id."""
        return self._members.entries(committed_offset)

    def member(self, member_id: str) -> ConsumerGroupMember | None:
        """The member with this id."""
        return self._members.get(member_id)

    def member_or_raise(
        self, member_id: str, committed_offset: int = LATEST_EPOCH
    ) -> ConsumerGroupMember:
        """The member with this id. Raises UNKNOWN_MEMBER_ID."""
        member = self._members.get(member_id, committed_offset)
        if member is None:
            raise Errors.UNKNOWN_MEMBER_ID.exception(
                f"{member_id} is no member of group {self.group_id}"
            )
        return member

    def static_member(self, instance_id: str) -> ConsumerGroupMember | None:
        """The member that has this instance id."""
        member_id = self._static_members.get(instance_id)
        return None if member_id is None else self._members.get(member_id)

    def static_members(self, committed_offset: int = LATEST_EPOCH) -> dict[str, str]:
        """Member ids by instance id."""
        return self._static_members.entries(committed_offset)

    def target_assignment(self, committed_offset: int = LATEST_EPOCH) -> dict[str, Partitions]:
        """By member id."""
        return self._target_assignment.entries(committed_offset)

    def target_of(self, member_id: str) -> Partitions:
        """What the member is to have in the end."""
        return self._target_assignment.get(member_id) or NO_PARTITIONS

    def current_partition_epoch(
        self, partition: TopicIdPartition, committed_offset: int = LATEST_EPOCH
    ) -> int:
        """The epoch of the member that holds the partition; -1 if nobody does."""
        epoch = self._partition_epochs.get(partition, committed_offset)
        return NO_PARTITION_EPOCH if epoch is None else epoch

    def state(self, committed_offset: int = LATEST_EPOCH) -> ConsumerGroupState:
        """Where the group is on its way to its target."""
        members = self.members(committed_offset).values()
        assignment_epoch = self.target_metadata(committed_offset).assignment_epoch
        if not members:
            return ConsumerGroupState.EMPTY
        if self.metadata(committed_offset).epoch > assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(assignment_epoch) for member in members):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def subscribed_topic_names(self) -> frozenset[str]:
        """What any member reads."""
        names = (member.subscribed_topic_names for member in self.members().values())
        matched = (resolved.topics for resolved in self.resolved_regular_expressions().values())
        return frozenset().union(*names, *matched)

    # ---- regular expressions -----------------------------------------------------------------

    def resolved_regular_expressions(self) -> dict[str, ResolvedRegularExpression]:
        """What each matched; all were resolved together."""
        return self._resolved.entries()

    def num_subscribed_members(self, regex: str) -> int:
        """How many members have this regular expression."""
        return sum(member.subscribed_topic_regex == regex for member in self.members().values())

    def subscribed_regular_expressions(
        self, updated: ConsumerGroupMember | None = None
    ) -> frozenset[str]:
        """Those that any member has; once a member is `updated`, if one is given."""
        members = self.members()
        if updated is not None:
            members[updated.member_id] = updated
        return frozenset({member.subscribed_topic_regex for member in members.values()} - {""})

    # ---- replay ------------------------------------------------------------------------------

    def set_metadata(self, value: ConsumerGroupMetadataValue) -> None:
        """The group is in a new epoch."""
        self._metadata.set(value)

    def set_target_metadata(self, value: TargetAssignmentMetadataValue) -> None:
        """The target is of a new epoch."""
        self._target_metadata.set(value)

    def update_target_assignment(self, member_id: str, target: Partitions) -> None:
        """A member's part of the target."""
        self._target_assignment.put(member_id, target)

    def remove_target_assignment(self, member_id: str) -> None:
        """The target gives the member nothing."""
        self._target_assignment.remove(member_id)

    def update_resolved_regular_expression(
        self, regex: str, resolved: ResolvedRegularExpression
    ) -> None:
        """It is known what the regular expression matches."""
        self._resolved.put(regex, resolved)

    def remove_resolved_regular_expression(self, regex: str) -> None:
        """Nobody subscribes to it any more."""
        self._resolved.remove(regex)

    def update_member(self, member: ConsumerGroupMember) -> None:
        """Put the member in the place of the one with its id.

        Raises IllegalStateException if it is given a partition that another member holds.
        """
        former = self._members.get(member.member_id)
        if former is not None:
            self._remove_partition_epochs(former)
            self._remove_static_member(former)
        if member.instance_id is not None:
            self._static_members.put(member.instance_id, member.member_id)
        self._add_partition_epochs(member)
        self._members.put(member.member_id, member)

    def remove_member(self, member_id: str) -> None:
        """The member is gone."""
        former = self._members.get(member_id)
        if former is not None:
            self._remove_partition_epochs(former)
            self._remove_static_member(former)
            self._members.remove(member_id)

    def _remove_static_member(self, former: ConsumerGroupMember) -> None:
        """Unless another member has taken the instance id meanwhile."""
        instance_id = former.instance_id
        if instance_id and self._static_members.get(instance_id) == former.member_id:
            self._static_members.remove(instance_id)

    def _remove_partition_epochs(self, former: ConsumerGroupMember) -> None:
        """What another member holds by now stays: a log that was compacted may lack the record
        that gave it back (KAFKA-19862)."""
        for partition in former.held_partitions:
            if self._partition_epochs.get(partition) == former.member_epoch:
                self._partition_epochs.remove(partition)

    def _add_partition_epochs(self, member: ConsumerGroupMember) -> None:
        for partition in member.held_partitions:
            epoch = self._partition_epochs.get(partition)
            if epoch is not None and epoch >= member.member_epoch:
                raise IllegalStateException(
                    f"{partition} of group {self.group_id} cannot go to {member.member_id} "
                    f"in epoch {member.member_epoch}: it is owned in epoch {epoch}"
                )
            self._partition_epochs.put(partition, member.member_epoch)

    # ---- validation --------------------------------------------------------------------------

    def validate_offset_commit(self, member_id: str, member_epoch: int) -> CommitPartitionValidator:
        """What is asked of each partition of a commit (KIP-1251).

        Raises UNKNOWN_MEMBER_ID; STALE_MEMBER_EPOCH for an epoch that the member does not have yet.
        """
        if member_epoch <= _ADMIN_EPOCH and not self.members():
            return _take_any
        member = self.member_or_raise(member_id)
        if member_epoch == member.member_epoch:
            return _take_any
        if member_epoch > member.member_epoch:
            raise Errors.STALE_MEMBER_EPOCH.exception(
                f"member epoch {member_epoch} is newer than {member.member_epoch}"
            )
        return lambda partition: _validate_assignment_epoch(member, member_epoch, partition)

    def validate_offset_fetch(
        self, member_id: str | None, member_epoch: int, committed_offset: int
    ) -> None:
        """Raises UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH. Who names no member may fetch."""
        if member_id is None and member_epoch <= _ADMIN_EPOCH:
            return
        member = self.member_or_raise(member_id or "", committed_offset)
        if member_epoch != member.member_epoch:
            raise Errors.STALE_MEMBER_EPOCH.exception(
                f"member epoch {member_epoch} is not {member.member_epoch}"
            )


def _take_any(_partition: TopicIdPartition) -> None:
    """The member's epoch says enough."""


def _validate_assignment_epoch(
    member: ConsumerGroupMember, member_epoch: int, partition: TopicIdPartition
) -> None:
    epoch = member.assignment_epoch_of(partition)
    if epoch is None or member_epoch < epoch:
        raise Errors.STALE_MEMBER_EPOCH.exception(
            f"{partition} was not the member's in epoch {member_epoch}"
        )
