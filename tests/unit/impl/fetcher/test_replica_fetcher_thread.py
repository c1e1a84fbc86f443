"""Kafka's ReplicaFetcherThreadTest: a real thread and end point over a counting network."""

from __future__ import annotations

import pytest

from impl.errors import Errors, IllegalStateException
from impl.fetcher.state import PartitionFetchState, ReplicaState
from impl.network import (
    LATEST_FETCH_VERSION,
    LATEST_LIST_OFFSETS_VERSION,
    LATEST_OFFSETS_FOR_LEADER_EPOCH_VERSION,
    RequestVersions,
)
from impl.records import MemoryRecords
from impl.types import (
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    OffsetAndEpoch,
    OffsetTruncationState,
    ProtocolConfig,
)
from tests.unit.impl.fetcher.doubles import batch
from tests.unit.impl.fetcher.replica_world import (
    T1P0,
    T1P1,
    T2P1,
    TRUNCATE_FIRST,
    FakeReplica,
    World,
    ends_at,
)


def test_r01_newest_request_versions_by_default() -> None:
    versions = RequestVersions.of(ProtocolConfig())
    assert versions.fetch == LATEST_FETCH_VERSION
    assert versions.offsets_for_leader_epoch == LATEST_OFFSETS_FOR_LEADER_EPOCH_VERSION
    assert versions.list_offsets == LATEST_LIST_OFFSETS_VERSION


def test_r03_exception_of_the_sender_becomes_every_partitions_error() -> None:
    world = World()
    world.sender.failure = AttributeError("the NullPointerException of Python")
    asked = {tp: EpochData(None, 0) for tp in (T1P0, T1P1)}
    expected = ends_at(-1, -1, Errors.UNKNOWN_SERVER_ERROR)
    assert world.end_point.fetch_epoch_end_offsets(asked) == {T1P0: expected, T1P1: expected}
    assert world.end_point.fetch_epoch_end_offsets({}) == {}
    assert world.counts == (1, 0)


def test_r05_no_epoch_request_with_truncation_on_fetch() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    for tp in (T1P0, T1P1):
        world.follow(tp, offset=100)
    seen = []
    for _ in range(3):
        world.work()
        seen.append(world.counts)
    assert seen == [(0, 1), (0, 2), (0, 3)]


def test_epoch_request_only_on_the_first_round_without_truncation_on_fetch() -> None:
    world = World(TRUNCATE_FIRST)
    world.sender.epochs = {T1P0: ends_at(5, 100), T1P1: ends_at(5, 100)}
    for tp in (T1P0, T1P1):
        world.follow(tp, offset=100)
    seen = []
    for _ in range(3):
        world.work()
        seen.append(world.counts)
    assert seen == [(1, 1), (1, 2), (1, 3)]


def test_r07_truncates_to_the_leaders_offset_or_its_own_end() -> None:
    world = World()
    world.sender.epochs = {T1P0: ends_at(4, 156), T2P1: ends_at(4, 202)}
    replicas = [world.follow(tp, log_end_offset=200) for tp in (T1P0, T2P1)]
    world.work()
    assert [replica.truncations for replica in replicas] == [[156], [200]]


def test_r09_old_leader_answers_without_epoch() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=False, old_epoch_response=True))
    world.sender.epochs = {T1P0: ends_at(-1, 155), T1P1: ends_at(-1, 143)}
    replicas = [world.follow(tp, log_end_offset=200) for tp in (T1P0, T1P1)]
    world.work()
    assert world.counts == (1, 1)
    assert world.sender.epoch_requests[0].version == 0
    assert [replica.truncations for replica in replicas] == [[155], [143]]
    world.work()
    assert world.counts == (1, 2)


def test_r11_asks_again_as_long_as_the_leader_answers_with_errors() -> None:
    world = World()
    world.sender.epochs = {
        T1P0: ends_at(-1, -1, Errors.NOT_LEADER_OR_FOLLOWER),
        T1P1: ends_at(-1, -1, Errors.UNKNOWN_SERVER_ERROR),
    }
    replicas = [
        world.follow(tp, offset=100, log_end_offset=300, high_watermark=100) for tp in (T1P0, T1P1)
    ]
    world.work(rounds=4)
    assert [replica.truncations for replica in replicas] == [[], []]
    assert world.counts == (4, 0)
    world.sender.epochs[T1P0] = ends_at(5, 156)
    world.work()
    assert [replica.truncations for replica in replicas] == [[156], []]


def test_r13_partition_that_becomes_leader_meanwhile_is_not_truncated() -> None:
    world = World()
    world.sender.epochs = {T1P0: ends_at(5, 52), T1P1: ends_at(5, 49)}
    replicas = [world.follow(tp, log_end_offset=100) for tp in (T1P0, T1P1)]
    world.sender.in_flight = lambda: world.thread.remove_partitions((T1P0,)).clear()
    world.work()
    assert [replica.truncations for replica in replicas] == [[], [49]]


