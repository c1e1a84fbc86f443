"""Timers and tasks of a shard, through the runtime of a broker without followers."""

from __future__ import annotations

from collections.abc import Callable

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.coordinator.coordinator_executor import CoordinatorExecutorImpl
from impl.coordinator.coordinator_runtime import CoordinatorRuntime
from impl.coordinator.coordinator_shard import CoordinatorResult, CoordinatorShard
from impl.coordinator.coordinator_timer import (
    RETRY_BACKOFF_MS,
    EventBasedCoordinatorTimer,
    TimeoutTask,
)
from impl.coordinator.local_partition import ImmediateEventProcessor, LocalPartition
from impl.coordinator.session_shard import SESSION_TIMEOUT_MS, SessionShard
from impl.coordinator.timeline import SnapshotRegistry
from impl.disk import MemoryDisk
from impl.errors import Errors
from impl.log_loader import load_log
from impl.scheduler import ImmediateScheduler
from impl.types import TopicPartition

K1, K2 = b"k1", b"k2"


class Coordinator:
    """A shard that serves; its timers and its pool wait for the test."""

    def __init__(self) -> None:
        partition = TopicPartition("__consumer_offsets", 0)
        log = load_log(partition, "log", MemoryDisk(), ImmediateScheduler(), NoConcurrency())
        local = LocalPartition(log)
        self.timers: list[tuple[int, TimeoutTask]] = []
        self.pool: list[Callable[[], None]] = []
        self.runtime = CoordinatorRuntime(
            self._shard, local, local, ImmediateEventProcessor(), self, MockClock(0)
        )
        self.timer = EventBasedCoordinatorTimer(self, self.runtime.schedule_write_operation)
        self.executor = CoordinatorExecutorImpl(self, self.runtime.schedule_write_operation)
        self.runtime.schedule_load_operation(1)

    def _shard(self, registry: SnapshotRegistry) -> CoordinatorShard:
        return SessionShard(registry, self.timer, self.executor, has_sessions=True)

    def add(self, delay_ms: int, task: Callable[[], None]) -> None:
        if isinstance(task, TimeoutTask):
            self.timers.append((delay_ms, task))

    def submit(self, task: Callable[[], None]) -> None:
        self.pool.append(task)

    def write(self, operation: Callable[[SessionShard], CoordinatorResult]) -> None:
        def run(shard: CoordinatorShard) -> CoordinatorResult:
            assert isinstance(shard, SessionShard)
            return operation(shard)

        self.runtime.schedule_write_operation("write", run, lambda _error, _response: None)

    def entries(self) -> dict[bytes, bytes]:
        context = self.runtime.context
        assert context is not None
        assert context.coordinator is not None
        shard = context.coordinator.shard
        assert isinstance(shard, SessionShard)
        return shard.entries()


def test_a_timer_deletes_the_value_that_it_was_set_for() -> None:
    coordinator = Coordinator()
    coordinator.write(lambda shard: shard.put({K1: b"1"}))
    ((delay_ms, task),) = coordinator.timers

    task()

    assert delay_ms == SESSION_TIMEOUT_MS
    assert coordinator.entries() == {}
    assert coordinator.timer.running == {}


def test_a_timer_that_was_started_again_does_nothing() -> None:
    coordinator = Coordinator()
    coordinator.write(lambda shard: shard.put({K1: b"1"}))
    coordinator.write(lambda shard: shard.put({K1: b"2"}))

    coordinator.timers[0][1]()

    assert coordinator.entries() == {K1: b"2"}
    assert coordinator.timer.running == {"k1": coordinator.timers[1][1]}


def test_a_timer_whose_operation_fails_is_started_again_for_a_moment() -> None:
    coordinator = Coordinator()

    def fails() -> CoordinatorResult:
        raise Errors.NOT_ENOUGH_REPLICAS.exception()

    coordinator.timer.schedule("k1", SESSION_TIMEOUT_MS, fails)
    coordinator.timers[0][1]()

    assert [delay_ms for delay_ms, _ in coordinator.timers] == [
        SESSION_TIMEOUT_MS,
        RETRY_BACKOFF_MS,
    ]


def test_a_task_has_the_value_of_its_scheduling() -> None:
    coordinator = Coordinator()
    coordinator.write(lambda shard: shard.put({K1: b"1"}))
    coordinator.write(lambda shard: shard.offload(K1, K2))
    coordinator.write(lambda shard: shard.put({K1: b"2"}))

    coordinator.pool[0]()

    assert coordinator.entries() == {K1: b"2", K2: b"1"}


def test_a_shard_that_is_unloaded_has_no_timers_and_wants_no_results() -> None:
    coordinator = Coordinator()
    coordinator.write(lambda shard: shard.put({K1: b"1"}))
    coordinator.write(lambda shard: shard.offload(K1, K2))

    coordinator.runtime.schedule_unload_operation(2)

    assert coordinator.timer.running == {}
    assert not coordinator.executor.is_scheduled("k1")


def test_a_load_starts_the_timer_of_each_value() -> None:
    coordinator = Coordinator()
    coordinator.write(lambda shard: shard.put({K1: b"1", K2: b"2"}))
    coordinator.runtime.schedule_unload_operation(2)

    coordinator.runtime.schedule_load_operation(3)

    assert coordinator.timer.running.keys() == {"k1", "k2"}
