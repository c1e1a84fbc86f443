"""What a member gets next on its way to its target: revoke first, then wait, then be assigned.

Source: CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...errors import Errors
from ...types import TopicIdPartition
from .consumer_group import NO_PARTITION_EPOCH
from .member import AssignmentEpochs, ConsumerGroupMember, MemberState, Partitions, since


@dataclass(frozen=True, slots=True)
class CurrentAssignmentBuilder:
    """One reconciliation of one member.

    `owned`: what its heartbeat says that it owns, None if it does not say.
    `subscribed_topic_ids`: of the topics that it reads and that exist.
    """

    member: ConsumerGroupMember
    target_assignment_epoch: int
    target: Partitions
    current_partition_epoch: Callable[[TopicIdPartition], int]
    owned: Partitions | None
    subscribed_topic_ids: frozenset[str]
    has_subscription_changed: bool

    def build(self) -> ConsumerGroupMember:
        """The member as it is next; the same object if nothing changes."""
        member = self.member
        if member.state is MemberState.STABLE:
            if member.member_epoch != self.target_assignment_epoch:
                return self._compute_next_assignment(member.member_epoch)
            return self._update_current_assignment()
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            if self._owns_any(member.partitions_pending_revocation):
                return self._update_current_assignment()
            return self._compute_next_assignment(member.member_epoch)
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            return self._compute_next_assignment(member.member_epoch)
        if self.owned is None or self.owned:
            raise Errors.FENCED_MEMBER_EPOCH.exception(
                "the member is in an unknown state: it has to give up its partitions and join again"
            )
        return self._compute_next_assignment(self.target_assignment_epoch)

    def _owns_any(self, revoked: AssignmentEpochs) -> bool:
        """A heartbeat that does not say what the member owns gives nothing back."""
        return self.owned is None or not self.owned.isdisjoint(revoked)

    def _update_current_assignment(self) -> ConsumerGroupMember:
        """Take away at once what the member has unsubscribed from (KAFKA-19431)."""
        member, subscribed = self.member, self.subscribed_topic_ids
        if not self.has_subscription_changed:
            return member
        kept, removed = _split(
            member.assigned_partitions, lambda partition: partition.topic_id in subscribed
        )
        pending = {**member.partitions_pending_revocation, **removed}
        if not removed and (subscribed or pending):
            return member
        epoch = member.member_epoch
        if pending and self._owns_any(pending):
            return member.in_epoch(epoch, MemberState.UNREVOKED_PARTITIONS, kept, pending)
        return replace(member, previous_member_epoch=epoch, assigned_partitions=kept)

    def _compute_next_assignment(self, member_epoch: int) -> ConsumerGroupMember:
        member, target_epoch = self.member, self.target_assignment_epoch
        subscribed = self.subscribed_topic_ids
        target = {partition for partition in self.target if partition.topic_id in subscribed}
        kept, revoked = _split(member.assigned_partitions, target.__contains__)
        if revoked and self._owns_any(revoked):
            return member.in_epoch(member_epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
        missing = target - kept.keys()
        released = {partition for partition in missing if self._is_released(partition)}
        state = MemberState.STABLE if released == missing else MemberState.UNRELEASED_PARTITIONS
        return member.in_epoch(target_epoch, state, {**kept, **since(target_epoch, released)}, {})

    def _is_released(self, partition: TopicIdPartition) -> bool:
        """Whether nobody holds it, or the member itself has just revoked it (KAFKA-19449)."""
        return (
            self.current_partition_epoch(partition) == NO_PARTITION_EPOCH
            or partition in self.member.partitions_pending_revocation
        )


def _split(
    partitions: AssignmentEpochs, is_kept: Callable[[TopicIdPartition], bool]
) -> tuple[AssignmentEpochs, AssignmentEpochs]:
    """Those that are kept, and the others."""
    kept = {partition: epoch for partition, epoch in partitions.items() if is_kept(partition)}
    others = {partition: partitions[partition] for partition in partitions.keys() - kept.keys()}
    return kept, others
