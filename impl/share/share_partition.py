"""One partition of a share group on the broker that leads it: Kafka's SharePartition (KIP-932).

Each record is tracked by itself, as Kafka does it once a batch is split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from ..errors import Errors
from .in_flight_state import (
    EMPTY_MEMBER_ID,
    AcquisitionLockTimerTask,
    InFlightState,
    RecordState,
)


class AcknowledgeType(Enum):
    """What a member says of a record."""

    ACCEPT = 1
    RELEASE = 2
    REJECT = 3

    @property
    def record_state(self) -> RecordState:
        """What becomes of the record, below the limit of deliveries."""
        return _RECORD_STATES[self]


_RECORD_STATES = {
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


@dataclass(frozen=True, slots=True)
class PersisterStateBatch:
    """What is written of one record."""

    offset: int
    state: RecordState
    delivery_count: int


Done = Callable[[Errors], None]
"""Gets the error of a write or a request, or NONE."""


class Persister(Protocol):
    """Writes to the share coordinator."""

    def write_state(self, batches: Sequence[PersisterStateBatch], done: Done) -> None:
        """Write, and call `done` with the answer some time later."""


class AcquisitionLockTimer(Protocol):
    """Where the timers of locks run."""

    def add(self, run: Callable[[], None]) -> AcquisitionLockTimerTask:
        """A task that runs when the lock's time is over."""


