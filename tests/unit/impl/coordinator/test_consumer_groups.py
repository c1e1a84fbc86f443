"""KIP-848's coordinator beyond what its models reach: requests, timers, subscriptions, records."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.coordinator.coordinator_shard import CoordinatorRecord
from impl.coordinator.group.assignors import MemberSpec, UniformAssignor
from impl.coordinator.group.config import ConsumerGroupConfig
from impl.coordinator.group.consumer_group import ConsumerGroup
from impl.coordinator.group.group_coordinator_service import GroupCoordinatorService
from impl.coordinator.group.group_coordinator_shard import GroupCoordinatorShard
from impl.coordinator.group.member import ConsumerGroupMember, MemberState
from impl.coordinator.group.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerGroup,
)
from impl.coordinator.group.records import (
    new_consumer_group_epoch_record,
    new_current_assignment_record,
    read_key,
    read_value,
)
from impl.coordinator.local_partition import ImmediateEventProcessor, LocalPartition
from impl.disk import MemoryDisk
from impl.end_transaction_marker import EndTransactionMarker
from impl.errors import Errors
from impl.group.group_offsets import OffsetAndMetadata
from impl.group.group_records import offset_commit_key, offset_commit_value
from impl.group.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from impl.log import Log
from impl.log_loader import load_log
from impl.producer_state.producer_append_info import AppendOrigin
from impl.records import MemoryRecords, ProducerInfo, Record, RecordBatch
from impl.scheduler import ImmediateScheduler
from impl.types import LogOffsetMetadata, TopicIdPartition, TopicPartition

IDS = {"t": "AAAAAAAAAAEAAAAAAAAAAQ", "u": "AAAAAAAAAAEAAAAAAAAAAg"}
JOIN = ConsumerGroupHeartbeatRequest(
    "g", "m1", 0, rebalance_timeout_ms=1000, subscribed_topic_names=("t",), topic_partitions=()
)


def part(number: int, topic: str = "t") -> TopicIdPartition:
    return TopicIdPartition(IDS[topic], number)


class Topics:
    """Two partitions each, until a topic grows."""

    def __init__(self) -> None:
        self.sizes = dict.fromkeys(IDS.values(), 2)
        self.version = 1

    def topic_id(self, name: str) -> str | None:
        return IDS.get(name)

    def num_partitions(self, topic_id: str) -> int:
        return self.sizes.get(topic_id, 0)

    def topic_names(self) -> frozenset[str]:
        return frozenset(name for name, id in IDS.items() if self.sizes.get(id))


class Timer:
    """Runs a task when the clock has passed its time."""

    def __init__(self, clock: MockClock) -> None:
        self.clock = clock
        self.tasks: list[tuple[int, Callable[[], None]]] = []

    def add(self, delay_ms: int, task: Callable[[], None]) -> None:
        self.tasks.append((self.clock.milliseconds() + delay_ms, task))

    def sleep(self, ms: int) -> None:
        self.clock.sleep(ms)
        due = [task for at, task in self.tasks if at <= self.clock.milliseconds()]
        self.tasks = [(at, task) for at, task in self.tasks if at > self.clock.milliseconds()]
        for task in due:
            task()


def new_log() -> Log:
    return load_log(
        TopicPartition("__consumer_offsets", 0),
        "log",
        MemoryDisk(),
        ImmediateScheduler(),
        NoConcurrency(),
    )


class Coordinator:
    """A service over a log, whose answers come at once."""

    def __init__(self, log: Log | None = None, **settings: int) -> None:
        self.log = log or new_log()
        self.timer = Timer(MockClock(1))
        self.topics = Topics()
        partition = LocalPartition(self.log)
        self.service = GroupCoordinatorService(
            partition,
            partition,
            ImmediateEventProcessor(),
            self.timer,
            self.timer.clock,
            self.topics,
            ConsumerGroupConfig(**{"assignment_interval_ms": 0, **settings}),
        )
        self.service.on_election(0)

    def beat(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        answers: list[ConsumerGroupHeartbeatResponse] = []
        self.service.consumer_group_heartbeat(request, answers.append)
        (answer,) = answers
        return answer

    def join(self, member_id: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        return self.beat(replace(JOIN, member_id=member_id, **fields))

    def go_on(
        self, member_id: str, epoch: int, *owned: TopicIdPartition, **fields: Any
    ) -> ConsumerGroupHeartbeatResponse:
        return self.beat(
            ConsumerGroupHeartbeatRequest("g", member_id, epoch, topic_partitions=owned, **fields)
        )

    def commit(self, member_id: str, epoch: int, *numbers: int) -> list[Errors]:
        answers: list[OffsetCommitResponse] = []
        parts = tuple(OffsetCommitRequestPartition(TopicPartition("t", n), 7) for n in numbers)
        request = OffsetCommitRequest("g", parts, epoch, member_id)
        self.service.commit_offsets(request, answers.append)
        return [answered.error_code for answered in answers[0].partitions]

    def fetch(self, member_id: str | None = None, epoch: int = -1) -> OffsetFetchResponse:
        answers: list[OffsetFetchResponse] = []
        request = OffsetFetchRequest("g", None, member_id=member_id, member_epoch=epoch)
        self.service.fetch_offsets(request, answers.append)
        return answers[0]

    def describe(self) -> DescribedConsumerGroup:
        answers: list[DescribedConsumerGroup] = []
        self.service.describe_group("g", answers.append)
        return answers[0]

    def delete(self) -> Errors:
        answers: list[Errors] = []
        self.service.delete_group("g", answers.append)
        return answers[0]

    @property
    def shard(self) -> GroupCoordinatorShard:
        context = self.service.runtime.context
        assert context is not None
        assert context.coordinator is not None
        assert isinstance(context.coordinator.shard, GroupCoordinatorShard)
        return context.coordinator.shard

    @property
    def group(self) -> ConsumerGroup:
        return self.shard.groups.group_or_raise("g")

    def memory(self) -> object:
        """All that the records are to have made."""
        group = self.shard.groups.group("g")
        if group is None:
            return None
        return (
            group.metadata(),
            group.target_metadata(),
            group.members(),
            group.target_assignment(),
            {number: group.current_partition_epoch(part(number)) for number in range(2)},
            {instance: group.static_member(instance) for instance in ("i1", "i2")},
            sorted(self.fetch().partitions, key=lambda offset: offset.topic_partition),
        )


# ---- requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (replace(JOIN, member_id=""), Errors.INVALID_REQUEST),
        (replace(JOIN, group_id=""), Errors.INVALID_REQUEST),
        (replace(JOIN, instance_id=""), Errors.INVALID_REQUEST),
        (replace(JOIN, rack_id=""), Errors.INVALID_REQUEST),
        (replace(JOIN, rebalance_timeout_ms=-1), Errors.INVALID_REQUEST),
        (replace(JOIN, topic_partitions=None), Errors.INVALID_REQUEST),
        (replace(JOIN, topic_partitions=(part(0),)), Errors.INVALID_REQUEST),
        (replace(JOIN, subscribed_topic_names=None), Errors.INVALID_REQUEST),
        (replace(JOIN, member_epoch=-2), Errors.INVALID_REQUEST),
        (replace(JOIN, member_epoch=-3), Errors.INVALID_REQUEST),
        (replace(JOIN, server_assignor="mine"), Errors.UNSUPPORTED_ASSIGNOR),
        (replace(JOIN, subscribed_topic_regex="t("), Errors.INVALID_REGULAR_EXPRESSION),
        (replace(JOIN, member_epoch=1), Errors.GROUP_ID_NOT_FOUND),
        (replace(JOIN, member_epoch=-1), Errors.GROUP_ID_NOT_FOUND),
    ],
)
def test_a_request_that_is_wrong_whatever_the_group_is_like(
    request_: ConsumerGroupHeartbeatRequest, error: Errors
) -> None:
    coordinator = Coordinator()
    assert coordinator.beat(request_).error_code is error
    assert coordinator.log.log_end_offset == 0


def test_a_full_group_takes_nobody_but_who_is_there() -> None:
    coordinator = Coordinator(max_size=1)
    assert coordinator.join("m1", instance_id="i1").error_code is Errors.NONE
    assert coordinator.join("m2").error_code is Errors.GROUP_MAX_SIZE_REACHED
    coordinator.beat(ConsumerGroupHeartbeatRequest("g", "m1", -2, "i1"))
    assert coordinator.join("m3", instance_id="i1").error_code is Errors.NONE
    fenced = coordinator.beat(ConsumerGroupHeartbeatRequest("g", "m1", 2, "i1"))
    assert fenced.error_code is Errors.FENCED_INSTANCE_ID


# ---- subscriptions, topics, targets --------------------------------------------------------------


def test_what_is_unsubscribed_is_revoked_in_the_same_epoch() -> None:
    coordinator = Coordinator(assignment_interval_ms=1000)
    every = tuple(part(number, topic) for topic in ("t", "u") for number in range(2))
    joined = coordinator.join("m1", subscribed_topic_names=("t", "u"))
    assert joined.assignment == frozenset(every)
    answer = coordinator.go_on("m1", 2, *every, subscribed_topic_names=("t",))
    assert answer.member_epoch == 2
    assert answer.assignment == {part(0), part(1)}
    member = coordinator.group.member_or_raise("m1")
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    assert set(member.partitions_pending_revocation) == {part(0, "u"), part(1, "u")}
    assert coordinator.group.assignment_epoch < coordinator.group.group_epoch


def test_a_target_waits_for_the_assignment_interval() -> None:
    coordinator = Coordinator(assignment_interval_ms=1000)
    coordinator.join("m1")
    second = coordinator.join("m2")
    assert (second.member_epoch, second.assignment) == (2, frozenset())
    coordinator.timer.sleep(1000)
    coordinator.go_on("m2", 2)
    assert coordinator.group.assignment_epoch == coordinator.group.group_epoch == 3


def test_a_topic_that_grows_is_assigned_anew_at_the_next_heartbeat() -> None:
    coordinator = Coordinator()
    coordinator.join("m1")
    coordinator.topics.sizes[IDS["t"]] = 3
    answer = coordinator.go_on("m1", 2, part(0), part(1))
    assert (answer.member_epoch, answer.assignment) == (3, {part(0), part(1), part(2)})


def test_a_group_looks_at_its_topics_again_once_it_has_heard_of_a_change() -> None:
    coordinator = Coordinator()
    epoch = coordinator.join("m1").member_epoch
    coordinator.go_on("m1", epoch)  # a group that is new has looked at them by now
    coordinator.topics.sizes[IDS["t"]] = 3

    unheard = coordinator.go_on("m1", epoch, part(0), part(1))
    coordinator.service.on_new_metadata_image({"u"})
    of_another = coordinator.go_on("m1", epoch, part(0), part(1))
    coordinator.service.on_new_metadata_image({"t"})
    heard = coordinator.go_on("m1", epoch, part(0), part(1))

    assert (unheard.member_epoch, of_another.member_epoch) == (epoch, epoch)
    assert (heard.member_epoch, heard.assignment) == (epoch + 1, {part(0), part(1), part(2)})


def test_a_topic_whose_partition_has_another_leader_makes_no_new_epoch() -> None:
    coordinator = Coordinator()
    epoch = coordinator.join("m1").member_epoch
    coordinator.service.on_new_metadata_image({"t"})

    assert coordinator.go_on("m1", epoch).member_epoch == epoch


def test_most_members_choose_the_assignor() -> None:
    coordinator = Coordinator()
    coordinator.join("m1")
    assert coordinator.describe().assignor_name == "uniform"
    coordinator.go_on("m1", 2, part(0), part(1), server_assignor="range")
    assert coordinator.describe().assignor_name == "range"
    assert coordinator.group.group_epoch == 3


def test_the_uniform_assignor_moves_no_more_than_it_must() -> None:
    coordinator = Coordinator()
    coordinator.topics.sizes[IDS["t"]] = 5
    coordinator.join("m1")
    coordinator.join("m2")
    before = coordinator.group.target_assignment()
    assert sorted(map(len, before.values())) == [2, 3]
    coordinator.join("m3")
    after = coordinator.group.target_assignment()
    assert sorted(map(len, after.values())) == [1, 2, 2]
    assert all(after[member] <= before[member] for member in before)


def test_what_does_not_go_round_is_left_to_the_last_members() -> None:
    """UniformHomogeneousAssignmentBuilder since KAFKA-18688."""
    topic = frozenset({IDS["t"]})
    members = {name: MemberSpec(None, topic) for name in ("m1", "m2", "m3")}
    coordinator = Coordinator()
    coordinator.topics.sizes[IDS["t"]] = 5

    parts = UniformAssignor().assign(members, coordinator.topics)

    assert {name: len(part) for name, part in parts.items()} == {"m1": 1, "m2": 2, "m3": 2}


# ---- timers --------------------------------------------------------------------------------------


def test_who_sends_no_heartbeat_is_put_out() -> None:
    coordinator = Coordinator()
    coordinator.join("m1")
    coordinator.timer.sleep(44_999)
    coordinator.go_on("m1", 2, part(0), part(1))
    coordinator.timer.sleep(44_999)
    assert coordinator.group.members()
    coordinator.timer.sleep(1)
    assert not coordinator.group.members()
    assert coordinator.go_on("m1", 2).error_code is Errors.UNKNOWN_MEMBER_ID


def test_who_does_not_revoke_in_time_is_put_out() -> None:
    coordinator = Coordinator()
    coordinator.join("m1")
    coordinator.join("m2", rebalance_timeout_ms=5000)
    coordinator.go_on("m1", 2, part(0), part(1))
    assert coordinator.group.member_or_raise("m1").state is MemberState.UNREVOKED_PARTITIONS
    coordinator.timer.sleep(1000)
    assert set(coordinator.group.members()) == {"m2"}


def test_timers_run_again_after_a_load() -> None:
    log = Coordinator()
    log.join("m1")
    loaded = Coordinator(log.log)
    loaded.timer.sleep(45_000)
    assert not loaded.group.members()


# ---- offsets -------------------------------------------------------------------------------------


def test_offsets_are_fetched_by_members_of_this_epoch_and_by_administrators() -> None:
    coordinator = Coordinator()
    coordinator.join("m1")
    assert coordinator.commit("m1", 2, 0) == [Errors.NONE]
    assert coordinator.commit("m1", 3, 0) == [Errors.STALE_MEMBER_EPOCH]
    assert coordinator.commit("m2", 2, 0) == [Errors.UNKNOWN_MEMBER_ID]
    assert [offset.committed_offset for offset in coordinator.fetch().partitions] == [7]
    assert coordinator.fetch("m1", 2).error_code is Errors.NONE
    assert coordinator.fetch("m1", 1).error_code is Errors.STALE_MEMBER_EPOCH
    assert coordinator.fetch("m2", 2).error_code is Errors.UNKNOWN_MEMBER_ID


def test_a_late_commit_is_taken_of_what_the_member_has_kept_since() -> None:
    coordinator = Coordinator()
    coordinator.join("m1")
    coordinator.join("m2")
    (kept,) = coordinator.group.target_of("m1")
    coordinator.go_on("m1", 2, part(0), part(1))
    coordinator.go_on("m1", 2, kept)
    coordinator.beat(ConsumerGroupHeartbeatRequest("g", "m2", -1))
    assert coordinator.go_on("m1", 3, kept).assignment == {part(0), part(1)}
    assert coordinator.commit("m1", 2, kept.partition) == [Errors.NONE]
    assert coordinator.commit("m1", 2, 1 - kept.partition) == [Errors.STALE_MEMBER_EPOCH]


def test_a_group_is_deleted_with_its_offsets_once_it_is_empty() -> None:
    coordinator = Coordinator()
    coordinator.join("m1")
    coordinator.commit("m1", 2, 0)
    assert coordinator.delete() is Errors.NON_EMPTY_GROUP
    coordinator.beat(ConsumerGroupHeartbeatRequest("g", "m1", -1))
    assert coordinator.delete() is Errors.NONE
    assert coordinator.delete() is Errors.GROUP_ID_NOT_FOUND
    assert coordinator.describe().error_code is Errors.GROUP_ID_NOT_FOUND
    coordinator.join("m1")
    assert coordinator.fetch().partitions == ()


# ---- records -------------------------------------------------------------------------------------


def test_records_have_kafkas_layout() -> None:
    epoch = new_consumer_group_epoch_record("g", 5, -2)
    assert epoch.key == bytes.fromhex("0003 0001 67")
    assert epoch.value == bytes.fromhex("0000 00000005 01 00 08 fffffffffffffffe")
    member = ConsumerGroupMember("m", member_epoch=5, assigned_partitions={part(1): 4})
    current = new_current_assignment_record("g", member)
    assert current.key == bytes.fromhex("0008 0001 67 0001 6d")
    assert current.value == bytes.fromhex(
        "0000 00000005 00000000 00"
        "02 00000000000000010000000000000001 02 00000001 01 00 05 02 00000004"
        "01 00"
    )


def test_partitions_of_older_releases_have_the_members_epoch() -> None:
    key = read_key(bytes.fromhex("0008 0001 67 0001 6d"))
    assert key is not None
    member = read_value(
        key,
        bytes.fromhex(
            "0000 00000005 00000004 0002 00000000000000010000000000000001 02 00000001 0001 00"
        ),
    )
    assert isinstance(member, ConsumerGroupMember)
    assert member.assigned_partitions == {part(1): 5}


def steps(coordinator: Coordinator, seed: int) -> None:
    """Two members, one of them static, that do what members may do, in a random order."""
    source = random.Random(seed)
    instances = {"m1": None, "m2": "i2", "m3": "i2"}
    for _ in range(40):
        member_id = source.choice(sorted(instances))
        known = coordinator.shard.groups.group("g")
        member = None if known is None else known.member(member_id)
        instance = instances[member_id]
        action = source.choice(("beat", "beat", "give", "join", "leave", "commit"))
        if member is None or action == "join":
            coordinator.join(member_id, instance_id=instance)
        elif action == "leave":
            epoch = -1 if instance is None or source.random() < 0.3 else -2
            coordinator.beat(ConsumerGroupHeartbeatRequest("g", member_id, epoch, instance))
        elif action == "commit":
            coordinator.commit(member_id, member.member_epoch, *source.sample(range(2), 1))
        else:
            owned = member.assigned_partitions if action == "give" else member.held_partitions
            coordinator.go_on(member_id, member.member_epoch, *owned, instance_id=instance)
        coordinator.timer.sleep(source.choice((0, 1, 900)))


def compacted(log: Log) -> Log:
    """The log as the cleaner leaves it: of each key the last record, each batch apart."""
    batches = log.batches()
    last = {
        record.key: batch.base_offset + record.offset_delta
        for batch in batches
        for record in batch.records
    }
    result = new_log()
    for batch in batches:
        kept: list[Record] = [
            record
            for record in batch.records
            if last[record.key] == batch.base_offset + record.offset_delta
        ]
        if kept:
            plain = [Record(record.value, record.key, record.timestamp) for record in kept]
            result.append_as_leader(MemoryRecords.with_records(*plain), 0)
    result.maybe_increment_high_watermark(LogOffsetMetadata(result.log_end_offset))
    return result


@pytest.mark.parametrize("seed", range(12))
def test_memory_is_what_the_log_loads_compacted_or_not(seed: int) -> None:
    coordinator = Coordinator()
    steps(coordinator, seed)
    memory = coordinator.memory()
    assert memory is not None
    assert Coordinator(coordinator.log).memory() == memory
    assert Coordinator(compacted(coordinator.log)).memory() == memory


def test_a_failed_load_order_is_told() -> None:
    """A member's own tombstone before those of its assignment does not load."""
    coordinator = Coordinator()
    coordinator.join("m1")
    tombstone = CoordinatorRecord(bytes.fromhex("0005 0001 67 0002 6d31"), None)
    with pytest.raises(Exception, match="m1 still has an assignment"):
        coordinator.shard.replay(99, -1, -1, tombstone)


@pytest.mark.parametrize(("is_commit", "fetched"), [(True, [9]), (False, [7])])
def test_a_load_has_the_offsets_of_transactions_that_were_committed(
    is_commit: bool, fetched: list[int]
) -> None:
    coordinator = Coordinator()
    epoch = coordinator.join("m1").member_epoch
    assert coordinator.commit("m1", epoch, 0) == [Errors.NONE]
    log, partition = coordinator.log, TopicPartition("t", 0)
    record = Record(offset_commit_value(OffsetAndMetadata(9)), offset_commit_key("g", partition), 0)
    batch = RecordBatch.create((record,), producer=ProducerInfo(5, 0, 0), is_transactional=True)
    guard = log.maybe_start_transaction_verification(5, -1, 0, supports_epoch_bump=False)
    marker = EndTransactionMarker(is_commit, 0).memory_records(0, 5, 0)
    for records in (MemoryRecords((batch,)), marker):
        log.append_as_leader(records, 0, AppendOrigin.COORDINATOR, verification_guard=guard)
    log.maybe_increment_high_watermark(LogOffsetMetadata(log.log_end_offset))

    loaded = Coordinator(log)

    assert [offset.committed_offset for offset in loaded.fetch().partitions] == fetched
