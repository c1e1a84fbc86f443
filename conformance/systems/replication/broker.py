"""One broker under test: a replica manager with its fetcher manager, on a disk of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol

from conformance.systems.protocol import ActionRefused
from conformance.systems.shared.replication.controller import (
    NO_ERROR,
    AlterPartitionItem,
    Controller,
    DecidedIsr,
)
from conformance.systems.shared.replication.offers import IsrProposal
from impl.checkpoint import OffsetCheckpointFile
from impl.clock import Clock, MockClock
from impl.concurrency import Concurrency
from impl.disk import Disk, Surviving
from impl.errors import Errors
from impl.fetcher.abstract_fetcher_thread import FetcherRuntime
from impl.fetcher.replica_fetcher_manager import ReplicaFetcherManager
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.fetcher.replicas import UnboundedQuota
from impl.log_manager import LogManager
from impl.log_types import LogConfig
from impl.metrics import MetricsRegistry
from impl.network import (
    BlockingSend,
    FetchConfig,
    FetchRequest,
    FetchResponse,
)
from impl.partition import Partition
from impl.partition_state import (
    AlterPartitionCallback,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
)
from impl.records import MemoryRecords, Record
from impl.replica_manager import ReplicaManager
from impl.replica_requests import LeaderAndIsrRequest, ReplicaManagerConfig
from impl.scheduler import ImmediateScheduler
from impl.types import NO_LEADER, BrokerEndPoint, ProtocolConfig, TopicPartition

TOPIC_PARTITION = TopicPartition("topic", 0)
TOPIC_ID = "b8vuXwHnTz2xPHyNPb6X4A"
"""The controller tells it with every decision, and followers send it with every fetch (KIP-516)."""
LOG_DIRECTORY = "data"
RECORD = MemoryRecords.with_records(Record(b"value"))
"""What every producer sends."""
_BATCHES_OF_SEGMENT = (2, 1)
"""By a broker's id, even or odd: its segments are full with so many batches, exactly. So appends,
reads and truncations cross segments on the one and stay within them on the other. Not where
fetches wait: they are answered when the log rolls, of which the specification knows nothing.
"""
_NUM_FETCHERS, _FETCHER_ID = 5, 3
"""`num.replica.fetchers`, and which of them Kafka lets follow the partition: "topic".hashCode() is
110546223, times 31 that overflows to -868034383.
"""
_LAG_MS = 30_000
_ANY_LAG_MS = -1
"""As `replica.lag.time.max.ms`: whoever is not at the log end lags."""
_ONE_BATCH = 1
"""Fetch limit in bytes: at least one batch is always sent, so this means exactly one."""


def _end_point(broker_id: int) -> BrokerEndPoint | None:
    """Where a leader listens; there is no broker -1 (NO_LEADER)."""
    return None if broker_id == NO_LEADER else BrokerEndPoint(broker_id)


class CrashableDisk(Disk, Protocol):
    """A disk that can lose what was not flushed."""

    def crash(self, surviving: Surviving, /) -> None:
        """Lose what `surviving` does not keep."""

    def contents(self) -> Mapping[str, bytes]:
        """Path to bytes of every file."""

    def durable(self) -> Mapping[str, bytes]:
        """As `contents`, of what no crash can lose."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """What all brokers of a system share."""

    protocol: ProtocolConfig
    two_step_isr: bool
    min_insync_replicas: int = 1
    fetch_back_off_ms: int = 0
    """The spec knows no time: an error may be retried at once."""


class RequestsAtLeader(Protocol):
    """Where a broker's requests may wait; without one every fetch is answered at once."""

    def wake(self, topic_partition: TopicPartition, /) -> None:
        """Something has changed that requests may wait for."""

    def fetch(
        self,
        replicas: ReplicaManager,
        request: FetchRequest,
        respond: Callable[[FetchResponse], None],
        /,
    ) -> None:
        """Answer now or later."""


MakeRequests = Callable[[int, Clock, Concurrency], RequestsAtLeader]
"""Of a broker's process: its id, its clock, its locks."""


_ADMITTED: ContextVar[tuple[object, int] | None] = ContextVar("admitted", default=None)
"""The leader's `Admission` and the follower; each greenlet has a value of its own."""


