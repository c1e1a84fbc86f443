"""A few whole brokers in one process: real managers and fetchers, no threads, no network."""

from __future__ import annotations

from impl.clock import Clock, MockClock
from impl.concurrency import Concurrency, NoConcurrency
from impl.delayed.waiting_requests import WaitingRequests
from impl.disk import MemoryDisk, Surviving, everything
from impl.fetcher.abstract_fetcher_thread import FetcherRuntime
from impl.fetcher.replica_fetcher_manager import (
    ReplicaAlterLogDirsManager,
    ReplicaFetcherManager,
)
from impl.fetcher.replicas import ReplicaQuota, UnboundedQuota
from impl.log import Log
from impl.log_manager import LogManager
from impl.metrics import MetricsRegistry
from impl.network import (
    FetchConfig,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from impl.replica import StaticMetadataCache
from impl.replica_manager import ReplicaManager
from impl.replica_requests import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ReplicaManagerConfig,
)
from impl.scheduler import ImmediateScheduler, Scheduler
from impl.types import BrokerEndPoint, ProtocolConfig
from tests.unit.impl.brokers import TP, HeldAlterPartitions, records, state


class Connection:
    """Calls the leader's handlers, if it is up."""

    def __init__(self, cluster: Cluster, leader: int) -> None:
        self._cluster = cluster
        self._leader = leader

    def _broker(self) -> ReplicaManager:
        broker = self._cluster.brokers.get(self._leader)
        if broker is None:
            raise ConnectionError(f"broker {self._leader} is down")
        return broker

    def fetch(self, request: FetchRequest, /) -> FetchResponse:
        if self._cluster.waits:
            return self._wait_for(request)
        response = self._broker().fetch(request)
        if not any(data.records.size_in_bytes for data in response.partitions.values()):
            # Stands for the leader's purgatory: with real threads, empty answers must not spin.
            self._cluster.clock.sleep(self._cluster.idle_wait_ms)
        return response

    def _wait_for(self, request: FetchRequest) -> FetchResponse:
        """What the leader answers, at once or when its purgatory does."""
        answers: list[FetchResponse] = []
        answered = self._cluster.concurrency.event("answered")

        def respond(response: FetchResponse) -> None:
            answers.append(response)
            answered.set()

        self._cluster.waiting[self._leader].handle_fetch(self._broker(), request, respond)
        if not answered.wait(60_000):
            raise ConnectionError(f"broker {self._leader} has not answered")
        return answers[0]

    def offsets_for_leader_epoch(
        self, request: OffsetsForLeaderEpochRequest, /
    ) -> OffsetsForLeaderEpochResponse:
        return self._broker().offsets_for_leader_epoch(request)

    def list_offsets(self, request: ListOffsetsRequest, /) -> ListOffsetsResponse:
        return self._broker().list_offsets(request)

    def initiate_close(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


class Cluster:
    """Brokers 0 .. n-1 with one partition; the test is the controller."""

    def __init__(
        self,
        size: int = 2,
        protocol: ProtocolConfig | None = None,
        *,
        clock: Clock | None = None,
        concurrency: Concurrency | None = None,
        scheduler: Scheduler | None = None,
        quota: ReplicaQuota | None = None,
        idle_wait_ms: int = 0,
        waits: bool = False,
    ) -> None:
        self.protocol = protocol or ProtocolConfig()
        self.clock = clock or MockClock(1_000_000)
        self.concurrency = concurrency or NoConcurrency()
        self.scheduler = scheduler or ImmediateScheduler()
        self.quota = quota or UnboundedQuota()
        self.idle_wait_ms = idle_wait_ms
        self.waits = waits
        self.waiting: dict[int, WaitingRequests] = {}
        self.replicas = tuple(range(size))
        self.disks = [MemoryDisk() for _ in self.replicas]
        self.controllers = [HeldAlterPartitions() for _ in self.replicas]
        self.brokers: dict[int, ReplicaManager] = {}
        self.fetchers: dict[int, ReplicaFetcherManager] = {}
        self.movers: dict[int, ReplicaAlterLogDirsManager] = {}
        self.epoch = -1
        for broker_id in self.replicas:
            self.start(broker_id)

    def start(self, broker_id: int, broker_epoch: int = -1) -> None:
        """Start a broker from what its disk holds."""
        concurrency = self.concurrency
        fetch_config = FetchConfig(broker_id, protocol=self.protocol)

        def fetchers(replicas: ReplicaManager) -> ReplicaFetcherManager:
            self.fetchers[broker_id] = ReplicaFetcherManager(
                fetch_config,
                replicas,
                UnboundedQuota(),
                lambda leader, _: Connection(self, leader.id),
                FetcherRuntime(self.clock, concurrency, MetricsRegistry(self.clock)),
                fetch_back_off_ms=0,
            )
            return self.fetchers[broker_id]

        def movers(replicas: ReplicaManager) -> ReplicaAlterLogDirsManager:
            self.movers[broker_id] = ReplicaAlterLogDirsManager(
                fetch_config,
                replicas,
                replicas.fetch_for_future_replica,
                UnboundedQuota(),
                FetcherRuntime(self.clock, concurrency, MetricsRegistry(self.clock)),
                fetch_back_off_ms=0,
            )
            return self.movers[broker_id]

        waiting = self._start_waiting(broker_id) if self.waits else None
        self.controllers[broker_id] = HeldAlterPartitions()
        self.brokers[broker_id] = ReplicaManager(
            ReplicaManagerConfig(broker_id, broker_epoch, self.protocol),
            self.clock,
            LogManager(self.disks[broker_id], ("logs", "other"), self.scheduler, concurrency),
            self.controllers[broker_id],
            StaticMetadataCache(),
            concurrency,
            BrokerEndPoint,
            fetchers,
            movers,
            leader_quota=self.quota,
            try_complete_delayed_requests=(
                waiting.try_complete_delayed_requests if waiting else lambda _: None
            ),
        )

    def _start_waiting(self, broker_id: int) -> WaitingRequests:
        metrics = MetricsRegistry(self.clock)
        waiting = WaitingRequests(self.clock, self.concurrency, metrics, broker_id=broker_id)
        self.waiting[broker_id] = waiting
        return waiting

    def stop(self, broker_id: int) -> None:
        """Shut a broker down cleanly."""
        self.brokers.pop(broker_id).shutdown()

    def crash(self, broker_id: int, surviving: Surviving = everything) -> None:
        """Lose a broker, and of its disk what does not survive."""
        del self.brokers[broker_id]
        self.disks[broker_id].crash(surviving)

    def elect(self, leader: int, isr: tuple[int, ...], tell: tuple[int, ...] | None = None) -> None:
        """A new leader epoch, told to all brokers that are up (or only to some)."""
        self.epoch += 1
        self.tell(leader, isr, tuple(self.brokers) if tell is None else tell)

    def tell(
        self, leader: int, isr: tuple[int, ...], brokers: tuple[int, ...]
    ) -> list[LeaderAndIsrResponse]:
        """Send the present epoch's decision."""
        decision = state(leader, self.epoch, isr=isr, replicas=self.replicas)
        request = LeaderAndIsrRequest(0, 0, (decision,))
        return [self.brokers[id_].become_leader_or_follower(request) for id_ in brokers]

    def append(self, leader: int, count: int = 1) -> None:
        """One batch of one record, `count` times."""
        for _ in range(count):
            self.brokers[leader].append_records(TP, records())

    def settle(self, rounds: int = 12) -> None:
        """Let every fetcher of a living broker work."""
        for _ in range(rounds):
            for broker_id in self.brokers:
                for manager in (self.fetchers[broker_id], self.movers[broker_id]):
                    for thread in manager.fetcher_threads().values():
                        thread.do_work()

    def log(self, broker_id: int) -> Log:
        return self.brokers[broker_id].local_log_or_exception(TP)
