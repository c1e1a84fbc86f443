"""Brokers of one process: real replica managers, real fetchers and in-memory disks."""

from __future__ import annotations

from impl.clock import MockClock
from impl.concurrency import Concurrency, NoConcurrency
from impl.deterministic_scheduler import DeterministicScheduler
from impl.disk import MemoryDisk
from impl.fetcher.abstract_fetcher_thread import FetcherRuntime
from impl.fetcher.replica_fetcher_manager import ReplicaAlterLogDirsManager, ReplicaFetcherManager
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.fetcher.replicas import UnboundedQuota
from impl.log import Log
from impl.log_manager import LogManager
from impl.metrics import MetricsRegistry
from impl.network import DirectSend, FetchConfig, RequestHandlers
from impl.partition_state import AlterPartitionCallback, LeaderAndIsr, LeaderAndIsrPartitionState
from impl.records import MemoryRecords, Record
from impl.replica_manager import ReplicaManager
from impl.replica_requests import LeaderAndIsrRequest, ReplicaManagerConfig
from impl.scheduler import ImmediateScheduler
from impl.types import BrokerEndPoint, ProtocolConfig, TopicPartition

TP = TopicPartition("topic", 0)


class NoIsrChanges:
    """A controller that never answers a proposed ISR change."""

    def submit(
        self, _tp: TopicPartition, _proposed: LeaderAndIsr, _done: AlterPartitionCallback, /
    ) -> None: ...


class AllAlive:
    """Every broker is alive; broker epochs are unknown."""

    def is_broker_fenced(self, _broker_id: int, /) -> bool:
        return False

    def is_broker_shutting_down(self, _broker_id: int, /) -> bool:
        return False

    def get_alive_broker_epoch(self, _broker_id: int, /) -> int | None:
        return -1


class Broker:
    """One broker with its fetcher managers."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        clock, concurrency = cluster.clock, cluster.concurrency_of(broker_id)
        self.metrics = MetricsRegistry(clock)
        runtime = FetcherRuntime(clock, concurrency, self.metrics)
        config = FetchConfig(
            broker_id,
            partition_max_bytes=cluster.partition_max_bytes,
            fetch_sessions=cluster.fetch_sessions,
            protocol=cluster.protocol,
        )
        disk = MemoryDisk()
        log_manager = LogManager(disk, ("a", "b"), ImmediateScheduler(), concurrency)

        def connect(leader: BrokerEndPoint, _fetcher_id: int) -> DirectSend:
            return DirectSend(lambda: cluster.reach(leader))

        def log_dirs_manager(replicas: ReplicaManager) -> ReplicaAlterLogDirsManager:
            self.log_dir_fetchers = ReplicaAlterLogDirsManager(
                config, replicas, replicas.fetch_for_future_replica, UnboundedQuota(), runtime
            )
            return self.log_dir_fetchers

        def fetcher_manager(replicas: ReplicaManager) -> ReplicaFetcherManager:
            self.fetchers = ReplicaFetcherManager(
                config,
                replicas,
                UnboundedQuota(),
                connect,
                runtime,
                fetch_back_off_ms=0,
                alter_log_dirs_manager=self.log_dir_fetchers,
            )
            return self.fetchers

        self.replicas = ReplicaManager(
            ReplicaManagerConfig(broker_id, protocol=cluster.protocol),
            clock,
            log_manager,
            NoIsrChanges(),
            AllAlive(),
            concurrency,
            BrokerEndPoint,
            fetcher_manager,
            log_dirs_manager,
        )

    @property
    def log(self) -> Log:
        return self.replicas.local_log_or_exception(TP)

    @property
    def thread(self) -> ReplicaFetcherThread:
        thread = self.fetchers.get_fetcher(TP)
        assert thread is not None, f"{TP} is not fetched"
        return thread

    def append(self, *values: str) -> None:
        records = [Record(value.encode()) for value in values]
        self.replicas.append_records(TP, MemoryRecords.with_records(*records))

    def contents(self) -> list[tuple[int, int]]:
        return [(b.base_offset, b.partition_leader_epoch) for b in self.log.batches()]


class Cluster:
    """Brokers 1 to n, and the decisions of a controller as method calls."""

    def __init__(
        self,
        brokers: int = 2,
        protocol: ProtocolConfig | None = None,
        concurrency: Concurrency | None = None,
        fetch_sessions: bool = True,
        partition_max_bytes: int = 1 << 20,
    ) -> None:
        self.partition_max_bytes = partition_max_bytes
        self.fetch_sessions = fetch_sessions
        self.clock = MockClock()
        self.concurrency = concurrency or NoConcurrency()
        self.protocol = protocol or ProtocolConfig()
        self.unreachable: set[int] = set()
        self.epoch = -1
        self.brokers = {i: Broker(self, i) for i in range(1, brokers + 1)}

    def concurrency_of(self, broker_id: int) -> Concurrency:
        if isinstance(self.concurrency, DeterministicScheduler):
            return self.concurrency.scoped(f"broker-{broker_id}/")
        return self.concurrency

    def reach(self, leader: BrokerEndPoint) -> RequestHandlers:
        if leader.id in self.unreachable:
            raise ConnectionError(f"broker {leader.id} is unreachable")
        return self.brokers[leader.id].replicas

    def elect(
        self, leader: int, told: tuple[int, ...] | None = None, isr: tuple[int, ...] | None = None
    ) -> None:
        """A new leader epoch, of which only the brokers in `told` hear (default: all)."""
        self.epoch += 1
        ids = tuple(self.brokers)
        state = LeaderAndIsrPartitionState(TP, leader, self.epoch, isr or ids, self.epoch, ids)
        for broker_id in ids if told is None else told:
            request = LeaderAndIsrRequest(0, 0, (state,))
            self.brokers[broker_id].replicas.become_leader_or_follower(request)
