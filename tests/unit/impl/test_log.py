"""The log: the cases of Kafka's UnifiedLogTest by their ids, and the rules around them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from impl.deterministic_scheduler import DeterministicScheduler
from impl.disk import File, MemoryDisk
from impl.errors import (
    CorruptRecordException,
    IllegalArgumentException,
    OffsetOutOfRangeException,
)
from impl.log import Log
from impl.log_types import (
    FetchIsolation,
    LogConfig,
    OffsetsOutOfOrderException,
    UnexpectedAppendOffsetException,
)
from impl.records import MemoryRecords, Record, RecordBatch, decode_batches
from impl.types import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FileTimestampAndOffset,
    LogAppendInfo,
    LogOffsetMetadata,
    OffsetAndEpoch,
)
from tests.unit.impl.brokers import batch, epochs_of, make_log, records

ONE_BATCH = batch(0, 0).size_in_bytes


def filled(*batches: tuple[int, int], config: LogConfig | None = None) -> Log:
    """A follower's log with one-record batches (base offset, epoch)."""
    log = make_log(config=config)
    for base_offset, epoch in batches:
        log.append_as_follower(batch(base_offset, epoch))
    return log


def offsets(log: Log) -> list[int]:
    return [
        offset for entry in log.batches() for offset in range(entry.base_offset, entry.next_offset)
    ]


def test_l01_truncate_to() -> None:
    log = make_log()
    for _ in range(10):
        log.append_as_leader(records(), 0)
    size = log.size
    assert not log.truncate_to(10)
    assert not log.truncate_to(11)
    assert (log.log_end_offset, log.size) == (10, size)

    assert log.truncate_to(5)
    assert log.log_end_offset == 5
    assert log.size < size
    assert log.truncate_to(0)
    assert (log.log_end_offset, log.size) == (0, 0)

    for _ in range(10):
        log.append_as_leader(records(), 0)
    assert (log.log_end_offset, log.size) == (10, size)
    log.truncate_fully_and_start_at(1)
    assert (log.log_end_offset, log.size) == (1, 0)

    for _ in range(10):
        log.append_as_leader(records(), 0)
    assert log.log_end_offset == 11
    log.truncate_to(0)
    assert (log.log_end_offset, log.log_start_offset, log.size) == (0, 0, 0)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(20, [(0, 0), (1, 10), (2, 16)], id="L03-to-20"),
        pytest.param(11, [(0, 0), (1, 10)], id="L03-to-11"),
        pytest.param(10, [(0, 0)], id="L03-to-10"),
        pytest.param(0, [], id="L03-to-0"),
    ],
)
def test_truncation_truncates_the_epochs(target: int, expected: list[tuple[int, int]]) -> None:
    log = make_log(config=LogConfig(segment_bytes=10 * ONE_BATCH))
    for offset in range(20):
        log.append_as_follower(batch(offset, 0 if offset < 10 else 1 if offset < 16 else 2))
    assert (log.number_of_segments, log.log_end_offset) == (2, 20)

    log.truncate_to(target)

    assert epochs_of(log) == expected


def test_l05_follower_saves_epochs_of_what_it_replicates() -> None:
    log = filled(*((offset, 42) for offset in range(50)))

    assert log.latest_epoch == 42
    assert epochs_of(log) == [(42, 0)]


def test_l07_deleting_segments_moves_the_first_epoch() -> None:
    log = make_log(config=LogConfig(segment_bytes=5 * ONE_BATCH))
    for offset in range(15):
        log.append_as_follower(batch(offset, 0 if offset < 7 else 1 if offset < 10 else 2))
    assert epochs_of(log) == [(0, 0), (1, 7), (2, 10)]
    log.update_high_watermark(15)
    log.maybe_increment_log_start_offset(5)

    assert log.delete_old_segments() == 1

    assert log.log_start_offset == 5
    assert epochs_of(log) == [(0, 5), (1, 7), (2, 10)]


