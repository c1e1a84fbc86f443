"""Requests of KIP-848 over a broker's coordinator: entities in, entities out.

ConsumerGroupHeartbeat 0: the coordinator makes the id of a member that joins; 1: the member does
(KIP-1082). Topics have ids here, which are those of Metadata.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, Protocol

from ..clock import Clock
from ..concurrency import NoConcurrency
from ..coordinator.group.config import ConsumerGroupConfig
from ..coordinator.group.group_coordinator_service import GroupCoordinatorService
from ..coordinator.group.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
    DescribedConsumerGroupMember,
)
from ..coordinator.local_partition import ImmediateEventProcessor, LocalPartition
from ..disk import MemoryDisk
from ..errors import Errors
from ..group.offsets_topic import GROUP_METADATA_TOPIC_NAME
from ..log_loader import load_log
from ..scheduler import ImmediateScheduler
from ..types import TopicIdPartition, TopicPartition
from .entities import NO_TIME, Entity, Received, in_milliseconds, make, milliseconds, module_of
from .group_responses import code

_CONSUMER_MEMBER = 1
"""MemberType of a member that speaks the consumer protocol."""
_LEADER_EPOCH = 0


class BrokerTopics(Protocol):
    """The broker's topics."""

    def topic_id(self, name: str) -> uuid.UUID | None:
        """The topic's id; None if there is no such topic."""

    def topic_name(self, topic_id: uuid.UUID) -> str:
        """The name of a topic; empty if there is none with this id."""

    def num_partitions(self, name: str) -> int:
        """How many partitions a topic has; 0 if there is no such topic."""

    def topic_names(self) -> frozenset[str]:
        """All topics."""


class _TimerByDelay:
    """The event loop as the coordinator's timer."""

    def __init__(self, delay: Callable[[int, Callable[[], None]], None]) -> None:
        self._delay = delay

    def add(self, delay_ms: int, task: Callable[[], None]) -> None:
        """See `CoordinatorTimer.add`."""
        self._delay(delay_ms, task)


class _Image:
    """`TopicsImage` of the broker's topics."""

    def __init__(self, topics: BrokerTopics) -> None:
        self._topics = topics

    def topic_id(self, name: str) -> str | None:
        """See `TopicsImage.topic_id`."""
        topic_id = self._topics.topic_id(name)
        return None if topic_id is None else _text_of(topic_id)

    def num_partitions(self, topic_id: str) -> int:
        """See `TopicsImage.num_partitions`."""
        return self._topics.num_partitions(self._topics.topic_name(_uuid_of(topic_id)))

    def topic_names(self) -> frozenset[str]:
        """See `TopicsImage.topic_names`."""
        return self._topics.topic_names()

    @property
    def version(self) -> int:
        """See `TopicsImage.version`: topics are created here, and stay as they are."""
        return len(self.topic_names())


