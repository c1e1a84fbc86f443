"""SyncGroup: the leader's assignment goes to the log, then to the members.

Source: the sync methods of kafka.coordinator.group.GroupCoordinator.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import Errors
from .group_metadata import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    GroupMetadata,
)
from .group_metadata_manager import GroupMetadataManager
from .member_metadata import SyncCallback
from .messages import SyncGroupRequest, SyncGroupResponse
from .rebalancer import GroupRebalancer, sync_response
from .validation import validate_sync_group


class SyncGroupHandler:
    """Decides what a SyncGroup does to a group that exists; called with the group's lock held."""

    def __init__(self, manager: GroupMetadataManager, rebalancer: GroupRebalancer) -> None:
        self._manager = manager
        self._rebalancer = rebalancer

    def sync(self, group: GroupMetadata, request: SyncGroupRequest, callback: SyncCallback) -> None:
        """Answer or park the request; the leader's ends the sync phase once it is in the log."""
        error = validate_sync_group(group, request)
        if error is not None:
            callback(SyncGroupResponse(error))
        elif group.is_in(EMPTY):
            callback(SyncGroupResponse(Errors.UNKNOWN_MEMBER_ID))
        elif group.is_in(PREPARING_REBALANCE):
            callback(SyncGroupResponse(Errors.REBALANCE_IN_PROGRESS))
        elif group.is_in(COMPLETING_REBALANCE):
            group.get(request.member_id).awaiting_sync_callback = callback
            self._rebalancer.remove_pending_sync_member(group, request.member_id)
            if group.is_leader(request.member_id):
                self._store_assignment(group, request)
        else:
            self._rebalancer.remove_pending_sync_member(group, request.member_id)
            member = group.get(request.member_id)
            callback(sync_response(group, member))
            self._rebalancer.complete_and_schedule_next_heartbeat_expiration(group, member)

    def _store_assignment(self, group: GroupMetadata, request: SyncGroupRequest) -> None:
        """Write the leader's assignment; the group is Stable once it is in the log."""
        assignment = dict.fromkeys(group.members, b"")
        assignment.update({each.member_id: each.assignment for each in request.assignments})

        def stored(error: Errors) -> None:
            with group.lock:
                self._on_assignment_stored(group, request.generation_id, assignment, error)

        self._manager.store_group(group, assignment, stored)

    def _on_assignment_stored(
        self,
        group: GroupMetadata,
        generation_id: int,
        assignment: Mapping[str, bytes],
        error: Errors,
    ) -> None:
        if not group.is_in(COMPLETING_REBALANCE) or generation_id != group.generation_id:
            return  # a rebalance began while the append was under way
        if error is Errors.NONE:
            self._rebalancer.set_and_propagate_assignment(group, assignment)
            group.transition_to(STABLE)
        else:
            self._rebalancer.reset_and_propagate_assignment_error(group, error)
            self._rebalancer.maybe_prepare_rebalance(group)
