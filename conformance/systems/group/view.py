"""What is read off the running objects: plain values, nothing computed.

Reading is apart from making TLA+ values, because the same views come again and again while
values are costly to make: `observation` makes each once.
"""

from __future__ import annotations

from typing import NamedTuple

from conformance.systems.group.coordinator import Coordinators, remaining_delays
from conformance.systems.group.exchange import (
    HeartbeatView,
    MessageView,
    heartbeat_view,
    message_view,
    partitions,
)
from conformance.systems.group.member import Process
from impl.group.client.buffer import ByteBuffer
from impl.group.client.request_future import RequestFuture
from impl.group.group_metadata import GroupMetadata
from impl.group.group_records import GroupMetadataValue


class GroupMemberView(NamedTuple):
    """A member as the coordinator has it (MemberMetadata)."""

    member_id: str
    protocols: tuple[str, ...]
    assignment: bytes
    awaits_join: bool
    awaits_sync: bool
    is_new: bool


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
    record: GroupMetadataValue | None = None


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
    channel: MessageView
    heartbeat: HeartbeatView


def group_view(coordinators: Coordinators) -> GroupView:
    """The view of the coordinator's side."""
    group, record = coordinators.group(), coordinators.topic.record
    timer = coordinators.join_timer()
    if group is None:
        return GroupView(record=record)
    return GroupView(
        group.state.value,
        group.generation_id,
        group.protocol_name,
        group.leader_id,
        _members(group),
        tuple(group.pending_members),
        tuple(group.static_members.items()),
        tuple(group.pending_sync_members),
        None if timer is None else timer.kind,
        remaining_delays(timer),
        group.new_member_added,
        record,
    )


def _members(group: GroupMetadata) -> tuple[GroupMemberView, ...]:
    return tuple(
        [
            GroupMemberView(
                id,
                tuple([protocol.name for protocol in member.supported_protocols]),
                member.assignment,
                member.is_awaiting_join,
                member.is_awaiting_sync,
                member.is_new,
            )
            for id, member in group.members.items()
        ]
    )


def process_view(process: Process) -> ProcessView:
    """The view of one process."""
    consumer = process.consumer
    generation = consumer.generation
    future, assignment = _future(consumer.join_future)
    owned = process.subscriptions.assigned_partitions
    process.callbacks.check(owned)
    return ProcessView(
        consumer.state.name,
        generation.generation_id,
        generation.member_id,
        generation.protocol_name,
        consumer.rejoin_needed,
        consumer.needs_join_prepare,
        future,
        assignment,
        consumer.is_leader,
        frozenset([each.partition for each in owned]),
        process.protocols,
        process.failed,
        message_view(process.channel),
        heartbeat_view(process.heartbeat),
    )


def _future(future: RequestFuture[ByteBuffer] | None) -> tuple[str, frozenset[int]]:
    if future is None:
        return "None", frozenset()
    if not future.is_done:
        return "Pending", frozenset()
    if future.failed:
        return "Failed", frozenset()
    return "Succeeded", partitions(future.value.duplicate().read())
