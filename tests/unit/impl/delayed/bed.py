"""One leader whose requests may wait; its followers are the test's own fetches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from impl.clock import Clock, MockClock
from impl.concurrency import Concurrency, NoConcurrency, RealConcurrency
from impl.delayed.delayed_delete_records import DeleteRecordsPartitionResponse
from impl.delayed.delayed_fetch import Cause, DelayedFetch, FetchPartitionStatus, FetchWait
from impl.delayed.delayed_produce import ProducePartitionResponse
from impl.delayed.waiting_requests import WaitingRequests
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.log import Log
from impl.log_manager import LogManager
from impl.log_types import FetchIsolation, LogConfig
from impl.metrics import MetricName, MetricsRegistry
from impl.partition import FetchParams, Partition
from impl.replica import StaticMetadataCache
from impl.replica_manager import ReplicaManager
from impl.replica_requests import LeaderAndIsrRequest, ReplicaManagerConfig
from impl.scheduler import ImmediateScheduler
from impl.types import (
    ZERO_UUID,
    BrokerEndPoint,
    FetchPartitionData,
    FetchPartitionRequest,
    LogOffsetMetadata,
    TopicPartition,
)
from tests.unit.impl.brokers import (
    TP,
    HeldAlterPartitions,
    RecordedFetchers,
    records,
    state,
)


class Quota:
    """A leader's quota that the test turns on and off."""

    def __init__(self) -> None:
        self.exceeded = False

    def is_throttled(self, _partition: TopicPartition, /) -> bool:
        return True

    def is_quota_exceeded(self) -> bool:
        return self.exceeded

    def record(self, _size_in_bytes: int, /) -> None:
        """Nothing adds up."""


@dataclass
class LeaderBed:
    """Broker 0 leads TP in epoch 0 with followers 1 and 2; answers are kept in order."""

    config: LogConfig = field(default_factory=LogConfig)
    clock: Clock = field(default_factory=lambda: MockClock(1_000_000))
    concurrency: Concurrency = field(default_factory=NoConcurrency)
    quota: Quota = field(default_factory=Quota)
    controller: HeldAlterPartitions = field(default_factory=HeldAlterPartitions)
    fetched: list[FetchPartitionData] = field(default_factory=list)
    produced: list[Errors] = field(default_factory=list)
    deleted: list[tuple[Errors, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.metrics = MetricsRegistry(self.clock)
        is_real = isinstance(self.concurrency, RealConcurrency)
        self.waiting = WaitingRequests(
            self.clock,
            self.concurrency,
            self.metrics,
            executor=None if is_real else ImmediateScheduler(),
        )
        logs = LogManager(
            MemoryDisk(),
            ("logs",),
            ImmediateScheduler(),
            self.concurrency,
            default_config=self.config,
        )
        self.replicas = ReplicaManager(
            ReplicaManagerConfig(0),
            self.clock,
            logs,
            self.controller,
            StaticMetadataCache(),
            self.concurrency,
            BrokerEndPoint,
            lambda _: RecordedFetchers(),
            leader_quota=self.quota,
            try_complete_delayed_requests=self.waiting.try_complete_delayed_requests,
        )
        self.decide(0, 0)

    def decide(self, leader: int, epoch: int, isr: tuple[int, ...] = (0, 1, 2)) -> None:
        """The controller's decision."""
        decision = state(leader, epoch, isr=isr)
        self.replicas.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (decision,)))

    @property
    def partition(self) -> Partition:
        return self.replicas.get_partition_or_exception(TP)

    @property
    def log(self) -> Log:
        return self.partition.local_log_or_exception()

    def fetch(
        self,
        replica_id: int,
        offset: int,
        *,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        epoch: int | None = 0,
        last_fetched_epoch: int | None = None,
        log_start: int = 0,
        partition: TopicPartition = TP,
    ) -> bool:
        """Fetch; whether it was answered at once."""
        before = len(self.fetched)
        request = self.request(offset, epoch, last_fetched_epoch, log_start)
        self.waiting.fetch_messages(
            self.replicas,
            self.params(replica_id),
            FetchWait(max_wait_ms, min_bytes, 1 << 20),
            {partition: request},
            lambda answer: self.fetched.extend(answer.values()),
        )
        return len(self.fetched) > before

    @staticmethod
    def params(replica_id: int) -> FetchParams:
        isolation = FetchIsolation.LOG_END if replica_id >= 0 else FetchIsolation.HIGH_WATERMARK
        return FetchParams(replica_id, isolation=isolation)

    @staticmethod
    def request(
        offset: int,
        epoch: int | None = 0,
        last_fetched_epoch: int | None = None,
        log_start: int = 0,
    ) -> FetchPartitionRequest:
        return FetchPartitionRequest(
            ZERO_UUID, offset, log_start, 1 << 20, epoch, last_fetched_epoch
        )

    def cause(
        self,
        replica_id: int,
        start: LogOffsetMetadata,
        *,
        min_bytes: int = 1,
        epoch: int | None = 0,
        last_fetched_epoch: int | None = None,
        partition: TopicPartition = TP,
    ) -> Cause | None:
        """Why a fetch that waits at `start` would be answered now."""
        request = self.request(start.message_offset, epoch, last_fetched_epoch)
        operation = DelayedFetch(
            self.params(replica_id),
            FetchWait(500, min_bytes, 1 << 20),
            {partition: FetchPartitionStatus(start, request)},
            self.replicas,
            lambda _: None,
            NoConcurrency(),
        )
        return operation.cause()

    def append(self, count: int = 1) -> None:
        """Append as a producer with acks=1."""
        self.produce(acks=1, count=count)
        self.produced.pop()

    def produce(self, acks: int = -1, *, count: int = 1, timeout_ms: int = 1000) -> bool:
        """Produce; whether it was answered at once."""
        before = len(self.produced)

        def note(answer: dict[TopicPartition, ProducePartitionResponse]) -> None:
            self.produced.extend(response.error for response in answer.values())

        self.waiting.append_records(self.replicas, timeout_ms, acks, {TP: records(count)}, note)
        return len(self.produced) > before

    def delete(self, offset: int, timeout_ms: int = 1000) -> bool:
        """Delete records; whether it was answered at once."""
        before = len(self.deleted)

        def note(answer: dict[TopicPartition, DeleteRecordsPartitionResponse]) -> None:
            self.deleted.extend((each.error, each.low_watermark) for each in answer.values())

        self.waiting.delete_records(self.replicas, timeout_ms, {TP: offset}, note)
        return len(self.deleted) > before

    def sleep(self, ms: int) -> None:
        """Let time pass, and let expire what is due."""
        self.clock.sleep(ms)
        self.waiting.advance_clock()

    def expired(self, operation: str, fetcher: str = "") -> float:
        """How many requests have timed out."""
        tags = (("fetcherType", fetcher),) if fetcher else ()
        return self.metrics.value(MetricName(f"{operation}Metrics", "ExpiresPerSec", tags))


def eventually(condition: Callable[[], bool]) -> bool:
    """With real threads: whether it comes about within half a minute."""
    clock = RealConcurrency().event("never")
    for _ in range(6000):
        if condition():
            return True
        clock.wait(5)
    return False
