"""The broker that leads: a replica manager, and what it has heard of the controller."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused
from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.controller.replication_control_manager import (
    BrokerControlState,
    BrokerRegistration,
    PartitionRegistration,
    ReplicationControlManager,
)
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.log_manager import LogManager
from impl.network import LEGACY_METADATA, FetchRequest
from impl.partition import Partition
from impl.partition_state import AlterPartitionCallback, LeaderAndIsr, LeaderAndIsrPartitionState
from impl.records import MemoryRecords, Record
from impl.replica_manager import ReplicaManager
from impl.replica_requests import LeaderAndIsrRequest, ReplicaManagerConfig
from impl.scheduler import ImmediateScheduler
from impl.types import BrokerEndPoint, FetchPartitionRequest, InitialFetchState, TopicPartition

TOPIC_PARTITION = TopicPartition("t", 0)
_TOPIC_ID = "t-id"
_LOG_DIRECTORY = "logs"
_LAG_MS = 10_000
_FETCH_VERSION = 16
_MAX_BYTES = 1 << 20


class LeaderMetadataCache:
    """KRaftMetadataCache, as far as a partition asks it."""

    def __init__(self, brokers: Mapping[int, BrokerRegistration]) -> None:
        self.brokers = dict(brokers)

    def is_broker_fenced(self, broker_id: int, /) -> bool:
        """Whether the broker was fenced when the leader last heard of it."""
        return self.brokers[broker_id].state is BrokerControlState.FENCED

    def is_broker_shutting_down(self, broker_id: int, /) -> bool:
        """Whether it was shutting down."""
        return self.brokers[broker_id].state is BrokerControlState.CONTROLLED_SHUTDOWN

    def get_alive_broker_epoch(self, broker_id: int, /) -> int | None:
        """The epoch of its life; None if it was fenced."""
        return None if self.is_broker_fenced(broker_id) else self.brokers[broker_id].epoch


class NoFetchers:
    """The leader follows nothing."""

    def add_fetcher_for_partitions(
        self, initial_fetch_states: Mapping[TopicPartition, InitialFetchState], /
    ) -> None:
        """There is nothing to fetch."""
        assert not initial_fetch_states, f"the leader follows {set(initial_fetch_states)}"

    def remove_fetcher_for_partitions(self, _: Collection[TopicPartition], /) -> None:
        """There is none."""

    def mark_partitions_for_truncation(self, _: int, __: TopicPartition, ___: int, /) -> None:
        """There is none."""

    def shutdown(self) -> None:
        """Nothing runs."""


@dataclass(frozen=True, slots=True)
class SentFetch:
    """A follower's fetch on its way."""

    offset: int
    broker_epoch: int
    leader_epoch: int


@dataclass(slots=True)
class AlterPartitionExchange:
    """The request in flight, then its answer."""

    proposed: LeaderAndIsr
    on_complete: AlterPartitionCallback
    decision: LeaderAndIsr | Errors | None = None


