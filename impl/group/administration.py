"""DescribeGroups and DeleteGroups.

Source: GroupCoordinator.handleDescribeGroup and handleDeleteGroups, GroupMetadata.summary.
"""

from __future__ import annotations

from ..errors import Errors
from .group_metadata import DEAD, EMPTY, STABLE, GroupMetadata
from .group_metadata_manager import GroupMetadataManager
from .member_metadata import MemberMetadata
from .messages import DescribedGroup, DescribedGroupMember
from .rebalancer import GroupRebalancer


def describe_group(group: GroupMetadata) -> DescribedGroup:
    """The group's summary; protocol, metadata and assignments only if it is Stable."""
    with group.lock:
        protocol = group.protocol_name if group.is_in(STABLE) else None
        return DescribedGroup(
            Errors.NONE,
            group.group_id,
            group.state.value,
            group.protocol_type or "",
            protocol or "",
            tuple(_described(member, protocol) for member in group.members.values()),
        )


def _described(member: MemberMetadata, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        b"" if protocol is None else member.metadata(protocol),
        b"" if protocol is None else member.assignment,
    )


def delete_group(
    group: GroupMetadata, manager: GroupMetadataManager, rebalancer: GroupRebalancer
) -> Errors | None:
    """Delete an Empty group with its positions; None for a group that is Dead already."""
    with group.lock:
        if group.is_in(DEAD):
            return None
        if not group.is_in(EMPTY):
            return Errors.NON_EMPTY_GROUP
        group.transition_to(DEAD)
        rebalancer.forget_timers(group)
        manager.cleanup_group_metadata((group,), lambda dead: dead.offsets.remove_all_offsets())
        return Errors.NONE
