"""Makes a log from what its directory holds, whole or after a crash.

Source: LogLoader. Segments from the recovery point on are checked batch by batch and cut at the
first bad one; the files behind it are removed later, as any file is. The epoch cache is healed to
what the log holds, and the producers' state is read from their newest snapshot and the log behind
it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .checkpoint import LeaderEpochCheckpointFile
from .clock import Clock, MockClock
from .concurrency import Concurrency
from .disk import Disk
from .leader_epoch_file_cache import LeaderEpochFileCache
from .log import Log, open_epoch_cache
from .log_segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    SWAP_SUFFIX,
    LogSegment,
    delete_segment_files,
)
from .log_types import LogConfig
from .producer_state.producer_state_manager import (
    ProducerStateManager,
    ProducerStateManagerConfig,
)
from .records import MAGIC_VALUE_V2, RecordBatch
from .scheduler import Scheduler
from .transaction_index import index_path
from .types import TopicPartition


def load_log(
    topic_partition: TopicPartition,
    directory: str,
    disk: Disk,
    scheduler: Scheduler,
    concurrency: Concurrency,
    *,
    config: LogConfig | None = None,
    log_start_offset: int = 0,
    recovery_point: int = 0,
    had_clean_shutdown: bool = False,
    clock: Clock | None = None,
    producers: ProducerStateManagerConfig | None = None,
) -> Log:
    """The log in `directory`, made if absent. Offsets are those of the broker's checkpoints.

    Without a `clock` no producer expires.
    """
    config = config or LogConfig()
    clock = clock or MockClock()
    cache = _epoch_cache(directory, disk, scheduler, concurrency, config)
    _remove_left_files(directory, disk)
    _complete_swaps(directory, disk)
    segments, behind = _load_segments(directory, disk, recovery_point, had_clean_shutdown, cache)
    delete_segment_files(behind, scheduler)
    if not segments or segments[-1].next_offset < log_start_offset:
        delete_segment_files(segments, scheduler)
        if cache is not None and not cache.is_empty():
            cache.clear_and_flush()
        segments = [LogSegment(disk, directory, log_start_offset)]
    log_end_offset = segments[-1].next_offset
    start = max(log_start_offset, segments[0].base_offset)
    if cache is not None:
        cache.truncate_from_end(log_end_offset)
        cache.truncate_from_start(log_start_offset)
    make = partial(
        ProducerStateManager,
        topic_partition,
        directory,
        disk,
        clock,
        producers or ProducerStateManagerConfig(),
    )
    if not had_clean_shutdown:
        _recover_producers(make, segments, start, recovery_point)
    state = make()
    state.remove_stray_snapshots({segment.base_offset for segment in segments})
    state.rebuild(_batches(segments), start, log_end_offset)
    flushed = log_end_offset if had_clean_shutdown else min(recovery_point, log_end_offset)
    return Log(
        topic_partition,
        directory,
        segments,
        start,
        flushed,
        cache,
        state,
        config,
        disk,
        scheduler,
        concurrency,
        clock,
    )


def _epoch_cache(
    directory: str, disk: Disk, scheduler: Scheduler, concurrency: Concurrency, config: LogConfig
) -> LeaderEpochFileCache | None:
    if config.message_format < MAGIC_VALUE_V2:
        disk.remove(f"{directory}/{LeaderEpochCheckpointFile.NAME}")
        return None
    return open_epoch_cache(disk, directory, scheduler, concurrency)


def _remove_left_files(directory: str, disk: Disk) -> None:
    """What the process before had renamed and not yet removed, or had not cleaned to the end."""
    for name in disk.names(directory):
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX)):
            disk.remove(f"{directory}/{name}")


def _complete_swaps(directory: str, disk: Disk) -> None:
    """A cleaned segment that is whole takes the place of those it was made of."""
    suffix = ".log" + SWAP_SUFFIX
    for name in disk.names(directory):
        if not name.endswith(suffix):
            continue
        swap = LogSegment(disk, directory, int(name.removesuffix(suffix)), SWAP_SUFFIX)
        swap.load(check_crc=False)
        for base in _bases(directory, disk):
            if swap.base_offset <= base < swap.next_offset:
                LogSegment(disk, directory, base).delete()
                disk.remove(index_path(directory, base))
        swap.change_file_suffixes(SWAP_SUFFIX, "")
        swap.close()
        disk.sync_directory(directory)


def _bases(directory: str, disk: Disk) -> list[int]:
    names = [name for name in disk.names(directory) if name.endswith(".log")]
    return sorted(int(name.removesuffix(".log")) for name in names)


def _load_segments(
    directory: str,
    disk: Disk,
    recovery_point: int,
    had_clean_shutdown: bool,
    cache: LeaderEpochFileCache | None,
) -> tuple[list[LogSegment], list[LogSegment]]:
    """The segments of the log, and those that follow a cut: they are no continuation of it."""
    bases = _bases(directory, disk)
    segments: list[LogSegment] = []
    behind: list[LogSegment] = []
    broken = False
    for index, base in enumerate(bases):
        segment = LogSegment(disk, directory, base)
        if broken:
            behind.append(segment)
            continue
        upper = bases[index + 1] if index + 1 < len(bases) else None
        unflushed = not had_clean_shutdown and (upper is None or upper > recovery_point)
        broken = segment.load(check_crc=unflushed) > 0
        segments.append(segment)
        if unflushed and cache is not None:
            _recover_epochs(segment, cache)
    return segments, behind


def _recover_epochs(segment: LogSegment, cache: LeaderEpochFileCache) -> None:
    """Give the cache the epochs that the log has and it lacks (LogSegment.recover)."""
    for batch in segment.batches:
        latest = cache.latest_epoch()
        epoch = batch.partition_leader_epoch
        if epoch >= 0 and (latest is None or epoch > latest):
            cache.assign(epoch, batch.base_offset)


def _recover_producers(
    make: Callable[[], ProducerStateManager],
    segments: list[LogSegment],
    log_start_offset: int,
    recovery_point: int,
) -> None:
    """Write a snapshot behind each segment that was not flushed, and its abort index
    (LogLoader.recoverSegment). The last segment is one of them, wherever the recovery point is.

    Each manager is for this alone; the log's own reads the snapshots (KAFKA-10832).
    """
    for segment in segments:
        if segment is segments[-1] or segment.next_offset > recovery_point:
            manager = make()
            manager.rebuild(_batches(segments), log_start_offset, segment.base_offset)
            segment.txn_index.truncate_to(segment.base_offset)
            for aborted in manager.replay(segment.batches):
                segment.txn_index.append(aborted)
            manager.take_snapshot()


def _batches(segments: list[LogSegment]) -> list[RecordBatch]:
    return [batch for segment in segments for batch in segment.batches]
