"""A broker with one log directory, whose background tasks wait until they are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.systems.directories.broker import NobodyElse
from conformance.systems.protocol import ActionRefused
from impl.clock import MockClock
from impl.concurrency import Concurrency
from impl.disk import Disk
from impl.errors import Errors
from impl.fetcher.abstract_fetcher_thread import FetcherRuntime
from impl.fetcher.replica_fetcher_manager import ReplicaFetcherManager
from impl.fetcher.replica_fetcher_thread import ReplicaFetcherThread
from impl.fetcher.replicas import UnboundedQuota
from impl.log import Log
from impl.log_manager import LogManager
from impl.log_types import LogConfig
from impl.metrics import MetricsRegistry
from impl.network import DirectSend, FetchConfig, RequestHandlers
from impl.partition import Partition
from impl.partition_state import LeaderAndIsrPartitionState
from impl.records import MemoryRecords, Record, RecordBatch
from impl.replica_manager import ReplicaManager
from impl.replica_requests import LeaderAndIsrRequest, ReplicaManagerConfig
from impl.types import BrokerEndPoint, FetchPartitionData, OffsetTruncationState, TopicPartition

TOPIC_PARTITION = TopicPartition("topic", 0)
LOG_DIRECTORY = "logs"
PARTITION_DIRECTORY = f"{LOG_DIRECTORY}/{TOPIC_PARTITION}"
RETENTION_MS = 1_000
_THIS, _ELSEWHERE = 1, 2
"""Broker ids: who leads is alone in the ISR."""


def batch_of(timestamp: int, base_offset: int = 0, epoch: int = -1) -> RecordBatch:
    """A batch of one record; all are of one size."""
    return RecordBatch.create((Record(b"value", timestamp=timestamp),), base_offset, epoch)


BATCH_BYTES = batch_of(0).size_in_bytes


class WaitingTasks:
    """A scheduler (impl.scheduler.Scheduler) whose tasks wait; a crash drops them with it."""

    def __init__(self) -> None:
        self._tasks: list[tuple[str, Callable[[], None]]] = []

    def schedule_once(self, name: str, task: Callable[[], None]) -> None:
        """Keep `task` for `run`."""
        self._tasks.append((name, task))

    def names(self) -> tuple[str, ...]:
        """Of the tasks not yet run, oldest first."""
        return tuple(name for name, _ in self._tasks)

    def run(self, number: int) -> None:
        """Run the task of that place, from 1."""
        if number > len(self._tasks):
            raise ActionRefused(f"{len(self._tasks)} tasks wait")
        _, task = self._tasks.pop(number - 1)
        task()


@dataclass(frozen=True, slots=True)
class Retention:
    """Settings of the topic, in records; `retained` None keeps all."""

    segment: int
    retained: int | None

    def config(self) -> LogConfig:
        """The same for the implementation."""
        retained = None if self.retained is None else self.retained * BATCH_BYTES
        return LogConfig(self.segment * BATCH_BYTES, retained, RETENTION_MS)


class StorageBroker:
    """A broker's process; a restart is a new object on the same disk."""

    def __init__(
        self, disk: Disk, retention: Retention, clock: MockClock, concurrency: Concurrency
    ) -> None:
        self._clock = clock
        self.scheduler = WaitingTasks()
        self.logs = LogManager(
            disk,
            (LOG_DIRECTORY,),
            self.scheduler,
            concurrency,
            default_config=retention.config(),
            clock=clock,
        )
        self.replicas = ReplicaManager(
            ReplicaManagerConfig(_THIS),
            clock,
            self.logs,
            NobodyElse(),
            NobodyElse(),
            concurrency,
            BrokerEndPoint,
            self._make_fetchers(concurrency),
        )

    def _make_fetchers(
        self, concurrency: Concurrency
    ) -> Callable[[ReplicaManager], ReplicaFetcherManager]:
        clock = self._clock

        def make(replicas: ReplicaManager) -> ReplicaFetcherManager:
            self._fetchers = ReplicaFetcherManager(
                FetchConfig(_THIS),
                replicas,
                UnboundedQuota(),
                _no_connection,
                FetcherRuntime(clock, concurrency, MetricsRegistry(clock)),
                fetch_back_off_ms=0,
            )
            return self._fetchers

        return make

    @property
    def partition(self) -> Partition:
        """The partition of the log."""
        return self.replicas.get_partition_or_exception(TOPIC_PARTITION)

    @property
    def log(self) -> Log:
        """The log."""
        return self.partition.local_log_or_exception()

    def batch(self, base_offset: int = 0, epoch: int = -1) -> RecordBatch:
        """A batch of now."""
        return batch_of(self._clock.milliseconds(), base_offset, epoch)

    def elect(self, leader_epoch: int, *, leads: bool) -> None:
        """The controller has elected this broker, or another one."""
        leader = _THIS if leads else _ELSEWHERE
        state = LeaderAndIsrPartitionState(
            TOPIC_PARTITION, leader, leader_epoch, (leader,), leader_epoch, (_THIS, _ELSEWHERE)
        )
        answer = self.replicas.become_leader_or_follower(LeaderAndIsrRequest(0, 0, (state,)))
        if answer.partitions.get(TOPIC_PARTITION, answer.error) is not Errors.NONE:
            raise ActionRefused(f"the controller is answered {answer}")

    def append_as_leader(self) -> None:
        """A producer sends a record."""
        self.replicas.append_records(TOPIC_PARTITION, MemoryRecords((self.batch(),)))

    def delete_records(self, offset: int) -> Errors:
        """An administrator deletes what is before the offset."""
        return self.replicas.delete_records({TOPIC_PARTITION: offset})[TOPIC_PARTITION]

    def process(
        self,
        *batches: RecordBatch,
        high_watermark: int | None = None,
        log_start_offset: int = 0,
    ) -> None:
        """What the leader of elsewhere answers a fetch; it has committed nothing more by itself."""
        log = self.log
        committed = log.high_watermark if high_watermark is None else high_watermark
        data = FetchPartitionData(Errors.NONE, committed, log_start_offset, MemoryRecords(batches))
        self._fetcher().process_partition_data(TOPIC_PARTITION, log.log_end_offset, data)

    def append_as_follower(self, epoch: int, *, commits: bool) -> None:
        """The leader of elsewhere sends a record, and may have committed it."""
        end = self.log.log_end_offset
        self.process(self.batch(end, epoch), high_watermark=end + 1 if commits else None)

    def truncate(self, offset: int) -> None:
        """The leader of elsewhere says that the logs diverge from there on."""
        self._fetcher().truncate(TOPIC_PARTITION, OffsetTruncationState(offset, True))

    def start_anew(self, offset: int) -> None:
        """The leader of elsewhere has nothing before the offset."""
        self._fetcher().truncate_fully_and_start_at(TOPIC_PARTITION, offset)

    def _fetcher(self) -> ReplicaFetcherThread:
        thread = self._fetchers.get_fetcher(TOPIC_PARTITION)
        if thread is None:
            raise ActionRefused("the log follows nobody")
        return thread


def _no_connection(leader: BrokerEndPoint, _fetcher_id: int) -> DirectSend:
    def reach() -> RequestHandlers:
        raise ActionRefused(f"broker {leader.id} is asked; its answers are actions")

    return DirectSend(reach)
