"""Kafka's ReplicaFetcherThreadTest: a real thread and end point over a counting network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.errors import Errors, IllegalStateException, KafkaStorageException
from impl.fetcher.failed_partitions import FailedPartitions
from impl.fetcher.fetch_session_handler import FetchSessionHandler
from impl.fetcher.followed_partitions import FetcherRuntime
from impl.fetcher.remote_leader_endpoint import RemoteLeaderEndPoint
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.fetcher.state import PartitionFetchState, ReplicaState
from impl.metrics import BrokerTopicStats, MetricsRegistry
from impl.network import (
    LATEST_FETCH_VERSION,
    LATEST_LIST_OFFSETS_VERSION,
    LATEST_OFFSETS_FOR_LEADER_EPOCH_VERSION,
    FetchConfig,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    RequestVersions,
    TopicIdPartition,
)
from impl.records import MemoryRecords
from impl.types import (
    BrokerEndPoint,
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    InitialFetchState,
    LogAppendInfo,
    OffsetAndEpoch,
    OffsetTruncationState,
    ProtocolConfig,
    TopicPartition,
)
from tests.unit.impl.fetcher.doubles import batch

T1P0, T1P1 = TopicPartition("topic1", 0), TopicPartition("topic1", 1)
T2P0, T2P1 = TopicPartition("topic2", 0), TopicPartition("topic2", 1)
LEADER = BrokerEndPoint(0, "host0", 9095)
TRUNCATE_FIRST = ProtocolConfig(truncation_on_fetch=False)


@dataclass
class FakeReplica:
    """A partition and its log, which remembers what was done to it."""

    log_end_offset: int = 100
    high_watermark: int = 0
    log_start_offset: int = 0
    latest_epoch: int | None = 5
    ends: dict[int, OffsetAndEpoch] = field(default_factory=dict)
    is_reassigning: bool = False
    is_adding_local_replica: bool = False
    truncations: list[int] = field(default_factory=list)
    high_watermarks: list[int] = field(default_factory=list)
    offline: bool = False

    def end_offset_for_epoch(self, leader_epoch: int, /) -> OffsetAndEpoch | None:
        return self.ends.get(leader_epoch)

    def maybe_update_high_watermark(self, high_watermark: int, /) -> int | None:
        self.high_watermarks.append(high_watermark)
        return high_watermark

    def maybe_increment_log_start_offset(self, log_start_offset: int, /) -> bool:
        return False

    def local_log_or_exception(self) -> FakeReplica:
        if self.offline:
            raise KafkaStorageException
        return self

    def future_local_log_or_exception(self) -> FakeReplica:
        raise AssertionError("a replica fetcher has no business with future logs")

    def append_records_to_follower_or_future_replica(
        self, records: MemoryRecords, is_future: bool, /
    ) -> LogAppendInfo | None:
        assert not is_future
        return LogAppendInfo(-1, -1, None, 0, 0)

    def truncate_to(self, offset: int, is_future: bool, /) -> None:
        assert not is_future
        self.truncations.append(offset)
        self.log_end_offset = min(self.log_end_offset, offset)

    def truncate_fully_and_start_at(self, offset: int, is_future: bool, /) -> None:
        raise AssertionError("not expected here")

    def maybe_replace_current_with_future_replica(self) -> bool:
        return False

    def last_offset_for_leader_epoch(
        self, current: int | None, epoch: int, only_leader: bool, /
    ) -> EpochEndOffset:
        return EpochEndOffset()


class FakeReplicas:
    """The broker's partitions, by name."""

    def __init__(self) -> None:
        self.replicas: dict[TopicPartition, FakeReplica] = {}
        self.completed: list[TopicPartition] = []

    def get_partition_or_exception(self, partition: TopicPartition, /) -> FakeReplica:
        return self.replicas[partition]

    def local_log_or_exception(self, partition: TopicPartition, /) -> FakeReplica:
        return self.replicas[partition].local_log_or_exception()

    def future_local_log_or_exception(self, partition: TopicPartition, /) -> FakeReplica:
        return self.replicas[partition].future_local_log_or_exception()

    def future_log_exists(self, partition: TopicPartition, /) -> bool:
        return False

    def complete_delayed_fetch_requests(self, partitions: Iterable[TopicPartition], /) -> None:
        self.completed.extend(partitions)


