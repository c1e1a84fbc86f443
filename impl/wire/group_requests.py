"""Requests of the group protocol: impl's version-free messages as kio's entities, and back.

What a version cannot say is left out on the way out, and has the protocol's default on the way in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any

from ..group.messages import (
    NO_EXPIRATION,
    UNKNOWN_GENERATION_ID,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ..types import NO_PARTITION_LEADER_EPOCH, TopicPartition
from .entities import (
    Entity,
    Received,
    in_milliseconds,
    make,
    milliseconds,
    module_of,
)

SEVERAL_COORDINATORS = 4
"""From this FindCoordinator version on a request names several keys (KIP-699)."""
SEVERAL_LEAVE = 3
"""From this LeaveGroup version on a request names several members (KIP-345)."""
SEVERAL_GROUPS = 8
"""From this OffsetFetch version on a request names several groups (KIP-709)."""

_GROUP_KEY = 0
"""FindCoordinator's type of key for a group."""


def api_of(message: object) -> str:
    """The API that a request of impl belongs to, by kio's name."""
    return _API_OF[type(message)]


def to_entity(message: Any, version: int) -> Entity:
    """A request's body in this version."""
    api = api_of(message)
    return _TO[api](message, module_of(api, version, "request"), version)


def from_entity(received: Received, client_host: str) -> Any:
    """The message of impl that a received request is."""
    return _FROM[received.api](received, client_host)


# ---- joining -----------------------------------------------------------------------------------


def _join_to(message: JoinGroupRequest, module: Any, _version: int) -> Entity:
    return make(
        module.JoinGroupRequest,
        group_id=message.group_id,
        session_timeout=milliseconds(message.session_timeout_ms),
        rebalance_timeout=milliseconds(message.rebalance_timeout_ms),
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
        protocol_type=message.protocol_type,
        protocols=tuple(
            module.JoinGroupRequestProtocol(name=one.name, metadata=one.metadata)
            for one in message.protocols
        ),
        reason=message.reason or None,
    )


def _join_from(received: Received, client_host: str) -> JoinGroupRequest:
    body = received.body
    session = in_milliseconds(body.session_timeout)
    rebalance = getattr(body, "rebalance_timeout", None)
    return JoinGroupRequest(
        group_id=body.group_id,
        session_timeout_ms=session,
        # Before JoinGroup 1 the session's timeout was the rebalance's too (KIP-62).
        rebalance_timeout_ms=session if rebalance is None else in_milliseconds(rebalance),
        member_id=body.member_id,
        protocol_type=body.protocol_type,
        protocols=tuple(
            JoinGroupRequestProtocol(one.name, bytes(one.metadata)) for one in body.protocols
        ),
        group_instance_id=getattr(body, "group_instance_id", None),
        reason=getattr(body, "reason", None) or "",
        client_id=received.client_id,
        client_host=client_host,
        version=received.version,
    )


def _sync_to(message: SyncGroupRequest, module: Any, _version: int) -> Entity:
    return make(
        module.SyncGroupRequest,
        **_membership(message),
        protocol_type=message.protocol_type,
        protocol_name=message.protocol_name,
        assignments=tuple(
            module.SyncGroupRequestAssignment(member_id=one.member_id, assignment=one.assignment)
            for one in message.assignments
        ),
    )


def _sync_from(received: Received, _host: str) -> SyncGroupRequest:
    body = received.body
    return SyncGroupRequest(
        **_membership_from(body),
        protocol_type=getattr(body, "protocol_type", None),
        protocol_name=getattr(body, "protocol_name", None),
        assignments=tuple(
            SyncGroupRequestAssignment(one.member_id, bytes(one.assignment))
            for one in body.assignments
        ),
    )


def _heartbeat_to(message: HeartbeatRequest, module: Any, _version: int) -> Entity:
    return make(module.HeartbeatRequest, **_membership(message))


