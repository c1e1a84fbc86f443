"""Requests of the classic protocol to a group that changes its protocol, as consumers send them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from conformance.kafka.consumer_protocol import subscription_bytes
from conformance.kafka.entities import Entity, class_of, make, milliseconds, module_of

CLASSIC_VERSIONS: Mapping[str, int] = MappingProxyType(
    {"join_group": 9, "sync_group": 5, "heartbeat": 4, "leave_group": 5}
)
"""Of the requests and of their answers."""
_PROTOCOL_TYPE, _ASSIGNOR = "consumer", "range"
_SUBSCRIPTION_VERSION = 1
"""The first that says what a member owns."""
_MALFORMED = b"\x00"
"""No version is so short."""


class ClassicSender(NamedTuple):
    """Who sends a request; `member_id` is empty before one was given."""

    group_id: str
    member_id: str
    instance: str | None


class Timeouts(NamedTuple):
    """What a member asks for as it joins, in ms."""

    session: int
    rebalance: int


def subscription(
    topics: frozenset[str], owned: Mapping[str, frozenset[int]], *, malformed: bool
) -> bytes:
    """What a JoinGroup says of its sender. `topics`: their names; `owned`: places by name."""
    return _MALFORMED if malformed else subscription_bytes(topics, _SUBSCRIPTION_VERSION, owned)


def join_request(sender: ClassicSender, metadata: bytes, timeouts: Timeouts) -> Entity:
    """JoinGroup."""
    module = module_of("join_group", CLASSIC_VERSIONS["join_group"], "request")
    return make(
        module.JoinGroupRequest,
        group_id=sender.group_id,
        session_timeout=milliseconds(timeouts.session),
        rebalance_timeout=milliseconds(timeouts.rebalance),
        member_id=sender.member_id,
        group_instance_id=sender.instance,
        protocol_type=_PROTOCOL_TYPE,
        protocols=(module.JoinGroupRequestProtocol(name=_ASSIGNOR, metadata=metadata),),
    )


def sync_request(
    sender: ClassicSender, generation: int, assignments: Mapping[str, bytes]
) -> Entity:
    """SyncGroup; `assignments`: what a leader gives, by member id."""
    module = module_of("sync_group", CLASSIC_VERSIONS["sync_group"], "request")
    return make(
        module.SyncGroupRequest,
        group_id=sender.group_id,
        generation_id=generation,
        member_id=sender.member_id,
        group_instance_id=sender.instance,
        protocol_type=_PROTOCOL_TYPE,
        protocol_name=_ASSIGNOR,
        assignments=tuple(
            module.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, assignment in assignments.items()
        ),
    )


def classic_heartbeat(sender: ClassicSender, generation: int) -> Entity:
    """Heartbeat."""
    return make(
        class_of("heartbeat", CLASSIC_VERSIONS["heartbeat"], "request"),
        group_id=sender.group_id,
        generation_id=generation,
        member_id=sender.member_id,
        group_instance_id=sender.instance,
    )


def leave_request(group_id: str, members: Mapping[str, str | None]) -> Entity:
    """LeaveGroup of members by id, with their instance ids."""
    module = module_of("leave_group", CLASSIC_VERSIONS["leave_group"], "request")
    leaving = tuple(
        make(module.MemberIdentity, member_id=id, group_instance_id=instance, reason=None)
        for id, instance in members.items()
    )
    return make(module.LeaveGroupRequest, group_id=group_id, members=leaving)
