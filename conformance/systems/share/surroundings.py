"""What surrounds a share partition in a model: its persister and the timers of its locks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from conformance.systems.protocol import ActionRefused
from impl.errors import Errors
from impl.share.share_partition import Done, PersisterStateBatch


@dataclass(frozen=True, slots=True)
class Write:
    """A write under way; `kind` says whether a request waits for it."""

    kind: str
    batches: Sequence[PersisterStateBatch]
    done: Done


class HeldPersister:
    """A persister that answers when an action says so."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.kind = "ack"
        """Of the next write."""

    def write_state(self, batches: Sequence[PersisterStateBatch], done: Done) -> None:
        """See `Persister.write_state`."""
        self.writes.append(Write(self.kind, batches, done))

    def complete(self, number: int, ok: bool) -> None:
        """Answer a write, the oldest being number 1. Raises ActionRefused if there is none."""
        if number > len(self.writes):
            raise ActionRefused(f"no write {number} is under way")
        self.writes.pop(number - 1).done(Errors.NONE if ok else Errors.COORDINATOR_NOT_AVAILABLE)


@dataclass(slots=True)
class LockTask:
    """A lock's timer."""

    run: Callable[[], None]
    has_expired: bool = False
    is_cancelled: bool = False

    def cancel(self) -> None:
        """See `AcquisitionLockTimerTask.cancel`."""
        self.is_cancelled = True

    def expire(self) -> None:
        """Its time is over."""
        self.has_expired = True
        self.run()


class LockTimer:
    """A timer whose tasks an action runs."""

    def add(self, run: Callable[[], None]) -> LockTask:
        """See `AcquisitionLockTimer.add`."""
        return LockTask(run)
