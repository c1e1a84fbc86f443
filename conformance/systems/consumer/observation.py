"""The coordinator's group as the spec's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from conformance.systems.consumer.coordinator import DrivenCoordinator, numbers_of, with_ids
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.consumer.member import NO_EPOCH, Commit, WireMember
from conformance.tla import Fn, Value
from impl.coordinator.group.member import ConsumerGroupMember

_NOTHING: frozenset[int] = frozenset()
_STATES: Mapping[str, str] = MappingProxyType(
    {
        "STABLE": "Stable",
        "UNREVOKED_PARTITIONS": "UnrevokedPartitions",
        "UNRELEASED_PARTITIONS": "UnreleasedPartitions",
    }
)


class ObservedMember(NamedTuple):
    """A member as the coordinator has it, and what is known of its commit that is under way."""

    state: str = "None"
    epoch: int = NO_EPOCH
    previous: int = NO_EPOCH
    assigned: frozenset[int] = _NOTHING
    revoking: frozenset[int] = _NOTHING
    target: frozenset[int] = _NOTHING
    described: frozenset[int] = _NOTHING
    kept: frozenset[int] = _NOTHING


class ObservedGroup(NamedTuple):
    """The group; members in the order of their names."""

    epoch: int
    assignment_epoch: int
    members: tuple[ObservedMember, ...]


OF_MEMBER: Mapping[str, Callable[[ObservedMember], Value]] = MappingProxyType(
    {
        "target": lambda member: _values(member.target),
        "memberState": lambda member: member.state,
        "memberEpoch": lambda member: member.epoch,
        "previousMemberEpoch": lambda member: member.previous,
        "assignedPartitions": lambda member: _values(member.assigned),
        "partitionsPendingRevocation": lambda member: _values(member.revoking),
        "described": lambda member: _values(member.described),
        "keptSince": lambda member: _values(member.kept),
    }
)


def observed_group(
    coordinator: DrivenCoordinator, members: Mapping[str, WireMember]
) -> ObservedGroup:
    """The group now. SystemFailed if it has a member that is not among these."""
    group = coordinator.group
    if group is None:
        return ObservedGroup(0, 0, (ObservedMember(),) * len(members))
    present, targets = group.members(), group.target_assignment()
    if strangers := sorted({*present, *targets} - {*members}):
        raise SystemFailed(f"The group has members that nobody sent: {strangers}")
    shown = {member.member_id: member for member in coordinator.describe().members}

    def observed(name: str, sender: WireMember) -> ObservedMember:
        member = present.get(name)
        if member is None:
            return ObservedMember()
        return ObservedMember(
            _STATES.get(member.state.name, member.state.name),
            member.member_epoch,
            member.previous_member_epoch,
            numbers_of(frozenset(member.assigned_partitions)),
            numbers_of(frozenset(member.partitions_pending_revocation)),
            numbers_of(targets.get(name, frozenset())),
            numbers_of(shown[name].assignment),
            _kept(member, sender.commit),
        )

    return ObservedGroup(
        group.group_epoch,
        group.assignment_epoch,
        tuple(observed(name, sender) for name, sender in members.items()),
    )


def _kept(member: ConsumerGroupMember, commit: object) -> frozenset[int]:
    """Of a commit under way, the partitions that were the member's in its epoch already."""
    if not isinstance(commit, Commit):
        return _NOTHING
    epochs = {
        partition: member.assignment_epoch_of(partition)
        for partition in with_ids(commit.partitions)
    }
    return numbers_of(
        frozenset(
            partition
            for partition, epoch in epochs.items()
            if epoch is not None and epoch <= commit.epoch
        )
    )


def group_values(group: ObservedGroup, names: Iterable[str]) -> dict[str, Value]:
    """The group's variables."""
    members = dict(zip(names, group.members, strict=True))
    of_members = {
        variable: Fn({name: value(member) for name, member in members.items()})
        for variable, value in OF_MEMBER.items()
    }
    return {"groupEpoch": group.epoch, "assignmentEpoch": group.assignment_epoch, **of_members}


def _values(partitions: Iterable[int]) -> frozenset[Value]:
    return frozenset(partitions)