class LeaderBroker:
    """The leader's process; it is also its AlterPartitionManager, with one request in flight."""

    def __init__(
        self, broker_id: int, controller: ReplicationControlManager, concurrency: Concurrency
    ) -> None:
        self.id = broker_id
        self.cache = LeaderMetadataCache(controller.brokers)
        self.delta: PartitionRegistration | None = None
        self.exchange: AlterPartitionExchange | None = None
        self._controller = controller
        self._published = controller.offset
        self._clock = MockClock(10 * _LAG_MS)
        self._replica_manager = ReplicaManager(
            ReplicaManagerConfig(broker_id, 0, replica_lag_time_max_ms=_LAG_MS),
            self._clock,
            LogManager(MemoryDisk(), (_LOG_DIRECTORY,), ImmediateScheduler(), concurrency),
            self,
            self.cache,
            concurrency,
            lambda id_: BrokerEndPoint(id_),
            lambda _: NoFetchers(),
        )
        self._tell(controller.partition)

    @property
    def partition(self) -> Partition:
        """The partition that it leads."""
        return self._replica_manager.get_partition_or_exception(TOPIC_PARTITION)

    @property
    def now_ms(self) -> int:
        """Its clock."""
        return self._clock.milliseconds()

    @property
    def lag_ms(self) -> int:
        """replica.lag.time.max.ms."""
        return _LAG_MS

    # ---- what it hears ---------------------------------------------------------------------

    def publish(self) -> None:
        """The cache hears of all; the partition's change is applied later."""
        self.cache.brokers = dict(self._controller.brokers)
        self._published = self._controller.offset
        now = self._controller.partition
        if now.partition_epoch > self.partition.partition_epoch:
            self.delta = now
        else:
            self._controller.touch(self.id, self._published)

    def apply_delta(self) -> None:
        """ReplicaManager.applyDelta, after which the broker's metadata offset rises."""
        assert self.delta is not None, "the specification applies what was published"
        self._tell(self.delta)
        self.delta = None
        self._controller.touch(self.id, self._published)

    def _tell(self, registration: PartitionRegistration) -> None:
        state = LeaderAndIsrPartitionState(
            TOPIC_PARTITION,
            registration.leader,
            registration.leader_epoch,
            tuple(sorted(registration.isr)),
            registration.partition_epoch,
            tuple(sorted(registration.replicas)),
            tuple(sorted(registration.adding_replicas)),
            tuple(sorted(registration.removing_replicas)),
            topic_id=_TOPIC_ID,
        )
        self._replica_manager.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (state,), 0))

    # ---- requests --------------------------------------------------------------------------

    def append(self) -> None:
        """One record of a producer."""
        self._replica_manager.append_records(
            TOPIC_PARTITION, MemoryRecords.with_records(Record(b"v"))
        )

    def handle_fetch(self, follower: int, sent: SentFetch) -> Errors:
        """Answer a follower's fetch; what the answer says of the partition."""
        partition = FetchPartitionRequest(_TOPIC_ID, sent.offset, 0, _MAX_BYTES, sent.leader_epoch)
        request = FetchRequest(
            _FETCH_VERSION, follower, sent.broker_epoch, 0, 0, _MAX_BYTES,
            LEGACY_METADATA, {TOPIC_PARTITION: partition},
        )  # fmt: skip
        return self._replica_manager.fetch(request).partitions[TOPIC_PARTITION].error

    def pass_lag_time(self) -> None:
        """Nobody fetches for replica.lag.time.max.ms."""
        self._clock.sleep(_LAG_MS + 1)

    def shrink_isr(self) -> None:
        """The task isr-expiration."""
        self.partition.maybe_shrink_isr()

    # ---- AlterPartitionManager -------------------------------------------------------------

    def submit(
        self,
        _topic_partition: TopicPartition,
        proposed: LeaderAndIsr,
        on_complete: AlterPartitionCallback,
        /,
    ) -> None:
        """Send it, unless another one is in flight."""
        if self.exchange is not None:
            on_complete(Errors.OPERATION_NOT_ATTEMPTED)
            return
        self.exchange = AlterPartitionExchange(proposed, on_complete)

    def decide(self) -> Errors:
        """The controller decides on what is in flight."""
        if self.exchange is None or self.exchange.decision is not None:
            raise ActionRefused("no AlterPartition is on its way")
        decision = self._controller.alter_partition(self.exchange.proposed)
        self.exchange.decision = decision
        return decision if isinstance(decision, Errors) else Errors.NONE

    def hear_decision(self) -> None:
        """The answer comes."""
        if self.exchange is None or self.exchange.decision is None:
            raise ActionRefused("no answer to AlterPartition is on its way")
        exchange, self.exchange = self.exchange, None
        assert exchange.decision is not None, "checked above"
        exchange.on_complete(exchange.decision)
