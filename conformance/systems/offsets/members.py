"""The members of a group whose positions are tested: each joins or leaves in a single step."""

from __future__ import annotations

import struct

from conformance.systems.protocol import ActionRefused
from impl.errors import Errors
from impl.group.delayed_operations import InitialDelayedJoin
from impl.group.group_coordinator import GroupCoordinator
from impl.group.group_metadata import GroupMetadata
from impl.group.messages import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

_PROTOCOL = "range"
_TIMEOUT_MS = 10_000
_JOINS_AT_ONCE_VERSION = 3
"""JoinGroup, before MEMBER_ID_REQUIRED (KIP-394)."""


def subscription(topics: list[str]) -> bytes:
    """A consumer's metadata: version 0, the topics, no user data."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class GroupMembers:
    """By their names in the specification; `ids` are the coordinator's, also of who has left."""

    def __init__(self, group_id: str, subscriptions: dict[str, bytes]) -> None:
        self.ids: dict[str, str] = {}
        self._group_id = group_id
        self._subscriptions = subscriptions

    def id_of(self, name: str) -> str:
        """The id that a request of this member has; one that nobody gave if it never joined."""
        return self.ids.get(name, f"{name}-that-never-joined") if name else UNKNOWN_MEMBER_ID

    def names_of(self, ids: frozenset[str]) -> frozenset[str]:
        """The members with these ids."""
        names = {member_id: name for name, member_id in self.ids.items()}
        return frozenset(names[member_id] for member_id in ids)

    def join(self, coordinator: GroupCoordinator, name: str) -> None:
        """Join without an id; the first member's initial delay is over at once."""
        before = _member_ids(coordinator.group(self._group_id))
        self._join(coordinator, name, UNKNOWN_MEMBER_ID)
        group = _existing(coordinator.group(self._group_id))
        (self.ids[name],) = _member_ids(group) - before
        for timer in coordinator.timers():
            if isinstance(timer, InitialDelayedJoin):
                coordinator.fire(timer)

    def rejoin(self, coordinator: GroupCoordinator, name: str) -> None:
        """Join with the id."""
        self._join(coordinator, name, self.id_of(name))

    def _join(self, coordinator: GroupCoordinator, name: str, member_id: str) -> None:
        answers: list[JoinGroupResponse] = []
        protocol = JoinGroupRequestProtocol(_PROTOCOL, self._subscriptions[name])
        request = JoinGroupRequest(
            self._group_id,
            session_timeout_ms=_TIMEOUT_MS,
            # No longer than the initial delay: it is not extended.
            rebalance_timeout_ms=coordinator.config.group_initial_rebalance_delay_ms,
            member_id=member_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocols=(protocol,),
            version=_JOINS_AT_ONCE_VERSION,
        )
        coordinator.handle_join_group(request, answers.append)
        _expect_no_error([answer.error_code for answer in answers])

    def sync(self, coordinator: GroupCoordinator) -> None:
        """The leader assigns."""
        group = _existing(coordinator.group(self._group_id))
        assignments = [SyncGroupRequestAssignment(member, b"") for member in group.members]
        answers: list[SyncGroupResponse] = []
        request = SyncGroupRequest(
            self._group_id,
            group.generation_id,
            group.leader_or_none,
            assignments=tuple(assignments),
        )
        coordinator.handle_sync_group(request, answers.append)
        _expect_no_error([answer.error_code for answer in answers])

    def leave(self, coordinator: GroupCoordinator, name: str) -> None:
        """Leave in order."""
        answers: list[LeaveGroupResponse] = []
        request = LeaveGroupRequest(self._group_id, (MemberIdentity(self.id_of(name)),))
        coordinator.handle_leave_group(request, answers.append)
        _expect_no_error([member.error_code for answer in answers for member in answer.members])


def _member_ids(group: GroupMetadata | None) -> frozenset[str]:
    return frozenset(group.members) if group is not None else frozenset()


def _existing(group: GroupMetadata | None) -> GroupMetadata:
    if group is None:
        raise ActionRefused("there is no group")
    return group


def _expect_no_error(errors: list[Errors]) -> None:
    if any(error is not Errors.NONE for error in errors):
        raise ActionRefused(f"the member is told {errors}")