class Admission:
    """A leader's view of the other brokers; it lets a follower into the ISR when it is told to.

    In a broker, `maybeExpandIsr` runs within the fetch that makes a follower eligible; in the spec
    proposing it is a step of its own. What lies between is the leader's metadata: a broker that
    the leader still takes for fenced is not proposed (KIP-841). That is what the thread of this
    step sees: a fetch that another thread handles meanwhile proposes nobody.
    """

    __slots__ = ("_leaders_view",)

    def __init__(self, leaders_view: Callable[[int], int | None]) -> None:
        self._leaders_view = leaders_view

    @contextmanager
    def admitted(self, broker: int) -> Iterator[None]:
        """Meanwhile only this follower counts as unfenced, to the thread that asks for it."""
        before = _ADMITTED.set((self, broker))
        try:
            yield
        finally:
            _ADMITTED.reset(before)

    def is_broker_fenced(self, broker_id: int, /) -> bool:
        """Whether the leader takes the broker for fenced."""
        return _ADMITTED.get() != (self, broker_id)

    def is_broker_shutting_down(self, _broker_id: int, /) -> bool:
        """Never."""
        return False

    def get_alive_broker_epoch(self, broker_id: int, /) -> int | None:
        """What the leader itself heard of: its metadata is as old as the follower's last fetch."""
        return None if self.is_broker_fenced(broker_id) else self._leaders_view(broker_id)


