"""What surrounds a shard in a model: its events, its partition, its loader, its timer.

All of it does something only when an action says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused
from impl.concurrency import NoConcurrency
from impl.coordinator.coordinator_loader import LoadCallback, do_load
from impl.coordinator.partition_writer import (
    TV_UNKNOWN,
    HighWatermarkListener,
    ListenerAdaptor,
    VerifiedCallback,
)
from impl.coordinator.snapshottable_coordinator import SnapshottableCoordinator
from impl.disk import MemoryDisk
from impl.errors import Errors, KafkaStorageException, NotLeaderOrFollowerException
from impl.log import Log
from impl.log_loader import load_log
from impl.producer_state.producer_append_info import AppendOrigin
from impl.producer_state.transactions import SENTINEL, VerificationGuard
from impl.records import MemoryRecords, RecordBatch
from impl.scheduler import ImmediateScheduler
from impl.types import LogOffsetMetadata, TopicPartition

TOPIC_PARTITION = TopicPartition("__consumer_offsets", 0)
_BUFFER_SIZE = 1 << 16
_NO_SEQUENCE = -1
_Event = Callable[[], None]


class QueuedEvents:
    """A shard's events; the one that an action names runs."""

    def __init__(self) -> None:
        self._events: list[tuple[str, _Event]] = []

    def enqueue_last(self, name: str, event: _Event) -> None:
        """See `CoordinatorEventProcessor`."""
        self._events.append((name, event))

    def enqueue_first(self, name: str, event: _Event) -> None:
        """See `CoordinatorEventProcessor`."""
        self._events.insert(0, (name, event))

    def run(self, name: str) -> None:
        """Run the oldest event of that name. Raises ActionRefused if there is none."""
        for place, (queued, event) in enumerate(self._events):
            if queued == name:
                del self._events[place]
                event()
                return
        raise ActionRefused(f"no event {name} is queued")

    def run_all(self, name: str) -> None:
        """Run the events of that name that are queued, oldest first, one at least."""
        for _ in range(max(1, sum(queued == name for queued, _ in self._events))):
            self.run(name)


@dataclass(frozen=True, slots=True)
class _Load:
    epoch: int
    coordinator: SnapshottableCoordinator
    callback: LoadCallback


