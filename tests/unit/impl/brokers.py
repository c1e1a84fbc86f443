"""Logs, partitions and brokers for the tests of storage and of the leader side."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from impl.clock import MockClock
from impl.concurrency import Concurrency, NoConcurrency
from impl.disk import Disk, MemoryDisk
from impl.errors import Errors
from impl.log import Log
from impl.log_loader import load_log
from impl.log_manager import LogManager
from impl.log_types import FetchIsolation, LogConfig
from impl.metrics import IsrStats, MetricName, MetricsRegistry
from impl.partition import FetchParams, LogReadInfo, Partition
from impl.partition_state import AlterPartitionCallback, LeaderAndIsr, LeaderAndIsrPartitionState
from impl.records import MemoryRecords, Record
from impl.replica import StaticMetadataCache
from impl.scheduler import ImmediateScheduler, Scheduler
from impl.types import (
    ZERO_UUID,
    FetchPartitionRequest,
    InitialFetchState,
    TopicPartition,
)

TP = TopicPartition("topic", 0)
LEADER, F1, F2 = 0, 1, 2


def records(count: int = 1, *, timestamps: tuple[int, ...] = (), magic: int = 2) -> MemoryRecords:
    """`count` records, as a client sends them."""
    stamps = timestamps or (0,) * count
    return MemoryRecords.with_records(
        *(Record(b"v%d" % i, timestamp=stamp) for i, stamp in enumerate(stamps)), magic=magic
    )


def batch(base_offset: int, epoch: int, count: int = 1) -> MemoryRecords:
    """One batch of `count` records, as a leader stamped it."""
    values = (Record(b"v%03d" % (base_offset + i)) for i in range(count))
    return MemoryRecords.with_records(
        *values, base_offset=base_offset, partition_leader_epoch=epoch
    )


def make_log(
    disk: Disk | None = None,
    *,
    scheduler: Scheduler | None = None,
    config: LogConfig | None = None,
    directory: str = "logs/topic-0",
    log_start_offset: int = 0,
    recovery_point: int = 0,
    concurrency: Concurrency | None = None,
) -> Log:
    """A log on a disk, by default a fresh one in memory."""
    return load_log(
        TP,
        directory,
        disk or MemoryDisk(),
        scheduler or ImmediateScheduler(),
        concurrency or NoConcurrency(),
        config=config,
        log_start_offset=log_start_offset,
        recovery_point=recovery_point,
    )


def epochs_of(log: Log) -> list[tuple[int, int]]:
    """The epoch cache as (epoch, start offset) pairs."""
    cache = log.leader_epoch_cache
    assert cache is not None
    return [(entry.epoch, entry.start_offset) for entry in cache.epoch_entries()]


class HeldAlterPartitions:
    """A controller that answers when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[LeaderAndIsr, AlterPartitionCallback]] = []

    def submit(
        self, _partition: TopicPartition, proposed: LeaderAndIsr, done: AlterPartitionCallback, /
    ) -> None:
        self.sent.append((proposed, done))

    def accept(self) -> None:
        """Commit the oldest proposal under the next partition epoch."""
        proposed, done = self.sent.pop(0)
        done(
            LeaderAndIsr(
                proposed.leader,
                proposed.leader_epoch,
                proposed.isr_with_broker_epoch,
                proposed.partition_epoch + 1,
            )
        )

    def reject(self, error: Errors) -> None:
        """Answer the oldest proposal with an error."""
        self.sent.pop(0)[1](error)

    def proposals(self) -> list[list[int]]:
        """Members of the ISRs that wait for an answer."""
        return [sorted(proposed.isr) for proposed, _ in self.sent]


