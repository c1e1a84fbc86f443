"""A member of a consumer group, and what it is assigned.

Source: ConsumerGroupMember, ModernGroupMember, MemberState.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from ...types import TopicIdPartition

JOIN_GROUP_MEMBER_EPOCH = 0
LEAVE_GROUP_MEMBER_EPOCH = -1
LEAVE_GROUP_STATIC_MEMBER_EPOCH = -2

Partitions = frozenset[TopicIdPartition]
AssignmentEpochs = Mapping[TopicIdPartition, int]
"""Partitions, each with the epoch in which the member was given it (KIP-1251)."""
NO_PARTITIONS: Partitions = frozenset()


class MemberState(IntEnum):
    """Where a member is on its way to its target, by the numbers that records have."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @staticmethod
    def from_value(value: int) -> MemberState:
        """A number that a newer release has written is UNKNOWN."""
        return MemberState(value) if value in _STATES else MemberState.UNKNOWN


_STATES = frozenset(map(int, MemberState))


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """A member as the records have it; `rebalance_timeout_ms` -1: not yet said."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    server_assignor_name: str | None = None
    subscribed_topic_regex: str = ""
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned_partitions: AssignmentEpochs = field(default_factory=dict)
    partitions_pending_revocation: AssignmentEpochs = field(default_factory=dict)

    def in_epoch(
        self,
        epoch: int,
        state: MemberState,
        assigned: AssignmentEpochs,
        pending_revocation: AssignmentEpochs,
    ) -> ConsumerGroupMember:
        """The member after a reconciliation; its former epoch is kept (updateMemberEpoch)."""
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=self.member_epoch,
            state=state,
            assigned_partitions=assigned,
            partitions_pending_revocation=pending_revocation,
        )

    @property
    def held_partitions(self) -> Partitions:
        """Assigned, or still to be revoked: nobody else is given these."""
        return frozenset(self.assigned_partitions) | frozenset(self.partitions_pending_revocation)

    def assignment_epoch_of(self, partition: TopicIdPartition) -> int | None:
        """In which epoch the member was given the partition; None if it does not hold it."""
        epoch = self.assigned_partitions.get(partition)
        return self.partitions_pending_revocation.get(partition) if epoch is None else epoch

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Whether the member has all that the target gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch


def since(epoch: int, partitions: Iterable[TopicIdPartition]) -> AssignmentEpochs:
    """Partitions that are given in one epoch."""
    return dict.fromkeys(partitions, epoch)