def test_retention_deletes_only_committed_segments() -> None:
    config = LogConfig(segment_bytes=2 * ONE_BATCH, retention_bytes=2 * ONE_BATCH)
    log = filled(*((offset, 0) for offset in range(8)), config=config)
    log.update_high_watermark(5)

    assert log.delete_old_segments() == 2
    assert log.log_start_offset == 4
    log.update_high_watermark(8)
    assert log.delete_old_segments() == 1
    assert (log.log_start_offset, offsets(log)) == (6, [6, 7])


def test_retention_of_nothing_leaves_an_empty_segment() -> None:
    log = filled((0, 0), (1, 0), config=LogConfig(retention_bytes=0))
    log.update_high_watermark(2)

    assert log.delete_old_segments() == 1

    assert (log.log_start_offset, log.log_end_offset, log.size) == (2, 2, 0)
    assert log.delete_old_segments() == 0


def test_leader_numbers_and_stamps_its_batches() -> None:
    log = make_log()

    first = log.append_as_leader(records(3), 5)
    second = log.append_as_leader(records(2), 6)

    assert (first.first_offset, first.last_offset, first.last_leader_epoch) == (0, 2, 5)
    assert (second.first_offset, second.last_offset, second.valid_bytes) == (
        3,
        4,
        log.size - first.valid_bytes,
    )
    assert [entry.partition_leader_epoch for entry in log.batches()] == [5, 6]
    assert epochs_of(log) == [(5, 0), (6, 3)]


def test_appending_nothing_changes_nothing() -> None:
    info = make_log().append_as_follower(MemoryRecords.EMPTY)

    assert (info.valid_bytes, info.last_leader_epoch) == (0, None)


def test_follower_append_must_not_begin_below_the_log_end() -> None:
    log = filled((0, 0), (1, 0))

    with pytest.raises(UnexpectedAppendOffsetException) as raised:
        log.append_as_follower(batch(1, 0, count=2))

    assert (raised.value.first_offset, raised.value.last_offset) == (1, 2)
    assert log.log_end_offset == 2


def test_two_fetchers_that_bring_the_same_batch_write_it_once() -> None:
    """The batch must not come between another's look at the log end and its write."""
    scheduler = DeterministicScheduler()
    log = make_log(concurrency=scheduler)
    refused: list[str] = []

    def bring(fetcher: str) -> None:
        try:
            log.append_as_follower(batch(0, 0))
        except UnexpectedAppendOffsetException:
            refused.append(fetcher)

    for fetcher in ("of the old leader", "of the new leader"):
        scheduler.spawn(fetcher, lambda fetcher=fetcher: bring(fetcher))
    while runnable := scheduler.runnable():
        for fetcher in runnable:
            if fetcher in scheduler.runnable():
                scheduler.step(fetcher)

    assert offsets(log) == [0]
    assert (log.log_end_offset, log.size) == (1, ONE_BATCH)
    assert refused == ["of the new leader"]


def test_follower_keeps_gaps() -> None:
    log = filled((0, 0))

    log.append_as_follower(batch(5, 1))

    assert (log.log_end_offset, epochs_of(log)) == (6, [(0, 0), (1, 5)])


def test_follower_offsets_must_rise() -> None:
    disordered = MemoryRecords(batch(3, 0).batches() + batch(2, 0).batches())

    with pytest.raises(OffsetsOutOfOrderException):
        make_log().append_as_follower(disordered)


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_corrupt_batch_is_refused_and_nothing_appended(role: str) -> None:
    log = make_log()
    good = batch(0, 0).batches()[0]
    corrupt = MemoryRecords((good, batch(1, 0).batches()[0].with_crc(1)))

    def append() -> LogAppendInfo:
        leads = role == "leader"
        return log.append_as_leader(corrupt, 0) if leads else log.append_as_follower(corrupt)

    with pytest.raises(CorruptRecordException):
        append()

    assert (log.log_end_offset, log.size, epochs_of(log)) == (0, 0, [])


