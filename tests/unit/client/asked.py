"""Requests of a client's member, as the loop has them."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.client.requests import MemberRequest
from conformance.kafka.entities import NEWEST, Entity, make, milliseconds, newest


def join_request(
    member: str, wishes: Mapping[str, bytes], *, group: str = "g", version: int = 9
) -> MemberRequest:
    """A JoinGroup of a consumer with these protocols."""
    module = newest("join_group", "request")
    body = make(
        module.JoinGroupRequest,
        group_id=group,
        session_timeout=milliseconds(6_000),
        rebalance_timeout=milliseconds(60_000),
        member_id=member,
        protocol_type="consumer",
        protocols=tuple(
            module.JoinGroupRequestProtocol(name=name, metadata=data)
            for name, data in wishes.items()
        ),
    )
    return MemberRequest("join_group", version, body)


def sync_request(generation: int, member: str, assigns: Mapping[str, bytes]) -> MemberRequest:
    """A SyncGroup; a leader's if it assigns anything."""
    module = newest("sync_group", "request")
    return _in_generation(
        "sync_group",
        generation,
        member,
        protocol_type="consumer",
        protocol_name="range",
        assignments=tuple(
            module.SyncGroupRequestAssignment(member_id=id, assignment=data)
            for id, data in assigns.items()
        ),
    )


def heartbeat_request(generation: int, member: str) -> MemberRequest:
    """A Heartbeat."""
    return _in_generation("heartbeat", generation, member)


def commit_request(
    generation: int, member: str, offsets: Mapping[tuple[str, int], int]
) -> MemberRequest:
    """An OffsetCommit of one topic's partitions."""
    module = newest("offset_commit", "request")
    topics = tuple(
        module.OffsetCommitRequestTopic(
            name=topic,
            partitions=(
                make(
                    module.OffsetCommitRequestPartition,
                    partition_index=partition,
                    committed_offset=offset,
                    committed_metadata="",
                ),
            ),
        )
        for (topic, partition), offset in offsets.items()
    )
    return _in_generation("offset_commit", generation, member, topics=topics)


def _in_generation(api: str, generation: int, member: str, **fields: object) -> MemberRequest:
    module = newest(api, "request")
    name = "".join(part.capitalize() for part in api.split("_"))
    body: Entity = make(
        getattr(module, f"{name}Request"),
        group_id="g",
        generation_id=generation,
        generation_id_or_member_epoch=generation,
        member_id=member,
        **fields,
    )
    return MemberRequest(api, NEWEST[api], body)