class Replica:
    """The partition on one broker: its log, whether it leads, and who listens."""

    def __init__(self, max_message_bytes: int) -> None:
        self.log: Log = load_log(
            TOPIC_PARTITION, "log", MemoryDisk(), ImmediateScheduler(), NoConcurrency()
        )
        self.leader_epoch: int | None = None
        """None: the broker follows, or the topic is deleted."""
        self.adaptor: ListenerAdaptor | None = None
        self._results = ["appended"]
        """What comes of the next appends; the last also of those after it."""
        self._max_message_bytes = max_message_bytes

    @property
    def max_message_bytes(self) -> int:
        """See `PartitionWriter.max_message_bytes`."""
        self._led()
        return self._max_message_bytes

    def _led(self) -> int:
        if self.leader_epoch is None:
            raise Errors.NOT_LEADER_OR_FOLLOWER.exception()
        return self.leader_epoch

    def append(
        self,
        records: MemoryRecords,
        guard: VerificationGuard = SENTINEL,
        transaction_version: int = TV_UNKNOWN,
    ) -> int:
        """See `PartitionWriter.append`; `expect` has said what comes of it."""
        epoch = self._led()
        result = self._results.pop(0) if len(self._results) > 1 else self._results[0]
        if result == "refused":
            raise Errors.NOT_ENOUGH_REPLICAS.exception()
        self.log.append_as_leader(
            records,
            epoch,
            AppendOrigin.COORDINATOR,
            verification_guard=guard,
            transaction_version=transaction_version,
        )
        if result == "thrown":
            raise KafkaStorageException("thrown after the append")
        return self.log.log_end_offset

    def maybe_start_transaction_verification(
        self, _transactional_id: str, producer_id: int, producer_epoch: int, done: VerifiedCallback
    ) -> None:
        """See `PartitionWriter`. The transaction coordinator says at once that all is well."""
        guard = self.log.maybe_start_transaction_verification(
            producer_id, _NO_SEQUENCE, producer_epoch, supports_epoch_bump=False
        )
        done(None, guard)

    def expect(self, result: str) -> None:
        """What comes of this step's appends: "refused later" says that the first succeeds."""
        first, _, later = result.partition(" ")
        self._results = ["appended", first] if later else [first]

    def register_listener(self, listener: HighWatermarkListener) -> None:
        """See `PartitionWriter.register_listener`."""
        self.adaptor = ListenerAdaptor(listener)

    def deregister_listener(self, listener: HighWatermarkListener) -> None:
        """See `PartitionWriter.deregister_listener`."""
        if self.adaptor is not None and self.adaptor.listener is listener:
            self.adaptor = None

    def lead(self, epoch: int) -> None:
        """The broker leads from now on, or goes on to."""
        self.leader_epoch = epoch

    def follow(self) -> None:
        """The broker follows from now on."""
        self.leader_epoch = None
        if self.adaptor is not None:
            self.adaptor.on_becoming_follower()

    def delete(self) -> None:
        """The topic is deleted."""
        self.leader_epoch = None
        if self.adaptor is not None:
            self.adaptor.on_deleted()

    def led_log(self) -> Log | None:
        """The log, to be loaded; None unless the broker leads."""
        return None if self.leader_epoch is None else self.log

    def advance_watermark(self, offset: int) -> None:
        """A leader's or a follower's high watermark rises, and who listens is told."""
        if self.log.maybe_increment_high_watermark(LogOffsetMetadata(offset)) is None:
            return
        if self.adaptor is not None:
            self.adaptor.on_high_watermark_updated(offset)

    def fetch_from(self, leader: Replica) -> None:
        """Truncate what the leader does not have, take its next batch, hear its watermark."""
        led, own = leader.log.batches(), self.log.batches()
        common = _common_end(led, own)
        self.log.truncate_to(common)
        following = next((batch for batch in led if batch.base_offset == common), None)
        if following is not None:
            self.log.append_as_follower(MemoryRecords((following,)))
        leads_at = leader.log.high_watermark
        self.advance_watermark(min(self.log.log_end_offset, leads_at))
        leader.advance_watermark(self.log.log_end_offset)


def _common_end(led: Sequence[RecordBatch], own: Sequence[RecordBatch]) -> int:
    end = 0
    for mine, theirs in zip(own, led, strict=False):
        if mine != theirs:
            break
        end = mine.next_offset
    return end


class PendingLoads:
    """A loader of which an action ends each load."""

    def __init__(self, replica: Replica, epoch: Callable[[], int]) -> None:
        self._replica = replica
        self._epoch = epoch
        self._loads: list[_Load] = []

    @property
    def epochs(self) -> frozenset[int]:
        """In which tenures the loads began."""
        return frozenset(load.epoch for load in self._loads)

    def load(self, coordinator: SnapshottableCoordinator, callback: LoadCallback) -> None:
        """See `CoordinatorLoader.load`."""
        self._loads.append(_Load(self._epoch(), coordinator, callback))

    def end(self, epoch: int) -> None:
        """Read the log to its end. Raises ActionRefused if no load of that epoch is under way."""
        for place, load in enumerate(self._loads):
            if load.epoch == epoch:
                del self._loads[place]
                load.callback(self._read(load.coordinator))
                return
        raise ActionRefused(f"no load of epoch {epoch} is under way")

    def _read(self, coordinator: SnapshottableCoordinator) -> Exception | None:
        try:
            do_load(self._replica.led_log, coordinator, _BUFFER_SIZE)
        except NotLeaderOrFollowerException as error:
            return error
        return None


class PendingTimeouts:
    """Write time-outs, each by the number of its write."""

    def __init__(self) -> None:
        self.current = 0
        self._tasks: dict[int, _Event] = {}

    def add(self, _delay_ms: int, task: _Event) -> None:
        """See `CoordinatorTimer.add`."""
        self._tasks[self.current] = task

    def has(self, write: int) -> bool:
        """Whether the write was made here and may time out."""
        return write in self._tasks

    def fire(self, write: int) -> None:
        """The write's time is over. Raises ActionRefused if it has no task."""
        task = self._tasks.pop(write, None)
        if task is None:
            raise ActionRefused(f"write {write} has no time-out")
        task()
