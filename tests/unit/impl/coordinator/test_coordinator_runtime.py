"""The scenarios of Kafka's CoordinatorRuntimeTest (branch 4.4), with a store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import pytest

from impl.clock import MockClock
from impl.coordinator.coordinator_loader import LoadCallback
from impl.coordinator.coordinator_runtime import (
    MAX_RECORD_OVERHEAD,
    RECORD_BATCH_OVERHEAD,
    CoordinatorContext,
    CoordinatorRuntime,
    CoordinatorState,
    EndOfTransaction,
    TransactionalWriter,
)
from impl.coordinator.coordinator_shard import (
    CoordinatorRecord,
    CoordinatorResult,
    CoordinatorShard,
    ShardBuilder,
)
from impl.coordinator.partition_writer import (
    TV_UNKNOWN,
    HighWatermarkListener,
    VerifiedCallback,
)
from impl.coordinator.snapshottable_coordinator import SnapshottableCoordinator
from impl.coordinator.store_shard import StoreShard
from impl.coordinator.timeline import LATEST_EPOCH
from impl.coordinator.transactional_store_shard import TransactionalStoreShard
from impl.end_transaction_marker import EndTransactionMarker, deserialize
from impl.errors import Errors
from impl.producer_state.transactions import SENTINEL, VerificationGuard
from impl.records import MemoryRecords, Record, RecordBatch

RECORDS_OF_A_BATCH = 3
GUARD = VerificationGuard()
PRODUCER = TransactionalWriter(producer_id=5, producer_epoch=3)
SIZE = MAX_RECORD_OVERHEAD + 2 + 4
"""Bytes of a record with a key of 2 and a value of 4."""


class Queue:
    """Events in the order of their queue."""

    def __init__(self) -> None:
        self._events: deque[tuple[str, Callable[[], None]]] = deque()

    def enqueue_last(self, name: str, event: Callable[[], None]) -> None:
        self._events.append((name, event))

    def enqueue_first(self, name: str, event: Callable[[], None]) -> None:
        self._events.appendleft((name, event))

    def names(self) -> list[str]:
        return [name for name, _ in self._events]

    def poll(self) -> None:
        self._events.popleft()[1]()

    def run(self) -> None:
        while self._events:
            self.poll()


@dataclass
class Writer:
    """A log of batches in memory (InMemoryPartitionWriter)."""

    batches: list[list[Record]] = field(default_factory=list)
    appended: list[tuple[RecordBatch, VerificationGuard, int]] = field(default_factory=list)
    not_verified: Exception | None = None
    refuses: bool = False
    refuses_from: float = inf
    """The number of the first append that is refused."""
    leads: bool = True
    listener: HighWatermarkListener | None = None

    @property
    def max_message_bytes(self) -> int:
        if not self.leads:
            raise Errors.NOT_LEADER_OR_FOLLOWER.exception()
        return RECORD_BATCH_OVERHEAD + RECORDS_OF_A_BATCH * SIZE

    def append(
        self,
        records: MemoryRecords,
        guard: VerificationGuard = SENTINEL,
        transaction_version: int = TV_UNKNOWN,
    ) -> int:
        if self.refuses or len(self.batches) + 1 >= self.refuses_from:
            raise Errors.NOT_ENOUGH_REPLICAS.exception()
        (batch,) = records.batches()
        self.batches.append(list(batch.records))
        self.appended.append((batch, guard, transaction_version))
        return sum(map(len, self.batches))

    def maybe_start_transaction_verification(
        self, _transactional_id: str, _producer_id: int, _epoch: int, done: VerifiedCallback
    ) -> None:
        done(self.not_verified, GUARD)

    def register_listener(self, listener: HighWatermarkListener) -> None:
        self.listener = listener

    def deregister_listener(self, listener: HighWatermarkListener) -> None:
        if self.listener is listener:
            self.listener = None

    def commit(self, offset: int) -> None:
        assert self.listener is not None
        self.listener.on_high_watermark_updated(offset)


@dataclass
class Loader:
    """Loads that end when a test says so; `written` and `committed` are what they find."""

    written: int = 0
    committed: int = 0
    loads: list[tuple[SnapshottableCoordinator, LoadCallback]] = field(default_factory=list)

    def load(self, coordinator: SnapshottableCoordinator, callback: LoadCallback) -> None:
        self.loads.append((coordinator, callback))

    def end(self, error: Exception | None = None) -> None:
        coordinator, callback = self.loads.pop(0)
        if self.written:
            coordinator.update_last_written_offset(self.written)
            coordinator.update_last_committed_offset(self.committed)
        callback(error)


@dataclass
class Timer:
    """Tasks that end when a test says so."""

    tasks: list[Callable[[], None]] = field(default_factory=list)

    def add(self, _delay_ms: int, task: Callable[[], None]) -> None:
        self.tasks.append(task)


class Bed:
    """A runtime, and all that surrounds it."""

    def __init__(
        self, written: int = 0, committed: int = 0, shard: ShardBuilder = StoreShard
    ) -> None:
        self.queue, self.writer, self.timer = Queue(), Writer(), Timer()
        self.loader = Loader(written, committed)
        self.runtime = CoordinatorRuntime(
            shard, self.writer, self.loader, self.queue, self.timer, MockClock(0)
        )
        self.answers: dict[str, Errors] = {}

    def loaded(self) -> Bed:
        self.runtime.schedule_load_operation(10)
        self.queue.run()
        self.loader.end()
        self.queue.run()
        return self

    @property
    def context(self) -> CoordinatorContext:
        assert self.runtime.context is not None
        return self.runtime.context

    @property
    def coordinator(self) -> SnapshottableCoordinator:
        assert self.context.coordinator is not None
        return self.context.coordinator

    def write(self, name: str, result: CoordinatorResult) -> None:
        self._schedule(name, lambda _shard: result)

    def _schedule(self, name: str, op: Callable[[CoordinatorShard], CoordinatorResult]) -> None:
        self.runtime.schedule_write_operation(name, op, lambda error, _: self._note(name, error))

    def write_in_transaction(self, name: str, result: CoordinatorResult) -> None:
        self.runtime.schedule_transactional_write_operation(
            name, "id", PRODUCER, lambda _shard: result, lambda error, _: self._note(name, error)
        )
        self.queue.run()

    def end_transaction(self, name: str, *, is_commit: bool) -> None:
        end = EndOfTransaction(is_commit, coordinator_epoch=7, transaction_version=2)
        self.runtime.schedule_transaction_completion(
            name, PRODUCER, end, lambda error, _: self._note(name, error)
        )
        self.queue.run()

    def values(self, epoch: int = LATEST_EPOCH) -> tuple[dict[bytes, bytes], set[bytes]]:
        """What is in force, and the keys of which something is pending."""
        shard = self.coordinator.shard
        assert isinstance(shard, TransactionalStoreShard)
        in_force = {key: entry.value for key, entry in shard.values.entries(epoch).items()}
        return in_force, {key for _, key in shard.values.pending(epoch)}

    def _note(self, name: str, error: Exception | None) -> None:
        assert name not in self.answers, f"{name} is answered twice"
        self.answers[name] = Errors.NONE if error is None else Errors.for_exception(error)

    def offsets(self) -> tuple[int, int, list[int]]:
        """Last written, last committed, snapshots."""
        coordinator = self.coordinator
        snapshots = coordinator.snapshot_registry.epochs_list()
        return coordinator.last_written_offset, coordinator.last_committed_offset, snapshots

    def poll_write(self, name: str, result: CoordinatorResult) -> None:
        """Run the write, not the flush that it leaves in the queue."""
        self.write(name, result)
        assert self.queue.names()[-1] == name
        while self.queue.names()[0] != name:
            self.queue.poll()
        self.queue.poll()


def records(*keys: str, value: bytes = b"   1", atomic: bool = True) -> CoordinatorResult:
    made = tuple(CoordinatorRecord(key.encode(), value) for key in keys)
    return CoordinatorResult(made, is_atomic=atomic)


EMPTY = CoordinatorResult()


def test_a_write_is_answered_when_its_records_are_committed() -> None:
    """testScheduleWriteOp."""
    bed = Bed().loaded()
    bed.write("first", records("k1", "k2"))
    bed.queue.run()
    bed.write("second", records("k3"))
    bed.queue.run()
    bed.write("empty", EMPTY)
    bed.queue.run()
    assert bed.offsets() == (3, 0, [0, 2, 3])
    assert [len(batch) for batch in bed.writer.batches] == [2, 1]
    assert bed.answers == {}
    bed.writer.commit(2)
    bed.queue.run()
    assert bed.offsets() == (3, 2, [2, 3])
    assert list(bed.answers) == ["first"]
    bed.writer.commit(3)
    bed.queue.run()
    assert bed.offsets() == (3, 3, [3])
    assert list(bed.answers) == ["first", "second", "empty"]
    bed.write("another", EMPTY)
    bed.queue.run()
    assert set(bed.answers.values()) == {Errors.NONE}
    assert "another" in bed.answers


def test_a_refused_batch_fails_its_writes_and_the_one_that_pushed_it_out() -> None:
    """testScheduleWriteOperationWithBatchingWhenWriteFails."""
    bed = Bed().loaded()
    bed.writer.refuses = True
    bed.poll_write("first", records("k1"))
    bed.poll_write("second", records("k2"))
    bed.write("third", records("k3", "k4"))
    bed.queue.poll()
    bed.queue.run()
    assert set(bed.answers) == {"first", "second", "third"}
    assert set(bed.answers.values()) == {Errors.NOT_ENOUGH_REPLICAS}
    assert bed.offsets() == (0, 0, [0])
    assert bed.writer.batches == []
    shard = bed.coordinator.shard
    assert isinstance(shard, StoreShard)
    assert shard.entries() == {}


@pytest.mark.parametrize(("atomic", "batches"), [(True, [4]), (False, [3, 1])])
def test_only_an_atomic_write_stands_in_one_batch(atomic: bool, batches: list[int]) -> None:
    """testScheduleNonAtomicWriteOperation; this log takes a batch of any size."""
    bed = Bed().loaded()
    bed.write("four", records("k1", "k2", "k3", "k4", atomic=atomic))
    bed.queue.run()
    assert [len(batch) for batch in bed.writer.batches] == batches
    bed.writer.commit(3)
    bed.queue.run()
    assert bed.answers == {}
    bed.writer.commit(4)
    bed.queue.run()
    assert bed.answers == {"four": Errors.NONE}
    assert bed.offsets() == (4, 4, [4])


def test_a_flush_whose_batch_is_gone_does_nothing() -> None:
    """testAdaptiveAppendLingerWithMaxBatchSizeFlush."""
    bed = Bed().loaded()
    bed.poll_write("first", records("k1", "k2"))
    bed.write("second", records("k3"))
    assert bed.queue.names() == ["FlushBatch", "second"]
    stale = bed.queue._events.popleft()
    bed.queue.poll()
    assert [len(batch) for batch in bed.writer.batches] == [3]
    bed.poll_write("third", records("k4"))
    stale[1]()
    assert [len(batch) for batch in bed.writer.batches] == [3]
    bed.queue.run()
    assert [len(batch) for batch in bed.writer.batches] == [3, 1]


def test_an_empty_write_waits_for_what_a_load_found_uncommitted() -> None:
    """testWriteOpIsNotReleasedWhenStateMachineIsNotCaughtUpAfterLoad."""
    bed = Bed(written=2, committed=1).loaded()
    bed.write("empty", EMPTY)
    bed.queue.run()
    assert bed.answers == {}
    bed.writer.commit(2)
    bed.queue.run()
    assert bed.answers == {"empty": Errors.NONE}
    assert bed.offsets() == (2, 2, [2])


def test_a_large_record_does_not_flush_an_empty_batch() -> None:
    """testLargeCompressibleRecordDoesNotFlushEmptyBatch (KAFKA-20845)."""
    bed = Bed().loaded()
    bed.write("large", records("k1", value=b"1" * (3 * RECORDS_OF_A_BATCH * SIZE)))
    bed.queue.run()
    assert bed.context.batch_epoch == 1
    bed.writer.commit(1)
    bed.queue.run()
    assert bed.answers == {"large": Errors.NONE}


def test_watermarks_coalesce_into_one_event() -> None:
    """testHighWatermarkUpdate."""
    bed = Bed().loaded()
    bed.write("first", records("k1"))
    bed.queue.run()
    bed.write("second", records("k2"))
    bed.queue.run()
    bed.writer.commit(1)
    bed.writer.commit(2)
    listener = bed.context.high_watermark_listener
    assert listener is not None
    assert listener.last_high_watermark == 2
    assert bed.queue.names() == ["HighWatermarkUpdate"]
    bed.queue.run()
    assert bed.offsets()[:2] == (2, 2)
    assert listener.last_high_watermark == -1
    assert list(bed.answers) == ["first", "second"]


def test_records_of_a_write_that_timed_out_stay() -> None:
    """testScheduleWriteOpWhenWriteTimesOut, KAFKA-18174."""
    bed = Bed().loaded()
    bed.write("late", records("k1"))
    bed.queue.run()
    bed.timer.tasks[0]()
    bed.queue.run()
    assert bed.answers == {"late": Errors.REQUEST_TIMED_OUT}
    bed.writer.commit(1)
    bed.queue.run()
    assert bed.offsets() == (1, 1, [1])


def test_unloading_answers_all_that_wait() -> None:
    """testScheduleUnloadingWithDeferredEventExceptions, KAFKA-20115."""
    bed = Bed().loaded()
    bed.write("queued", records("k1"))
    bed.queue.run()
    bed.poll_write("open", records("k2"))
    bed.writer.leads = False
    bed.runtime.schedule_unload_operation(11)
    bed.queue.run()
    assert bed.runtime.context is None
    assert bed.writer.listener is None
    assert bed.answers == dict.fromkeys(("queued", "open"), Errors.NOT_COORDINATOR)


@pytest.mark.parametrize(("epoch", "stays"), [(9, True), (10, True), (11, False), (None, False)])
def test_a_resignation_counts_in_a_later_epoch_or_without_one(
    epoch: int | None, stays: bool
) -> None:
    """KAFKA-19274: a deleted topic has no epoch."""
    bed = Bed().loaded()
    bed.runtime.schedule_unload_operation(epoch)
    bed.queue.run()
    assert (bed.runtime.context is not None) is stays


def test_requests_before_and_after_a_load() -> None:
    bed = Bed()
    bed.write("nobody", EMPTY)
    bed.queue.run()
    bed.runtime.schedule_load_operation(10)
    bed.queue.run()
    bed.write("loading", EMPTY)
    bed.queue.run()
    bed.loader.end(Errors.NOT_LEADER_OR_FOLLOWER.exception())
    bed.queue.run()
    assert bed.context.state is CoordinatorState.FAILED
    bed.write("failed", EMPTY)
    bed.queue.run()
    assert bed.answers == {
        "nobody": Errors.NOT_COORDINATOR,
        "loading": Errors.COORDINATOR_LOAD_IN_PROGRESS,
        "failed": Errors.NOT_COORDINATOR,
    }
    bed.runtime.schedule_load_operation(11)
    bed.queue.run()
    bed.loader.end()
    bed.queue.run()
    assert bed.runtime.context is not None
    assert bed.runtime.context.state is CoordinatorState.ACTIVE


def test_the_load_of_a_context_that_is_gone_ends_no_other() -> None:
    bed = Bed()
    bed.runtime.schedule_load_operation(1)
    bed.runtime.schedule_unload_operation(2)
    bed.runtime.schedule_load_operation(3)
    bed.queue.run()
    bed.loader.end()
    bed.queue.run()
    assert bed.context.state is CoordinatorState.LOADING
    bed.loader.end()
    bed.queue.run()
    assert bed.runtime.context is not None
    assert bed.runtime.context.state is CoordinatorState.ACTIVE


def test_a_read_sees_what_is_committed() -> None:
    bed = Bed().loaded()
    bed.write("first", records("k1"))
    bed.queue.run()
    seen: list[object] = []

    def look(shard: CoordinatorShard, committed: int) -> object:
        assert isinstance(shard, StoreShard)
        return shard.entries(committed)

    bed.runtime.schedule_read_operation("read", look, lambda _, entries: seen.append(entries))
    bed.queue.run()
    bed.writer.commit(1)
    bed.runtime.schedule_read_operation("read", look, lambda _, entries: seen.append(entries))
    bed.queue.run()
    assert seen == [{}, {b"k1": b"   1"}]


def test_a_part_that_is_refused_fails_its_caller_and_leaves_what_is_written() -> None:
    bed = Bed().loaded()
    bed.poll_write("first", records("k1", "k2", "k3"))
    bed.writer.refuses_from = 2
    bed.write("parts", records("k4", "k5", "k6", "k7", atomic=False))
    bed.queue.run()
    assert bed.answers == {"parts": Errors.NOT_ENOUGH_REPLICAS}
    assert [len(batch) for batch in bed.writer.batches] == [3]
    assert bed.offsets() == (3, 0, [0, 3])


def test_a_transactional_write_is_pending_until_its_marker() -> None:
    """testScheduleTransactionalWriteOp, testScheduleTransactionCompletion."""
    bed = Bed(shard=TransactionalStoreShard).loaded()
    bed.write_in_transaction("write", records("k1"))
    assert bed.values() == ({}, {b"k1"})
    bed.end_transaction("marker", is_commit=True)
    assert bed.values() == ({b"k1": b"   1"}, set())
    assert bed.values(1) == ({}, {b"k1"})
    assert bed.values(2) == ({b"k1": b"   1"}, set())
    assert bed.offsets() == (2, 0, [0, 1, 2])
    assert bed.answers == {}
    bed.writer.commit(2)
    bed.queue.run()
    assert bed.answers == {"write": Errors.NONE, "marker": Errors.NONE}


def test_what_the_partition_gets_of_a_transaction() -> None:
    """The guard with its records, the version with its marker (KAFKA-19446)."""
    bed = Bed(shard=TransactionalStoreShard).loaded()
    bed.write_in_transaction("write", records("k1"))
    bed.end_transaction("marker", is_commit=False)
    (data, guard, no_version), (marker, sentinel, version) = bed.writer.appended
    assert data.producer == (5, 3, 0)
    assert data.is_transactional
    assert not data.is_control_batch
    assert (guard, no_version) == (GUARD, TV_UNKNOWN)
    assert marker.producer[:2] == (5, 3)
    assert deserialize(marker) == EndTransactionMarker(is_commit=False, coordinator_epoch=7)
    assert (sentinel, version) == (SENTINEL, 2)


def test_a_transactional_write_has_a_batch_alone() -> None:
    """testScheduleTransactionalWriteOperationWithBatching."""
    bed = Bed(shard=TransactionalStoreShard).loaded()
    bed.poll_write("open", records("k1"))
    bed.write_in_transaction("write", records("k2", atomic=False))
    assert [len(batch) for batch in bed.writer.batches] == [1, 1]
    assert bed.context.current_batch is None
    assert bed.queue.names() == []


def test_a_transaction_that_is_not_verified_writes_nothing() -> None:
    """testScheduleTransactionalWriteOpWhenVerificationFails."""
    bed = Bed(shard=TransactionalStoreShard).loaded()
    bed.writer.not_verified = Errors.NOT_ENOUGH_REPLICAS.exception()
    bed.write_in_transaction("write", records("k1"))
    assert bed.answers == {"write": Errors.NOT_ENOUGH_REPLICAS}
    assert bed.writer.batches == []


def test_a_marker_that_is_refused_is_as_if_it_had_not_been() -> None:
    """testScheduleTransactionCompletionWhenWriteFails."""
    bed = Bed(shard=TransactionalStoreShard).loaded()
    bed.write_in_transaction("write", records("k1"))
    bed.writer.refuses = True
    bed.end_transaction("marker", is_commit=True)
    assert bed.values() == ({}, {b"k1"})
    assert bed.offsets() == (1, 0, [0, 1])
    assert bed.answers == {"marker": Errors.NOT_ENOUGH_REPLICAS}


def test_a_marker_behind_unknown_records_has_the_shard_loaded_anew() -> None:
    bed = Bed(shard=TransactionalStoreShard).loaded()
    bed.writer.batches.append([Record(b"1", b"k1", 0)])
    bed.end_transaction("marker", is_commit=True)
    assert bed.context.state is CoordinatorState.LOADING
    assert bed.answers == {"marker": Errors.NOT_COORDINATOR}


def test_the_newest_value_is_in_force_whichever_transaction_ends_last() -> None:
    bed = Bed(shard=TransactionalStoreShard).loaded()
    bed.write_in_transaction("old", records("k1", "k2"))
    bed.write("new", records("k1", value=b"   2"))
    bed.queue.run()
    bed.end_transaction("marker", is_commit=True)
    assert bed.values() == ({b"k1": b"   2", b"k2": b"   1"}, set())


def test_a_tombstone_takes_what_is_pending() -> None:
    bed = Bed(shard=TransactionalStoreShard).loaded()
    bed.write_in_transaction("write", records("k1", "k2"))
    tombstone = CoordinatorResult((CoordinatorRecord(b"k1", None),))
    bed.write("delete", tombstone)
    bed.queue.run()
    bed.end_transaction("marker", is_commit=True)
    assert bed.values() == ({b"k2": b"   1"}, set())
