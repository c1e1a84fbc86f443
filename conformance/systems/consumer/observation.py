"""What is seen of the coordinator's group in `impl`."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.systems.consumer.coordinator import DrivenCoordinator, DrivenTopics
from conformance.systems.protocol import SystemFailed
from conformance.systems.wire.consumer.inside import GroupInside, MemberInside
from conformance.systems.wire.consumer.member import Commit, ConsumerProcess
from conformance.systems.wire.consumer.reach import NO_ASSIGNOR
from impl.coordinator.group.member import ConsumerGroupMember


def group_inside(
    coordinator: DrivenCoordinator, senders: Mapping[str, ConsumerProcess]
) -> GroupInside:
    """The group now. SystemFailed if it has a target for who is not in it."""
    group = coordinator.group
    if group is None:
        return GroupInside()
    numbers_of = coordinator.topics.numbers_of
    members, targets = group.members(), group.target_assignment()
    if strangers := sorted({*targets} - {*members}):
        raise SystemFailed(f"The group has targets of nobody: {strangers}")
    description = coordinator.describe()
    shown = {member.member_id: member for member in description.members}

    def inside(name: str, member: ConsumerGroupMember) -> MemberInside:
        sender = senders.get(name)
        return MemberInside(
            state=member.state.name,
            epoch=member.member_epoch,
            previous_epoch=member.previous_member_epoch,
            assigned=numbers_of(member.assigned_partitions),
            pending_revocation=numbers_of(member.partitions_pending_revocation),
            described=numbers_of(shown[name].assignment),
            target=numbers_of(targets.get(name, frozenset())),
            reads=member.subscribed_topic_names | ({member.subscribed_topic_regex} - {""}),
            assignor=member.server_assignor_name or NO_ASSIGNOR,
            kept=(
                frozenset() if sender is None else _kept(member, sender.commit, coordinator.topics)
            ),
        )

    return GroupInside(
        group.group_epoch,
        group.assignment_epoch,
        tuple((name, inside(name, member)) for name, member in sorted(members.items())),
        tuple(
            (regex, resolved.topics)
            for regex, resolved in sorted(group.resolved_regular_expressions().items())
        ),
        coordinator.resolution,
        preferred=description.assignor_name if members else NO_ASSIGNOR,
        assigned_by=coordinator.choice.made_by,
        interval_runs=coordinator.interval_runs,
    )


def _kept(member: ConsumerGroupMember, commit: object, topics: DrivenTopics) -> frozenset[int]:
    """Of a commit under way, the partitions that were the member's in its epoch already."""
    if not isinstance(commit, Commit):
        return frozenset()
    epochs = {
        partition: member.assignment_epoch_of(partition)
        for partition in topics.with_ids(commit.partitions)
    }
    return topics.numbers_of(
        partition
        for partition, epoch in epochs.items()
        if epoch is not None and epoch <= commit.epoch
    )
