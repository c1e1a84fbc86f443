"""Every view of a log has to show the same; whichever departs from it is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from conformance.systems.replication.broker import LOG_DIRECTORY, TOPIC_PARTITION
from conformance.systems.replication.storage import (
    InconsistentLog,
    check_append,
    check_durable,
    check_files,
    check_reads,
    check_start,
    segments_of,
    with_records,
)
from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk
from impl.leader_epoch_file_cache import LeaderEpochFileCache
from impl.log import Log
from impl.log_manager import LogManager
from impl.log_segment import LogSegment
from impl.log_types import LogConfig
from impl.records import MemoryRecords, Record
from impl.scheduler import ImmediateScheduler
from impl.types import EpochEntry

RECORD = MemoryRecords.with_records(Record(b"value"))
PATH = f"{LOG_DIRECTORY}/{TOPIC_PARTITION}"


@dataclass(frozen=True, slots=True)
class Stored:
    """A log of four batches in epochs 0 and 2, and its disk."""

    disk: MemoryDisk
    log: Log
    segment_bytes: int

    def check(self) -> None:
        """Look at every view."""
        log, batches = self.log, tuple(self.log.batches())
        contents = self.disk.contents()
        segments = segments_of(contents)
        check_files(log, batches, segments, self.segment_bytes)
        check_reads(log, segments)
        check_durable(log, batches, self.disk.durable())
        cache = log.leader_epoch_cache
        assert cache is not None
        check_start(log, batches, list(cache.epoch_entries()), contents)


def stored(segment_bytes: int) -> Stored:
    disk = MemoryDisk()
    logs = LogManager(
        disk,
        (LOG_DIRECTORY,),
        ImmediateScheduler(),
        NoConcurrency(),
        default_config=LogConfig(segment_bytes=segment_bytes),
    )
    log = logs.get_or_create_log(TOPIC_PARTITION)
    for epoch in (0, 0, 2, 2):
        log.append_as_leader(RECORD, epoch)
    log.update_high_watermark(3)
    return Stored(disk, log, segment_bytes)


EACH_ITS_OWN, ALL_IN_ONE = 1, 1 << 20


@pytest.mark.parametrize("segment_bytes", [EACH_ITS_OWN, 150, ALL_IN_ONE])
def test_all_views_of_a_log_agree_whatever_happens_to_it(segment_bytes: int) -> None:
    one = stored(segment_bytes)
    one.check()
    one.log.maybe_increment_log_start_offset(1)
    one.check()
    one.log.truncate_to(3)
    one.check()
    one.log.append_as_leader(RECORD, 3)
    one.log.flush()
    one.check()
    one.log.truncate_fully_and_start_at(7)
    one.check()


def lose_a_file(one: Stored) -> None:
    one.disk.remove(f"{PATH}/{1:020d}.log")


def write_on(one: Stored) -> None:
    one.disk.open(f"{PATH}/{3:020d}.log").append(RECORD.to_bytes())


def forget_the_epochs(one: Stored) -> None:
    one.disk.remove(f"{PATH}/leader-epoch-checkpoint")


@pytest.mark.parametrize(
    ("breaks", "told"),
    [
        (lose_a_file, "the files"),
        (write_on, "the files"),
        (forget_the_epochs, "the file of epochs"),
    ],
)
def test_what_the_files_lack_or_have_too_much_is_told(
    breaks: Callable[[Stored], None], told: str
) -> None:
    one = stored(EACH_ITS_OWN)
    breaks(one)
    with pytest.raises(InconsistentLog, match=told):
        one.check()


def test_what_was_called_flushed_and_would_not_survive_is_told() -> None:
    one = stored(ALL_IN_ONE)
    one.log.flush()
    batches = tuple(one.log.batches())
    check_durable(one.log, batches, one.disk.durable())
    with pytest.raises(InconsistentLog, match="survives below the recovery point"):
        check_durable(one.log, batches, {})


@pytest.mark.parametrize(
    ("owner", "method", "wrong", "segment_bytes", "told"),
    [
        (LogSegment, "position_of", lambda self, offset: 1, ALL_IN_ONE, "where 0 lies"),
        (LogSegment, "index_of", lambda self, offset: 0, ALL_IN_ONE, "where 1 lies"),
        (Log, "_segment_index", lambda self, offset: 0, EACH_ITS_OWN, "where 1 lies"),
        (Log, "number_of_segments", property(lambda self: 1), EACH_ITS_OWN, "number of segments"),
        (Log, "base_offset", property(lambda self: 1), ALL_IN_ONE, "first segment"),
        (Log, "size", property(lambda self: 0), ALL_IN_ONE, "the size"),
        (LeaderEpochFileCache, "_insert", lambda self, epoch, start: False, ALL_IN_ONE, "epochs"),
    ],
)
def test_a_log_that_misleads_its_readers_is_told(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    method: str,
    wrong: object,
    segment_bytes: int,
    told: str,
) -> None:
    one = stored(segment_bytes)
    one.check()
    monkeypatch.setattr(owner, method, wrong)
    with pytest.raises(InconsistentLog, match=told):
        one.check()


@pytest.mark.parametrize(
    ("segment_bytes", "setting", "told"),
    [
        (ALL_IN_ONE, 100, "of 100 bytes"),
        (EACH_ITS_OWN, ALL_IN_ONE, "a segment has room"),
        (2 * RECORD.size_in_bytes, 2 * RECORD.size_in_bytes + 1, ""),
    ],
)
def test_segments_are_rolled_when_the_next_batch_has_no_room(
    segment_bytes: int, setting: int, told: str
) -> None:
    one = replace(stored(segment_bytes), segment_bytes=setting)
    if not told:
        one.check()
        return
    with pytest.raises(InconsistentLog, match=told):
        one.check()


def test_what_an_append_says_of_itself_is_what_the_log_shows() -> None:
    one = stored(ALL_IN_ONE)
    info = one.log.append_as_leader(RECORD, 3)
    check_append(one.log, info, 3)
    for wrong in (
        replace(info, last_offset=info.last_offset + 1),
        replace(info, valid_bytes=0),
        replace(info, batch_count=2),
        replace(info, last_leader_epoch=2),
    ):
        with pytest.raises(InconsistentLog, match="what the append says"):
            check_append(one.log, wrong, 3)


@pytest.mark.parametrize(
    ("entries", "start", "held"),
    [
        pytest.param([], 0, [], id="no epoch"),
        pytest.param([(0, 0), (2, 2)], 0, [(0, 0), (2, 2)], id="all have records"),
        pytest.param([(0, 0), (2, 2)], 1, [(0, 1), (2, 2)], id="one begins below the log start"),
        pytest.param([(0, 0), (2, 2)], 2, [(2, 2)], id="one ends at the log start"),
        pytest.param([(0, 0), (3, 4)], 0, [(0, 0)], id="one begins at the log end"),
        pytest.param([(0, 0)], 4, [], id="everything is below the log start"),
    ],
)
def test_epochs_are_compared_where_they_have_records(
    entries: list[tuple[int, int]], start: int, held: list[tuple[int, int]]
) -> None:
    """A process that knows of no log start finds the epochs of all records in its files."""
    found = with_records([EpochEntry(*entry) for entry in entries], start, 4)
    assert found == [EpochEntry(*entry) for entry in held]
