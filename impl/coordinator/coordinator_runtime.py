"""Runs a coordinator's shards: events, batches, snapshots, watermarks, loads.

Source: CoordinatorRuntime and its CoordinatorContext, branch 4.4. One runtime holds one partition
here; a broker has one for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from ..clock import Clock
from ..end_transaction_marker import EndTransactionMarker
from ..errors import Errors, IllegalStateException, KafkaException
from ..producer_state.transactions import SENTINEL, VerificationGuard
from ..records import NO_PRODUCER, MemoryRecords, ProducerInfo, Record, RecordBatch
from .coordinator_loader import CoordinatorLoader
from .coordinator_shard import (
    CoordinatorRecord,
    CoordinatorResult,
    CoordinatorShard,
    ShardBuilder,
)
from .partition_writer import PartitionWriter
from .snapshottable_coordinator import SnapshottableCoordinator

RECORD_BATCH_OVERHEAD = 61
MAX_RECORD_OVERHEAD = 21
"""DefaultRecordBatch.RECORD_BATCH_OVERHEAD, DefaultRecord.MAX_RECORD_OVERHEAD: in bytes."""
_NO_OFFSET = -1

Completion = Callable[[Exception | None, object], None]
"""Called once: with the exception, or with the response."""
WriteOperation = Callable[[CoordinatorShard], CoordinatorResult]
ReadOperation = Callable[[CoordinatorShard, int], object]


class CoordinatorState(Enum):
    """CoordinatorRuntime.CoordinatorState; a partition without a context has none."""

    INITIAL = "INITIAL"
    LOADING = "LOADING"
    ACTIVE = "ACTIVE"
    CLOSED = "CLOSED"
    FAILED = "FAILED"


class CoordinatorEventProcessor(Protocol):
    """The queue of one partition's events; they run one after the other."""

    def enqueue_last(self, name: str, event: Callable[[], None]) -> None:
        """Run the event after those that are queued."""

    def enqueue_first(self, name: str, event: Callable[[], None]) -> None:
        """Run the event before them: a watermark, or the linger timer's flush."""


class CoordinatorTimer(Protocol):
    """Runs a task when its time is over, in no event."""

    def add(self, delay_ms: int, task: Callable[[], None]) -> None:
        """Run the task once."""


class WriteEvent:
    """A caller who waits: completed once (KAFKA-18174)."""

    __slots__ = ("_completion", "_done", "name")

    def __init__(self, name: str, completion: Completion) -> None:
        self.name = name
        self._completion = completion
        self._done = False

    @property
    def is_done(self) -> bool:
        """Whether the caller was answered."""
        return self._done

    def complete(self, error: Exception | None, response: object = None) -> None:
        """Answer the caller, unless that was done."""
        if not self._done:
            self._done = True
            self._completion(error, response)


@dataclass(frozen=True, slots=True)
class DeferredEvent:
    """An event, and the answer that it gets once its records are committed."""

    event: WriteEvent
    response: object


@dataclass(frozen=True, slots=True)
class TransactionalWriter:
    """The producer of a write in a transaction, and the guard that the partition gave for it."""

    producer_id: int
    producer_epoch: int
    guard: VerificationGuard = SENTINEL

    @property
    def producer(self) -> ProducerInfo:
        """As the header of a batch has it: its batches all begin at sequence 0."""
        return ProducerInfo(self.producer_id, self.producer_epoch, 0)


@dataclass(frozen=True, slots=True)
class EndOfTransaction:
    """What the transaction coordinator's marker says; its log asks more of the epoch in version 2
    (KAFKA-19446)."""

    is_commit: bool
    coordinator_epoch: int = 0
    transaction_version: int = 0


@dataclass(slots=True)
class CoordinatorBatch:
    """The records that the next append writes (CoordinatorRuntime.CoordinatorBatch)."""

    base_offset: int
    max_batch_size: int
    records: list[Record] = field(default_factory=list)
    size_in_bytes: int = RECORD_BATCH_OVERHEAD
    deferred: list[DeferredEvent] = field(default_factory=list)
    writer: TransactionalWriter | None = None

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last record."""
        return self.base_offset + len(self.records)

    @property
    def is_full(self) -> bool:
        """MemoryRecordsBuilder.isFull."""
        return bool(self.records) and self.max_batch_size <= self.size_in_bytes

    def has_room_for(self, size: int) -> bool:
        """MemoryRecordsBuilder.hasRoomFor: an empty batch takes a record of any size."""
        if self.is_full:
            return False
        return not self.records or self.max_batch_size >= self.size_in_bytes + size

    @property
    def producer(self) -> ProducerInfo:
        """Of the batch's header."""
        return NO_PRODUCER if self.writer is None else self.writer.producer

    def memory_records(self) -> MemoryRecords:
        """As the log takes it."""
        batch = RecordBatch.create(
            self.records, producer=self.producer, is_transactional=self.writer is not None
        )
        return MemoryRecords((batch,))

    def append(self, record: CoordinatorRecord, timestamp: int) -> None:
        """Add a record, of which the estimated size is counted."""
        self.records.append(Record(record.value, record.key, timestamp))
        self.size_in_bytes += size_of(record)


