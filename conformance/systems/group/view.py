"""What is read off the running objects: plain values, nothing computed.

Reading is apart from making TLA+ values, because the same views come again and again while
values are costly to make: `observation` makes each once.
"""

from __future__ import annotations

from conformance.systems.group.coordinator import Coordinators, remaining_delays
from conformance.systems.group.member import Process
from conformance.systems.shared.group.exchange import heartbeat_view, message_view, partitions
from conformance.systems.shared.group.views import GroupMemberView, GroupView, ProcessView
from impl.group.client.buffer import ByteBuffer
from impl.group.client.request_future import RequestFuture
from impl.group.group_metadata import GroupMetadata


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