def test_truncation_inside_a_batch_removes_the_whole_batch() -> None:
    log = make_log()
    log.append_as_leader(records(3), 0)
    log.append_as_leader(records(3), 0)

    log.truncate_to(4)

    assert (log.log_end_offset, offsets(log)) == (4, [0, 1, 2])
    log.append_as_follower(batch(4, 1))
    assert offsets(log) == [0, 1, 2, 4]
    assert log.read(3, 1000).records == batch(4, 1)


def test_reads_skip_a_gap_at_a_segments_end() -> None:
    log = make_log(config=LogConfig(segment_bytes=1))
    log.append_as_leader(records(3), 0)
    log.truncate_to(2)
    log.append_as_follower(batch(2, 1))
    assert log.number_of_segments == 1

    log.append_as_follower(batch(3, 1))

    assert log.number_of_segments == 2
    assert log.read(0, 1000).records == batch(2, 1)
    assert log.read(3, 1000).records == batch(3, 1)


def test_a17_truncation_at_the_log_end_drops_an_epoch_without_records() -> None:
    """KAFKA-10706."""
    log = filled((0, 0))
    log.maybe_assign_epoch_start_offset(3, 1)
    assert epochs_of(log) == [(0, 0), (3, 1)]

    assert not log.truncate_to(1)

    assert epochs_of(log) == [(0, 0)]


def test_truncation_below_the_start_offset_begins_anew() -> None:
    log = make_log()
    log.truncate_fully_and_start_at(10)
    log.append_as_follower(batch(10, 4))

    assert log.truncate_to(3)

    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (3, 3, 3)
    assert epochs_of(log) == []


def test_truncation_lowers_high_watermark_and_recovery_point() -> None:
    log = filled((0, 0), (1, 0), (2, 0))
    log.update_high_watermark(3)
    log.flush()

    log.truncate_to(1)

    assert (log.high_watermark, log.recovery_point, log.log_end_offset) == (1, 1, 1)


def test_truncation_below_the_log_start_lowers_it() -> None:
    log = filled((0, 0), (1, 0), (2, 0))
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(2)

    assert log.truncate_to(1)

    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (1, 1, 1)


def test_negative_truncation_is_refused() -> None:
    with pytest.raises(IllegalArgumentException):
        make_log().truncate_to(-1)


def test_a32_full_truncation_raises_the_high_watermark() -> None:
    """KAFKA-9491."""
    log = filled((0, 0), (1, 0))

    log.truncate_fully_and_start_at(20)

    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (20, 20, 20)
    assert (log.recovery_point, epochs_of(log)) == (0, [])


@pytest.mark.parametrize(
    ("told", "changed_to", "expected"),
    [(2, 2, 2), (9, 3, 3), (0, None, 1), (1, None, 1)],
    ids=["within", "above-the-end", "below-the-start", "unchanged"],
)
def test_followers_high_watermark_stays_within_the_log(
    told: int, changed_to: int | None, expected: int
) -> None:
    log = filled((0, 0), (1, 0), (2, 0))
    log.update_high_watermark(1)
    log.maybe_increment_log_start_offset(1)

    assert log.maybe_update_high_watermark(told) == changed_to
    assert log.high_watermark == expected


def test_followers_high_watermark_may_fall_a_leaders_does_not() -> None:
    log = filled((0, 0), (1, 0), (2, 0))
    log.update_high_watermark(3)

    assert log.maybe_increment_high_watermark(LogOffsetMetadata(2)) is None
    assert log.high_watermark == 3
    assert log.maybe_update_high_watermark(2) == 2


def test_leaders_high_watermark_moves_to_a_newer_segment_at_the_same_offset() -> None:
    log = filled((0, 0), (1, 0))
    log.maybe_increment_high_watermark(LogOffsetMetadata(2, 0, 2 * ONE_BATCH))
    log.roll()

    old = log.maybe_increment_high_watermark(log.convert_to_offset_metadata(2))

    assert old == LogOffsetMetadata(2, 0, 2 * ONE_BATCH)
    assert log.high_watermark_metadata == LogOffsetMetadata(2, 2, 0)


