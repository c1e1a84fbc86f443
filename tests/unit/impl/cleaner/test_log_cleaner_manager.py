"""Which log is cleaned, up to where, and who may stop it (LogCleanerManagerTest)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from impl.cleaner.cleaner import LogCleaningAbortedException
from impl.deterministic_scheduler import DeterministicScheduler
from impl.log import Log
from impl.records import MemoryRecords, Record
from impl.types import LogOffsetMetadata, TopicPartition
from tests.unit.impl.cleaner.compacted import PARTITION, CompactedWorld, shown

OTHER = TopicPartition("other", 0)


def fill(log: Log, keys: str) -> None:
    """A closed segment with a record for each letter, all committed."""
    for key in keys:
        log.append_as_leader(MemoryRecords.with_records(Record(b"v", key.encode())), 0)
    log.roll()
    log.maybe_increment_high_watermark(LogOffsetMetadata(log.log_end_offset))


def test_the_filthiest_log_is_first_and_none_is_grabbed_twice() -> None:
    world = CompactedWorld()
    other = world.logs.get_or_create_log(OTHER)
    fill(world.log, "ab")
    assert world.cleaner.clean_filthiest_log()
    fill(world.log, "c")
    fill(other, "a")
    manager = world.logs.cleaner
    grabbed = [manager.grab_filthiest_compacted_log() for _ in range(3)]
    assert [each and each.log for each in grabbed] == [other, world.log, None]
    assert [each and each.cleanable_ratio for each in grabbed[:2]] == [1, pytest.approx(1 / 3, 0.2)]


@pytest.mark.parametrize(
    ("compact", "ratio", "is_cleaned"),
    [(True, 0.0, True), (False, 0.0, False), (True, 1.0, False)],
)
def test_what_is_cleaned(compact: bool, ratio: float, is_cleaned: bool) -> None:
    world = CompactedWorld()
    config = replace(world.config, compact=compact, min_cleanable_dirty_ratio=ratio)
    world.log.update_config(config)
    fill(world.log, "aa")
    assert world.cleaner.clean_filthiest_log() is is_cleaned


def test_a_clean_log_is_not_cleaned_again() -> None:
    world = CompactedWorld()
    fill(world.log, "aa")
    assert world.cleaner.clean_filthiest_log()
    assert not world.cleaner.clean_filthiest_log()
    world.restart()
    world.log.update_high_watermark(world.log.log_end_offset)
    assert not world.cleaner.clean_filthiest_log(), "the checkpoint is on the disk"


@pytest.mark.parametrize(
    ("checkpoint", "first_dirty"),
    [(None, 2), (0, 2), (3, 3), (4, 4), (9, 2)],
    ids=["none", "below the log start", "inside", "log end", "above the log end"],
)
def test_a_checkpoint_outside_of_the_log_counts_as_its_start(
    checkpoint: int | None, first_dirty: int
) -> None:
    world = CompactedWorld()
    fill(world.log, "abcd")
    world.log.maybe_increment_log_start_offset(2)
    file = world.logs.checkpoint_file("logs", "cleaner-offset-checkpoint")
    file.write({} if checkpoint is None else {PARTITION: checkpoint})
    assert world.logs.cleaner.cleanable_offsets(world.log) == (first_dirty, 4)
    is_mended = checkpoint in (0, 9)
    assert file.read().get(PARTITION) == (first_dirty if is_mended else checkpoint)


@pytest.mark.parametrize(
    ("truncated_to", "checkpoint", "left"),
    [
        pytest.param(3, 3, [(1, "a=v"), (2, "b=v")], id="behind what was cleaned"),
        pytest.param(2, 0, [(1, "a=v")], id="into what was cleaned"),
    ],
)
def test_a_truncation_cuts_the_checkpoint_to_the_active_segment(
    truncated_to: int, checkpoint: int, left: list[tuple[int, str]]
) -> None:
    world = CompactedWorld()
    fill(world.log, "aab")
    assert world.cleaner.clean_filthiest_log()
    fill(world.log, "c")
    world.logs.truncate_to(world.log, truncated_to)
    assert shown(world.log) == left
    assert world.logs.cleaner.cleaner_checkpoint(world.log) == checkpoint


def test_a_paused_partition_waits_until_everybody_has_resumed_it() -> None:
    world = CompactedWorld()
    fill(world.log, "aa")
    manager = world.logs.cleaner
    manager.abort_and_pause_cleaning(PARTITION)
    manager.abort_and_pause_cleaning(PARTITION)
    manager.resume_cleaning(PARTITION)
    assert not world.cleaner.clean_filthiest_log()
    manager.resume_cleaning(PARTITION)
    assert world.cleaner.clean_filthiest_log()


def test_who_pauses_waits_for_the_pass_that_is_under_way() -> None:
    scheduler = DeterministicScheduler()
    world = CompactedWorld(concurrency=scheduler)
    fill(world.log, "aa")
    manager = world.logs.cleaner
    assert manager.grab_filthiest_compacted_log() is not None
    manager.check_cleaning_aborted(PARTITION)  # nobody waits

    def truncate() -> None:
        manager.abort_and_pause_cleaning(PARTITION)
        scheduler.checkpoint("no pass is under way")

    scheduler.spawn("truncation", truncate)
    for _ in range(2):
        scheduler.step("truncation")
    assert scheduler.runnable() == ()
    with pytest.raises(LogCleaningAbortedException):
        manager.check_cleaning_aborted(PARTITION)
    manager.done_cleaning(world.log, None)
    scheduler.run_until("truncation", "no pass is under way")
    assert manager.cleaner_checkpoint(world.log) is None
    assert manager.grab_filthiest_compacted_log() is None
    manager.resume_cleaning(PARTITION)
    assert manager.grab_filthiest_compacted_log() is not None
