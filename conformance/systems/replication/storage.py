"""A broker's log has more than one view, and all of them have to show the same records.

The specification has one log per broker. An implementation has what its objects hold, what a
reader gets, where it says that an offset lies, what its files hold, what of them would survive a
crash, and what a process that starts on them finds. The adapter observes the first; where another
departs from it, storage is broken, and the step after which that shows diverges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from conformance.systems.replication.broker import LOG_DIRECTORY, TOPIC_PARTITION, Broker
from impl.checkpoint import LeaderEpochCheckpointFile, OffsetCheckpointFile
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk
from impl.log import Log
from impl.log_manager import LogManager
from impl.log_types import FetchIsolation, LogConfig
from impl.records import RecordBatch, decode_batches
from impl.scheduler import ImmediateScheduler
from impl.types import EpochEntry, LogAppendInfo, LogOffsetMetadata

_FOLDER = f"{LOG_DIRECTORY}/{TOPIC_PARTITION}/"
_SUFFIX = ".log"
_ONE_BATCH = 1
"""Fetch limit in bytes: a read brings the first batch, however long it is."""
_NO_LIMIT = 1 << 31

Contents = Mapping[str, bytes]
Batches = tuple[RecordBatch, ...]


class InconsistentLog(Exception):
    """Two views of one log differ."""


class StorageChecks:
    """Looks at each broker's log when it has changed."""

    def __init__(self) -> None:
        self._looked_at: dict[int, object] = {}
        self.started_on: set[object] = set()
        """Files of which it is known what a start finds on them."""

    def forget(self) -> None:
        """Other brokers come. Of files that were found right it stays known that they are."""
        self._looked_at.clear()

    def check(self, broker: Broker, log: Log) -> None:
        """Raises InconsistentLog unless all views of this broker's log show the same."""
        batches, entries = tuple(log.batches()), _entries(log)
        now = (id(log), log.log_start_offset, log.log_end_offset, batches, entries)
        if self._looked_at.get(broker.id) == now:
            return
        contents = broker.disk.contents()
        segments = segments_of(contents)
        check_files(log, batches, segments, broker.segment_bytes)
        check_reads(log, segments)
        durable = broker.disk.durable()
        of_files = (log.log_start_offset, log.recovery_point, *contents.items(), *durable.items())
        if of_files not in self.started_on:
            check_durable(log, batches, durable)
            check_start(log, batches, entries, contents)
            self.started_on.add(of_files)
        self._looked_at[broker.id] = now


def check_append(log: Log, info: LogAppendInfo, leader_epoch: int) -> None:
    """What an append of one batch says of itself is what the log then shows."""
    last = log.batches()[-1]
    shown = LogAppendInfo(
        first_offset=last.base_offset,
        last_offset=last.last_offset,
        last_leader_epoch=leader_epoch,
        valid_bytes=last.size_in_bytes,
        log_start_offset=log.log_start_offset,
        max_timestamp=last.max_timestamp,
        batch_count=1,
    )
    _agree("what the append says of itself", info, shown)


def check_files(
    log: Log, batches: Batches, segments: Mapping[int, Batches], segment_bytes: int
) -> None:
    """The files hold the log's batches, each under the name of its base offset.

    A segment has at most `segment_bytes`, unless it is one batch; the next one was begun only as
    its first batch had no room.
    """
    _agree("the files", tuple(batch for segment in segments.values() for batch in segment), batches)
    _agree("the number of segments", log.number_of_segments, len(segments))
    _agree("the first segment", log.base_offset, min(segments))
    _agree("the size", log.size, sum(map(_size, segments.values())))
    bases = [*segments, log.log_end_offset + 1]
    for following, (base, record_batches) in zip(bases[1:], segments.items(), strict=True):
        if not all(
            base <= batch.base_offset <= batch.last_offset < following for batch in record_batches
        ):
            raise InconsistentLog(
                f"the segment {base} holds {record_batches}, the next is {following}"
            )
    _check_sizes(list(segments.values()), segment_bytes)


def _check_sizes(segments: Sequence[Batches], segment_bytes: int) -> None:
    for record_batches, after in zip(segments, [*segments[1:], ()], strict=True):
        if len(record_batches) > 1 and _size(record_batches) > segment_bytes:
            raise InconsistentLog(
                f"a segment has {_size(record_batches)} of {segment_bytes} bytes: {record_batches}"
            )
        if after and _size(record_batches) + after[0].size_in_bytes <= segment_bytes:
            raise InconsistentLog(f"a segment has room for {after[0]}, which begins the next")