def test_high_watermark_above_the_log_end_is_refused() -> None:
    with pytest.raises(IllegalArgumentException):
        make_log().maybe_increment_high_watermark(LogOffsetMetadata(1))


def test_log_start_offset_moves_only_forward_and_not_above_the_high_watermark() -> None:
    log = filled((0, 0), (1, 1), (2, 2))
    log.update_high_watermark(2)

    with pytest.raises(OffsetOutOfRangeException):
        log.maybe_increment_log_start_offset(3)
    assert log.maybe_increment_log_start_offset(2)
    assert not log.maybe_increment_log_start_offset(1)

    assert (log.log_start_offset, epochs_of(log)) == (2, [(2, 2)])
    with pytest.raises(OffsetOutOfRangeException):
        log.read(1, 1000)


@pytest.mark.parametrize(
    ("start", "max_length", "isolation", "min_one", "expected"),
    [
        pytest.param(0, 1000, FetchIsolation.LOG_END, True, [0, 1, 2, 3], id="everything"),
        pytest.param(1, 2 * ONE_BATCH, FetchIsolation.LOG_END, True, [1, 2], id="two-fit"),
        pytest.param(1, 1, FetchIsolation.LOG_END, True, [1], id="one-although-too-big"),
        pytest.param(1, 1, FetchIsolation.LOG_END, False, [], id="too-big"),
        pytest.param(
            0, 1000, FetchIsolation.HIGH_WATERMARK, True, [0, 1], id="below-high-watermark"
        ),
        pytest.param(3, 1000, FetchIsolation.HIGH_WATERMARK, True, [], id="above-high-watermark"),
        pytest.param(4, 1000, FetchIsolation.LOG_END, True, [], id="at-the-log-end"),
    ],
)
def test_read(
    start: int, max_length: int, isolation: FetchIsolation, min_one: bool, expected: list[int]
) -> None:
    log = filled(*((offset, 0) for offset in range(4)))
    log.update_high_watermark(2)

    found = log.read(start, max_length, isolation, min_one)

    assert [offset for offset, _ in found.records.records()] == expected
    assert found.fetch_offset_metadata == LogOffsetMetadata(start, 0, start * ONE_BATCH)


@pytest.mark.parametrize("offset", [-1, 5])
def test_read_outside_the_log(offset: int) -> None:
    log = filled(*((offset, 0) for offset in range(4)))

    with pytest.raises(OffsetOutOfRangeException):
        log.read(offset, 1000)


def test_read_across_segments_returns_one_segment() -> None:
    log = filled(
        *((offset, 0) for offset in range(4)), config=LogConfig(segment_bytes=2 * ONE_BATCH)
    )

    assert [offset for offset, _ in log.read(1, 1000).records.records()] == [1]
    assert [offset for offset, _ in log.read(2, 1000).records.records()] == [2, 3]


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (EARLIEST_TIMESTAMP, FileTimestampAndOffset(-1, 0, 1)),
        (LATEST_TIMESTAMP, FileTimestampAndOffset(-1, 4, 2)),
        (10, FileTimestampAndOffset(10, 0, 1)),
        (11, FileTimestampAndOffset(30, 1, 1)),
        (31, FileTimestampAndOffset(40, 3, 2)),
        (41, None),
    ],
)
def test_offset_by_timestamp(timestamp: int, expected: FileTimestampAndOffset | None) -> None:
    log = make_log(config=LogConfig(segment_bytes=1))
    log.append_as_leader(records(2, timestamps=(10, 30)), 1)
    log.append_as_leader(records(2, timestamps=(20, 40)), 2)

    assert log.fetch_offset_by_timestamp(timestamp) == expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(0, OffsetAndEpoch(1, 0)), (1, OffsetAndEpoch(1, 0)), (2, OffsetAndEpoch(3, 2)), (3, None)],
)
def test_end_offset_for_epoch(asked: int, expected: OffsetAndEpoch | None) -> None:
    assert filled((0, 0), (1, 2), (2, 2)).end_offset_for_epoch(asked) == expected


