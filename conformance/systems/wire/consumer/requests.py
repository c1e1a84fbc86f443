"""Requests of KIP-848 at a port: heartbeats and descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from conformance.kafka.entities import Entity, in_milliseconds, make, milliseconds, module_of
from conformance.systems.protocol import SystemFailed
from conformance.systems.shared.group.exchange import error_name
from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.admin import commit_request, fetch_offsets
from conformance.systems.wire.consumer.member import (
    Commit,
    CommitAnswer,
    Heartbeat,
    HeartbeatAnswer,
)
from conformance.systems.wire.port import MOVING, Port

REBALANCE_MS = 300_000
"""Of members whose rebalance is not to run out."""
_HEARTBEAT, _DESCRIBE = "consumer_group_heartbeat", "consumer_group_describe"


class NotCoordinator(SystemFailed):
    """The broker does not coordinate the group, or does not do so yet."""


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """A topic of the model, as the coordinator knows it."""

    of_model: ModelTopic
    topic: str
    topic_id: UUID


@dataclass(frozen=True, slots=True)
class MemberGroup:
    """The group that a member belongs to, and the topics that its members read."""

    group_id: str
    topics: tuple[ReadTopic, ...]
    regexes: Mapping[str, str] = field(default_factory=dict)
    """The regular expressions in the model, each as its members send it."""

    @property
    def topic(self) -> str:
        """The name of the only topic, of those models whose members commit."""
        (topic,) = self.topics
        return topic.topic

    @property
    def reads(self) -> frozenset[str]:
        """The names of all topics in the model."""
        return frozenset(topic.of_model.name for topic in self.topics)


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member as ConsumerGroupDescribe shows it."""

    epoch: int
    reads: frozenset[str]
    assigned: frozenset[int]
    target: frozenset[int]


@dataclass(frozen=True, slots=True)
class Description:
    """A group; `members` by member id."""

    group_epoch: int = 0
    assignment_epoch: int = 0
    members: Mapping[str, DescribedMember] | None = None
    """None of a group that the coordinator does not know."""
    assignor: str = ""
    """What most members name, or the broker's default."""


def heartbeat(
    port: Port,
    group: MemberGroup,
    member_id: str,
    instance: str | None,
    sent: Heartbeat,
    rebalance_ms: int = REBALANCE_MS,
) -> HeartbeatAnswer:
    """Ask, and wait for the answer."""
    version = port.versions[_HEARTBEAT]
    body = heartbeat_request(version, group, member_id, instance, sent, rebalance_ms)
    return heartbeat_answer(port.ask_body(body), group)


def heartbeat_request(
    version: int,
    group: MemberGroup,
    member_id: str,
    instance: str | None,
    sent: Heartbeat,
    rebalance_ms: int = REBALANCE_MS,
) -> Entity:
    """The request. One that names partitions has all fields (a full request)."""
    module = module_of(_HEARTBEAT, version, "request")
    fields: dict[str, object] = {"topic_partitions": None}
    if sent.owned is not None:
        fields = {
            "topic_partitions": tuple(_owned(module, group, sent.owned)),
            "rebalance_timeout": milliseconds(rebalance_ms),
            "server_assignor": sent.assignor,
        }
    if sent.reads:
        names = {topic.topic for topic in group.topics if topic.of_model.name in sent.reads}
        fields["subscribed_topic_names"] = tuple(sorted(names))
        if group.regexes:
            sent_as = [regex for name, regex in group.regexes.items() if name in sent.reads]
            fields["subscribed_topic_regex"] = "".join(sent_as)
    return make(
        module.ConsumerGroupHeartbeatRequest,
        group_id=group.group_id,
        member_id=member_id,
        member_epoch=sent.epoch,
        instance_id=instance,
        **fields,
    )


def _owned(module: Any, group: MemberGroup, owned: frozenset[int]) -> Iterator[Entity]:
    for topic in group.topics:
        first, numbers = topic.of_model.first, sorted(owned.intersection(topic.of_model.numbers))
        if numbers:
            places = tuple(number - first for number in numbers)
            yield make(module.TopicPartitions, topic_id=topic.topic_id, partitions=places)


def heartbeat_answer(body: Entity, group: MemberGroup) -> HeartbeatAnswer:
    """The answer, as a member takes it."""
    if body.error_code is not ErrorCode.none:
        return HeartbeatAnswer(body.error_code.name.upper())
    given = None
    if body.assignment is not None:
        given = _partitions(body.assignment.topic_partitions, group, "gives")
    interval = in_milliseconds(body.heartbeat_interval)
    return HeartbeatAnswer(epoch=int(body.member_epoch), given=given, interval_ms=interval)


