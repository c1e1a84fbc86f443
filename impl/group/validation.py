"""Which error a member's request deserves, in Kafka's order of precedence.

Source: the validate methods of kafka.coordinator.group.GroupCoordinator. Every function is called
with the group's lock held and answers None for a request that may go on.
"""

from __future__ import annotations

from ..errors import Errors
from .group_metadata import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupMetadata,
)
from .messages import UNKNOWN_MEMBER_ID, SyncGroupRequest


def accept_joining_member(group: GroupMetadata, member_id: str, max_size: int) -> bool:
    """Whether the group has room (KAFKA-9885: who joins last has to go)."""
    if group.is_in(PREPARING_REBALANCE):
        parked = group.has(member_id) and group.get(member_id).is_awaiting_join
        return parked or group.num_members_awaiting_join < max_size
    if group.is_in(COMPLETING_REBALANCE, STABLE):
        return group.has(member_id) or group.size < max_size
    return True


def validate_current_member(
    group: GroupMetadata, member_id: str, group_instance_id: str | None
) -> Errors | None:
    """The member must be known, and be the one that its instance is mapped to."""
    if group_instance_id is not None:
        current_member_id = group.current_static_member_id(group_instance_id)
        if current_member_id is None:
            return Errors.UNKNOWN_MEMBER_ID
        if current_member_id != member_id:
            return Errors.FENCED_INSTANCE_ID
    if not group.has(member_id):
        return Errors.UNKNOWN_MEMBER_ID
    return None


def validate_generation(
    group: GroupMetadata, generation_id: int, member_id: str, group_instance_id: str | None
) -> Errors | None:
    """A request of a member in a generation: Dead group, then the member, then the generation."""
    if group.is_in(DEAD):
        # KAFKA-8386: not UNKNOWN_MEMBER_ID; the member is to find the new coordinator.
        return Errors.COORDINATOR_NOT_AVAILABLE
    error = validate_current_member(group, member_id, group_instance_id)
    if error is not None:
        return error
    if generation_id != group.generation_id:
        return Errors.ILLEGAL_GENERATION
    return None


def validate_sync_group(group: GroupMetadata, request: SyncGroupRequest) -> Errors | None:
    """As `validate_generation`, then protocol type and name where the request gives them."""
    error = validate_generation(
        group, request.generation_id, request.member_id, request.group_instance_id
    )
    if error is not None:
        return error
    if request.protocol_type is not None and request.protocol_type != group.protocol_type:
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name is not None and request.protocol_name != group.protocol_name:
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    return None


def validate_offset_commit(
    group: GroupMetadata,
    generation_id: int,
    member_id: str,
    group_instance_id: str | None,
    *,
    is_transactional: bool,
) -> Errors | None:
    """Who may commit: a current member, a consumer outside groups, an old transactional producer.

    A commit without generation into an Empty group is nobody's: neither id nor instance counts.
    """
    if group.is_in(DEAD):
        return Errors.COORDINATOR_NOT_AVAILABLE
    if generation_id < 0 and group.is_in(EMPTY):
        return None
    if generation_id >= 0 or member_id != UNKNOWN_MEMBER_ID or group_instance_id is not None:
        return validate_generation(group, generation_id, member_id, group_instance_id)
    if not is_transactional and not group.is_in(EMPTY):
        return Errors.UNKNOWN_MEMBER_ID
    return None
