"""A partition without followers, and events that run at once: a coordinator on a single broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..log import Log
from ..producer_state.producer_append_info import AppendOrigin
from ..producer_state.transactions import SENTINEL, VerificationGuard
from ..records import MemoryRecords
from ..types import LogOffsetMetadata
from .coordinator_loader import LoadCallback, do_load
from .partition_writer import TV_UNKNOWN, HighWatermarkListener, VerifiedCallback
from .snapshottable_coordinator import SnapshottableCoordinator

MAX_MESSAGE_BYTES = 1_048_588
"""The default of max.message.bytes."""
NO_SEQUENCE = -1
_LOAD_BUFFER_SIZE = 5 * 1024 * 1024


class LocalPartition:
    """The partition's writer and loader: what is appended is committed."""

    def __init__(self, log: Log, leader_epoch: int = 0) -> None:
        self._log = log
        self._leader_epoch = leader_epoch
        self._listener: HighWatermarkListener | None = None

    @property
    def max_message_bytes(self) -> int:
        """See `PartitionWriter.max_message_bytes`."""
        return MAX_MESSAGE_BYTES

    def append(
        self,
        records: MemoryRecords,
        guard: VerificationGuard = SENTINEL,
        transaction_version: int = TV_UNKNOWN,
    ) -> int:
        """See `PartitionWriter.append`."""
        self._log.append_as_leader(
            records,
            self._leader_epoch,
            AppendOrigin.COORDINATOR,
            verification_guard=guard,
            transaction_version=transaction_version,
        )
        end = self._log.log_end_offset
        self._log.maybe_increment_high_watermark(LogOffsetMetadata(end))
        if self._listener is not None:
            self._listener.on_high_watermark_updated(end)
        return end

    def maybe_start_transaction_verification(
        self, _transactional_id: str, producer_id: int, producer_epoch: int, done: VerifiedCallback
    ) -> None:
        """See `PartitionWriter`. There is nobody to ask: each transaction has the partition."""
        guard = self._log.maybe_start_transaction_verification(
            producer_id, NO_SEQUENCE, producer_epoch, supports_epoch_bump=False
        )
        done(None, guard)

    def register_listener(self, listener: HighWatermarkListener) -> None:
        """See `PartitionWriter.register_listener`."""
        self._listener = listener

    def deregister_listener(self, listener: HighWatermarkListener) -> None:
        """See `PartitionWriter.deregister_listener`."""
        if self._listener is listener:
            self._listener = None

    def load(self, coordinator: SnapshottableCoordinator, callback: LoadCallback) -> None:
        """See `CoordinatorLoader.load`: at once."""
        do_load(lambda: self._log, coordinator, _LOAD_BUFFER_SIZE)
        callback(None)


class ImmediateEventProcessor:
    """Runs each event when it is queued, or after the one that runs now."""

    def __init__(self) -> None:
        self._events: deque[Callable[[], None]] = deque()
        self._runs = False

    def enqueue_last(self, _name: str, event: Callable[[], None]) -> None:
        """See `CoordinatorEventProcessor.enqueue_last`."""
        self._events.append(event)
        self._drain()

    def enqueue_first(self, _name: str, event: Callable[[], None]) -> None:
        """See `CoordinatorEventProcessor.enqueue_first`."""
        self._events.appendleft(event)
        self._drain()

    def _drain(self) -> None:
        if self._runs:
            return
        self._runs = True
        try:
            while self._events:
                self._events.popleft()()
        finally:
            self._runs = False