def _heartbeat_from(received: Received, _host: str) -> HeartbeatRequest:
    return HeartbeatRequest(**_membership_from(received.body))


def _membership(message: SyncGroupRequest | HeartbeatRequest) -> dict[str, object]:
    return {
        "group_id": message.group_id,
        "generation_id": message.generation_id,
        "member_id": message.member_id,
        "group_instance_id": message.group_instance_id,
    }


def _membership_from(body: Entity) -> dict[str, Any]:
    return {
        "group_id": body.group_id,
        "generation_id": body.generation_id,
        "member_id": body.member_id,
        "group_instance_id": getattr(body, "group_instance_id", None),
    }


def _leave_to(message: LeaveGroupRequest, module: Any, version: int) -> Entity:
    if version < SEVERAL_LEAVE:
        (only,) = message.members
        return make(module.LeaveGroupRequest, group_id=message.group_id, member_id=only.member_id)
    members = tuple(
        make(
            module.MemberIdentity,
            member_id=one.member_id,
            group_instance_id=one.group_instance_id,
            reason=one.reason or None,
        )
        for one in message.members
    )
    return make(module.LeaveGroupRequest, group_id=message.group_id, members=members)


def _leave_from(received: Received, _host: str) -> LeaveGroupRequest:
    body = received.body
    if received.version < SEVERAL_LEAVE:
        return LeaveGroupRequest(body.group_id, (MemberIdentity(body.member_id),))
    members = tuple(
        MemberIdentity(one.member_id, one.group_instance_id, getattr(one, "reason", None) or "")
        for one in body.members
    )
    return LeaveGroupRequest(body.group_id, members)


# ---- offsets -----------------------------------------------------------------------------------


