"""One group's state: members, leader, generation, and the legal moves between states.

Source: kafka.coordinator.group.GroupMetadata. Nothing here knows of time-outs or of the log; the
group's lock guards everything and is taken by the callers.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ..clock import Clock
from ..concurrency import Lock
from ..errors import Errors, IllegalArgumentException, IllegalStateException
from .consumer_protocol import subscribed_topics
from .group_offsets import GroupOffsets
from .member_metadata import JoinCallback, MemberMetadata
from .messages import (
    CONSUMER_PROTOCOL_TYPE,
    NO_LEADER_MEMBER,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)


class GroupState(Enum):
    """The states of a group; the values are the names that DescribeGroups shows."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY = GroupState.EMPTY
PREPARING_REBALANCE = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE = GroupState.COMPLETING_REBALANCE
STABLE = GroupState.STABLE
DEAD = GroupState.DEAD

VALID_PREVIOUS_STATES: dict[GroupState, frozenset[GroupState]] = {
    EMPTY: frozenset({PREPARING_REBALANCE}),
    PREPARING_REBALANCE: frozenset({STABLE, COMPLETING_REBALANCE, EMPTY}),
    COMPLETING_REBALANCE: frozenset({PREPARING_REBALANCE}),
    STABLE: frozenset({COMPLETING_REBALANCE}),
    DEAD: frozenset(GroupState),
}