def commit(
    port: Port, group: MemberGroup, member_id: str, instance: str | None, sent: Commit, offset: int
) -> CommitAnswer:
    """Commit this offset of each partition. SystemFailed if the refused ones have several errors,
    or if OffsetFetch then gives it of others than those that were taken."""
    offsets = dict.fromkeys(sent.partitions, offset)
    membership = (sent.epoch, member_id, instance)
    response = port.ask(commit_request(group.group_id, group.topic, offsets, membership))
    return commit_answer(response, sent, offset, committed(port, group, sent))


def commit_answer(
    response: Entity, sent: Commit, offset: int, stored: Mapping[int, int]
) -> CommitAnswer:
    """The answer to a commit of this offset, after which the group has the `stored` ones.

    SystemFailed as `commit` says.
    """
    (topic,) = response.topics
    codes = {int(partition.partition_index): partition.error_code for partition in topic.partitions}
    answer = _commit_answer(codes)
    stored_now = frozenset(number for number, result in stored.items() if result == offset)
    if {*codes} != sent.partitions or stored_now != answer.committed:
        raise SystemFailed(
            f"OffsetCommit of partitions {sorted(sent.partitions)} was answered {_shown(codes)}, "
            f"and the group has what was committed of {sorted(stored_now)}"
        )
    return answer


def _commit_answer(codes: Mapping[int, ErrorCode]) -> CommitAnswer:
    refused = {code for code in codes.values() if code is not ErrorCode.none}
    if len(refused) > 1:
        raise SystemFailed(f"One OffsetCommit was answered {_shown(codes)}")
    names = frozenset(index for index, code in codes.items() if code is ErrorCode.none)
    return CommitAnswer(names, *(code.name.upper() for code in refused))


def _shown(codes: Mapping[int, ErrorCode]) -> str:
    return ", ".join(f"{index} {code.name.upper()}" for index, code in sorted(codes.items()))


def committed(port: Port, group: MemberGroup, sent: Commit) -> dict[int, int]:
    """The group's offsets of these partitions, as one sees them who is no member; -1: none."""
    error, offsets = fetch_offsets(port, group.group_id, group.topic, sent.partitions)
    if error is not ErrorCode.none:
        raise SystemFailed(f"OffsetFetch was answered {error_name(error)}")
    return offsets


def describe(port: Port, group: MemberGroup) -> Description:
    """The group as it is now."""
    module = module_of(_DESCRIBE, port.versions[_DESCRIBE], "request")
    body = make(
        module.ConsumerGroupDescribeRequest,
        group_ids=(group.group_id,),
        include_authorized_operations=False,
    )
    (result,) = port.ask_body(body).groups
    if result.error_code is ErrorCode.group_id_not_found:
        return Description()
    if result.error_code in MOVING:
        raise NotCoordinator(f"ConsumerGroupDescribe was answered {result.error_code.name.upper()}")
    if result.error_code is not ErrorCode.none:
        raise SystemFailed(f"ConsumerGroupDescribe was answered {result.error_code.name.upper()}")
    members = {member.member_id: _described(member, group) for member in result.members}
    return Description(
        int(result.group_epoch), int(result.assignment_epoch), members, result.assignor_name
    )


def _described(member: Any, group: MemberGroup) -> DescribedMember:
    names = {topic.topic: topic.of_model.name for topic in group.topics}
    names |= {sent: regex for regex, sent in group.regexes.items()}
    regex = member.subscribed_topic_regex
    subscribed = (*member.subscribed_topic_names, *([regex] if regex else []))
    return DescribedMember(
        int(member.member_epoch),
        frozenset(names.get(name, name) for name in subscribed),
        _partitions(member.assignment.topic_partitions, group, "describes"),
        _partitions(member.target_assignment.topic_partitions, group, "describes"),
    )


def _partitions(topics: Iterable[Any], group: MemberGroup, what: str) -> frozenset[int]:
    first = {topic.topic_id: topic.of_model.first for topic in group.topics}
    result = {(topic.topic_id, int(index)) for topic in topics for index in topic.partitions}
    foreign = sorted(index for topic, index in result if topic not in first)
    if foreign:
        raise SystemFailed(f"The broker {what} partitions {foreign} of a topic nobody reads")
    return frozenset(first[topic] + index for topic, index in result)
