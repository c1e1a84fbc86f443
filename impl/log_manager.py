"""All logs of a broker: in which directory each lies, and their checkpoints.

Source: LogManager. Names of directories: `<topic>-<partition>`, with the suffix
`.<32 hex digits>-future` for a copy in the making and `.<32 hex digits>-delete` for one to remove.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from .checkpoint import OffsetCheckpointFile
from .cleaner.log_cleaner_manager import LogCleanerManager
from .clock import Clock
from .concurrency import Concurrency
from .disk import Disk, parent
from .errors import Errors, KafkaStorageException
from .log import Log
from .log_loader import load_log
from .log_types import LogConfig
from .scheduler import Scheduler
from .types import TopicPartition

_log = logging.getLogger(__name__)

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
_NAME = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)(?P<suffix>\.[0-9a-f]{32}-(future|delete))?")


class LogManager:
    """The broker's logs; loads all that the directories hold when it is made.

    `log_directories` are paths on the disk, `configs` the settings of topics that have their own.
    """

    def __init__(
        self,
        disk: Disk,
        log_directories: tuple[str, ...],
        scheduler: Scheduler,
        concurrency: Concurrency,
        *,
        default_config: LogConfig | None = None,
        configs: Mapping[str, LogConfig] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._disk = disk
        self.log_directories = log_directories
        self.offline_directories: set[str] = set()
        self.failed_directories: set[str] = set()
        """Where no log could be made: they go offline, when their failure is handled
        (LogDirFailureChannel)."""
        self._scheduler = scheduler
        self._concurrency = concurrency
        self._clock = clock
        self._default_config = default_config or LogConfig()
        self._configs = dict(configs or {})
        self._current: dict[TopicPartition, Log] = {}
        self._future: dict[TopicPartition, Log] = {}
        self._moves = 0
        self._lock = concurrency.lock("log-manager")
        self.cleaner = LogCleanerManager(
            self._current,
            partial(self.checkpoint_file, name=OffsetCheckpointFile.CLEANER_OFFSET),
            concurrency,
        )
        for directory in log_directories:
            self._load_directory(directory)

    def checkpoint_file(self, directory: str, name: str) -> OffsetCheckpointFile:
        """The checkpoint of that name in one log directory."""
        return OffsetCheckpointFile(self._disk, directory, name)

    def _load_directory(self, directory: str) -> None:
        marker = f"{directory}/{CLEAN_SHUTDOWN_FILE}"
        had_clean_shutdown = self._disk.exists(marker)
        # First of all: who dies while it loads has not shut down in order (KAFKA-10471).
        self._disk.remove(marker)
        starts = self.checkpoint_file(directory, OffsetCheckpointFile.LOG_START_OFFSET).read()
        recovery_points = self.checkpoint_file(
            directory, OffsetCheckpointFile.RECOVERY_POINT
        ).read()
        for name in self._disk.names(directory):
            match = _NAME.fullmatch(name)
            path = f"{directory}/{name}"
            if match is None:
                continue
            kind = match["suffix"] or ""
            if kind.endswith("-delete"):
                self._disk.remove(path)
                continue
            partition = TopicPartition(match["topic"], int(match["partition"]))
            try:
                log = self._load(
                    partition,
                    path,
                    starts.get(partition, 0),
                    recovery_points.get(partition, 0),
                    had_clean_shutdown,
                )
            except KafkaStorageException as error:
                _log.error("%s cannot be loaded", path, exc_info=error)
                self.handle_log_dir_failure(directory)
                return
            self._remember(partition, log, self._future if kind else self._current)

    def _load(
        self,
        partition: TopicPartition,
        path: str,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        had_clean_shutdown: bool = False,
    ) -> Log:
        return load_log(
            partition,
            path,
            self._disk,
            self._scheduler,
            self._concurrency,
            config=self._configs.get(partition.topic, self._default_config),
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            had_clean_shutdown=had_clean_shutdown,
            clock=self._clock,
        )

    @staticmethod
    def _remember(partition: TopicPartition, log: Log, logs: dict[TopicPartition, Log]) -> None:
        if partition in logs:
            raise KafkaStorageException(
                f"{partition} lies in both {logs[partition].directory} and {log.directory}:"
                " a move was interrupted; remove the older one"
            )
        logs[partition] = log

    def get_log(self, partition: TopicPartition, is_future: bool = False) -> Log | None:
        """The log (or the future log), if there is one."""
        return (self._future if is_future else self._current).get(partition)

    def get_or_create_log(self, partition: TopicPartition, directory: str | None = None) -> Log:
        """The log; a new one goes to `directory`, by default to the one with the fewest logs.

        Where it cannot be made the whole directory has failed (LogManager.createLogDirectory).
        """
        with self._lock:
            log = self._current.get(partition)
            if log is None:
                if not self.log_directories:
                    raise KafkaStorageException("all log directories are offline")
                target = directory or min(self.log_directories, key=self._logs_in)
                with self._failing(target):
                    log = self._load(partition, f"{target}/{partition}")
                self._current[partition] = log
            return log

    @contextmanager
    def _failing(self, directory: str) -> Iterator[None]:
        try:
            yield
        except KafkaStorageException:
            self.failed_directories.add(directory)
            raise

    def _logs_in(self, directory: str) -> int:
        return sum(self.is_in(log, directory) for log in self._current.values())

    @staticmethod
    def is_in(log: Log, directory: str) -> bool:
        """Whether the log lies in the log directory."""
        return parent(log.directory) == directory

    # ---- truncation and deletion -----------------------------------------------------------

    def truncate_to(self, log: Log, offset: int) -> None:
        """Truncate; the recovery point may fall, and the checkpoints must not stay above it.

        No pass of the cleaner is under way while closed segments change.
        """
        stops_cleaner = log.config.compact and offset < log.active_base_offset
        if stops_cleaner:
            self.cleaner.abort_and_pause_cleaning(log.topic_partition)
        try:
            if log.truncate_to(offset):
                self.checkpoint_recovery_points(parent(log.directory))
            if stops_cleaner:
                self.cleaner.maybe_truncate_checkpoint(log, log.active_base_offset)
        finally:
            if stops_cleaner:
                self.cleaner.resume_cleaning(log.topic_partition)

    def truncate_fully_and_start_at(self, log: Log, offset: int) -> None:
        """Empty the log; checkpoints as in `truncate_to`."""
        log.truncate_fully_and_start_at(offset)
        self.checkpoint_recovery_points(parent(log.directory))

    def delete_log(self, log: Log) -> None:
        """Remove the log. A crash in between leaves a directory that the next start removes.

        What the checkpoints say of it goes first: a later log of the same partition would be cut
        at its log start, and not be checked below its recovery point. (Kafka writes them after
        the renaming, in LogManager.asyncDelete.)
        """
        with self._lock:
            if self._future.get(log.topic_partition) is log:
                del self._future[log.topic_partition]
            if self._current.get(log.topic_partition) is log:
                del self._current[log.topic_partition]
                self.checkpoint_recovery_points(parent(log.directory))
                self.checkpoint_log_start_offsets(parent(log.directory))
            log.rename_directory(self._temporary_name(log.topic_partition, log.directory, "delete"))
            log.delete()

    def handle_log_dir_failure(self, directory: str) -> None:
        """Forget the directory and its logs; they are loaded again by the next start."""
        with self._lock:
            self.failed_directories.discard(directory)
            self.offline_directories.add(directory)
            self.log_directories = tuple(one for one in self.log_directories if one != directory)
            for logs in (self._current, self._future):
                for partition in [tp for tp, log in logs.items() if self.is_in(log, directory)]:
                    del logs[partition]

    def is_log_dir_online(self, directory: str) -> bool:
        """Whether it has not failed. Raises LOG_DIR_NOT_FOUND for what is no log directory."""
        if directory not in (*self.log_directories, *self.offline_directories):
            raise Errors.LOG_DIR_NOT_FOUND.exception(f"{directory} is no log directory")
        return directory in self.log_directories

    # ---- moves between directories ---------------------------------------------------------

    def get_or_create_future_log(self, partition: TopicPartition, directory: str) -> Log:
        """The copy of the partition's log in another directory; a new one is empty.

        Raises KafkaStorageException for a new one while a directory is offline: there may be one.
        """
        with self._lock:
            future = self._future.get(partition)
            if future is not None:
                return future
            if self.offline_directories:
                raise KafkaStorageException(f"{sorted(self.offline_directories)} are offline")
            path = self._temporary_name(partition, f"{directory}/{partition}", "future")
            with self._failing(directory):
                self._future[partition] = self._load(partition, path)
            return self._future[partition]

    def replace_current_with_future_log(self, current: Log, future: Log) -> None:
        """The copy becomes the log; the old log is removed."""
        with self._lock:
            future.update_high_watermark(current.high_watermark)
            self._take_over(current, future)

    def _take_over(self, current: Log, future: Log) -> None:
        partition = current.topic_partition
        future.rename_directory(f"{parent(future.directory)}/{partition}")
        del self._future[partition]
        self.delete_log(current)
        self._current[partition] = future

    def recover_abandoned_future_logs(
        self, assigned: Callable[[TopicPartition], str | None]
    ) -> None:
        """At a start, a future log takes over where the metadata name its directory.

        The last process has ended between the controller's answer and the swap (KAFKA-16082). Kafka
        does not compare the logs; here one that lacks records of the current log goes on as a move.
        """
        with self._lock:
            for partition, future in list(self._future.items()):
                current = self._current.get(partition)
                if current is None or assigned(partition) != parent(future.directory):
                    continue
                if future.log_end_offset == current.log_end_offset:
                    self._take_over(current, future)

    def _temporary_name(self, partition: TopicPartition, path: str, suffix: str) -> str:
        self._moves += 1
        return f"{parent(path)}/{partition}.{self._moves:032x}-{suffix}"

    # ---- checkpoints -----------------------------------------------------------------------

    def checkpoint_recovery_points(self, directory: str) -> None:
        """Write `recovery-point-offset-checkpoint` of one log directory."""
        with self._lock:
            self.checkpoint_file(directory, OffsetCheckpointFile.RECOVERY_POINT).write(
                {
                    partition: log.recovery_point
                    for logs in (self._current, self._future)
                    for partition, log in logs.items()
                    if self.is_in(log, directory)
                }
            )

    def checkpoint_log_start_offsets(self, directory: str) -> None:
        """Write `log-start-offset-checkpoint`: only starts that segment names do not tell."""
        with self._lock:
            self.checkpoint_file(directory, OffsetCheckpointFile.LOG_START_OFFSET).write(
                {
                    partition: log.log_start_offset
                    for logs in (self._current, self._future)
                    for partition, log in logs.items()
                    if self.is_in(log, directory) and log.log_start_offset > log.base_offset
                }
            )

    def checkpoint_all(self) -> None:
        """Write the recovery points and the log start offsets of all directories."""
        for directory in self.log_directories:
            self.checkpoint_recovery_points(directory)
            self.checkpoint_log_start_offsets(directory)

    def flush_all(self) -> None:
        """Make all logs durable."""
        for log in (*self._current.values(), *self._future.values()):
            log.flush(force=True)

    def cleanup_logs(self) -> int:
        """Delete what is beyond retention; return how many segments went. Runs every 5 min.

        A log in the making goes on as it is, and so does the one that it will replace.
        """
        return sum(
            log.delete_old_segments()
            for partition, log in list(self._current.items())
            if partition not in self._future
        )

    def flush_dirty_logs(self) -> None:
        """Make durable what is not; runs every log.flush.scheduler.interval.ms."""
        for log in (*self._current.values(), *self._future.values()):
            log.flush()

    def shutdown(self) -> None:
        """Flush, checkpoint, and leave the mark that lets the next start skip recovery.

        A directory of which a log cannot be flushed gets neither checkpoints nor the mark.
        """
        for directory in self.log_directories:
            logs = [
                log
                for log in (*self._current.values(), *self._future.values())
                if self.is_in(log, directory)
            ]
            flushed = [self._flush_and_close(log) for log in logs]
            if all(flushed):
                self._mark_as_clean(directory)

    @staticmethod
    def _flush_and_close(log: Log) -> bool:
        try:
            log.flush(force=True)
        except KafkaStorageException as error:
            _log.error("%s is not flushed at the shutdown", log.directory, exc_info=error)
            return False
        log.close()
        return True

    def _mark_as_clean(self, directory: str) -> None:
        self.checkpoint_recovery_points(directory)
        self.checkpoint_log_start_offsets(directory)
        marker = self._disk.open(f"{directory}/{CLEAN_SHUTDOWN_FILE}")
        marker.flush()
        marker.close()
        self._disk.sync_directory(directory)
