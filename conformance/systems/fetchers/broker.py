"""A broker that follows: its logs, its fetcher manager, and leaders that answer when told to."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.systems.directories.broker import NobodyElse
from conformance.systems.protocol import ActionRefused
from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.fetcher.abstract_fetcher_thread import FetcherRuntime
from impl.fetcher.replica_fetcher_manager import ReplicaFetcherManager
from impl.log import Log
from impl.log_manager import LogManager
from impl.metrics import MetricName, MetricsRegistry
from impl.network import DirectSend, FetchConfig, RequestHandlers
from impl.partition_state import LeaderAndIsrPartitionState
from impl.records import MemoryRecords, Record
from impl.replica_manager import ReplicaManager
from impl.replica_requests import LeaderAndIsrRequest, ReplicaManagerConfig
from impl.scheduler import ImmediateScheduler
from impl.types import BrokerEndPoint, ProtocolConfig, TopicPartition

TOPIC = "log"
"""Of its partitions 0 and 1 two threads have one each (getFetcherId)."""
BACK_OFF_MS = 1_000
_THIS = 0
_ELECTED_MS = 1_000_000


class UnexpectedError(Exception):
    """What no handler of a fetcher thread expects."""


class FailingReplicaManager(ReplicaManager):
    """A replica manager whose logs are not found when told so."""

    fails = False

    def local_log_or_exception(self, partition: TopicPartition, /) -> Log:
        """As Kafka's. Raises UnexpectedError when told to."""
        if self.fails:
            raise UnexpectedError
        return super().local_log_or_exception(partition)


class SwitchedQuota:
    """A quota of all partitions that is exceeded when told to."""

    is_exceeded = False

    def is_throttled(self, _partition: TopicPartition, /) -> bool:
        """All are."""
        return True

    def is_quota_exceeded(self) -> bool:
        """As it was told."""
        return self.is_exceeded

    def record(self, _size_in_bytes: int, /) -> None:
        """Actions say when it is exceeded."""


class FollowingBroker:
    """A broker with a replica of each partition, and one record of leader epoch 0 in it."""

    def __init__(self, partitions: Iterable[int], pool: int, concurrency: Concurrency) -> None:
        self.clock = MockClock(_ELECTED_MS)
        self.quota = SwitchedQuota()
        self.metrics = MetricsRegistry(self.clock)
        self._concurrency = concurrency
        self._pool = pool
        protocol = ProtocolConfig(truncation_on_fetch=True)
        self._config = FetchConfig(_THIS, protocol=protocol, fetch_sessions=False)
        self.replicas = FailingReplicaManager(
            ReplicaManagerConfig(_THIS, protocol=protocol),
            self.clock,
            LogManager(MemoryDisk(), ("d1",), ImmediateScheduler(), concurrency),
            NobodyElse(),
            NobodyElse(),
            concurrency,
            BrokerEndPoint,
            self._fetchers,
        )
        self._follow([TopicPartition(TOPIC, number) for number in partitions])

    def _fetchers(self, replicas: ReplicaManager) -> ReplicaFetcherManager:
        self.manager = ReplicaFetcherManager(
            self._config,
            replicas,
            self.quota,
            _no_connection,
            FetcherRuntime(self.clock, self._concurrency, self.metrics),
            num_fetchers=self._pool,
            fetch_back_off_ms=BACK_OFF_MS,
        )
        return self.manager

    def _follow(self, partitions: list[TopicPartition]) -> None:
        """Metadata names a leader of each; its fetchers are what the actions are about."""
        states = tuple(
            LeaderAndIsrPartitionState(tp, 1, 0, (_THIS, 1), 0, (_THIS, 1)) for tp in partitions
        )
        self.replicas.become_leader_or_follower(LeaderAndIsrRequest(0, 0, states))
        self.manager.remove_fetcher_for_partitions(partitions)
        self.manager.shutdown_idle_fetcher_threads()
        for tp in partitions:
            follower = self.replicas.get_partition_or_exception(tp)
            follower.append_records_to_follower_or_future_replica(record_at(0), False)

    def log(self, number: int) -> Log:
        """The replica's log."""
        return self.replicas.local_log_or_exception(TopicPartition(TOPIC, number))

    def gauge(self, name: str) -> int:
        """A gauge of the manager."""
        tags = (("clientId", "Replica"),)
        return int(self.metrics.value(MetricName("ReplicaFetcherManager", name, tags)))


def record_at(offset: int) -> MemoryRecords:
    """One record, of leader epoch 0."""
    return MemoryRecords.with_records(
        Record(b"value"), base_offset=offset, partition_leader_epoch=0
    )


def corrupt_record_at(offset: int) -> MemoryRecords:
    """One record whose checksum is wrong."""
    (batch,) = record_at(offset).batches()
    return MemoryRecords((batch.with_crc(batch.crc ^ 1),))


def _no_connection(leader: BrokerEndPoint, _fetcher_id: int) -> DirectSend:
    def reach() -> RequestHandlers:
        raise ActionRefused(f"broker {leader.id} is asked; its answers are actions")

    return DirectSend(reach)


def error_of(outcome: str) -> Errors:
    """The error code of an answer."""
    return _ERRORS.get(outcome, Errors.NONE)


_ERRORS = {
    "fenced": Errors.FENCED_LEADER_EPOCH,
    "unknown": Errors.UNKNOWN_LEADER_EPOCH,
}
