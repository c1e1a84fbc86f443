"""The state of one record that a share partition has given out: Kafka's InFlightState (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

EMPTY_MEMBER_ID = ""


class RecordState(StrEnum):
    """What has become of a delivery."""

    AVAILABLE = "AVAILABLE"
    ACQUIRED = "ACQUIRED"
    ACKNOWLEDGED = "ACKNOWLEDGED"
    ARCHIVED = "ARCHIVED"

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never given out again."""
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class AcquisitionLockTimerTask(Protocol):
    """The timer of a lock."""

    @property
    def has_expired(self) -> bool:
        """Whether its time was over before it was cancelled."""

    def cancel(self) -> None:
        """Let it never run."""


@dataclass(slots=True)
class InFlightState:
    """One record; a transition that is under way remembers who had it."""

    state: RecordState
    delivery_count: int
    member_id: str
    lock_task: AcquisitionLockTimerTask | None = None
    rollback_member_id: str | None = None
    """Who held the record before the transition that is under way; None: none is."""
    _is_terminal_state: bool = False

    @property
    def has_ongoing_state_transition(self) -> bool:
        """Whether a write decides what becomes of the record."""
        return self.rollback_member_id is not None

    @property
    def is_acquired(self) -> bool:
        """Whether a member has the record."""
        return self.state is RecordState.ACQUIRED

    @property
    def is_available(self) -> bool:
        """Whether the record may be given out."""
        return self.state is RecordState.AVAILABLE and not self.has_ongoing_state_transition

    @property
    def is_settled(self) -> bool:
        """Whether the start offset may pass the record."""
        return self.state.is_terminal and not self.has_ongoing_state_transition

    def acquire(self, member_id: str, task: AcquisitionLockTimerTask) -> None:
        """Give the record to a member once more."""
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_task = task

    def try_update_state(self, new_state: RecordState, max_delivery_count: int) -> None:
        """Let the record go; at the limit it is archived instead of given again."""
        self.state = self._at_the_limit(new_state, max_delivery_count)
        self.member_id = EMPTY_MEMBER_ID

    def start_state_transition(self, new_state: RecordState, max_delivery_count: int) -> None:
        """The same, until the write is answered: `complete_state_transition`."""
        member_id = self.member_id
        self.try_update_state(new_state, max_delivery_count)
        self.rollback_member_id = member_id

    def complete_state_transition(
        self, commit: bool, max_delivery_count: int, expired_state: RecordState
    ) -> None:
        """Keep what the transition has made of the record, or go back.

        An archived record stays archived. A lock that has expired meanwhile is over, so the record
        becomes `expired_state` (KAFKA-19476).
        """
        assert self.rollback_member_id is not None, "a transition is under way"
        if not (commit or self._is_terminal_state):
            if self.lock_task is not None and self.lock_task.has_expired:
                self.try_update_state(expired_state, max_delivery_count)
            else:
                self.state = RecordState.ACQUIRED
                self.member_id = self.rollback_member_id
                self.rollback_member_id = None
                return
        self.cancel_and_clear_lock_task()
        self.rollback_member_id = None

    def archive(self) -> None:
        """The record is gone from the log; no write brings it back."""
        self._is_terminal_state = True
        self.state = RecordState.ARCHIVED
        self.member_id = EMPTY_MEMBER_ID
        self.cancel_and_clear_lock_task()

    def cancel_and_clear_lock_task(self) -> None:
        """The lock has ended otherwise."""
        if self.lock_task is not None:
            self.lock_task.cancel()
            self.lock_task = None

    def _at_the_limit(self, new_state: RecordState, max_delivery_count: int) -> RecordState:
        if new_state is RecordState.AVAILABLE and self.delivery_count >= max_delivery_count:
            return RecordState.ARCHIVED
        return new_state
