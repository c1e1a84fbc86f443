"""The coordinator in a model: its topics, one group, a clock that stands still, timers by hand."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.topics import ModelTopic
from conformance.systems.wire.consumer.inner_steps import ASSIGNMENT_INTERVAL_MS
from conformance.systems.wire.consumer.member import (
    Commit,
    CommitAnswer,
    Heartbeat,
    HeartbeatAnswer,
)
from conformance.systems.wire.consumer.reach import NO_ASSIGNOR, ConsumerSettings
from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.coordinator.coordinator_timer import TimeoutTask
from impl.coordinator.group.assignors import (
    GroupAssignment,
    GroupSpec,
    PartitionAssignor,
    RangeAssignor,
    TopicsImage,
    UniformAssignor,
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
from impl.coordinator.group.regular_expression_manager import resolution_key
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

GROUP = "group"
_OFFSETS = TopicPartition("__consumer_offsets", 0)
_REBALANCE_MS = 300_000
_BEGINNING_MS = 1
"""A target of the time 0 is one of which nobody knows when it was made."""
_ASSIGNORS: Mapping[str, PartitionAssignor] = MappingProxyType(
    {assignor.name: assignor for assignor in (UniformAssignor(), RangeAssignor())}
)


class DrivenTopics:
    """The topics of a model (`TopicsImage`); a partition is a number for the specification."""

    def __init__(self, topics: tuple[ModelTopic, ...]) -> None:
        self._topics = {_topic_id(place): topic for place, topic in enumerate(topics)}
        self._sizes = {
            id: topic.size if topic.is_there else 0 for id, topic in self._topics.items()
        }
        self.version = 1
        """See `TopicsImage.version`."""

    def topic_id(self, name: str) -> str | None:
        """See `TopicsImage.topic_id`."""
        there = (id for id, topic in self._topics.items() if topic.name == name)
        return next((id for id in there if self.num_partitions(id)), None)

    def num_partitions(self, topic_id: str) -> int:
        """See `TopicsImage.num_partitions`."""
        return max(self._sizes.get(topic_id, 0), 0)

    def topic_names(self) -> frozenset[str]:
        """See `TopicsImage.topic_names`."""
        return frozenset(self._topics[id].name for id in self._sizes if self.num_partitions(id))

    def change(self, key: str, size: int) -> tuple[str, bool]:
        """The topic has so many partitions from now on, or is gone (-1).

        Its name, and whether it is created.
        """
        ((id, topic),) = (each for each in self._topics.items() if each[1].key == key)
        is_new = not self.num_partitions(id)
        self._sizes[id] = size
        self.version += 1
        return topic.name, is_new

    def with_ids(self, numbers: frozenset[int]) -> frozenset[TopicIdPartition]:
        """The partitions with these numbers."""
        return frozenset(
            TopicIdPartition(id, number - topic.first)
            for id, topic in self._topics.items()
            for number in numbers.intersection(topic.numbers)
        )

    def numbers_of(self, partitions: Iterable[TopicIdPartition]) -> frozenset[int]:
        """Their numbers."""
        return frozenset(
            self._topics[partition.topic_id].first + partition.partition for partition in partitions
        )

    @property
    def only(self) -> str:
        """The name of the only topic, of those models whose members commit."""
        (topic,) = self._topics.values()
        return topic.name


def _topic_id(place: int) -> str:
    return base64.urlsafe_b64encode(UUID(int=(1 << 64) + 1 + place).bytes).decode().rstrip("=")


class TargetChoice:
    """What the harness wants of the assignors, where the specification leaves the choice."""

    def __init__(self, topics: DrivenTopics) -> None:
        self.topics = topics
        self.chosen: Mapping[str, frozenset[int]] | None = None
        self.made_by = NO_ASSIGNOR
        """The assignor that has made the last target."""


class ChosenAssignor:
    """Gives what the harness wants; where it wants nothing, what the assignor of `impl` gives."""

    def __init__(self, choice: TargetChoice, usual: PartitionAssignor) -> None:
        self._choice = choice
        self._usual = usual

    @property
    def name(self) -> str:
        """As members name it."""
        return self._usual.name

    def assign(self, group: GroupSpec, topics: TopicsImage) -> GroupAssignment:
        """See `PartitionAssignor.assign`."""
        choice = self._choice
        choice.made_by = self.name
        if choice.chosen is None:
            return self._usual.assign(group, topics)
        return {member: choice.topics.with_ids(choice.chosen[member]) for member in group}


class HandTimer:
    """A timer whose tasks run out when an action says so."""

    def add(self, _delay_ms: int, _task: Callable[[], None]) -> None:
        """See `CoordinatorTimer.add`: the coordinator itself knows which of its timers run."""


class HandExecutor:
    """An executor whose task runs when an action says so, and the events: that of a task waits for
    another action."""

    def __init__(self) -> None:
        self._events = ImmediateEventProcessor()
        self._tasks: deque[Callable[[], None]] = deque()
        self._waiting: deque[tuple[str, Callable[[], None]]] = deque()
        self._holds = False

    def submit(self, task: Callable[[], None]) -> None:
        """See `ExecutorService.submit`."""
        self._tasks.append(task)

    def enqueue_last(self, name: str, event: Callable[[], None]) -> None:
        """See `CoordinatorEventProcessor.enqueue_last`."""
        if self._holds:
            self._waiting.append((name, event))
        else:
            self._events.enqueue_last(name, event)

    def enqueue_first(self, name: str, event: Callable[[], None]) -> None:
        """See `CoordinatorEventProcessor.enqueue_first`."""
        self._events.enqueue_first(name, event)

    @property
    def has_run(self) -> bool:
        """Whether a task has run whose event waits."""
        return bool(self._waiting)

    def run(self) -> None:
        """Run the task. ActionRefused if there is none."""
        if not self._tasks:
            raise ActionRefused("the executor has nothing to run")
        self._holds = True
        self._tasks.popleft()()
        self._holds = False

    def release(self) -> None:
        """Let the event of the task come. ActionRefused if there is none."""
        if not self._waiting:
            raise ActionRefused("no task of the executor has run")
        self._events.enqueue_last(*self._waiting.popleft())


class DrivenCoordinator:
    """The service over a log of its own; each request is answered before the call returns."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self.topics = DrivenTopics(settings.topics)
        self.choice = TargetChoice(self.topics)
        self._clock = MockClock(_BEGINNING_MS)
        self._interval_ms = ASSIGNMENT_INTERVAL_MS if settings.has_interval else 0
        log = load_log(_OFFSETS, "log", MemoryDisk(), ImmediateScheduler(), NoConcurrency())
        partition = LocalPartition(log)
        self.executor = HandExecutor()
        self._regexes = settings.regexes
        self.service = GroupCoordinatorService(
            partition,
            partition,
            self.executor,
            HandTimer(),
            self._clock,
            self.topics,
            ConsumerGroupConfig(
                max_size=settings.maximum_size, assignment_interval_ms=self._interval_ms
            ),
            tuple(ChosenAssignor(self.choice, _ASSIGNORS[name]) for name in settings.assignors),
            self.executor,
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
        if sent.reads:
            names = tuple(sorted(sent.reads - self._regexes))
            regex = "".join(sent.reads & self._regexes) if self._regexes else None
            request = replace(request, subscribed_topic_names=names, subscribed_topic_regex=regex)
        if sent.owned is not None:
            request = replace(
                request,
                rebalance_timeout_ms=_REBALANCE_MS,
                server_assignor=sent.assignor,
                topic_partitions=tuple(self.topics.with_ids(sent.owned)),
            )
        answers: list[ConsumerGroupHeartbeatResponse] = []
        self.service.consumer_group_heartbeat(request, answers.append)
        (answer,) = answers
        if answer.error_code is not Errors.NONE:
            return HeartbeatAnswer(answer.error_code.name)
        given = None if answer.assignment is None else self.topics.numbers_of(answer.assignment)
        return HeartbeatAnswer(epoch=answer.member_epoch, given=given)

    def commit(self, member: str, instance: str | None, sent: Commit, offset: int) -> CommitAnswer:
        """Commit this offset of each partition. What is fetched then says what was taken."""
        parts = tuple(
            OffsetCommitRequestPartition(TopicPartition(self.topics.only, number), offset)
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
        wanted = tuple(TopicPartition(self.topics.only, number) for number in sorted(partitions))
        answers: list[OffsetFetchResponse] = []
        self.service.fetch_offsets(OffsetFetchRequest(GROUP, wanted), answers.append)
        (answer,) = answers
        return frozenset(
            part.topic_partition.partition
            for part in answer.partitions
            if part.committed_offset == offset
        )

    def change_topic(self, key: str, size: int) -> None:
        """The coordinator hears of a topic: see `DrivenTopics.change`."""
        name, is_new = self.topics.change(key, size)
        self.service.on_new_metadata_image({name}, has_new_topics=is_new)

    @property
    def resolution(self) -> str:
        """Where that of the group's regular expressions is: None, Scheduled, Run."""
        if not self.service.executor.is_scheduled(resolution_key(GROUP)):
            return "None"
        return "Run" if self.executor.has_run else "Scheduled"

    def sleep(self, milliseconds: int) -> None:
        """Let time pass. Timers run out when an action says so."""
        self._clock.sleep(milliseconds)

    @property
    def interval_runs(self) -> bool:
        """Whether the group's target is too new for another one."""
        group = self.group
        made_at = 0 if group is None else group.target_metadata().assignment_timestamp
        return bool(made_at) and self._clock.milliseconds() < made_at + self._interval_ms

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