class RecordedFetchers:
    """A fetcher manager that only notes what it is told."""

    def __init__(self) -> None:
        self.added: list[Mapping[TopicPartition, InitialFetchState]] = []
        self.removed: list[Collection[TopicPartition]] = []

    def add_fetcher_for_partitions(
        self, initial_fetch_states: Mapping[TopicPartition, InitialFetchState], /
    ) -> None:
        if initial_fetch_states:
            self.added.append(initial_fetch_states)

    def remove_fetcher_for_partitions(self, partitions: Collection[TopicPartition], /) -> object:
        if partitions:
            self.removed.append(partitions)
        return None

    def mark_partitions_for_truncation(
        self, _broker_id: int, _partition: TopicPartition, _truncation_offset: int, /
    ) -> None:
        """Nothing follows."""

    def shutdown(self) -> None:
        """Nothing runs."""


def state(
    leader: int = LEADER,
    leader_epoch: int = 0,
    *,
    isr: tuple[int, ...] = (LEADER, F1, F2),
    replicas: tuple[int, ...] = (LEADER, F1, F2),
    partition_epoch: int | None = None,
    topic_id: str | None = None,
    partition: TopicPartition = TP,
) -> LeaderAndIsrPartitionState:
    """A decision of the controller; the partition epoch follows the leader epoch if not given."""
    return LeaderAndIsrPartitionState(
        partition,
        leader,
        leader_epoch,
        isr,
        leader_epoch * 10 if partition_epoch is None else partition_epoch,
        replicas,
        topic_id=topic_id,
    )


@dataclass
class PartitionBed:
    """One partition on broker 0 with time, metadata and controller in the test's hand."""

    config: LogConfig = field(default_factory=LogConfig)
    max_lag_ms: int = 30_000
    clock: MockClock = field(default_factory=lambda: MockClock(1_000_000))
    metadata: StaticMetadataCache = field(default_factory=StaticMetadataCache)
    controller: HeldAlterPartitions = field(default_factory=HeldAlterPartitions)
    completed: list[TopicPartition] = field(default_factory=list)
    disk: MemoryDisk = field(default_factory=MemoryDisk)

    def __post_init__(self) -> None:
        concurrency = NoConcurrency()
        self.metrics = MetricsRegistry(self.clock)
        self.logs = LogManager(
            self.disk,
            ("logs", "other"),
            ImmediateScheduler(),
            concurrency,
            default_config=self.config,
        )
        self.partition = Partition(
            TP,
            LEADER,
            self.clock,
            self.logs,
            self.controller,
            self.metadata,
            concurrency,
            replica_lag_time_max_ms=self.max_lag_ms,
            try_complete_delayed_requests=self.completed.append,
            alter_partition_listener=IsrStats(self.metrics),
        )

    @property
    def isr_changes(self) -> tuple[float, float, float]:
        """How many were made and failed: (expands, shrinks, failed)."""
        names = ("IsrExpandsPerSec", "IsrShrinksPerSec", "FailedIsrUpdatesPerSec")
        expands, shrinks, failed = (
            self.metrics.value(MetricName("ReplicaManager", name)) for name in names
        )
        return expands, shrinks, failed

    @property
    def log(self) -> Log:
        return self.partition.local_log_or_exception()

    def append(self, count: int = 1) -> None:
        self.partition.append_records_to_leader(records(count))

    def fetch(
        self,
        replica_id: int,
        offset: int,
        *,
        epoch: int | None = None,
        last_fetched_epoch: int | None = None,
        broker_epoch: int = -1,
        isolation: FetchIsolation = FetchIsolation.LOG_END,
    ) -> LogReadInfo:
        return self.partition.fetch_records(
            FetchParams(replica_id, broker_epoch, isolation),
            FetchPartitionRequest(ZERO_UUID, offset, 0, 1 << 20, epoch, last_fetched_epoch),
            self.clock.milliseconds(),
            1 << 20,
        )


def a_leader(
    epoch: int = 0, *, isr: tuple[int, ...] = (LEADER, F1, F2), bed: PartitionBed | None = None
) -> PartitionBed:
    """A bed whose partition leads in the epoch."""
    bed = bed or PartitionBed()
    bed.partition.make_leader(state(LEADER, epoch, isr=isr))
    return bed
