"""A ReplicaFetcherThread over a network that counts requests and logs that remember calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.errors import Errors, KafkaStorageException
from impl.fetcher.abstract_fetcher_thread import FetcherRuntime
from impl.fetcher.failed_partitions import FailedPartitions
from impl.fetcher.fetch_session_handler import FetchSessionHandler
from impl.fetcher.remote_leader_endpoint import RemoteLeaderEndPoint
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.metrics import BrokerTopicStats, MetricsRegistry
from impl.network import (
    FetchConfig,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from impl.records import MemoryRecords
from impl.types import (
    BrokerEndPoint,
    EpochEndOffset,
    FetchPartitionData,
    InitialFetchState,
    LogAppendInfo,
    OffsetAndEpoch,
    ProtocolConfig,
    TopicPartition,
)

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
