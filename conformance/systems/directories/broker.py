"""A broker with two log directories, and the cluster around it as method calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused
from impl.checkpoint import OffsetCheckpointFile
from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.fetcher.abstract_fetcher_thread import FetcherRuntime
from impl.fetcher.leader_endpoint import ReplicaFetch
from impl.fetcher.replica_alter_log_dirs_thread import ReplicaAlterLogDirsThread
from impl.fetcher.replica_fetcher_manager import ReplicaAlterLogDirsManager, ReplicaFetcherManager
from impl.fetcher.replicas import DirectoryEventHandler, UnboundedQuota
from impl.log import Log
from impl.log_manager import LogManager
from impl.metrics import MetricsRegistry
from impl.network import DirectSend, FetchConfig, RequestHandlers
from impl.partition import Partition
from impl.partition_state import AlterPartitionCallback, LeaderAndIsr, LeaderAndIsrPartitionState
from impl.records import MemoryRecords, Record
from impl.replica_manager import ReplicaManager
from impl.replica_requests import LeaderAndIsrRequest, ReplicaManagerConfig
from impl.scheduler import ImmediateScheduler
from impl.types import (
    BrokerEndPoint,
    EpochEndOffset,
    FetchPartitionData,
    InitialFetchState,
    ProtocolConfig,
    TopicPartition,
)

TOPIC_PARTITION = TopicPartition("topic", 0)
DIRECTORIES = ("d1", "d2")
_THIS, _ELSEWHERE = 1, 2
"""Broker ids: who leads is alone in the ISR."""
_RECORD = Record(b"value")
_ONE_BATCH = 1
"""Fetch limit in bytes: at least one batch is always sent, so this means exactly one."""

_DEFERS: ContextVar[bool] = ContextVar("defers", default=False)
"""Whether the present thread of control handles an election; each greenlet has a value."""


class NobodyElse:
    """A controller that is asked nothing, and a cluster without other live brokers."""

    def submit(
        self, _tp: TopicPartition, _proposed: LeaderAndIsr, _done: AlterPartitionCallback, /
    ) -> None:
        """Who is alone in the ISR changes nothing."""
        raise ActionRefused("the leader proposes another ISR")

    def is_broker_fenced(self, _broker_id: int, /) -> bool:
        """All others are."""
        return True

    def is_broker_shutting_down(self, _broker_id: int, /) -> bool:
        """Nobody is."""
        return False

    def get_alive_broker_epoch(self, _broker_id: int, /) -> int | None:
        """Nobody is alive."""
        return None


class SteppedLogDirsManager(ReplicaAlterLogDirsManager):
    """Keeps what other threads tell the thread of the move, until the action of that comes."""

    added: Mapping[TopicPartition, InitialFetchState] | None = None
    marked: int | None = None

    def add_fetcher_for_partitions(
        self, initial_fetch_states: Mapping[TopicPartition, InitialFetchState]
    ) -> None:
        """At once, unless an election is handled."""
        if _DEFERS.get():
            self.added = initial_fetch_states
        else:
            super().add_fetcher_for_partitions(initial_fetch_states)

    def mark_partitions_for_truncation(
        self, broker_id: int, partition: TopicPartition, truncation_offset: int
    ) -> None:
        """Later."""
        if broker_id != _THIS or partition != TOPIC_PARTITION:
            raise ActionRefused(f"{partition} is marked as followed from broker {broker_id}")
        self.marked = truncation_offset

    def deliver_added(self) -> None:
        """AddFetcher."""
        added, self.added = self.added, None
        if added is None:
            raise ActionRefused("no registration is under way")
        super().add_fetcher_for_partitions(added)

    def deliver_marked(self) -> None:
        """MarkForTruncation."""
        marked, self.marked = self.marked, None
        if marked is None:
            raise ActionRefused("the current log was not truncated")
        super().mark_partitions_for_truncation(_THIS, TOPIC_PARTITION, marked)


@dataclass(frozen=True, slots=True)
class DirectoryRegistration:
    """What the controller has decided on the partition."""

    leader_epoch: int
    partition_epoch: int
    leads: bool
    """Whether this broker leads."""
    directory: str | None = None
    """Where this broker's replica lies; None where that has not changed."""