class GroupMetadata:
    """A group; members keep the order in which they came."""

    def __init__(self, group_id: str, initial_state: GroupState, clock: Clock, lock: Lock) -> None:
        self.group_id = group_id
        self.lock = lock
        self.state = initial_state
        self.current_state_timestamp: int | None = clock.milliseconds()
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, MemberMetadata] = {}
        self.static_members: dict[str, str] = {}
        self.pending_members: dict[str, None] = {}
        self.pending_sync_members: dict[str, None] = {}
        self.num_members_awaiting_join = 0
        self.new_member_added = False
        self.offsets = GroupOffsets()
        self.subscribed_topics: frozenset[str] | None = None
        """Of the last generation that is complete; None where it is not known."""
        self._clock = clock
        self._supported_protocols: dict[str, int] = {}

    # -- state

    def is_in(self, *states: GroupState) -> bool:
        """Whether the group is in one of the states."""
        return self.state in states

    def transition_to(self, target: GroupState) -> None:
        """Raises `IllegalStateException` for a move that the protocol does not know."""
        if self.state not in VALID_PREVIOUS_STATES[target]:
            raise IllegalStateException(
                f"group {self.group_id} cannot go from {self.state.value} to {target.value}"
            )
        self.state = target
        self.current_state_timestamp = self._clock.milliseconds()

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin now."""
        return self.state in (STABLE, COMPLETING_REBALANCE, EMPTY)

    # -- members

    def has(self, member_id: str) -> bool:
        """Whether the member is in the group."""
        return member_id in self.members

    def get(self, member_id: str) -> MemberMetadata:
        """Raises `KeyError` for an unknown member."""
        return self.members[member_id]

    @property
    def size(self) -> int:
        """How many members there are, joined or not; pending ones do not count."""
        return len(self.members)

    def is_leader(self, member_id: str) -> bool:
        """Whether the member leads the group."""
        return self.leader_id == member_id

    @property
    def leader_or_none(self) -> str:
        """The leader's id as answers carry it: "" without a leader."""
        return NO_LEADER_MEMBER if self.leader_id is None else self.leader_id

    def current_static_member_id(self, group_instance_id: str) -> str | None:
        """The member id that the instance is mapped to."""
        return self.static_members.get(group_instance_id)

    def is_pending_member(self, member_id: str) -> bool:
        """Whether the id was handed out with MEMBER_ID_REQUIRED and not yet used."""
        return member_id in self.pending_members

    def generate_member_id(
        self, client_id: str, group_instance_id: str | None, unique_id: Callable[[], str]
    ) -> str:
        """An id for a new member."""
        prefix = client_id if group_instance_id is None else group_instance_id
        # KAFKA-8715: never from what the group holds; an id must not come twice.
        return f"{prefix}-{unique_id()}"

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members' rebalance time-outs."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_members_joined(self) -> bool:
        """Whether nobody is left to wait for in a rebalance."""
        return len(self.members) == self.num_members_awaiting_join and not self.pending_members

    @property
    def not_yet_rejoined_members(self) -> list[MemberMetadata]:
        """Members whose JoinGroup is not parked."""
        return [member for member in self.members.values() if not member.is_awaiting_join]

    @property
    def has_received_sync_from_all_members(self) -> bool:
        """Whether every member of this generation has sent its SyncGroup."""
        return not self.pending_sync_members

    def add(self, member: MemberMetadata, callback: JoinCallback | None = None) -> None:
        """Take a member in; the first one defines the protocol type and leads.

        Raises `IllegalStateException` if its instance is in the group already.
        """
        if member.group_instance_id is not None:
            if member.group_instance_id in self.static_members:
                raise IllegalStateException(
                    f"instance {member.group_instance_id} is already in group {self.group_id}"
                )
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member, 1)
        member.awaiting_join_callback = callback
        self.num_members_awaiting_join += callback is not None
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Drop a member, pending or not; an unknown id is no error."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member, -1)
            self.num_members_awaiting_join -= member.is_awaiting_join
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.pop(member_id, None)
        self.pending_sync_members.pop(member_id, None)

    def add_pending_member(self, member_id: str) -> None:
        """Remember an id that was handed out.

        Raises `IllegalStateException` for a member of the group.
        """
        if self.has(member_id):
            raise IllegalStateException(f"{member_id} is already in group {self.group_id}")
        self.pending_members[member_id] = None

    def add_pending_sync_member(self, member_id: str) -> None:
        """Expect a SyncGroup of a member. Raises `IllegalStateException` for an unknown one."""
        if not self.has(member_id):
            raise IllegalStateException(f"{member_id} is not in group {self.group_id}")
        self.pending_sync_members[member_id] = None

    def update_member(
        self,
        member: MemberMetadata,
        protocols: tuple[JoinGroupRequestProtocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        callback: JoinCallback | None,
    ) -> None:
        """Take over what a member's new JoinGroup says, and park it (None unparks)."""
        self._count_protocols(member, -1)
        member.supported_protocols = protocols
        self._count_protocols(member, 1)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.num_members_awaiting_join += (callback is not None) - member.is_awaiting_join
        member.awaiting_join_callback = callback

    def replace_static_member(
        self, group_instance_id: str, old_member_id: str, new_member_id: str
    ) -> MemberMetadata:
        """Give an instance another member id; what the old id has parked is fenced.

        Raises `IllegalArgumentException` for an unknown member.
        """
        member = self.members.pop(old_member_id, None)
        if member is None:
            raise IllegalArgumentException(f"{old_member_id} is not in group {self.group_id}")
        fenced = Errors.FENCED_INSTANCE_ID
        self.maybe_invoke_join_callback(member, JoinGroupResponse(fenced, old_member_id))
        self.maybe_invoke_sync_callback(member, SyncGroupResponse(fenced))
        member.member_id = new_member_id
        self.members[new_member_id] = member
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        self.static_members[group_instance_id] = new_member_id
        return member

    def maybe_elect_new_joined_leader(self) -> bool:
        """See that the leader is a member that joined; False if nobody did."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].is_awaiting_join:
            return True
        for member in self.members.values():
            if member.is_awaiting_join:
                self.leader_id = member.member_id
                return True
        return False

    # -- protocols

    def _count_protocols(self, member: MemberMetadata, delta: int) -> None:
        counts = self._supported_protocols
        for protocol in member.supported_protocols:
            counts[protocol.name] = counts.get(protocol.name, 0) + delta

    def supports_protocols(
        self, protocol_type: str, protocols: tuple[JoinGroupRequestProtocol, ...]
    ) -> bool:
        """Whether a member with these protocols could be in the group."""
        if self.state is EMPTY:
            return protocol_type != "" and bool(protocols)
        return self.protocol_type == protocol_type and any(
            self._supported_protocols.get(protocol.name, 0) == len(self.members)
            for protocol in protocols
        )

    def select_protocol(self) -> str:
        """The protocol with most votes among those that all support; the first of equals.

        Raises `IllegalStateException` if there are no members.
        """
        if not self.members:
            raise IllegalStateException(f"group {self.group_id} has nobody to select a protocol")
        size = len(self.members)
        candidates = {name for name, count in self._supported_protocols.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether the generation may consume the topic; True if that cannot be known."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """The topics that the members subscribe to; None if somebody's cannot be read."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            known = subscribed_topics(member.metadata(self.protocol_name))
            if known is None:
                return None
            topics |= known
        return frozenset(topics)

    # -- generations and answers

    def init_next_generation(self) -> None:
        """End the join phase: the next generation has the members that are in the group now."""
        self.generation_id += 1
        self.pending_sync_members.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.subscribed_topics = self.compute_subscribed_topics()
            self.transition_to(COMPLETING_REBALANCE)
        else:
            self.protocol_name = None
            self.subscribed_topics = self.compute_subscribed_topics()
            self.transition_to(EMPTY)

    def current_member_metadata(self) -> tuple[JoinGroupResponseMember, ...]:
        """What the leader learns of the members.

        Raises `IllegalStateException` before a protocol is chosen.
        """
        protocol = self.protocol_name
        if self.state in (DEAD, PREPARING_REBALANCE) or protocol is None:
            raise IllegalStateException(f"group {self.group_id} is {self.state.value}")
        return tuple(
            JoinGroupResponseMember(
                member.member_id, member.group_instance_id, member.metadata(protocol)
            )
            for member in self.members.values()
        )

    def join_response(
        self, member_id: str, *, with_members: bool, skip_assignment: bool = False
    ) -> JoinGroupResponse:
        """The current generation, as a member learns it."""
        return JoinGroupResponse(
            error_code=Errors.NONE,
            member_id=member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader_or_none,
            skip_assignment=skip_assignment,
            members=self.current_member_metadata() if with_members else (),
        )

    def maybe_invoke_join_callback(
        self, member: MemberMetadata, response: JoinGroupResponse
    ) -> None:
        """Answer the member's parked JoinGroup, if there is one."""
        callback = member.awaiting_join_callback
        if callback is not None:
            member.awaiting_join_callback = None
            self.num_members_awaiting_join -= 1
            callback(response)

    def maybe_invoke_sync_callback(
        self, member: MemberMetadata, response: SyncGroupResponse
    ) -> bool:
        """Answer the member's parked SyncGroup. True iff there was one."""
        callback = member.awaiting_sync_callback
        if callback is None:
            return False
        member.awaiting_sync_callback = None
        callback(response)
        return True

    def __repr__(self) -> str:
        return (
            f"GroupMetadata({self.group_id!r}, {self.state.value},"
            f" generation={self.generation_id}, members={list(self.members)})"
        )