class ConsumerGroups:
    """KIP-848's coordinator of one broker, with the broker's own log of the offsets topic."""

    def __init__(
        self,
        topics: BrokerTopics,
        config: ConsumerGroupConfig,
        clock: Clock,
        delay: Callable[[int, Callable[[], None]], None],
        is_classic: Callable[[str], bool],
        unique_id: Callable[[], str],
    ) -> None:
        self._topics = topics
        self._is_classic = is_classic
        self._unique_id = unique_id
        partition = LocalPartition(
            load_log(
                TopicPartition(GROUP_METADATA_TOPIC_NAME, 0),
                f"{GROUP_METADATA_TOPIC_NAME}-0",
                MemoryDisk(),
                ImmediateScheduler(),
                NoConcurrency(),
                clock=clock,
            ),
            _LEADER_EPOCH,
        )
        self.coordinator = GroupCoordinatorService(
            partition,
            partition,
            ImmediateEventProcessor(),
            _TimerByDelay(delay),
            clock,
            _Image(topics),
            config,
        )
        self.coordinator.on_election(_LEADER_EPOCH)

    def heartbeat(self, received: Received, host: str, answer: Callable[[Entity], None]) -> None:
        """Answered when its records are committed."""

        def answered(response: ConsumerGroupHeartbeatResponse) -> None:
            answer(_heartbeat_to(response, received.version))

        request = self._heartbeat_from(received, host)
        if self._is_classic(request.group_id):
            answered(
                ConsumerGroupHeartbeatResponse(
                    Errors.GROUP_ID_NOT_FOUND,
                    error_message=f"{request.group_id} is a classic group, and stays one here",
                )
            )
            return
        self.coordinator.consumer_group_heartbeat(request, answered)

    def describe(self, received: Received, _host: str, answer: Callable[[Entity], None]) -> None:
        """Each group that is asked for, as it is committed."""
        groups: list[DescribedConsumerGroup] = []
        for group_id in received.body.group_ids:
            self.coordinator.describe_group(group_id, groups.append)
        module = module_of(received.api, received.version, "response")
        answer(
            make(
                module.ConsumerGroupDescribeResponse,
                throttle_time=NO_TIME,
                groups=tuple(self._described_to(group, module) for group in groups),
            )
        )

    def _heartbeat_from(self, received: Received, host: str) -> ConsumerGroupHeartbeatRequest:
        body = received.body
        names, owned = body.subscribed_topic_names, body.topic_partitions
        return ConsumerGroupHeartbeatRequest(
            group_id=body.group_id,
            member_id=body.member_id or (self._unique_id() if received.version == 0 else ""),
            member_epoch=int(body.member_epoch),
            instance_id=body.instance_id,
            rack_id=body.rack_id,
            rebalance_timeout_ms=in_milliseconds(body.rebalance_timeout),
            subscribed_topic_names=None if names is None else tuple(map(str, names)),
            subscribed_topic_regex=getattr(body, "subscribed_topic_regex", None),
            server_assignor=body.server_assignor,
            topic_partitions=None if owned is None else tuple(_partitions_of(owned)),
            client_id=received.client_id,
            client_host=host,
        )

    def _described_to(self, group: DescribedConsumerGroup, module: Any) -> Entity:
        return make(
            module.DescribedGroup,
            error_code=code(group.error_code),
            error_message=None,
            group_id=group.group_id,
            group_state=group.group_state,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            assignor_name=group.assignor_name,
            members=tuple(self._member_to(member, module) for member in group.members),
        )

    def _member_to(self, member: DescribedConsumerGroupMember, module: Any) -> Entity:
        return make(
            module.Member,
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            member_epoch=member.member_epoch,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=member.subscribed_topic_names,
            subscribed_topic_regex=member.subscribed_topic_regex,
            assignment=self._assignment(member.assignment, module),
            target_assignment=self._assignment(member.target_assignment, module),
            member_type=_CONSUMER_MEMBER,
        )

    def _assignment(self, partitions: Iterable[TopicIdPartition], module: Any) -> Entity:
        topics = tuple(
            make(
                module.TopicPartitions,
                topic_id=topic_id,
                topic_name=self._topics.topic_name(topic_id),
                partitions=numbers,
            )
            for topic_id, numbers in _by_topic(partitions)
        )
        return module.Assignment(topic_partitions=topics)


def _heartbeat_to(response: ConsumerGroupHeartbeatResponse, version: int) -> Entity:
    module = module_of("consumer_group_heartbeat", version, "response")
    assignment = None
    if response.assignment is not None:
        topics = tuple(
            module.TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in _by_topic(response.assignment)
        )
        assignment = module.Assignment(topic_partitions=topics)
    return make(
        module.ConsumerGroupHeartbeatResponse,
        throttle_time=NO_TIME,
        error_code=code(response.error_code),
        error_message=response.error_message,
        member_id=response.member_id,
        member_epoch=response.member_epoch,
        heartbeat_interval=milliseconds(response.heartbeat_interval_ms),
        assignment=assignment,
    )


def _by_topic(
    partitions: Iterable[TopicIdPartition],
) -> Iterable[tuple[uuid.UUID, tuple[int, ...]]]:
    for topic_id, of_topic in groupby(sorted(partitions), lambda partition: partition.topic_id):
        yield _uuid_of(topic_id), tuple(partition.partition for partition in of_topic)


def _partitions_of(topics: Iterable[Any]) -> Iterable[TopicIdPartition]:
    for topic in topics:
        for number in topic.partitions:
            yield TopicIdPartition(_text_of(topic.topic_id), int(number))


def _text_of(topic_id: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _uuid_of(topic_id: str) -> uuid.UUID:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(topic_id + "=="))