class Broker:
    """A broker's process; a restart is a new object on the same disk."""

    def __init__(
        self,
        broker_id: int,
        epoch: int,
        disk: CrashableDisk,
        controller: Controller,
        settings: BrokerSettings,
        connect: Callable[[int], BlockingSend],
        concurrency: Concurrency,
        make_requests: MakeRequests | None = None,
    ) -> None:
        self.id = broker_id
        self.epoch = epoch
        self.disk = disk
        self.alter_partition: AlterPartitionItem | None = None
        self.admission = Admission(self._epoch_of_last_fetch)
        self.clock = MockClock(1_000_000)
        self._controller = controller
        self._settings = settings
        self._connect = connect
        self.requests = make_requests and make_requests(broker_id, self.clock, concurrency)
        self._runtime = FetcherRuntime(self.clock, concurrency, MetricsRegistry(self.clock))
        self.replica_manager = ReplicaManager(
            ReplicaManagerConfig(broker_id, epoch, settings.protocol, _LAG_MS),
            self.clock,
            self._log_manager(concurrency),
            self,
            self.admission,
            concurrency,
            _end_point,
            self._fetcher_manager,
            try_complete_delayed_requests=self._wake,
        )
        self.fetcher_manager = self._fetchers

    def _log_manager(self, concurrency: Concurrency) -> LogManager:
        return LogManager(
            self.disk,
            (LOG_DIRECTORY,),
            ImmediateScheduler(),
            concurrency,
            default_config=self.log_config,
        )

    @property
    def log_config(self) -> LogConfig:
        """The topic's settings on this broker."""
        return LogConfig(
            min_insync_replicas=self._settings.min_insync_replicas,
            segment_bytes=self.segment_bytes,
        )

    @property
    def segment_bytes(self) -> int:
        """The topic's `segment.bytes` on this broker."""
        if self.requests is not None:
            return LogConfig().segment_bytes
        return _BATCHES_OF_SEGMENT[self.id % 2] * RECORD.size_in_bytes

    def _wake(self, topic_partition: TopicPartition) -> None:
        if self.requests is not None:
            self.requests.wake(topic_partition)

    def fetch(self, request: FetchRequest, respond: Callable[[FetchResponse], None]) -> None:
        """Answer a Fetch of a follower or a consumer, now or later."""
        if self.requests is None:
            respond(self.replica_manager.fetch(request))
        else:
            self.requests.fetch(self.replica_manager, request, respond)

    def _fetcher_manager(self, replica_manager: ReplicaManager) -> ReplicaFetcherManager:
        config = FetchConfig(
            self.id,
            self.epoch,
            max_bytes=_ONE_BATCH,
            partition_max_bytes=_ONE_BATCH,
            protocol=self._settings.protocol,
            # In a session an answer leaves out what has not changed; the spec's answers are whole.
            fetch_sessions=False,
        )
        self._fetchers = ReplicaFetcherManager(
            config,
            replica_manager,
            UnboundedQuota(),
            self._connect_fetcher,
            self._runtime,
            num_fetchers=_NUM_FETCHERS,
            fetch_back_off_ms=self._settings.fetch_back_off_ms,
        )
        return self._fetchers

    def _connect_fetcher(self, leader: BrokerEndPoint, fetcher_id: int) -> BlockingSend:
        if fetcher_id != _FETCHER_ID:
            raise ActionRefused(f"the fetcher thread {fetcher_id} follows the partition")
        return self._connect(leader.id)

    @property
    def partition(self) -> Partition | None:
        """The partition, once the broker has heard of it."""
        return self.replica_manager.get_partition(TOPIC_PARTITION)

    @property
    def is_offline(self) -> bool:
        """Whether its log directory has failed since the process started."""
        return LOG_DIRECTORY not in self.replica_manager.log_manager.log_directories

    def fetcher(self) -> ReplicaFetcherThread | None:
        """The fetcher thread that follows the partition, if one does."""
        return self.fetcher_manager.get_fetcher(TOPIC_PARTITION)

    def receive_leader_and_isr(self, leader_epoch: int) -> Errors:
        """Handle the controller's LeaderAndIsr request of this leader epoch; what it answers."""
        now = self._controller.registered(leader_epoch)
        state = LeaderAndIsrPartitionState(
            TOPIC_PARTITION,
            now.leader,
            leader_epoch,
            tuple(sorted(now.isr)),
            now.partition_epoch,
            self._controller.replicas,
            topic_id=TOPIC_ID,
        )
        request = LeaderAndIsrRequest(0, 0, (state,), self.epoch)
        answer = self.replica_manager.become_leader_or_follower(request)
        return answer.partitions.get(TOPIC_PARTITION, answer.error)

    # ---- ISR changes -----------------------------------------------------------------------

    def expand_isr(self, follower: int) -> None:
        """Let the leader see that this follower is not fenced, and look at it (maybeExpandIsr)."""
        partition = self.replica_manager.get_partition_or_exception(TOPIC_PARTITION)
        replica = partition.get_replica(follower)
        if replica is None:
            raise ActionRefused("the leader knows of no such replica")
        with self.admission.admitted(follower):
            partition.maybe_expand_isr(replica)

    def shrink_isr(self, follower: int) -> None:
        """Let replica.lag.time.max.ms pass since this follower, and no other, has caught up."""
        partition = self.replica_manager.get_partition_or_exception(TOPIC_PARTITION)
        self.clock.sleep(_LAG_MS + 1)
        now = self.clock.milliseconds()
        for replica in partition.remote_replicas():
            if replica.broker_id != follower:
                replica.state = replace(replica.state, last_caught_up_time_ms=now)
        partition.maybe_shrink_isr()

    def proposals(self) -> list[IsrProposal]:
        """The ISR changes that this leader would propose; AlterPartitionManager has one in flight.

        Asked of the partition's own predicates: nothing changes, and no time passes.
        """
        partition = self.partition
        if partition is None or not partition.is_leader or self.alter_partition is not None:
            return []
        lagging = partition.get_out_of_sync_replicas(_ANY_LAG_MS)
        result = []
        for replica in partition.remote_replicas():
            with self.admission.admitted(replica.broker_id):
                expansion = partition.isr_expansion(replica)
            shrink = partition.isr_shrink(lagging & {replica.broker_id})
            for name, proposed in (("ExpandIsr", expansion), ("ShrinkIsr", shrink)):
                if proposed is not None:
                    sent = proposed.sent_leader_and_isr
                    result.append(IsrProposal(name, self.id, replica.broker_id, sent))
        return result

    def checkpoint_high_watermark(self, high_watermark: int) -> None:
        """The checkpoint file as it was written when the high watermark was this one."""
        OffsetCheckpointFile(self.disk, LOG_DIRECTORY, OffsetCheckpointFile.HIGH_WATERMARK).write(
            {TOPIC_PARTITION: high_watermark}
        )

    def checkpointed_high_watermark(self) -> int:
        """What the checkpoint file says, 0 if it does not name the partition."""
        file = OffsetCheckpointFile(self.disk, LOG_DIRECTORY, OffsetCheckpointFile.HIGH_WATERMARK)
        return file.read().get(TOPIC_PARTITION, 0)

    # ---- AlterPartitionManager -------------------------------------------------------------

    def submit(
        self,
        _topic_partition: TopicPartition,
        proposed: LeaderAndIsr,
        on_complete: AlterPartitionCallback,
        /,
    ) -> None:
        """Answer at once, or keep the item in flight where the spec has two steps."""
        if not self._settings.two_step_isr:
            on_complete(_in_impl(self._controller.alter_partition(self.id, proposed)))
        elif self.alter_partition is None:
            self.alter_partition = AlterPartitionItem(
                proposed, lambda decision: on_complete(_in_impl(decision))
            )

    def complete_alter_partition(self) -> None:
        """The controller's answer arrives."""
        item, self.alter_partition = self.alter_partition, None
        if item is None:
            raise ActionRefused("no AlterPartition is in flight")
        item.complete()

    def _epoch_of_last_fetch(self, broker_id: int) -> int | None:
        partition = self.partition
        replica = None if partition is None else partition.get_replica(broker_id)
        return None if replica is None else replica.state.broker_epoch


def _in_impl(decision: DecidedIsr) -> LeaderAndIsr | Errors:
    """The controller's decision as a broker of impl is told of it."""
    if decision.error != NO_ERROR:
        return Errors[decision.error]
    return LeaderAndIsr(
        decision.leader,
        decision.leader_epoch,
        decision.isr_with_broker_epoch,
        decision.partition_epoch,
    )