def test_a19_old_message_format_has_no_epochs() -> None:
    """KAFKA-7897."""
    log = make_log(config=LogConfig(message_format=1))

    log.append_as_leader(records(2), 5)
    log.maybe_assign_epoch_start_offset(5, 0)

    assert [entry.magic for entry in log.batches()] == [1, 1]
    assert [entry.partition_leader_epoch for entry in log.batches()] == [-1, -1]
    assert (log.latest_epoch, log.end_offset_for_epoch(5)) == (None, None)


def test_a20_old_batches_clear_the_epochs() -> None:
    """KAFKA-7601."""
    log = filled((0, 3))
    old = MemoryRecords.with_records(Record(b"old"), base_offset=1, magic=1)

    log.append_as_follower(old)

    assert epochs_of(log) == []
    log.append_as_follower(batch(2, 4))
    assert epochs_of(log) == [(4, 2)]


def test_changing_the_message_format_drops_and_makes_the_epoch_cache() -> None:
    disk = MemoryDisk()
    log = make_log(disk)
    log.append_as_leader(records(), 1)

    log.update_config(LogConfig(message_format=1))
    assert log.latest_epoch is None
    assert "logs/topic-0/leader-epoch-checkpoint" not in disk.contents()
    log.update_config(LogConfig())
    assert epochs_of(log) == []
    log.append_as_leader(records(magic=1), 2)
    assert epochs_of(log) == [(2, 1)]


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batches_survive_their_binary_layout(magic: int) -> None:
    sent = MemoryRecords.with_records(
        Record(b"value", b"key", 7, (("header", b"x"), ("empty", None)) if magic == 2 else ()),
        Record(None, b"key", 5),
        base_offset=3,
        partition_leader_epoch=9,
        magic=magic,
    )

    read = decode_batches(sent.to_bytes())

    assert tuple(read) == sent.batches()
    assert len(sent.to_bytes()) == sent.size_in_bytes
    assert all(entry.is_valid() for entry in read)
    if magic > 0:
        assert [entry.records for entry in read] == [entry.records for entry in sent.batches()]
    assert decode_batches(sent.to_bytes()[:-1]) == read[:-1]


def test_impossible_length_is_corruption() -> None:
    with pytest.raises(CorruptRecordException):
        decode_batches(b"\0" * 40)


def test_batches_without_records_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        RecordBatch.create(())


class LendingDisk(MemoryDisk):
    """Notes whose files are open: an operating system lends a process only so many."""

    def __init__(self) -> None:
        super().__init__()
        self.lent: list[str] = []

    def open(self, path: str) -> File:
        self.lent.append(path)
        return LentFile(self, path, super().open(path))


class LentFile:
    def __init__(self, disk: LendingDisk, path: str, file: File) -> None:
        self._disk = disk
        self._path = path
        self.size, self.read = file.size, file.read
        self.append, self.truncate, self.flush = file.append, file.truncate, file.flush

    def close(self) -> None:
        self._disk.lent.remove(self._path)


@pytest.mark.parametrize("end", [Log.close, Log.delete], ids=["closed", "deleted"])
def test_a_log_that_is_done_with_gives_every_file_back(end: Callable[[Log], None]) -> None:
    disk = LendingDisk()
    log = make_log(disk, config=LogConfig(segment_bytes=ONE_BATCH))
    for offset in range(3):
        log.append_as_follower(batch(offset, 0))
    assert disk.lent == [f"logs/topic-0/{base:020d}.log" for base in range(3)]

    end(log)

    assert disk.lent == []