def size_of(record: CoordinatorRecord) -> int:
    """An upper bound of a record's size in bytes."""
    return MAX_RECORD_OVERHEAD + len(record.key) + len(record.value or b"")


class HighWatermarkListener:
    """Keeps the newest watermark until its event runs."""

    def __init__(self, processor: CoordinatorEventProcessor, event: Callable[[int], None]) -> None:
        self._processor = processor
        self._event = event
        self.last_high_watermark = _NO_OFFSET

    def on_high_watermark_updated(self, offset: int) -> None:
        """Updates coalesce: one event is queued, before all others."""
        earlier, self.last_high_watermark = self.last_high_watermark, offset
        if earlier == _NO_OFFSET:
            self._processor.enqueue_first("HighWatermarkUpdate", self._run)

    def _run(self) -> None:
        offset, self.last_high_watermark = self.last_high_watermark, _NO_OFFSET
        self._event(offset)


class CoordinatorContext:
    """One partition's coordinator: its state and all that changes it."""

    def __init__(self, runtime: CoordinatorRuntime) -> None:
        self._runtime = runtime
        self.state = CoordinatorState.INITIAL
        self.epoch = -1
        self.coordinator: SnapshottableCoordinator | None = None
        self.high_watermark_listener: HighWatermarkListener | None = None
        self.current_batch: CoordinatorBatch | None = None
        self.batch_epoch = 0
        self.deferred_events: dict[int, list[DeferredEvent]] = {}

    # ---- states ------------------------------------------------------------------------------

    def transition_to(self, state: CoordinatorState) -> None:
        """CoordinatorContext.transitionTo. Raises IllegalStateException if it may not."""
        if not _may_follow(self.state, state):
            raise IllegalStateException(f"cannot go from {self.state} to {state}")
        if state is CoordinatorState.LOADING:
            self.state = state
            self._load()
        elif state is CoordinatorState.ACTIVE:
            self.state = state
            self._serve()
        else:
            self.state = state
            self._unload()

    def _load(self) -> None:
        coordinator = SnapshottableCoordinator(self._runtime.shard_builder)
        self.coordinator = coordinator
        self._runtime.loader.load(
            coordinator,
            lambda error: self._runtime.processor.enqueue_last(
                "CompleteLoad", lambda: self._complete_load(coordinator, error)
            ),
        )

    def _complete_load(self, loaded: SnapshottableCoordinator, error: Exception | None) -> None:
        """Kafka's event names the partition alone, so that the load of a context that is gone
        could end the next one's. Here a load ends only what it has loaded."""
        if self.state is not CoordinatorState.LOADING or self.coordinator is not loaded:
            return
        self.transition_to(CoordinatorState.ACTIVE if error is None else CoordinatorState.FAILED)

    def _serve(self) -> None:
        self.high_watermark_listener = HighWatermarkListener(
            self._runtime.processor, self.update_last_committed_offset
        )
        self._runtime.partition_writer.register_listener(self.high_watermark_listener)
        self._loaded().shard.on_loaded()

    def _unload(self) -> None:
        """CoordinatorContext.unload: it asks the partition for nothing (KAFKA-20115)."""
        if self.high_watermark_listener is not None:
            self._runtime.partition_writer.deregister_listener(self.high_watermark_listener)
            self.high_watermark_listener = None
        error = Errors.NOT_COORDINATOR.exception()
        for deferred in [item for items in self.deferred_events.values() for item in items]:
            deferred.event.complete(error)
        self.deferred_events.clear()
        self.fail_current_batch(error)
        if self.coordinator is not None:
            self.coordinator.shard.on_unloaded()
            self.coordinator = None

    def _loaded(self) -> SnapshottableCoordinator:
        if self.coordinator is None:
            raise IllegalStateException("no shard is loaded")
        return self.coordinator

    # ---- appends -----------------------------------------------------------------------------

    def append(
        self,
        result: CoordinatorResult,
        event: WriteEvent,
        writer: TransactionalWriter | None = None,
    ) -> None:
        """CoordinatorContext.append: raises what a flush raises that the records pushed out.

        A write in a transaction has a batch alone.
        """
        deferred = DeferredEvent(event, result.response)
        if not result.records:
            self._append_nothing(deferred)
            return
        if writer is not None:
            self.flush_current_batch()
            result = replace(result, is_atomic=True)
        size = sum(map(size_of, result.records))
        self._maybe_allocate_new_batch(writer)
        if result.is_atomic and self._is_to_be_flushed_for(size):
            self.flush_current_batch()
            self._maybe_allocate_new_batch(writer)
        for record in result.records:
            # What this flush raises fails the operation; what was flushed before stays in the log.
            if not result.is_atomic and self._is_to_be_flushed_for(size_of(record)):
                self.flush_current_batch()
                self._maybe_allocate_new_batch(writer)
            try:
                self._append_record(record, result)
            except KafkaException as error:
                self._join_batch(deferred)
                self.fail_current_batch(error)
                return
        self._join_batch(deferred)
        batch = self.current_batch
        if batch is not None and (batch.writer is not None or batch.is_full):
            self.flush_current_batch()

    def complete_transaction(
        self, writer: TransactionalWriter, end: EndOfTransaction, event: WriteEvent
    ) -> None:
        """CoordinatorContext.completeTransaction: raises what the flush of the open batch raises.

        The shard replays the marker before it is appended, and goes back if that fails. Kafka's
        does not notice that the marker stands behind records which the shard does not know.
        """
        self.flush_current_batch()
        coordinator = self._loaded()
        before = coordinator.last_written_offset
        try:
            coordinator.replay_end_transaction_marker(
                writer.producer_id, writer.producer_epoch, is_commit=end.is_commit
            )
            offset = self._append_marker(writer, end)
            if offset != before + 1:
                self._reload(offset, before + 1)
            coordinator.update_last_written_offset(offset)
            self._defer(offset, DeferredEvent(event, None))
        except KafkaException as error:
            coordinator.revert_last_written_offset(before)
            event.complete(error)

    def _append_marker(self, writer: TransactionalWriter, end: EndOfTransaction) -> int:
        marker = EndTransactionMarker(end.is_commit, end.coordinator_epoch)
        records = marker.memory_records(
            self._runtime.clock.milliseconds(), writer.producer_id, writer.producer_epoch
        )
        return self._runtime.partition_writer.append(
            records, transaction_version=end.transaction_version
        )

    def _append_nothing(self, deferred: DeferredEvent) -> None:
        """An answer without records waits until all that it rests on is committed."""
        coordinator = self._loaded()
        # An open batch that is empty counts as none (KAFKA-18200).
        if self.current_batch is not None and self.current_batch.records:
            self.current_batch.deferred.append(deferred)
        elif coordinator.last_committed_offset < coordinator.last_written_offset:
            self._defer(coordinator.last_written_offset, deferred)
        else:
            deferred.event.complete(None, deferred.response)

    def _is_to_be_flushed_for(self, size: int) -> bool:
        """Whether records of that size have no room. An empty batch is never flushed: compression
        may make them fit (KAFKA-19760, KAFKA-20845)."""
        batch = self.current_batch
        return batch is not None and bool(batch.records) and not batch.has_room_for(size)

    def _append_record(self, record: CoordinatorRecord, result: CoordinatorResult) -> None:
        batch = self.current_batch
        if batch is None:
            raise IllegalStateException("there is no batch")
        if result.replay_records:
            producer_id, producer_epoch, _ = batch.producer
            self._loaded().replay(batch.next_offset, producer_id, producer_epoch, record)
        batch.append(record, self._runtime.clock.milliseconds())

    def _join_batch(self, deferred: DeferredEvent) -> None:
        if self.current_batch is not None:
            self.current_batch.deferred.append(deferred)

    def _maybe_allocate_new_batch(self, writer: TransactionalWriter | None) -> None:
        """The adaptive linger: the event that stands last in the queue now closes the batch
        (KAFKA-19826). A write in a transaction closes its own."""
        if self.current_batch is not None:
            return
        size = self._runtime.partition_writer.max_message_bytes
        self.current_batch = CoordinatorBatch(
            self._loaded().last_written_offset, size, writer=writer
        )
        self.batch_epoch += 1
        epoch = self.batch_epoch
        if writer is not None:
            return
        self._runtime.processor.enqueue_last("FlushBatch", lambda: self._flush_if_current(epoch))

    def _flush_if_current(self, batch_epoch: int) -> None:
        if self.state is CoordinatorState.ACTIVE and self.batch_epoch == batch_epoch:
            try:
                self.flush_current_batch()
            except KafkaException:  # the batch's events were completed with it
                return

    def flush_current_batch(self) -> None:
        """CoordinatorContext.flushCurrentBatch. What it raises has failed the batch."""
        batch = self.current_batch
        if batch is None:
            return
        if not batch.records:
            self.fail_current_batch(IllegalStateException("an empty batch is not flushed"))
            return
        try:
            guard = SENTINEL if batch.writer is None else batch.writer.guard
            offset = self._runtime.partition_writer.append(batch.memory_records(), guard)
            if offset != batch.next_offset:
                self._reload(offset, batch.next_offset)
            self._loaded().update_last_written_offset(offset)
            for deferred in batch.deferred:
                self._defer(offset, deferred)
            self.current_batch = None
        except KafkaException as error:
            self.fail_current_batch(error)
            raise

    def _reload(self, offset: int, expected: int) -> None:
        """The log has records that this shard does not know: it is loaded anew."""
        self.transition_to(CoordinatorState.FAILED)
        self.transition_to(CoordinatorState.LOADING)
        raise Errors.NOT_COORDINATOR.exception(
            f"the log ends at {offset} where {expected} was expected"
        )

    def fail_current_batch(self, error: Exception) -> None:
        """The state goes back to before the batch; all of its events get the error."""
        batch, self.current_batch = self.current_batch, None
        if batch is not None:
            self._loaded().revert_last_written_offset(batch.base_offset)
            for deferred in batch.deferred:
                deferred.event.complete(error)

    # ---- watermarks --------------------------------------------------------------------------

    def _defer(self, offset: int, deferred: DeferredEvent) -> None:
        self.deferred_events.setdefault(offset, []).append(deferred)

    def update_last_committed_offset(self, offset: int) -> None:
        """Answer all that waits for an offset up to this one. A watermark that does not fit is
        dropped, and so is one of a shard that is not active."""
        if self.state is not CoordinatorState.ACTIVE:
            return
        try:
            self._loaded().update_last_committed_offset(offset)
        except IllegalStateException:
            return
        for at in sorted(self.deferred_events):
            if at <= offset:
                for deferred in self.deferred_events.pop(at):
                    deferred.event.complete(None, deferred.response)