def check_reads(log: Log, segments: Mapping[int, Batches]) -> None:
    """A reader gets from each offset on what its segment holds, and is told where that lies."""
    for base, segment in segments.items():
        position = 0
        for index, batch in enumerate(segment):
            if batch.base_offset >= log.log_start_offset:
                place = LogOffsetMetadata(batch.base_offset, base, position)
                _check_read(log, place, segment[index:])
            position += batch.size_in_bytes
    active = max(segments)
    end = LogOffsetMetadata(log.log_end_offset, active, _size(segments[active]))
    _check_read(log, end, ())


def _check_read(log: Log, place: LogOffsetMetadata, record_batches: Batches) -> None:
    offset = place.message_offset
    info, every = log.read(offset, _ONE_BATCH), log.read(offset, _NO_LIMIT)
    committed = log.read(offset, _NO_LIMIT, FetchIsolation.HIGH_WATERMARK)
    _agree(f"where {offset} lies", log.convert_to_offset_metadata(offset), place)
    _agree(f"where a read from {offset} begins", every.fetch_offset_metadata, place)
    _agree(f"the batch at {offset}", info.records.batches(), record_batches[:1])
    _agree(f"a read from {offset}", every.records.batches(), record_batches)
    below = tuple(batch for batch in record_batches if batch.last_offset < log.high_watermark)
    _agree(f"what a consumer reads from {offset}", committed.records.batches(), below)
    if len(record_batches) > 1:
        exactly = log.read(offset, _size(record_batches[:-1]))
        _agree(
            f"as many bytes from {offset} as asked", exactly.records.batches(), record_batches[:-1]
        )


def check_durable(log: Log, batches: Batches, durable: Contents) -> None:
    """What lies below the recovery point survives whatever happens to the machine."""
    survives = {batch for segment in segments_of(durable).values() for batch in segment}
    below = {batch for batch in batches if batch.last_offset < log.recovery_point}
    _agree("what survives below the recovery point", below & survives, below)


def check_start(
    log: Log, batches: Batches, entries: Sequence[EpochEntry], contents: Contents
) -> None:
    """A process that starts on these files finds the same records and epochs.

    But for epochs without a record, which it drops, and a log start that no checkpoint tells: then
    it finds epochs of records below, too (LogSegment.recover).
    """
    disk = _disk_of(contents)
    _agree("the file of epochs", LeaderEpochCheckpointFile(disk, _FOLDER[:-1]).read(), entries)
    result = _log_on(disk, log.config)
    _agree("the log end after a start", result.log_end_offset, log.log_end_offset)
    _agree("the records after a start", tuple(result.batches()), batches)
    start, end = log.log_start_offset, log.log_end_offset
    after = with_records(_entries(result), start, end)
    _agree("the epochs after a start", after, with_records(entries, start, end))


def log_after_start(contents: Contents, config: LogConfig) -> Log:
    """The log that a process finds which starts on a copy of these files, with the high watermark
    of the checkpoint.
    """
    disk = _disk_of(contents)
    log = _log_on(disk, config)
    name = OffsetCheckpointFile.HIGH_WATERMARK
    checkpointed = OffsetCheckpointFile(disk, LOG_DIRECTORY, name).read()
    log.update_high_watermark(checkpointed.get(TOPIC_PARTITION, 0))
    return log


def _log_on(disk: MemoryDisk, config: LogConfig) -> Log:
    logs = LogManager(
        disk, (LOG_DIRECTORY,), ImmediateScheduler(), NoConcurrency(), default_config=config
    )
    return logs.get_or_create_log(TOPIC_PARTITION)


def with_records(entries: Sequence[EpochEntry], start: int, end: int) -> list[EpochEntry]:
    """The epochs that the offsets from `start` up to `end` lie in."""
    bounds = pairwise([*(entry.start_offset for entry in entries), end])
    return [
        EpochEntry(entry.epoch, max(begin, start))
        for entry, (begin, following) in zip(entries, bounds, strict=True)
        if max(begin, start) < following
    ]


def segments_of(contents: Contents) -> Mapping[int, Batches]:
    """The batches that the log's files hold, by the base offset in a file's name, in its order."""
    return {
        int(path.removeprefix(_FOLDER).removesuffix(_SUFFIX)): _decoded(content)
        for path, content in sorted(contents.items())
        if path.startswith(_FOLDER) and path.endswith(_SUFFIX)
    }


@lru_cache(maxsize=10_000)
def _decoded(content: bytes) -> Batches:
    return tuple(decode_batches(content))


def _disk_of(contents: Contents) -> MemoryDisk:
    disk = MemoryDisk()
    for path, content in contents.items():
        disk.open(path).append(content)
    return disk


def _entries(log: Log) -> list[EpochEntry]:
    cache = log.leader_epoch_cache
    return [] if cache is None else list(cache.epoch_entries())


def _size(batches: Batches) -> int:
    return sum(batch.size_in_bytes for batch in batches)


def _agree(view: str, shown: object, log: object) -> None:
    if shown != log:
        raise InconsistentLog(f"{view}: {shown}, where the log has {log}")
