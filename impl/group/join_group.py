"""JoinGroup: new and known members, dynamic and static.

Source: the join methods of kafka.coordinator.group.GroupCoordinator. Everything is called with the
group's lock held.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import Errors, IllegalStateException
from .config import GroupConfig
from .group_metadata import (
    COMPLETING_REBALANCE,
    DEAD,
    PREPARING_REBALANCE,
    STABLE,
    GroupMetadata,
)
from .group_metadata_manager import GroupMetadataManager
from .member_metadata import JoinCallback
from .messages import (
    JOIN_REQUIRES_KNOWN_MEMBER_VERSION,
    JOIN_SKIP_ASSIGNMENT_VERSION,
    UNKNOWN_MEMBER_ID,
    JoinGroupRequest,
    JoinGroupResponse,
)
from .rebalancer import GroupRebalancer
from .validation import accept_joining_member, validate_current_member

MemberIdSource = Callable[[], str]
"""What makes member ids unique, also across fail-overs: java.util.UUID.randomUUID."""


class JoinGroupHandler:
    """Decides what a JoinGroup does to a group that exists."""

    def __init__(
        self,
        config: GroupConfig,
        manager: GroupMetadataManager,
        rebalancer: GroupRebalancer,
        unique_id: MemberIdSource,
    ) -> None:
        self._config = config
        self._manager = manager
        self._rebalancer = rebalancer
        self._unique_id = unique_id

    def join(self, group: GroupMetadata, request: JoinGroupRequest, callback: JoinCallback) -> None:
        """Answer or park the request; the join phase may end with it."""
        if not accept_joining_member(group, request.member_id, self._config.group_max_size):
            self._rebalancer.remove(group, request.member_id)
            callback(JoinGroupResponse(Errors.GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID))
        elif request.member_id == UNKNOWN_MEMBER_ID:
            self._new_member_join(group, request, callback)
        else:
            self._current_member_join(group, request, callback)
        self._rebalancer.check_and_complete_join(group)

    def _error_before_membership(
        self, group: GroupMetadata, request: JoinGroupRequest
    ) -> Errors | None:
        if group.is_in(DEAD):
            return Errors.COORDINATOR_NOT_AVAILABLE
        if not group.supports_protocols(request.protocol_type, request.protocols):
            return Errors.INCONSISTENT_GROUP_PROTOCOL
        return None

    # -- members without an id

    def _new_member_join(
        self, group: GroupMetadata, request: JoinGroupRequest, callback: JoinCallback
    ) -> None:
        error = self._error_before_membership(group, request)
        if error is not None:
            callback(JoinGroupResponse(error, UNKNOWN_MEMBER_ID))
            return
        new_member_id = group.generate_member_id(
            request.client_id, request.group_instance_id, self._unique_id
        )
        if request.group_instance_id is not None:
            self._static_new_member_join(
                group, request.group_instance_id, new_member_id, request, callback
            )
        elif request.version >= JOIN_REQUIRES_KNOWN_MEMBER_VERSION:
            group.add_pending_member(new_member_id)
            self._rebalancer.add_pending_member_expiration(
                group, new_member_id, request.session_timeout_ms
            )
            callback(JoinGroupResponse(Errors.MEMBER_ID_REQUIRED, new_member_id))
        else:
            self._rebalancer.add_member_and_rebalance(group, new_member_id, request, callback)

    def _static_new_member_join(
        self,
        group: GroupMetadata,
        group_instance_id: str,
        new_member_id: str,
        request: JoinGroupRequest,
        callback: JoinCallback,
    ) -> None:
        old_member_id = group.current_static_member_id(group_instance_id)
        if old_member_id is None:
            self._rebalancer.add_member_and_rebalance(group, new_member_id, request, callback)
        else:
            self._update_static_member_and_rebalance(
                group, group_instance_id, old_member_id, new_member_id, request, callback
            )

    def _update_static_member_and_rebalance(
        self,
        group: GroupMetadata,
        group_instance_id: str,
        old_member_id: str,
        new_member_id: str,
        request: JoinGroupRequest,
        callback: JoinCallback,
    ) -> None:
        """An instance comes back without its id: it goes on under a new one (KIP-345)."""
        previous_leader = group.leader_or_none
        member = group.replace_static_member(group_instance_id, old_member_id, new_member_id)
        self._rebalancer.complete_heartbeat_of_replaced_member(group, old_member_id)
        self._rebalancer.complete_and_schedule_next_heartbeat_expiration(group, member)
        revert = self._revert_of(group, group_instance_id, old_member_id, new_member_id)
        group.update_member(
            member,
            request.protocols,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            callback,
        )
        if group.is_in(STABLE):
            if group.select_protocol() == group.protocol_name:
                self._persist_static_member(
                    group, new_member_id, previous_leader, request, callback, revert
                )
            else:
                self._rebalancer.maybe_prepare_rebalance(group)
        elif group.is_in(COMPLETING_REBALANCE):
            # KAFKA-9801: the leader may assign to the old id, whose share would be lost.
            self._rebalancer.prepare_rebalance(group)
        elif not group.is_in(PREPARING_REBALANCE):
            raise IllegalStateException(
                f"{group.state.value} group {group.group_id} has instance {group_instance_id}"
            )

    def _revert_of(
        self, group: GroupMetadata, group_instance_id: str, old_member_id: str, new_member_id: str
    ) -> Callable[[], None]:
        """What undoes a replacement; to be taken before the member is updated."""
        member = group.get(new_member_id)
        protocols = member.supported_protocols
        rebalance_timeout_ms = member.rebalance_timeout_ms
        session_timeout_ms = member.session_timeout_ms

        def revert() -> None:
            group.update_member(member, protocols, rebalance_timeout_ms, session_timeout_ms, None)
            old_member = group.replace_static_member(
                group_instance_id, new_member_id, old_member_id
            )
            self._rebalancer.complete_heartbeat_of_replaced_member(group, new_member_id)
            self._rebalancer.complete_and_schedule_next_heartbeat_expiration(group, old_member)

        return revert

    def _persist_static_member(
        self,
        group: GroupMetadata,
        new_member_id: str,
        previous_leader: str,
        request: JoinGroupRequest,
        callback: JoinCallback,
        revert: Callable[[], None],
    ) -> None:
        """Keep the generation: only the new id has to be in the log before it is answered."""

        def stored(error: Errors) -> None:
            with group.lock:
                if not group.has(new_member_id):
                    return  # replaced, removed or unloaded meanwhile, and answered then
                if error is not Errors.NONE:
                    revert()
                    callback(self._not_persisted(group, previous_leader, error))
                else:
                    response = self._static_join_response(
                        group, new_member_id, previous_leader, request
                    )
                    group.maybe_invoke_join_callback(group.get(new_member_id), response)

        assignment = {member.member_id: member.assignment for member in group.members.values()}
        self._manager.store_group(group, assignment, stored)

    def _not_persisted(
        self, group: GroupMetadata, previous_leader: str, error: Errors
    ) -> JoinGroupResponse:
        return JoinGroupResponse(
            error,
            UNKNOWN_MEMBER_ID,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            previous_leader,
        )

    def _static_join_response(
        self,
        group: GroupMetadata,
        new_member_id: str,
        previous_leader: str,
        request: JoinGroupRequest,
    ) -> JoinGroupResponse:
        """A leader must not assign anew: told so (KIP-814), or not told that it leads."""
        if request.version >= JOIN_SKIP_ASSIGNMENT_VERSION:
            is_leader = group.is_leader(new_member_id)
            return group.join_response(
                new_member_id, with_members=is_leader, skip_assignment=is_leader
            )
        return JoinGroupResponse(
            Errors.NONE,
            new_member_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            previous_leader,
        )

    # -- members with an id

    def _current_member_join(
        self, group: GroupMetadata, request: JoinGroupRequest, callback: JoinCallback
    ) -> None:
        error = self._error_before_membership(group, request)
        if error is None and group.is_pending_member(request.member_id):
            if request.group_instance_id is not None:
                raise IllegalStateException(
                    f"pending member {request.member_id} joins with an instance id"
                )
            self._rebalancer.add_member_and_rebalance(group, request.member_id, request, callback)
            return
        if error is None:
            error = validate_current_member(group, request.member_id, request.group_instance_id)
        if error is not None:
            callback(JoinGroupResponse(error, request.member_id))
        else:
            self._known_member_join(group, request, callback)

    def _known_member_join(
        self, group: GroupMetadata, request: JoinGroupRequest, callback: JoinCallback
    ) -> None:
        member = group.get(request.member_id)
        is_leader = group.is_leader(request.member_id)
        unchanged = member.matches(request.protocols)
        if group.is_in(PREPARING_REBALANCE):
            self._rebalancer.update_member_and_rebalance(group, member, request, callback)
        elif group.is_in(COMPLETING_REBALANCE) and unchanged:
            # The answer to its first join may have been lost: give it once more.
            callback(group.join_response(request.member_id, with_members=is_leader))
        elif group.is_in(STABLE) and unchanged and not is_leader:
            callback(group.join_response(request.member_id, with_members=False))
        elif group.is_in(COMPLETING_REBALANCE, STABLE):
            self._rebalancer.update_member_and_rebalance(group, member, request, callback)
        else:
            callback(JoinGroupResponse(Errors.UNKNOWN_MEMBER_ID, request.member_id))
