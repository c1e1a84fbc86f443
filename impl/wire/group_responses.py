"""Answers of the group protocol: impl's version-free messages as kio's entities, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kio.schema.errors import ErrorCode

from ..errors import Errors
from ..group.messages import (
    DeletableGroupResult,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupMemberResponse,
    LeaveGroupResponse,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    SyncGroupResponse,
)
from ..types import NO_PARTITION_LEADER_EPOCH, BrokerEndPoint, TopicPartition
from .entities import NO_TIME, Entity, make, module_of
from .group_requests import SEVERAL_COORDINATORS, SEVERAL_GROUPS, SEVERAL_LEAVE, by_topic

JOIN_NULL_PROTOCOL = 7
"""From this JoinGroup version on the protocol's name may be null."""


class UnknownError(Exception):
    """An answer has an error code that Kafka's protocol does not know."""


def to_entity(api: str, message: Any, version: int) -> Entity:
    """An answer's body in this version."""
    return _TO[api](message, module_of(api, version, "response"), version)


def from_entity(api: str, body: Entity, version: int) -> Any:
    """The message of impl that an answer's body is. Raises UnknownError."""
    return _FROM[api](body, version)


def code(error: Errors) -> ErrorCode:
    """kio's error code."""
    return ErrorCode(int(error))


def error_of(code: int) -> Errors:
    """impl's error."""
    try:
        return Errors(code)
    except ValueError as error:
        raise UnknownError(f"error code {int(code)}") from error


# ---- joining -----------------------------------------------------------------------------------


def _join_to(message: JoinGroupResponse, module: Any, version: int) -> Entity:
    name = message.protocol_name
    return make(
        module.JoinGroupResponse,
        throttle_time=NO_TIME,
        error_code=code(message.error_code),
        generation_id=message.generation_id,
        protocol_type=message.protocol_type,
        protocol_name=name if version >= JOIN_NULL_PROTOCOL else name or "",
        leader=message.leader,
        skip_assignment=message.skip_assignment,
        member_id=message.member_id,
        members=tuple(
            make(
                module.JoinGroupResponseMember,
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                metadata=one.metadata,
            )
            for one in message.members
        ),
    )


def _join_from(body: Entity, _version: int) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_of(body.error_code),
        body.member_id,
        body.generation_id,
        getattr(body, "protocol_type", None),
        body.protocol_name or None,
        body.leader,
        getattr(body, "skip_assignment", False),
        tuple(
            JoinGroupResponseMember(
                one.member_id, getattr(one, "group_instance_id", None), bytes(one.metadata)
            )
            for one in body.members
        ),
    )


def _sync_to(message: SyncGroupResponse, module: Any, _version: int) -> Entity:
    return make(
        module.SyncGroupResponse,
        throttle_time=NO_TIME,
        error_code=code(message.error_code),
        protocol_type=message.protocol_type,
        protocol_name=message.protocol_name,
        assignment=message.assignment,
    )


def _sync_from(body: Entity, _version: int) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_of(body.error_code),
        getattr(body, "protocol_type", None),
        getattr(body, "protocol_name", None),
        bytes(body.assignment),
    )


def _heartbeat_to(message: HeartbeatResponse, module: Any, _version: int) -> Entity:
    return make(
        module.HeartbeatResponse, throttle_time=NO_TIME, error_code=code(message.error_code)
    )


def _heartbeat_from(body: Entity, _version: int) -> HeartbeatResponse:
    return HeartbeatResponse(error_of(body.error_code))


def _leave_to(message: LeaveGroupResponse, module: Any, version: int) -> Entity:
    error = message.error_code
    if version < SEVERAL_LEAVE and error is Errors.NONE and message.members:
        error = message.members[0].error_code
    members = (
        ()
        if version < SEVERAL_LEAVE
        else tuple(
            module.MemberResponse(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                error_code=code(one.error_code),
            )
            for one in message.members
        )
    )
    return make(
        module.LeaveGroupResponse, throttle_time=NO_TIME, error_code=code(error), members=members
    )


def _leave_from(body: Entity, _version: int) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        error_of(body.error_code),
        tuple(
            LeaveGroupMemberResponse(one.member_id, one.group_instance_id, error_of(one.error_code))
            for one in getattr(body, "members", ())
        ),
    )


# ---- offsets -----------------------------------------------------------------------------------


def _commit_to(message: OffsetCommitResponse, module: Any, _version: int) -> Entity:
    topics = tuple(
        module.OffsetCommitResponseTopic(
            name=name,
            partitions=tuple(
                module.OffsetCommitResponsePartition(
                    partition_index=one.topic_partition.partition, error_code=code(one.error_code)
                )
                for one in entries
            ),
        )
        for name, entries in by_topic(message.partitions)
    )
    return make(module.OffsetCommitResponse, throttle_time=NO_TIME, topics=topics)


def _commit_from(body: Entity, _version: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        tuple(
            OffsetCommitResponsePartition(
                TopicPartition(topic.name, one.partition_index), error_of(one.error_code)
            )
            for topic in body.topics
            for one in topic.partitions
        )
    )


