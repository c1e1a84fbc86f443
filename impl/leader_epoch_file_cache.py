"""The leader epochs of a log and where each begins, kept in memory and in a checkpoint file.

Source: LeaderEpochFileCache (KIP-101, KIP-279).
"""

from __future__ import annotations

from bisect import bisect_right

from .checkpoint import LeaderEpochCheckpointFile
from .concurrency import Lock
from .errors import IllegalArgumentException
from .scheduler import Scheduler
from .types import UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET, EpochEntry, OffsetAndEpoch

_UNDEFINED = OffsetAndEpoch(UNDEFINED_EPOCH_OFFSET, UNDEFINED_EPOCH)


class LeaderEpochFileCache:
    """Entries (epoch, start offset), strictly increasing in both."""

    def __init__(
        self, checkpoint: LeaderEpochCheckpointFile, scheduler: Scheduler, lock: Lock
    ) -> None:
        self._checkpoint = checkpoint
        self._scheduler = scheduler
        self._lock = lock
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for entry in checkpoint.read():
            # Through the same door as live entries: of conflicting lines the last one wins.
            self._insert(entry.epoch, entry.start_offset)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`; conflicting entries at the end give way.

        Raises `IllegalArgumentException` for a negative epoch or offset.
        """
        with self._lock:
            if self._insert(epoch, start_offset):
                self._write_to_file()

    def _insert(self, epoch: int, start_offset: int) -> bool:
        if epoch < 0 or start_offset < 0:
            raise IllegalArgumentException(
                f"invalid leader epoch {epoch} or start offset {start_offset}"
            )
        if not self._is_update_needed(epoch, start_offset):
            return False
        self._remove_conflicting(epoch, start_offset)
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        return True

    def _is_update_needed(self, epoch: int, start_offset: int) -> bool:
        if not self._epochs:
            return True
        return epoch != self._epochs[-1] or start_offset < self._starts[-1]

    def _remove_conflicting(self, epoch: int, start_offset: int) -> None:
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> OffsetAndEpoch:
        """The greatest epoch <= the requested one and where it ends; (-1, -1) if that is unknown.

        An epoch before all that are known ends where the first known one begins.
        """
        with self._lock:
            if requested_epoch == UNDEFINED_EPOCH:
                return _UNDEFINED
            epochs = self._epochs
            if epochs and epochs[-1] == requested_epoch:
                return OffsetAndEpoch(log_end_offset, requested_epoch)
            following = bisect_right(epochs, requested_epoch)
            if following == len(epochs):
                return _UNDEFINED
            if following == 0:
                return OffsetAndEpoch(self._starts[0], requested_epoch)
            return OffsetAndEpoch(self._starts[following], epochs[following - 1])

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the entries that begin at or after `end_offset`; a negative offset drops none."""
        with self._lock:
            if end_offset >= 0 and self._starts and self._starts[-1] >= end_offset:
                while self._starts and self._starts[-1] >= end_offset:
                    self._epochs.pop()
                    self._starts.pop()
                self._flush_truncation()

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop what lies before `start_offset`; the epoch that holds it now begins there."""
        with self._lock:
            dropped = bisect_right(self._starts, start_offset)
            if dropped:
                epoch = self._epochs[dropped - 1]
                self._epochs[:dropped] = [epoch]
                self._starts[:dropped] = [start_offset]
                self._flush_truncation()

    def clear(self) -> None:
        """Forget all entries; the file keeps them."""
        with self._lock:
            self._epochs.clear()
            self._starts.clear()

    def clear_and_flush(self) -> None:
        """Forget all entries, in the file too."""
        with self._lock:
            self.clear()
            self._write_to_file()

    def is_empty(self) -> bool:
        """Whether no epoch is known."""
        return not self._epochs

    def latest_epoch(self) -> int | None:
        """The newest epoch."""
        epochs = self._epochs
        return epochs[-1] if epochs else None

    def latest_entry(self) -> EpochEntry | None:
        """The entry of the newest epoch."""
        with self._lock:
            return self._entry_at(len(self._epochs) - 1)

    def earliest_entry(self) -> EpochEntry | None:
        """The entry of the oldest epoch."""
        with self._lock:
            return self._entry_at(0 if self._epochs else -1)

    def previous_epoch(self) -> int | None:
        """The newest epoch but one."""
        with self._lock:
            return self._epochs[-2] if len(self._epochs) > 1 else None

    def previous_entry(self, epoch: int) -> EpochEntry | None:
        """The entry of the greatest epoch < `epoch`."""
        with self._lock:
            return self._entry_at(bisect_right(self._epochs, epoch - 1) - 1)

    def next_epoch(self, epoch: int) -> int | None:
        """The smallest epoch > `epoch`."""
        with self._lock:
            following = bisect_right(self._epochs, epoch)
            return self._epochs[following] if following < len(self._epochs) else None

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch in which the record at `offset` was written."""
        with self._lock:
            holder = bisect_right(self._starts, offset) - 1
            return self._epochs[holder] if holder >= 0 else None

    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """All entries, oldest first."""
        with self._lock:
            return tuple(map(EpochEntry, self._epochs, self._starts))

    def flush(self) -> None:
        """Write the file now."""
        with self._lock:
            self._write_to_file()

    def move_to(self, checkpoint: LeaderEpochCheckpointFile) -> None:
        """Go on with another file: the log's directory was renamed."""
        with self._lock:
            self._checkpoint = checkpoint

    def _entry_at(self, index: int) -> EpochEntry | None:
        return EpochEntry(self._epochs[index], self._starts[index]) if index >= 0 else None

    def _flush_truncation(self) -> None:
        # In the background: entries that a crash leaves in the file are cut when the log is loaded.
        self._scheduler.schedule_once("leader-epoch-cache-flush", self._flush_if_log_exists)

    def _flush_if_log_exists(self) -> None:
        # The log may have been deleted since the truncation; writing would bring it back.
        with self._lock:
            if self._checkpoint.directory_exists():
                self._write_to_file()

    def _write_to_file(self) -> None:
        self._checkpoint.write(self.epoch_entries())
