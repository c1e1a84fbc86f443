"""What is seen of a group and of its members: plain values, whoever's objects they are read of.

`observation` makes each into a value of the specification once.
"""

from __future__ import annotations

from typing import NamedTuple

from conformance.systems.shared.group.exchange import GroupMessageView, HeartbeatView


class GroupMemberView(NamedTuple):
    """A member as the coordinator has it (MemberMetadata)."""

    member_id: str
    protocols: tuple[str, ...]
    assignment: bytes
    awaits_join: bool
    awaits_sync: bool
    is_new: bool


class MemberRecord(NamedTuple):
    """A member in the group's record."""

    member_id: str
    instance: str | None
    assignment: bytes


class RecordView(NamedTuple):
    """The group's record in the offsets topic (GroupMetadataValue), as far as the spec has it."""

    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[MemberRecord, ...]


class GroupView(NamedTuple):
    """The group as the coordinator has it; without one, Dead and empty. `static`: by instance."""

    state: str = "Dead"
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    members: tuple[GroupMemberView, ...] = ()
    pending: tuple[str, ...] = ()
    static: tuple[tuple[str, str], ...] = ()
    pending_sync: tuple[str, ...] = ()
    join_timer: str | None = None
    initial_delays: int = 0
    new_member_added: bool = False
    record: RecordView | None = None


class ProcessView(NamedTuple):
    """A process: its consumer, and what it has in flight."""

    state: str
    generation: int
    member_id: str
    protocol: str | None
    rejoin_needed: bool
    needs_join_prepare: bool
    future: str
    future_assignment: frozenset[int]
    is_leader: bool
    owned: frozenset[int]
    protocols: frozenset[str]
    failed: bool
    channel: GroupMessageView
    heartbeat: HeartbeatView