def _fetch_to(
    messages: Sequence[tuple[str, OffsetFetchResponse]], module: Any, version: int
) -> Entity:
    """Of one answer per group id."""
    if version < SEVERAL_GROUPS:
        ((_, only),) = messages
        topics = _fetched_topics(only, module, "Topic", "Partition")
        return make(
            module.OffsetFetchResponse,
            throttle_time=NO_TIME,
            topics=topics,
            error_code=code(only.error_code),
        )
    groups = tuple(
        make(
            module.OffsetFetchResponseGroup,
            group_id=group_id,
            topics=_fetched_topics(message, module, "Topics", "Partitions"),
            error_code=code(message.error_code),
        )
        for group_id, message in messages
    )
    return make(module.OffsetFetchResponse, throttle_time=NO_TIME, groups=groups)


def _fetched_topics(
    message: OffsetFetchResponse, module: Any, topic: str, partition: str
) -> tuple[Entity, ...]:
    """The nested classes have other names where several groups are answered."""
    topic_class = getattr(module, f"OffsetFetchResponse{topic}")
    partition_class = getattr(module, f"OffsetFetchResponse{partition}")
    return tuple(
        topic_class(
            name=name,
            partitions=tuple(
                make(
                    partition_class,
                    partition_index=one.topic_partition.partition,
                    committed_offset=one.committed_offset,
                    committed_leader_epoch=one.committed_leader_epoch,
                    metadata=one.metadata,
                    error_code=code(one.error_code),
                )
                for one in entries
            ),
        )
        for name, entries in by_topic(message.partitions)
    )


def _fetch_from(body: Entity, version: int) -> OffsetFetchResponse:
    """Of the first group: a client here asks for one."""
    part = body.groups[0] if version >= SEVERAL_GROUPS else body
    return OffsetFetchResponse(
        error_of(getattr(part, "error_code", 0)),
        tuple(
            OffsetFetchResponsePartition(
                TopicPartition(topic.name, one.partition_index),
                one.committed_offset,
                getattr(one, "committed_leader_epoch", NO_PARTITION_LEADER_EPOCH),
                one.metadata or "",
                error_of(one.error_code),
            )
            for topic in part.topics
            for one in topic.partitions
        ),
    )


# ---- administration ----------------------------------------------------------------------------


def _describe_to(message: DescribeGroupsResponse, module: Any, _version: int) -> Entity:
    groups = tuple(
        make(
            module.DescribedGroup,
            error_code=code(group.error_code),
            error_message=None,
            group_id=group.group_id,
            group_state=group.group_state,
            protocol_type=group.protocol_type,
            protocol_data=group.protocol_data,
            members=tuple(_described_to(member, module) for member in group.members),
        )
        for group in message.groups
    )
    return make(module.DescribeGroupsResponse, throttle_time=NO_TIME, groups=groups)


def _described_to(member: DescribedGroupMember, module: Any) -> Entity:
    return make(
        module.DescribedGroupMember,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.member_metadata,
        member_assignment=member.member_assignment,
    )


def _describe_from(body: Entity, _version: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        tuple(
            DescribedGroup(
                error_of(group.error_code),
                group.group_id,
                group.group_state,
                group.protocol_type,
                group.protocol_data,
                tuple(
                    DescribedGroupMember(
                        one.member_id,
                        getattr(one, "group_instance_id", None),
                        one.client_id,
                        one.client_host,
                        bytes(one.member_metadata),
                        bytes(one.member_assignment),
                    )
                    for one in group.members
                ),
            )
            for group in body.groups
        )
    )


def _delete_to(message: DeleteGroupsResponse, module: Any, _version: int) -> Entity:
    results = tuple(
        module.DeletableGroupResult(group_id=one.group_id, error_code=code(one.error_code))
        for one in message.results
    )
    return make(module.DeleteGroupsResponse, throttle_time=NO_TIME, results=results)


def _delete_from(body: Entity, _version: int) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        tuple(DeletableGroupResult(one.group_id, error_of(one.error_code)) for one in body.results)
    )


def _find_to(
    messages: Sequence[tuple[str, FindCoordinatorResponse]], module: Any, version: int
) -> Entity:
    """Of one answer per key."""
    if version < SEVERAL_COORDINATORS:
        ((_, only),) = messages
        return make(module.FindCoordinatorResponse, throttle_time=NO_TIME, **_node(only))
    coordinators = tuple(
        make(module.Coordinator, key=key, **_node(message)) for key, message in messages
    )
    return make(module.FindCoordinatorResponse, throttle_time=NO_TIME, coordinators=coordinators)


def _node(message: FindCoordinatorResponse) -> dict[str, object]:
    node = message.coordinator
    return {
        "error_code": code(message.error_code),
        "error_message": None,
        "node_id": -1 if node is None else node.id,
        "host": "" if node is None else node.host,
        "port": -1 if node is None else node.port,
    }


def _find_from(body: Entity, version: int) -> FindCoordinatorResponse:
    """Of the first key: a client here asks for one."""
    one = body.coordinators[0] if version >= SEVERAL_COORDINATORS else body
    error = error_of(one.error_code)
    if error is not Errors.NONE:
        return FindCoordinatorResponse(error)
    return FindCoordinatorResponse(error, BrokerEndPoint(one.node_id, one.host, one.port))


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

_FROM: Mapping[str, Callable[[Entity, int], Any]] = MappingProxyType(
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
