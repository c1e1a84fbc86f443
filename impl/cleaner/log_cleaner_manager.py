"""Which log is cleaned next, up to where, and who may not be cleaned at the moment.

Source: LogCleanerManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..checkpoint import OffsetCheckpointFile
from ..concurrency import Concurrency
from ..disk import parent
from ..log import Log
from ..types import TopicPartition
from .cleaner import LogCleaningAbortedException
from .log_to_clean import LogToClean, calculate_cleanable_bytes

_IN_PROGRESS, _ABORTED = -2, -1
"""Besides them the number of those who have paused the partition."""


class LogCleanerManager:
    """`logs` are those of the log manager; `checkpoint_file` gives that of a log directory."""

    def __init__(
        self,
        logs: Mapping[TopicPartition, Log],
        checkpoint_file: Callable[[str], OffsetCheckpointFile],
        concurrency: Concurrency,
    ) -> None:
        self._logs = logs
        self._checkpoint_file = checkpoint_file
        self._in_progress: dict[TopicPartition, int] = {}
        self._lock = concurrency.lock("log-cleaner-manager")
        self._paused = self._lock.new_condition()

    def cleaner_checkpoint(self, log: Log) -> int | None:
        """Up to where the log is clean, as its directory's checkpoint says."""
        return self._checkpoint_file(parent(log.directory)).read().get(log.topic_partition)

    def grab_filthiest_compacted_log(self) -> LogToClean | None:
        """The log with the greatest dirty part, now in progress; None if none is dirty enough."""
        with self._lock:
            dirty = [
                self._log_to_clean(log)
                for partition, log in self._logs.items()
                if log.config.compact and partition not in self._in_progress
            ]
            cleanable = [
                each
                for each in dirty
                if each.cleanable_ratio > each.log.config.min_cleanable_dirty_ratio
            ]
            if not cleanable:
                return None
            filthiest = max(cleanable, key=lambda each: each.cleanable_ratio)
            self._in_progress[filthiest.log.topic_partition] = _IN_PROGRESS
            return filthiest

    def _log_to_clean(self, log: Log) -> LogToClean:
        first_dirty, uncleanable = self.cleanable_offsets(log)
        return LogToClean(log, first_dirty, calculate_cleanable_bytes(log, uncleanable))

    def cleanable_offsets(self, log: Log) -> tuple[int, int]:
        """The first dirty offset, and where cleaning must stop.

        Records that are not stable displace none that are (KAFKA-13194). A checkpoint outside of
        the log is put right.
        """
        checkpoint = self.cleaner_checkpoint(log)
        first_dirty = log.log_start_offset if checkpoint is None else checkpoint
        if not log.log_start_offset <= first_dirty <= log.log_end_offset:
            first_dirty = log.log_start_offset
            self._update_checkpoint(log, first_dirty)
        uncleanable = min(log.last_stable_offset, log.active_base_offset)
        return first_dirty, max(first_dirty, uncleanable)

    def _update_checkpoint(self, log: Log, offset: int) -> None:
        file = self._checkpoint_file(parent(log.directory))
        file.write({**file.read(), log.topic_partition: offset})

    def maybe_truncate_checkpoint(self, log: Log, offset: int) -> None:
        """The log was truncated: what comes from `offset` on is dirty."""
        with self._lock:
            checkpoint = self.cleaner_checkpoint(log)
            if checkpoint is not None and checkpoint > offset:
                self._update_checkpoint(log, offset)

    def abort_and_pause_cleaning(self, partition: TopicPartition) -> None:
        """Wait until no pass over the partition is under way; none begins before it is resumed."""
        with self._lock:
            state = self._in_progress.get(partition, 0)
            if state in (_IN_PROGRESS, _ABORTED):
                self._in_progress[partition] = _ABORTED
                while self._in_progress[partition] == _ABORTED:
                    self._paused.wait()
                return
            self._in_progress[partition] = state + 1

    def resume_cleaning(self, partition: TopicPartition) -> None:
        """Undo one pause."""
        with self._lock:
            pauses = self._in_progress[partition] - 1
            if pauses:
                self._in_progress[partition] = pauses
            else:
                del self._in_progress[partition]

    def check_cleaning_aborted(self, partition: TopicPartition) -> None:
        """Raise `LogCleaningAbortedException` if somebody waits for the pass to end."""
        with self._lock:
            if self._in_progress.get(partition) == _ABORTED:
                raise LogCleaningAbortedException

    def done_cleaning(self, log: Log, end_offset: int | None) -> None:
        """A pass has ended: the log is clean up to `end_offset`, or was given up (None)."""
        with self._lock:
            partition = log.topic_partition
            if self._in_progress[partition] == _IN_PROGRESS:
                if end_offset is not None:
                    self._update_checkpoint(log, end_offset)
                del self._in_progress[partition]
            else:
                self._in_progress[partition] = 1
                self._paused.notify_all()