class TwoDirectoryBroker:
    """A broker's process; a restart is a new object on the same disk."""

    def __init__(
        self,
        disk: MemoryDisk,
        concurrency: Concurrency,
        assignments: DirectoryEventHandler | None = None,
    ) -> None:
        self.disk = disk
        self._clock = MockClock(1_000_000)
        runtime = FetcherRuntime(self._clock, concurrency, MetricsRegistry(self._clock))
        protocol = ProtocolConfig(truncation_on_fetch=True)
        config = FetchConfig(
            _THIS,
            max_bytes=_ONE_BATCH,
            partition_max_bytes=_ONE_BATCH,
            protocol=protocol,
            fetch_sessions=False,
        )

        def moves(replicas: ReplicaManager) -> SteppedLogDirsManager:
            self.moves = SteppedLogDirsManager(
                config,
                replicas,
                replicas.fetch_for_future_replica,
                UnboundedQuota(),
                runtime,
                fetch_back_off_ms=0,
                directory_event_handler=assignments,
            )
            return self.moves

        def fetchers(replicas: ReplicaManager) -> ReplicaFetcherManager:
            self._fetchers = ReplicaFetcherManager(
                config,
                replicas,
                UnboundedQuota(),
                _no_connection,
                runtime,
                fetch_back_off_ms=0,
                alter_log_dirs_manager=self.moves,
            )
            return self._fetchers

        self.replicas = ReplicaManager(
            ReplicaManagerConfig(_THIS, protocol=protocol),
            self._clock,
            LogManager(disk, DIRECTORIES, ImmediateScheduler(), concurrency),
            NobodyElse(),
            NobodyElse(),
            concurrency,
            BrokerEndPoint,
            fetchers,
            moves,
            directory_event_handler=assignments,
        )

    # ---- what is there ---------------------------------------------------------------------

    @property
    def partition(self) -> Partition | None:
        """The partition, unless its directory has failed."""
        return self.replicas.get_partition(TOPIC_PARTITION)

    @property
    def log(self) -> Log:
        """The current log. Raises if its directory has failed."""
        return self.replicas.local_log_or_exception(TOPIC_PARTITION)

    def mover(self) -> ReplicaAlterLogDirsThread:
        """The thread of moves; it stays when it follows nothing."""
        threads = tuple(self.moves.fetcher_threads().values())
        if len(threads) != 1:
            raise ActionRefused(f"{len(threads)} threads move logs")
        return threads[0]

    # ---- the rest of the cluster -----------------------------------------------------------

    def elect(self, registration: DirectoryRegistration) -> None:
        """The controller has elected this broker, or another one."""
        with _deferring():
            self.hear(registration)

    def hear(self, registration: DirectoryRegistration) -> None:
        """The metadata have another registration of the partition."""
        leader = _THIS if registration.leads else _ELSEWHERE
        state = LeaderAndIsrPartitionState(
            TOPIC_PARTITION,
            leader,
            registration.leader_epoch,
            (leader,),
            registration.partition_epoch,
            (_THIS, _ELSEWHERE),
            directory=registration.directory,
        )
        answer = self.replicas.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (state,)))
        if answer.partitions.get(TOPIC_PARTITION, answer.error) is not Errors.NONE:
            raise ActionRefused(f"the controller is answered {answer}")

    def append_as_leader(self) -> None:
        """A producer sends a record."""
        self.replicas.append_records(TOPIC_PARTITION, MemoryRecords.with_records(_RECORD))

    def append_as_follower(self, epoch: int) -> None:
        """The leader of elsewhere sends a record, and has committed nothing more."""
        log = self.log
        records = MemoryRecords.with_records(
            _RECORD, base_offset=log.log_end_offset, partition_leader_epoch=epoch
        )
        self._answer_fetch(FetchPartitionData(Errors.NONE, log.high_watermark, 0, records))

    def truncate(self, offset: int) -> None:
        """The leader of elsewhere says that the logs diverge from there on."""
        epoch = next(
            batch.partition_leader_epoch
            for batch in self.log.batches()
            if batch.last_offset == offset - 1
        )
        diverging = EpochEndOffset(leader_epoch=epoch, end_offset=offset)
        self._answer_fetch(FetchPartitionData(Errors.NONE, -1, 0, diverging_epoch=diverging))

    def _answer_fetch(self, data: FetchPartitionData) -> None:
        thread = self._fetchers.get_fetcher(TOPIC_PARTITION)
        fetch = None if thread is None else thread.build_fetch()
        if thread is None or fetch is None:
            raise ActionRefused("the current log fetches nothing")
        kept = ReplicaFetch(dict(fetch.partition_data), fetch.request)
        thread.process_fetch_response(kept.partition_data, {TOPIC_PARTITION: data})
        if self._fetchers.failed_partitions.contains(TOPIC_PARTITION):
            raise ActionRefused("the current log's fetcher has failed")

    def forget_checkpoints(self) -> None:
        """No high watermark was ever checkpointed."""
        for directory in DIRECTORIES:
            self.disk.remove(f"{directory}/{OffsetCheckpointFile.HIGH_WATERMARK}")


def _no_connection(leader: BrokerEndPoint, _fetcher_id: int) -> DirectSend:
    def reach() -> RequestHandlers:
        raise ActionRefused(f"broker {leader.id} is asked; its answers are actions")

    return DirectSend(reach)


@contextmanager
def _deferring() -> Iterator[None]:
    before = _DEFERS.set(True)
    try:
        yield
    finally:
        _DEFERS.reset(before)