class CountingSender:
    """A leader that gives prepared answers and counts requests (MockBlockingSender)."""

    def __init__(self) -> None:
        self.epoch_requests: list[OffsetsForLeaderEpochRequest] = []
        self.fetch_requests: list[FetchRequest] = []
        self.epochs: dict[TopicPartition, EpochEndOffset] = {}
        self.data: dict[TopicPartition, FetchPartitionData] = {}
        self.session_id = 0
        self.in_flight: Callable[[], None] = lambda: None
        self.failure: Exception | None = None

    def fetch(self, request: FetchRequest, /) -> FetchResponse:
        self.fetch_requests.append(request)
        if self.failure is not None:
            raise self.failure
        wanted = request.to_send if not self.data else self.data
        nothing = FetchPartitionData(Errors.NONE, 0, 0)
        answers = {tp: self.data.get(tp, nothing) for tp in wanted}
        return FetchResponse(answers, session_id=self.session_id)

    def offsets_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest, /
    ) -> OffsetsForLeaderEpochResponse:
        self.epoch_requests.append(request)
        if self.failure is not None:
            raise self.failure
        self.in_flight()
        return OffsetsForLeaderEpochResponse({tp: self.epochs[tp] for tp in request.partitions})

    def list_offsets(self, request: ListOffsetsRequest, /) -> ListOffsetsResponse:
        return ListOffsetsResponse(Errors.UNKNOWN_LEADER_EPOCH)

    def initiate_close(self) -> None:
        raise OSError("closing fails, which must not matter")

    def close(self) -> None:
        raise OSError("closing fails, which must not matter")


class RecordingLogDirs:
    def __init__(self) -> None:
        self.marked: list[tuple[int, TopicPartition, int]] = []

    def mark_partitions_for_truncation(
        self, broker_id: int, partition: TopicPartition, truncation_offset: int, /
    ) -> None:
        self.marked.append((broker_id, partition, truncation_offset))


class FakeQuota:
    def __init__(self) -> None:
        self.throttled: set[TopicPartition] = set()
        self.exceeded = False
        self.recorded = 0

    def is_throttled(self, partition: TopicPartition, /) -> bool:
        return partition in self.throttled

    def is_quota_exceeded(self) -> bool:
        return self.exceeded

    def record(self, size_in_bytes: int, /) -> None:
        self.recorded += size_in_bytes


