"""Topic requests wait until this broker has heard of what the controller did."""

from __future__ import annotations

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.delayed.topic_operations import CreatePartitionsMetadata, TopicRequests
from impl.errors import Errors
from impl.purgatory.delayed_operation import DelayedOperation
from impl.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from impl.purgatory.system_timer import SystemTimer
from impl.scheduler import ImmediateScheduler
from impl.types import TopicPartition


class Bed:
    """A topic purgatory whose metadata the test writes."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.leaders: set[TopicPartition] = set()
        self.answers: list[dict[str, Errors]] = []
        world = NoConcurrency()
        timer = SystemTimer("topic", self.clock, world, executor=ImmediateScheduler())
        self.purgatory: DelayedOperationPurgatory[DelayedOperation] = DelayedOperationPurgatory(
            "topic", timer, world, reaper_enabled=False
        )
        self.requests = TopicRequests(self, self.purgatory, world)

    def contains(self, topic: str, /) -> bool:
        return any(partition.topic == topic for partition in self.leaders)

    def has_leader(self, topic_partition: TopicPartition, /) -> bool:
        return topic_partition in self.leaders

    def hear(self, topic: str, *partitions: int) -> None:
        self.leaders |= {TopicPartition(topic, partition) for partition in partitions}
        self.requests.try_complete_delayed_topic_operations(topic)

    def forget(self, topic: str) -> None:
        self.leaders = {each for each in self.leaders if each.topic != topic}
        self.requests.try_complete_delayed_topic_operations(topic)

    def create(self, *created: CreatePartitionsMetadata, timeout_ms: int = 100) -> None:
        self.requests.create_partitions(timeout_ms, created, self.answers.append)

    def sleep(self, ms: int) -> None:
        self.clock.sleep(ms)
        self.purgatory.advance_clock(0)


def topic(name: str, partitions: int = 2, error: Errors = Errors.NONE) -> CreatePartitionsMetadata:
    return CreatePartitionsMetadata(name, frozenset(range(partitions)), error)


def test_a_creation_waits_for_the_leader_of_every_partition() -> None:
    bed = Bed()
    bed.create(topic("a"), topic("b", 1), topic("bad", 1, Errors.INVALID_REQUEST))
    bed.hear("a", 0)
    bed.hear("b", 0)
    assert bed.answers == []
    bed.hear("a", 1)
    assert bed.answers == [{"a": Errors.NONE, "b": Errors.NONE, "bad": Errors.INVALID_REQUEST}]


def test_a_creation_that_is_not_heard_of_times_out_topic_by_topic() -> None:
    bed = Bed()
    bed.create(topic("a"), topic("b", 1))
    bed.hear("b", 0)
    bed.sleep(100)
    assert bed.answers == [{"a": Errors.REQUEST_TIMED_OUT, "b": Errors.NONE}]


def test_without_a_time_out_nobody_waits_for_a_creation() -> None:
    bed = Bed()
    bed.create(topic("a"), timeout_ms=0)
    bed.create(topic("bad", 1, Errors.INVALID_REQUEST))
    assert bed.answers == [{"a": Errors.REQUEST_TIMED_OUT}, {"bad": Errors.INVALID_REQUEST}]


def test_a_deletion_waits_until_the_topics_are_gone() -> None:
    bed = Bed()
    bed.hear("a", 0, 1)
    bed.hear("b", 0)
    deleted = {"a": Errors.NONE, "b": Errors.NONE, "bad": Errors.UNKNOWN_TOPIC_OR_PARTITION}
    bed.requests.delete_topics(100, deleted, bed.answers.append)
    bed.forget("a")
    assert bed.answers == []
    bed.forget("b")
    assert bed.answers == [deleted]


def test_a_deletion_that_is_not_heard_of_times_out() -> None:
    bed = Bed()
    bed.hear("a", 0)
    bed.requests.delete_topics(100, {"a": Errors.NONE}, bed.answers.append)
    bed.requests.delete_topics(0, {"a": Errors.NONE}, bed.answers.append)
    bed.sleep(100)
    assert bed.answers == [{"a": Errors.REQUEST_TIMED_OUT}] * 2