class SharePartition:
    """The records from `start_offset` to `end_offset` that members have, or had."""

    def __init__(
        self,
        max_in_flight_records: int,
        max_delivery_count: int,
        timer: AcquisitionLockTimer,
        persister: Persister,
    ) -> None:
        self._max_in_flight_records = max_in_flight_records
        self._max_delivery_count = max_delivery_count
        self._timer = timer
        self._persister = persister
        self.cached_state: dict[int, InFlightState] = {}
        self.start_offset = 0
        self.end_offset = 0
        """The last offset in the cache; of an empty one the next offset to fetch."""
        self.find_next_fetch_offset = False
        """Whether a record may have to be given again."""

    # ---- fetching --------------------------------------------------------------------------

    def next_fetch_offset(self) -> int:
        """Where the next fetch begins: at a record that is to be given again, or behind all."""
        if not self.cached_state or self.start_offset > max(self.cached_state):
            self.find_next_fetch_offset = False
            return self.end_offset
        if self.find_next_fetch_offset:
            for offset, record in sorted(self.cached_state.items()):
                if record.is_available:
                    return offset
            self.find_next_fetch_offset = False
        return self.end_offset + 1

    def can_acquire_records(self) -> bool:
        """Whether a fetch may find a record."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self._num_in_flight_records() < self._max_in_flight_records

    def _num_in_flight_records(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.cached_state else 0

    def acquire(
        self, member_id: str, max_fetch_records: int, fetch_offset: int, last_offset: int
    ) -> list[int]:
        """Give a member the free offsets, up to `last_offset`, which the fetch has read."""
        most = min(max_fetch_records, self._max_in_flight_records - self._num_in_flight_records())
        if most <= 0:
            # Nothing beyond what is in flight (KAFKA-19808).
            most = min(max_fetch_records, self.end_offset - fetch_offset + 1)
            last_offset = min(last_offset, self.end_offset)
        overlap = [o for o in sorted(self.cached_state) if fetch_offset <= o <= last_offset]
        acquired = [o for o in overlap if self.cached_state[o].is_available][: max(most, 0)]
        first_new = overlap[-1] + 1 if overlap else fetch_offset
        last_new = min(last_offset, first_new + most - len(acquired) - 1)
        acquired += range(first_new, last_new + 1)
        for offset in acquired:
            self._give(offset, member_id)
        self.end_offset = max([self.end_offset, *acquired])
        return acquired

    def _give(self, offset: int, member_id: str) -> None:
        record = self.cached_state.setdefault(
            offset, InFlightState(RecordState.AVAILABLE, 0, EMPTY_MEMBER_ID)
        )
        task = self._timer.add(lambda: self.release_acquisition_lock_on_timeout(offset))
        record.acquire(member_id, task)

    # ---- acknowledgements ------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, offsets: Iterable[int], kind: AcknowledgeType, done: Done
    ) -> None:
        """Acknowledge all of the offsets or none; those below the start are ignored."""
        named = [offset for offset in offsets if offset >= self.start_offset]
        if not all(self._may_acknowledge(member_id, offset) for offset in named):
            done(Errors.INVALID_RECORD_STATE)
            return
        for offset in named:
            self.cached_state[offset].start_state_transition(
                kind.record_state, self._max_delivery_count
            )
        self._process_state_updates(named, done)

    def _may_acknowledge(self, member_id: str, offset: int) -> bool:
        record = self.cached_state.get(offset)
        return (
            record is not None
            and record.is_acquired
            and not record.has_ongoing_state_transition
            and record.member_id == member_id
        )

    def release_acquired_records(self, member_id: str, done: Done) -> None:
        """A session ends: its records may be given again, each with the deliveries that it had."""
        held = [
            offset
            for offset, record in sorted(self.cached_state.items())
            if record.is_acquired and record.member_id == member_id
        ]
        for offset in held:
            self.cached_state[offset].start_state_transition(
                self._released_state(offset), self._max_delivery_count
            )
        self._process_state_updates(held, done)

    def _released_state(self, offset: int) -> RecordState:
        return RecordState.ARCHIVED if offset < self.start_offset else RecordState.AVAILABLE

    def _process_state_updates(self, offsets: Sequence[int], done: Done) -> None:
        if not offsets:
            done(Errors.NONE)
            return
        updated = {offset: self.cached_state[offset] for offset in offsets}

        def complete(error: Errors) -> None:
            self._complete_state_updates(updated, error)
            done(error)

        self._persister.write_state(self._batches(offsets), complete)

    def _complete_state_updates(self, updated: dict[int, InFlightState], error: Errors) -> None:
        for offset, record in updated.items():
            record.complete_state_transition(
                error is Errors.NONE, self._max_delivery_count, self._released_state(offset)
            )
            if record.state is RecordState.AVAILABLE:
                self.find_next_fetch_offset = True
        if error is Errors.NONE:
            self._maybe_update_cached_state_and_offsets()

    def _batches(self, offsets: Sequence[int]) -> list[PersisterStateBatch]:
        cached = self.cached_state
        return [
            PersisterStateBatch(offset, cached[offset].state, cached[offset].delivery_count)
            for offset in offsets
        ]

    # ---- time, and the log -----------------------------------------------------------------

    def release_acquisition_lock_on_timeout(self, offset: int) -> None:
        """A lock's time is over. While a transition is under way, that decides (KAFKA-19476)."""
        record = self.cached_state.get(offset)
        if record is None or not record.is_acquired:
            return
        record.try_update_state(self._released_state(offset), self._max_delivery_count)
        record.cancel_and_clear_lock_task()
        if record.is_available:
            self.find_next_fetch_offset = True
        self._persister.write_state(
            self._batches([offset]), lambda _error: self._maybe_update_cached_state_and_offsets()
        )

    def update_cache_and_offsets(self, log_start_offset: int) -> None:
        """The log begins later now: what nobody has is archived, what somebody has stays."""
        if log_start_offset <= self.start_offset:
            return
        if not self.cached_state:
            self.start_offset = self.end_offset = log_start_offset
            return
        for offset, record in self.cached_state.items():
            if self.start_offset <= offset < log_start_offset:
                self._maybe_archive(record)
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)

    def _maybe_archive(self, record: InFlightState) -> None:
        if record.state is RecordState.AVAILABLE:
            record.archive()
            self.find_next_fetch_offset = True

    def _maybe_update_cached_state_and_offsets(self) -> None:
        """Move the start offset past what is settled; it never goes back (KAFKA-19859)."""
        below = [offset for offset in self.cached_state if offset <= self.start_offset]
        if not below or not self.cached_state[max(below)].is_settled:
            return
        settled = self._settled_prefix()
        if not settled:
            return
        for offset in settled:
            del self.cached_state[offset]
        if self.cached_state:
            self.start_offset = max(self.start_offset, min(self.cached_state))
        else:
            self.start_offset = self.end_offset = max(self.start_offset, settled[-1] + 1)

    def _settled_prefix(self) -> list[int]:
        settled: list[int] = []
        for offset in sorted(self.cached_state):
            if not self.cached_state[offset].is_settled:
                break
            settled.append(offset)
        return settled