def test_r15_divergence_does_not_update_the_high_watermark() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    replica = world.follow(T1P0, offset=150, log_end_offset=150, high_watermark=130)
    replica.ends[4] = OffsetAndEpoch(149, 4)
    diverging = ends_at(4, 140)
    world.sender.data = {T1P0: FetchPartitionData(Errors.NONE, 160, 0, diverging_epoch=diverging)}
    world.work()
    assert replica.truncations == [140]
    assert replica.high_watermarks == []
    assert world.replicas.completed == []


def test_undefined_diverging_epoch_does_not_hold_back_records() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    replica = world.follow(T1P0, offset=100)
    data = FetchPartitionData(Errors.NONE, 160, 0, diverging_epoch=EpochEndOffset())
    world.sender.data = {T1P0: data}
    world.work()
    assert replica.truncations == []
    assert replica.high_watermarks == [160]


@pytest.mark.parametrize(
    ("leader", "local", "expected", "completed"),
    [
        (ends_at(5, -1), None, 60, True),
        (ends_at(-1, 80), None, 80, True),
        (ends_at(-1, 120), None, 100, True),
        (ends_at(4, 80), OffsetAndEpoch(70, 3), 70, False),
        (ends_at(4, 80), OffsetAndEpoch(170, 3), 100, False),
        (ends_at(4, 80), OffsetAndEpoch(90, 4), 80, True),
        (ends_at(4, 80), OffsetAndEpoch(70, 4), 70, True),
        (ends_at(4, 180), OffsetAndEpoch(170, 4), 100, True),
        (ends_at(4, 80), None, 80, True),
        (ends_at(4, 180), None, 100, True),
    ],
    ids=[
        "leader knows nothing: initial offset",
        "no epoch in the answer",
        "no epoch in the answer, own end",
        "other local epoch: its end, ask again",
        "other local epoch: own end, ask again",
        "same epoch, leader ends first",
        "same epoch, follower ends first",
        "same epoch, own end",
        "no local epoch",
        "no local epoch, own end",
    ],
)
def test_offset_truncation_state(
    leader: EpochEndOffset, local: OffsetAndEpoch | None, expected: int, completed: bool
) -> None:
    world = World()
    replica = world.follow(T1P0, offset=60)
    if local is not None:
        replica.ends[leader.leader_epoch] = local
    state = world.thread.get_offset_truncation_state(T1P0, leader)
    assert (state.offset, state.truncation_completed) == (expected, completed)


@pytest.mark.parametrize("completed", [True, False])
def test_final_truncation_is_told_to_the_move_between_directories(completed: bool) -> None:
    world = World()
    world.follow(T1P0)
    world.thread.truncate(T1P0, OffsetTruncationState(50, completed))
    assert world.log_dirs.marked == ([(1, T1P0, 50)] if completed else [])


@pytest.mark.parametrize(
    ("lag", "throttled", "exceeded", "included"),
    [
        (None, True, True, False),
        (5, True, True, False),
        (0, True, True, True),
        (5, True, False, True),
        (5, False, True, True),
    ],
    ids=["lag unknown", "behind", "in sync", "quota left", "not throttled"],
)
def test_only_replicas_out_of_sync_are_throttled(
    lag: int | None, throttled: bool, exceeded: bool, included: bool
) -> None:
    """KAFKA-4313."""
    world = World()
    world.replicas.replicas = {T1P0: FakeReplica()}
    world.quota.throttled = {T1P0} if throttled else set()
    world.quota.exceeded = exceeded
    state = PartitionFetchState(None, 0, lag, 1, None, ReplicaState.FETCHING, None)
    assert (world.end_point.build_fetch({T1P0: state}).replica_fetch is not None) is included


def test_offline_log_makes_its_partition_back_off() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True), back_off_ms=10)
    world.follow(T1P0, offset=100)
    world.follow(T1P1, offset=100).offline = True
    world.work()
    assert [list(request.to_send) for request in world.sender.fetch_requests] == [[T1P0]]
    state = world.thread.fetch_state(T1P1)
    assert state is not None
    assert state.is_delayed(world.clock.milliseconds())


@pytest.mark.parametrize("reassigning", [True, False])
def test_r19_reassignment_bytes(reassigning: bool) -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    replica = world.follow(T1P0, offset=100)
    replica.is_reassigning = replica.is_adding_local_replica = reassigning
    records = MemoryRecords((batch(100, 5),))
    world.quota.throttled = {T1P0}
    world.thread.process_partition_data(T1P0, 100, FetchPartitionData(Errors.NONE, 0, 0, records))
    size = records.size_in_bytes
    assert world.stats.reassignment_bytes_in.count == (size if reassigning else 0)
    assert world.stats.replication_bytes_in.count == size
    assert world.quota.recorded == size


def test_fetched_at_another_offset_than_the_log_end_fails_the_partition() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.follow(T1P0, offset=90, log_end_offset=100)
    world.work()
    assert isinstance(world.failed.cause(T1P0), IllegalStateException)


def test_new_high_watermarks_complete_delayed_fetches_once_per_round() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.follow(T1P0, offset=100)
    world.work()
    assert world.replicas.completed == [T1P0]
    world.sender.failure = ConnectionError()
    world.work()
    assert world.replicas.completed == [T1P0]


def test_closing_failures_do_not_keep_the_thread_from_ending() -> None:
    world = World()
    world.thread.shutdown()
    assert not world.thread.is_running