def by_topic(entries: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Entries with a `topic_partition`, in the nested form of the wire."""

    def topic(entry: Any) -> str:
        name: str = entry.topic_partition.topic
        return name

    for name, group in groupby(sorted(entries, key=topic), topic):
        yield name, list(group)


def _commit_to(message: OffsetCommitRequest, module: Any, _version: int) -> Entity:
    topics = tuple(
        module.OffsetCommitRequestTopic(
            name=name,
            partitions=tuple(
                make(
                    module.OffsetCommitRequestPartition,
                    partition_index=one.topic_partition.partition,
                    committed_offset=one.committed_offset,
                    committed_leader_epoch=one.committed_leader_epoch,
                    committed_metadata=one.committed_metadata,
                )
                for one in entries
            ),
        )
        for name, entries in by_topic(message.partitions)
    )
    return make(
        module.OffsetCommitRequest,
        group_id=message.group_id,
        generation_id_or_member_epoch=message.generation_id,
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
        topics=topics,
    )


def committed_partitions(body: Any) -> tuple[OffsetCommitRequestPartition, ...]:
    """The positions of an OffsetCommit or a TxnOffsetCommit."""
    return tuple(
        OffsetCommitRequestPartition(
            TopicPartition(topic.name, each.partition_index),
            each.committed_offset,
            getattr(each, "committed_leader_epoch", NO_PARTITION_LEADER_EPOCH),
            each.committed_metadata or "",
        )
        for topic in body.topics
        for each in topic.partitions
    )


def _commit_from(received: Received, _host: str) -> OffsetCommitRequest:
    body = received.body
    retention = getattr(body, "retention_time", None)
    return OffsetCommitRequest(
        body.group_id,
        committed_partitions(body),
        body.generation_id_or_member_epoch,
        body.member_id,
        getattr(body, "group_instance_id", None),
        NO_EXPIRATION if retention is None else in_milliseconds(retention),
    )


def _fetch_to(message: OffsetFetchRequest, module: Any, version: int) -> Entity:
    several = version >= SEVERAL_GROUPS
    kind = module.OffsetFetchRequestTopics if several else module.OffsetFetchRequestTopic
    topics = None
    if message.partitions is not None:
        names = groupby(sorted(message.partitions), lambda one: one.topic)
        topics = tuple(
            kind(name=name, partition_indexes=tuple(one.partition for one in each))
            for name, each in names
        )
    if not several:
        return make(
            module.OffsetFetchRequest,
            group_id=message.group_id,
            topics=topics,
            require_stable=message.require_stable,
        )
    group = make(module.OffsetFetchRequestGroup, group_id=message.group_id, topics=topics)
    return make(module.OffsetFetchRequest, groups=(group,), require_stable=message.require_stable)


def _fetch_from(received: Received, _host: str) -> tuple[OffsetFetchRequest, ...]:
    """One message per group that is asked for."""
    body = received.body
    groups = body.groups if received.version >= SEVERAL_GROUPS else (body,)
    return tuple(
        OffsetFetchRequest(
            group.group_id,
            _partitions(group.topics),
            getattr(body, "require_stable", False),
            getattr(group, "member_id", None),
            getattr(group, "member_epoch", UNKNOWN_GENERATION_ID),
        )
        for group in groups
    )


def _partitions(topics: Iterable[Any] | None) -> tuple[TopicPartition, ...] | None:
    if topics is None:
        return None
    return tuple(
        TopicPartition(topic.name, index) for topic in topics for index in topic.partition_indexes
    )


# ---- administration ----------------------------------------------------------------------------


def _describe_to(message: DescribeGroupsRequest, module: Any, _version: int) -> Entity:
    return make(
        module.DescribeGroupsRequest, groups=message.groups, include_authorized_operations=False
    )


def _describe_from(received: Received, _host: str) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(tuple(received.body.groups))


def _delete_to(message: DeleteGroupsRequest, module: Any, _version: int) -> Entity:
    return make(module.DeleteGroupsRequest, groups_names=message.groups_names)


def _delete_from(received: Received, _host: str) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(tuple(received.body.groups_names))


def _find_to(message: FindCoordinatorRequest, module: Any, _version: int) -> Entity:
    return make(
        module.FindCoordinatorRequest,
        key=message.key,
        key_type=_GROUP_KEY,
        coordinator_keys=(message.key,),
    )


def _find_from(received: Received, _host: str) -> tuple[FindCoordinatorRequest, ...]:
    """One message per key that is asked for."""
    body = received.body
    several = received.version >= SEVERAL_COORDINATORS
    return tuple(map(FindCoordinatorRequest, body.coordinator_keys if several else (body.key,)))


_API_OF: Mapping[type, str] = MappingProxyType(
    {
        JoinGroupRequest: "join_group",
        SyncGroupRequest: "sync_group",
        HeartbeatRequest: "heartbeat",
        LeaveGroupRequest: "leave_group",
        OffsetCommitRequest: "offset_commit",
        OffsetFetchRequest: "offset_fetch",
        DescribeGroupsRequest: "describe_groups",
        DeleteGroupsRequest: "delete_groups",
        FindCoordinatorRequest: "find_coordinator",
    }
)

_TO: Mapping[str, Callable[[Any, Any, int], Entity]] = MappingProxyType(
    {
        "join_group": _join_to,
        "sync_group": _sync_to,
        "heartbeat": _heartbeat_to,
        "leave_group": _leave_to,
        "offset_commit": _commit_to,
        "offset_fetch": _fetch_to,
        "describe_groups": _describe_to,
        "delete_groups": _delete_to,
        "find_coordinator": _find_to,
    }
)

_FROM: Mapping[str, Callable[[Received, str], Any]] = MappingProxyType(
    {
        "join_group": _join_from,
        "sync_group": _sync_from,
        "heartbeat": _heartbeat_from,
        "leave_group": _leave_from,
        "offset_commit": _commit_from,
        "offset_fetch": _fetch_from,
        "describe_groups": _describe_from,
        "delete_groups": _delete_from,
        "find_coordinator": _find_from,
    }
)
