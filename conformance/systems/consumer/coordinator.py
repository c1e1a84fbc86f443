"""The coordinator in a model: one topic, one group, a clock that stands still, timers by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from conformance.systems.protocol import ActionRefused
from conformance.systems.wire.consumer.member import (
    Commit,
    CommitAnswer,
    Heartbeat,
    HeartbeatAnswer,
)
from conformance.systems.wire.consumer.reach import ConsumerSettings
from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.coordinator.coordinator_timer import TimeoutTask
from impl.coordinator.group.assignors import (
    GroupAssignment,
    GroupSpec,
    RangeAssignor,
    TopicsImage,
)
from impl.coordinator.group.config import ConsumerGroupConfig
from impl.coordinator.group.consumer_group import ConsumerGroup
from impl.coordinator.group.group_coordinator_service import GroupCoordinatorService
from impl.coordinator.group.group_coordinator_shard import GroupCoordinatorShard
from impl.coordinator.group.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
from impl.coordinator.local_partition import ImmediateEventProcessor, LocalPartition
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.group.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from impl.log_loader import load_log
from impl.scheduler import ImmediateScheduler
from impl.types import TopicIdPartition, TopicPartition

GROUP, TOPIC, TOPIC_ID = "group", "topic", "AAAAAAAAAAEAAAAAAAAAAQ"
_OFFSETS = TopicPartition("__consumer_offsets", 0)
_REBALANCE_MS = 300_000


class OneTopic:
    """The only topic that there is (`TopicsImage`)."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def topic_id(self, name: str) -> str | None:
        """See `TopicsImage.topic_id`."""
        return TOPIC_ID if name == TOPIC else None

    def num_partitions(self, topic_id: str) -> int:
        """See `TopicsImage.num_partitions`."""
        return self._partitions if topic_id == TOPIC_ID else 0


class ChosenAssignor:
    """Gives what the harness wants, where the specification leaves the choice; else a range."""

    name = RangeAssignor.name

    def __init__(self) -> None:
        self.chosen: Mapping[str, frozenset[int]] | None = None

    def assign(self, group: GroupSpec, topics: TopicsImage) -> GroupAssignment:
        """See `PartitionAssignor.assign`."""
        if self.chosen is None:
            return RangeAssignor().assign(group, topics)
        return {member: with_ids(self.chosen[member]) for member in group}


class HandTimer:
    """A timer whose tasks run out when an action says so."""

    def add(self, _delay_ms: int, _task: Callable[[], None]) -> None:
        """See `CoordinatorTimer.add`: the coordinator itself knows which of its timers run."""


class DrivenCoordinator:
    """The service over a log of its own; each request is answered before the call returns."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self.assignor = ChosenAssignor()
        log = load_log(_OFFSETS, "log", MemoryDisk(), ImmediateScheduler(), NoConcurrency())
        partition = LocalPartition(log)
        self.service = GroupCoordinatorService(
            partition,
            partition,
            ImmediateEventProcessor(),
            HandTimer(),
            MockClock(0),
            OneTopic(settings.partitions),
            ConsumerGroupConfig(assignment_interval_ms=0),
            (self.assignor,),
        )
        self.service.on_election(0)

    @property
    def group(self) -> ConsumerGroup | None:
        """The group in memory; None before anybody has joined."""
        context = self.service.runtime.context
        assert context is not None, "it is elected"
        assert context.coordinator is not None, "it is loaded"
        shard = context.coordinator.shard
        assert isinstance(shard, GroupCoordinatorShard), "it coordinates groups"
        return shard.groups.group(GROUP)

    def describe(self) -> DescribedConsumerGroup:
        """The group as ConsumerGroupDescribe shows it."""
        answers: list[DescribedConsumerGroup] = []
        self.service.describe_group(GROUP, answers.append)
        (answer,) = answers
        return answer

    def heartbeat(self, member: str, instance: str | None, sent: Heartbeat) -> HeartbeatAnswer:
        """A heartbeat that names partitions has all other fields too."""
        request = ConsumerGroupHeartbeatRequest(GROUP, member, sent.epoch, instance)
        if sent.owned is not None:
            request = ConsumerGroupHeartbeatRequest(
                GROUP,
                member,
                sent.epoch,
                instance,
                rebalance_timeout_ms=_REBALANCE_MS,
                subscribed_topic_names=(TOPIC,),
                server_assignor=RangeAssignor.name,
                topic_partitions=tuple(with_ids(sent.owned)),
            )
        answers: list[ConsumerGroupHeartbeatResponse] = []
        self.service.consumer_group_heartbeat(request, answers.append)
        (answer,) = answers
        if answer.error_code is not Errors.NONE:
            return HeartbeatAnswer(answer.error_code.name)
        given = None if answer.assignment is None else numbers_of(answer.assignment)
        return HeartbeatAnswer(epoch=answer.member_epoch, given=given)

    def commit(self, member: str, instance: str | None, sent: Commit, offset: int) -> CommitAnswer:
        """Commit this offset of each partition. What is fetched then says what was taken."""
        parts = tuple(
            OffsetCommitRequestPartition(TopicPartition(TOPIC, number), offset)
            for number in sorted(sent.partitions)
        )
        answers: list[OffsetCommitResponse] = []
        request = OffsetCommitRequest(GROUP, parts, sent.epoch, member, instance)
        self.service.commit_offsets(request, answers.append)
        (answer,) = answers
        errors = {part.error_code for part in answer.partitions}
        refused = sorted(error.name for error in errors if error is not Errors.NONE)
        return CommitAnswer(self._stored(sent.partitions, offset), *refused)

    def _stored(self, partitions: frozenset[int], offset: int) -> frozenset[int]:
        wanted = tuple(TopicPartition(TOPIC, number) for number in sorted(partitions))
        answers: list[OffsetFetchResponse] = []
        self.service.fetch_offsets(OffsetFetchRequest(GROUP, wanted), answers.append)
        (answer,) = answers
        return frozenset(
            part.topic_partition.partition
            for part in answer.partitions
            if part.committed_offset == offset
        )

    @property
    def timers(self) -> dict[str, TimeoutTask]:
        """Those that run, by key."""
        return self.service.timer.running

    def expire(self, key: str) -> None:
        """Let a timer run out. Raises ActionRefused if it does not run."""
        task = self.timers.get(key)
        if task is None:
            raise ActionRefused(f"the timer {key} does not run")
        task()


def with_ids(numbers: frozenset[int]) -> frozenset[TopicIdPartition]:
    """Partitions of the topic."""
    return frozenset(TopicIdPartition(TOPIC_ID, number) for number in numbers)


def numbers_of(partitions: frozenset[TopicIdPartition]) -> frozenset[int]:
    """Their numbers."""
    return frozenset(partition.partition for partition in partitions)
