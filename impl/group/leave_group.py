"""LeaveGroup: who may leave, named by member id or by instance.

Source: GroupCoordinator.handleLeaveGroup.
"""

from __future__ import annotations

from ..errors import Errors
from .group_metadata import GroupMetadata
from .messages import UNKNOWN_MEMBER_ID, MemberIdentity
from .rebalancer import GroupRebalancer
from .validation import validate_current_member


def leave_group(
    group: GroupMetadata, leaving: MemberIdentity, rebalancer: GroupRebalancer
) -> Errors:
    """Remove one member; called with the group's lock held."""
    member_id, group_instance_id = leaving.member_id, leaving.group_instance_id
    if member_id == UNKNOWN_MEMBER_ID:
        # An administrator may name just the instance.
        current = group.current_static_member_id(group_instance_id or "")
        if current is None:
            return Errors.UNKNOWN_MEMBER_ID
        member_id = current
    elif group.is_pending_member(member_id):
        rebalancer.remove_pending_member_and_update_group(group, member_id)
        return Errors.NONE
    else:
        error = validate_current_member(group, member_id, group_instance_id)
        if error is not None:
            return error
    rebalancer.remove_member_and_update_group(group, group.get(member_id))
    return Errors.NONE
