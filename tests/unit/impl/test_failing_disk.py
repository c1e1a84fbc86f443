"""The disk fails at each call in turn: what a broker answers, and what the next start finds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from conformance.systems.replication.failing_disk import FailingDisk
from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk, nothing
from impl.errors import ApiException, Errors, KafkaStorageException
from impl.log_manager import LogManager
from impl.partition import FetchParams
from impl.replica import StaticMetadataCache
from impl.replica_manager import ReplicaManager
from impl.replica_requests import (
    LeaderAndIsrRequest,
    ReplicaManagerConfig,
    StopReplicaPartitionState,
)
from impl.scheduler import ImmediateScheduler
from impl.types import ZERO_UUID, BrokerEndPoint, FetchPartitionRequest, TopicPartition
from tests.unit.impl.brokers import TP, HeldAlterPartitions, RecordedFetchers, records, state

OTHER = TopicPartition("other", 0)
DIRECTORIES = ("logs", "healthy")


class Story:
    """Broker 0 with TP in the directory that fails; every step gives the error of its answer."""

    def __init__(self, disk: FailingDisk) -> None:
        logs = LogManager(disk, DIRECTORIES, ImmediateScheduler(), NoConcurrency())
        self.durable = 0
        self.replicas = ReplicaManager(
            ReplicaManagerConfig(0),
            MockClock(1_000_000),
            logs,
            HeldAlterPartitions(),
            StaticMetadataCache(),
            NoConcurrency(),
            BrokerEndPoint,
            lambda _: RecordedFetchers(),
        )
        self.steps: list[Callable[[], Errors]] = [
            lambda: self.decide(0, 0),
            self.append,
            self.fetch,
            self.flush,
            self.checkpoint,
            self.delete_records,
            lambda: self.decide(1, 1),
            lambda: self.decide(0, 2),
            self.append,
        ]

    def decide(self, leader: int, epoch: int) -> Errors:
        request = LeaderAndIsrRequest(0, 0, (state(leader, epoch, isr=(0, 1)),))
        return self.replicas.become_leader_or_follower(request).partitions[TP]

    def append(self) -> Errors:
        try:
            self.replicas.append_records(TP, records(2))
        except ApiException as error:
            return error.error
        return Errors.NONE

    def fetch(self) -> Errors:
        log_end = 2
        request = FetchPartitionRequest(ZERO_UUID, log_end, 0, 1000, None)
        return self.replicas.read_from_log(FetchParams(1), {TP: request}, 1000)[TP].error

    def flush(self) -> Errors:
        try:
            self.replicas.local_log_or_exception(TP).flush(force=True)
        except ApiException as error:
            # Who flushes in the background tells of it (LogDirFailureChannel).
            self.replicas.handle_log_dir_failure("logs")
            return error.error
        self.durable = 2
        return Errors.NONE

    def checkpoint(self) -> Errors:
        self.replicas.checkpoint_high_watermarks()
        return Errors.NONE

    def delete_records(self) -> Errors:
        return self.replicas.delete_records({TP: 1})[TP]

    def tell(self) -> list[Errors]:
        return [step() for step in self.steps]


def failures(*, once: bool) -> list[tuple[Story, list[Errors], MemoryDisk]]:
    """The story told once for each call at which its disk fails."""
    told = []
    for call in count(1):
        memory = MemoryDisk()
        disk = FailingDisk(memory, "logs")
        story = Story(disk)
        disk.fail_at(call, once=once)
        answers = story.tell()
        if not disk.has_failed:
            return told
        told.append((story, answers, memory))
    raise AssertionError


def test_the_story_has_many_calls_and_a_good_end() -> None:
    disk = FailingDisk(MemoryDisk(), "logs")

    assert Story(disk).tell() == [Errors.NONE] * 9
    assert len(failures(once=False)) > 20


@pytest.mark.parametrize("once", [False, True], ids=["for good", "once"])
def test_every_failure_is_answered_as_one_and_the_partition_stays_offline(once: bool) -> None:
    for story, answers, _ in failures(once=once):
        offline = answers.index(Errors.KAFKA_STORAGE_ERROR) if set(answers) != {Errors.NONE} else 9
        assert set(answers[:offline]) <= {Errors.NONE}
        # Whatever comes later is told so too, and is never taken for an old decision.
        checkpoints = 4
        late = [one for i, one in enumerate(answers) if i > offline and i != checkpoints]
        assert set(late) <= {Errors.KAFKA_STORAGE_ERROR}
        if offline < 9:
            stop = {TP: StopReplicaPartitionState(2, delete_partition=True)}
            assert story.decide(0, 3) is Errors.KAFKA_STORAGE_ERROR
            assert story.replicas.stop_replicas(stop) == {TP: Errors.KAFKA_STORAGE_ERROR}


def test_a_failed_directory_leaves_the_others_alone() -> None:
    memory = MemoryDisk()
    disk = FailingDisk(memory, "logs")
    story = Story(disk)
    story.decide(0, 0)
    story.replicas.become_leader_or_follower(
        LeaderAndIsrRequest(0, 0, (state(0, 0, isr=(0, 1), partition=OTHER),))
    )
    disk.fail_at(1, once=False)

    assert story.append() is Errors.KAFKA_STORAGE_ERROR
    assert story.replicas.log_manager.log_directories == ("healthy",)
    assert story.replicas.append_records(OTHER, records()).first_offset == 0


NEW = TopicPartition("new", 0)


def two_directories() -> Story:
    """TP in the directory whose next call fails, once; OTHER in the healthy one."""
    disk = FailingDisk(MemoryDisk(), "logs")
    story = Story(disk)
    for partition in (TP, OTHER):
        lead(story, partition)
    disk.fail_at(1, once=True)
    return story


def lead(story: Story, partition: TopicPartition) -> Errors:
    decision = state(0, 0, isr=(0, 1), partition=partition)
    answer = story.replicas.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (decision,)))
    return answer.partitions[partition]


def assert_only_the_healthy_one_is_left(story: Story) -> None:
    assert story.replicas.log_manager.log_directories == ("healthy",)
    assert story.append() is Errors.KAFKA_STORAGE_ERROR
    assert story.replicas.append_records(OTHER, records()).first_offset == 0


def test_where_a_log_cannot_be_made_the_whole_directory_goes_offline() -> None:
    story = two_directories()

    assert lead(story, NEW) is Errors.KAFKA_STORAGE_ERROR

    assert_only_the_healthy_one_is_left(story)
    assert lead(story, NEW) is Errors.KAFKA_STORAGE_ERROR
    newer = TopicPartition("newer", 0)
    assert lead(story, newer) is Errors.NONE
    assert story.replicas.local_log_or_exception(newer).directory == "healthy/newer-0"


def test_a_move_to_a_directory_that_fails_takes_it_offline_and_not_where_the_log_is() -> None:
    story = two_directories()

    with pytest.raises(KafkaStorageException):
        story.replicas.alter_replica_log_dir(OTHER, "logs")

    assert_only_the_healthy_one_is_left(story)


@pytest.mark.parametrize("once", [False, True], ids=["for good", "once"])
def test_a_follower_whose_log_cannot_be_made_does_not_keep_the_others_from_following(
    once: bool,
) -> None:
    disk = FailingDisk(MemoryDisk(), "logs")
    story = Story(disk)
    story.decide(1, 0)  # the first goes to the directory that will fail, the second to the other
    broker, fetchers = story.replicas, story.replicas.fetcher_manager
    healthy = state(1, 0, partition=OTHER)
    broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (healthy,)))
    disk.fail_at(1, once=once)

    decisions = (state(2, 1, partition=NEW), state(2, 1, partition=OTHER))
    answer = broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, decisions))

    assert (answer.error, answer.partitions) == (
        Errors.NONE,
        {NEW: Errors.KAFKA_STORAGE_ERROR, OTHER: Errors.NONE},
    )
    assert isinstance(fetchers, RecordedFetchers)
    assert {tp: one.leader.id for tp, one in fetchers.added[-1].items()} == {OTHER: 2}
    again = broker.become_leader_or_follower(LeaderAndIsrRequest(0, 0, decisions[:1]))
    assert again.partitions == {NEW: Errors.KAFKA_STORAGE_ERROR}


@pytest.mark.parametrize("once", [False, True], ids=["for good", "once"])
def test_the_next_start_finds_what_was_flushed_and_takes_the_same_decision(once: bool) -> None:
    for story, _, memory in failures(once=once):
        memory.crash(nothing)

        again = Story(FailingDisk(memory, "logs"))

        log = again.replicas.log_manager.get_log(TP)
        assert story.durable == 0 or (log is not None and log.log_end_offset >= story.durable)
        assert again.decide(0, 2) is Errors.NONE
        assert again.append() is Errors.NONE