class World:
    """One ReplicaFetcherThread with everything around it."""

    def __init__(self, protocol: ProtocolConfig = TRUNCATE_FIRST, back_off_ms: int = 0) -> None:
        self.clock = MockClock()
        metrics = MetricsRegistry(self.clock)
        runtime = FetcherRuntime(self.clock, NoConcurrency(), metrics)
        config = FetchConfig(replica_id=1, protocol=protocol)
        self.sender = CountingSender()
        self.replicas = FakeReplicas()
        self.quota = FakeQuota()
        self.log_dirs = RecordingLogDirs()
        self.session = FetchSessionHandler()
        self.stats = BrokerTopicStats(metrics)
        self.failed = FailedPartitions(runtime.concurrency)
        self.end_point = RemoteLeaderEndPoint(
            LEADER, self.sender, self.session, self.replicas, self.quota, self.clock, config
        )
        self.thread = ReplicaFetcherThread(
            "bob",
            self.end_point,
            config,
            self.failed,
            self.replicas,
            self.quota,
            self.stats,
            runtime,
            back_off_ms,
            self.log_dirs,
        )

    def follow(
        self,
        tp: TopicPartition,
        offset: int = 0,
        log_end_offset: int = 100,
        high_watermark: int = 0,
    ) -> FakeReplica:
        replica = self.replicas.replicas[tp] = FakeReplica(log_end_offset, high_watermark)
        self.thread.add_partitions({tp: InitialFetchState(None, LEADER, 1, offset)})
        return replica

    def work(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.thread.do_work()

    @property
    def counts(self) -> tuple[int, int]:
        """Epoch requests and fetch requests so far."""
        return len(self.sender.epoch_requests), len(self.sender.fetch_requests)


def ends_at(epoch: int, offset: int, error: Errors = Errors.NONE) -> EpochEndOffset:
    return EpochEndOffset(error, epoch, offset)


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


def ready(offset: int, topic_id: str) -> PartitionFetchState:
    return PartitionFetchState(topic_id, offset, None, 1, None, ReplicaState.FETCHING, None)


def test_r17_incremental_session_sends_only_what_changed() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    states = {T1P0: ready(150, "id1"), T1P1: ready(155, "id1"), T2P1: ready(160, "id2")}
    world.replicas.replicas = {tp: FakeReplica() for tp in states}
    first = world.end_point.build_fetch(states)
    assert first.partitions_with_error == ()
    assert first.replica_fetch is not None
    request = first.replica_fetch.request
    assert list(request.to_send) == [T1P0, T1P1, T2P1]
    assert (request.removed, request.replaced) == ((), ())
    assert request.to_send[T2P1].fetch_offset == 160

    answers = {tp: FetchPartitionData(Errors.NONE, 0, 0) for tp in states}
    world.end_point.handle_fetch_response(FetchResponse(answers, session_id=123))
    second = world.end_point.build_fetch({T1P1: ready(155, "id1"), T2P1: ready(160, "id3")})
    assert second.replica_fetch is not None
    request = second.replica_fetch.request
    assert (request.metadata.session_id, request.metadata.epoch) == (123, 1)
    assert list(request.to_send) == [T2P1]
    assert request.replaced == (TopicIdPartition("id2", T2P1),)
    assert request.removed == (TopicIdPartition("id1", T1P0),)
    # The answer may also speak of what was not repeated.
    assert set(second.replica_fetch.partition_data) == {T1P1, T2P1}


def test_session_ends_with_a_request_that_only_forgets() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.replicas.replicas = {T1P0: FakeReplica()}
    world.end_point.build_fetch({T1P0: ready(0, "id1")})
    answers = {T1P0: FetchPartitionData(Errors.NONE, 0, 0)}
    world.end_point.handle_fetch_response(FetchResponse(answers, session_id=7))
    forgets = world.end_point.build_fetch({}).replica_fetch
    assert forgets is not None
    assert forgets.request.removed == (TopicIdPartition("id1", T1P0),)
    world.end_point.handle_fetch_response(FetchResponse({}, session_id=7))
    assert world.end_point.build_fetch({}).replica_fetch is None


@pytest.mark.parametrize(
    ("response", "accepted", "next_session"),
    [
        (FetchResponse({}, Errors.FETCH_SESSION_ID_NOT_FOUND), False, (0, 0)),
        (FetchResponse({}, Errors.INVALID_FETCH_SESSION_EPOCH), False, (7, 0)),
        (FetchResponse({T2P0: FetchPartitionData(Errors.NONE, 0, 0)}, session_id=7), False, (7, 0)),
        (FetchResponse({}, session_id=7), True, (7, 2)),
        (FetchResponse({}, session_id=0), True, (0, 0)),
    ],
    ids=["session evicted", "wrong session epoch", "foreign partition", "unchanged", "closed"],
)
def test_answers_within_a_session(
    response: FetchResponse, accepted: bool, next_session: tuple[int, int]
) -> None:
    session = FetchSessionHandler()
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.replicas.replicas = {T1P0: FakeReplica()}
    built = world.end_point.build_fetch({T1P0: ready(0, "id1")}).replica_fetch
    assert built is not None
    wanted = dict(built.partition_data)
    session.build(wanted)
    answers = {T1P0: FetchPartitionData(Errors.NONE, 0, 0)}
    assert session.handle_response(FetchResponse(answers, session_id=7))
    session.build(wanted)
    assert session.handle_response(response) is accepted
    assert tuple(session.build(wanted).metadata) == next_session


def test_session_starts_anew_after_a_failed_send() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    world.sender.session_id = 9
    world.follow(T1P0, offset=100)
    world.work(rounds=2)
    world.sender.failure = ConnectionError()
    world.work()
    world.sender.failure = None
    world.work()
    sessions = [tuple(request.metadata) for request in world.sender.fetch_requests]
    assert sessions == [(0, 0), (9, 1), (9, 2), (9, 0)]
    assert list(world.sender.fetch_requests[-1].to_send) == [T1P0]


def test_topic_id_error_of_the_session_counts_as_no_answer() -> None:
    world = World(ProtocolConfig(truncation_on_fetch=True))
    response = FetchResponse({}, Errors.FETCH_SESSION_TOPIC_ID_ERROR)
    with pytest.raises(Exception, match="FETCH_SESSION_TOPIC_ID_ERROR"):
        world.end_point.handle_fetch_response(response)


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