_TRANSITIONS: dict[CoordinatorState, tuple[CoordinatorState, ...]] = {
    CoordinatorState.LOADING: (CoordinatorState.INITIAL, CoordinatorState.FAILED),
    CoordinatorState.ACTIVE: (CoordinatorState.LOADING, CoordinatorState.ACTIVE),
    CoordinatorState.FAILED: (CoordinatorState.LOADING, CoordinatorState.ACTIVE),
    CoordinatorState.CLOSED: tuple(CoordinatorState),
}
"""Each state, and those that it may follow (CoordinatorState.validPreviousStates)."""


def _may_follow(before: CoordinatorState, after: CoordinatorState) -> bool:
    return before in _TRANSITIONS.get(after, ())


@dataclass(frozen=True, slots=True)
class CoordinatorRuntimeConfig:
    """`write_timeout_ms`: offsets.commit.timeout.ms for groups."""

    write_timeout_ms: int = 5000


class CoordinatorRuntime:
    """The coordinator of one partition on one broker."""

    def __init__(
        self,
        shard_builder: ShardBuilder,
        partition_writer: PartitionWriter,
        loader: CoordinatorLoader,
        processor: CoordinatorEventProcessor,
        timer: CoordinatorTimer,
        clock: Clock,
        config: CoordinatorRuntimeConfig | None = None,
    ) -> None:
        self.shard_builder = shard_builder
        self.partition_writer = partition_writer
        self.loader = loader
        self.processor = processor
        self.timer = timer
        self.clock = clock
        self.config = config or CoordinatorRuntimeConfig()
        self.context: CoordinatorContext | None = None

    # ---- requests ----------------------------------------------------------------------------

    def schedule_write_operation(self, name: str, op: WriteOperation, done: Completion) -> None:
        """Queue an operation; `done` is called when its records are committed, or with an error:
        NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, REQUEST_TIMED_OUT, or the log's."""
        event = WriteEvent(name, done)
        self.processor.enqueue_last(name, lambda: self._write(op, event, None))

    def schedule_transactional_write_operation(
        self,
        name: str,
        transactional_id: str,
        writer: TransactionalWriter,
        op: WriteOperation,
        done: Completion,
    ) -> None:
        """The same in a transaction that has this partition: its records wait for its end.

        The partition is asked for a guard first: the one of `writer` is not used.
        """

        def verified(error: Exception | None, guard: VerificationGuard) -> None:
            event = WriteEvent(name, done)
            if error is not None:
                event.complete(error)
                return
            guarded = replace(writer, guard=guard)
            self.processor.enqueue_last(name, lambda: self._write(op, event, guarded))

        self.partition_writer.maybe_start_transaction_verification(
            transactional_id, writer.producer_id, writer.producer_epoch, verified
        )

    def _write(
        self, op: WriteOperation, event: WriteEvent, writer: TransactionalWriter | None
    ) -> None:
        def append(context: CoordinatorContext) -> None:
            coordinator = context.coordinator
            assert coordinator is not None, "an active context has a coordinator"
            context.append(op(coordinator.shard), event, writer)

        self._run(append, event)

    def schedule_transaction_completion(
        self, name: str, writer: TransactionalWriter, end: EndOfTransaction, done: Completion
    ) -> None:
        """Queue the end of a transaction (WriteTxnMarkers); `done` as for a write."""
        event = WriteEvent(name, done)
        self.processor.enqueue_last(
            name,
            lambda: self._run(
                lambda context: context.complete_transaction(writer, end, event), event
            ),
        )

    def _run(self, step: Callable[[CoordinatorContext], None], event: WriteEvent) -> None:
        try:
            step(self._active_context())
        except KafkaException as error:
            event.complete(error)
        if not event.is_done:
            self.timer.add(self.config.write_timeout_ms, lambda: self._operation_timeout(event))

    def _operation_timeout(self, event: WriteEvent) -> None:
        """The records stay, and may be committed later."""
        error = Errors.REQUEST_TIMED_OUT.exception()
        self.processor.enqueue_last("OperationTimeout", lambda: event.complete(error))

    def schedule_read_operation(self, name: str, op: ReadOperation, done: Completion) -> None:
        """Queue a look at the state at the last committed offset."""
        event = WriteEvent(name, done)
        self.processor.enqueue_last(name, lambda: self._read(op, event))

    def _read(self, op: ReadOperation, event: WriteEvent) -> None:
        try:
            coordinator = self._active_context().coordinator
            assert coordinator is not None, "an active context has a coordinator"
            response = op(coordinator.shard, coordinator.last_committed_offset)
        except KafkaException as error:
            event.complete(error)
        else:
            event.complete(None, response)

    def _active_context(self) -> CoordinatorContext:
        if self.context is None:
            raise Errors.NOT_COORDINATOR.exception()
        if self.context.state is CoordinatorState.LOADING:
            raise Errors.COORDINATOR_LOAD_IN_PROGRESS.exception()
        if self.context.state is not CoordinatorState.ACTIVE:
            raise Errors.NOT_COORDINATOR.exception()
        return self.context

    # ---- elections ---------------------------------------------------------------------------

    def schedule_load_operation(self, partition_epoch: int) -> None:
        """The broker was elected in that leader epoch (GroupCoordinator.onElection)."""
        if self.context is None:
            self.context = CoordinatorContext(self)
        self.processor.enqueue_last("Load", lambda: self._load(partition_epoch))

    def _load(self, partition_epoch: int) -> None:
        # An unload that was queued before may have taken the context away.
        context = self.context = self.context or CoordinatorContext(self)
        if partition_epoch <= context.epoch:
            return
        context.epoch = partition_epoch
        if context.state in {CoordinatorState.INITIAL, CoordinatorState.FAILED}:
            context.transition_to(CoordinatorState.LOADING)

    def schedule_unload_operation(self, partition_epoch: int | None) -> None:
        """The broker leads no longer in that epoch; None: the topic is deleted (KAFKA-19274)."""
        self.processor.enqueue_last("Unload", lambda: self._unload(partition_epoch))

    def _unload(self, partition_epoch: int | None) -> None:
        context = self.context
        if context is not None and (partition_epoch is None or context.epoch < partition_epoch):
            # Whatever unloading meets, the context goes (KAFKA-18484).
            try:
                context.transition_to(CoordinatorState.CLOSED)
            finally:
                self.context = None
