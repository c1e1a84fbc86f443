"""One pass over a log: which records and batches stay (LogCleanerTest)."""

from __future__ import annotations

import pytest

from impl.cleaner.cleaner import Cleaner, LogCleaningAbortedException, group_segments_by_size
from impl.disk import everything
from impl.log_types import FetchIsolation
from impl.producer_state.transactions import AbortedTxn
from impl.scheduler import DeferredScheduler
from tests.unit.impl.cleaner.compacted import (
    PARTITION,
    RETENTION_MS,
    CompactedWorld,
    Shown,
    shown,
    spans,
)

P, Q = 1, 2
SEGMENT = "logs/t-0/00000000000000000000.log"


@pytest.mark.parametrize(
    ("batches", "left"),
    [
        pytest.param([["a=1"], ["b=1"], ["a=2"]], [(1, "b=1"), (2, "a=2")], id="the last of a key"),
        pytest.param(
            [["a=1", "b=1"], ["a=2"]], [(1, "b=1"), (2, "a=2")], id="a batch loses one record"
        ),
        pytest.param([["a=1", "a=2"]], [(1, "a=2")], id="both in one batch"),
        pytest.param([["=1"], ["a=1"]], [(1, "a=1")], id="a record without a key goes"),
        pytest.param([["a=1"], ["a"]], [(1, "a deleted")], id="a tombstone displaces a value"),
        pytest.param([["a"], ["a=1"]], [(1, "a=1")], id="a value displaces a tombstone"),
    ],
)
def test_records_that_stay(batches: list[list[str]], left: list[Shown]) -> None:
    world = CompactedWorld()
    for batch in batches:
        world.append(*batch)
    assert world.clean()
    assert shown(world.log) == left


def test_a_batch_keeps_its_offsets_and_its_epoch() -> None:
    world = CompactedWorld()
    world.append("a=1", "b=1", "a=2")
    world.append("b=2")
    before = [batch.partition_leader_epoch for batch in world.log.batches()]
    world.clean()
    assert spans(world.log) == [(0, 2, 1), (3, 3, 1)]
    assert [batch.partition_leader_epoch for batch in world.log.batches()] == before
    assert all(batch.is_valid() for batch in world.log.batches())


def test_the_active_segment_and_what_is_not_stable_stay_as_they_are() -> None:
    world = CompactedWorld()
    for value in ("a=1", "a=2", "a=3", "a=4"):
        world.append(value)
        world.log.roll()
    world.log.update_high_watermark(2)
    assert world.cleaner.clean_filthiest_log()
    assert shown(world.log) == [(1, "a=2"), (2, "a=3"), (3, "a=4")]
    assert world.logs.cleaner.cleaner_checkpoint(world.log) == 2


def test_an_open_transaction_is_not_cleaned() -> None:
    world = CompactedWorld()
    world.append("a=1")
    world.log.roll()
    world.append_of(P, "a=2")
    world.append("a=3")
    world.clean()
    assert shown(world.log) == [(0, "a=1"), (1, "a=2"), (2, "a=3")]
    assert world.logs.cleaner.cleaner_checkpoint(world.log) == 1


def test_a_tombstone_goes_a_retention_after_the_pass_that_found_it() -> None:
    world = CompactedWorld()
    world.append("a=1")
    world.append("a")
    world.clock.sleep(10 * RETENTION_MS)  # its own age does not count
    world.append("b=1")
    world.clean()
    due = world.clock.milliseconds() + RETENTION_MS
    assert [b.delete_horizon_ms for b in world.log.batches()] == [due, None]

    world.clock.sleep(RETENTION_MS - 1)
    world.append("c=1")
    world.clean()
    assert shown(world.log) == [(1, "a deleted"), (2, "b=1"), (3, "c=1")]
    assert world.log.batches()[0].delete_horizon_ms == due, "a later pass leaves it"

    world.clock.sleep(1)
    world.append("d=1")
    world.clean()
    assert shown(world.log) == [(2, "b=1"), (3, "c=1"), (4, "d=1")]


def test_a_batch_with_a_horizon_keeps_the_times_of_its_records() -> None:
    world = CompactedWorld()
    world.append("a", "b=1")
    (before,) = world.log.batches()
    world.clean()
    (after,) = world.log.batches()
    assert after.delete_horizon_ms is not None
    assert [r.timestamp for r in after.records] == [r.timestamp for r in before.records]
    assert after.max_timestamp == before.max_timestamp


def test_aborted_records_go_and_displace_none() -> None:
    world = CompactedWorld()
    world.append("a=1")
    world.append_of(P, "a=2")
    world.end(P, commits=False)
    world.append_of(Q, "b=1")
    world.end(Q, commits=True)
    world.clean()
    assert shown(world.log) == [(0, "a=1"), (2, "abort"), (3, "b=1"), (4, "commit")]


@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_goes_after_the_batches_of_its_transaction(commits: bool) -> None:
    world = CompactedWorld()
    world.append_of(P, "a=1")
    world.end(P, commits=commits)
    world.append_of(P, "b=1")  # has the last sequence, so that the batch of a=1 may go
    world.end(P, commits=True)
    world.append("a=2")
    world.clean()
    kind = "commit" if commits else "abort"
    tail = [(2, "b=1"), (3, "commit"), (4, "a=2")]
    assert shown(world.log) == [(1, kind), *tail]
    # This pass read the batch of a=1 still; only the next one finds the marker alone.
    assert world.log.batches()[0].delete_horizon_ms is None

    world.append("c=1")
    world.clean()
    assert shown(world.log) == [(1, kind), *tail, (5, "c=1")]
    assert world.log.batches()[0].delete_horizon_ms is not None

    world.clock.sleep(RETENTION_MS)
    world.append("d=1")
    world.clean()
    assert shown(world.log) == [*tail, (5, "c=1"), (6, "d=1")]


def test_the_abort_index_keeps_what_batches_are_left_of() -> None:
    world = CompactedWorld()
    world.append_of(P, "a=1")
    world.end(P, commits=False)
    entry = AbortedTxn(P, 0, 1, 2)
    assert world.log.all_aborted_txns == (entry,)
    world.append("b=1")
    world.clean()
    assert spans(world.log) == [(0, 0, 0), (1, 1, 1), (2, 2, 1)], "the last sequence stays"
    assert world.log.all_aborted_txns == (entry,)

    world.append_of(P, "c=1")
    world.end(P, commits=True)
    world.clean()
    assert spans(world.log)[0] == (1, 1, 1)
    # This pass still read the empty batch; the entry goes with the marker's data one pass later.
    world.append("d=1")
    world.clean()
    assert not world.log.all_aborted_txns


def test_a_consumer_reads_the_same_committed_values_after_a_pass() -> None:
    world = CompactedWorld()
    world.append("a=1")
    world.append_of(P, "a=2")
    world.end(P, commits=False)
    world.append("b=1")
    world.clean()
    world.restart()
    world.log.update_high_watermark(world.log.log_end_offset)
    found = world.log.read(0, 1 << 20, FetchIsolation.TXN_COMMITTED)
    values = {
        record.key: record.value
        for batch in found.records.batches()
        if not batch.is_control_batch
        for record in batch.records
    }
    assert values == {b"a": b"1", b"b": b"1"}


@pytest.mark.parametrize("transactional", [True, False])
def test_the_last_batch_of_a_known_producer_stays_without_records(transactional: bool) -> None:
    world = CompactedWorld()
    world.append_of(P, "a=1", transactional=transactional)
    if transactional:
        world.end(P, commits=True)
    world.append("a=2")
    world.clean()
    first = world.log.batches()[0]
    assert (first.base_offset, first.records, first.producer.base_sequence) == (0, (), 0)

    world.restart()  # from the batches: there was no clean shutdown
    entry = world.log.producer_state_manager.active_producers[P]
    assert entry.last_seq == 0


@pytest.mark.parametrize(("retains_last_batch", "left"), [(True, [(0, 0, 0)]), (False, [])])
def test_the_batch_that_ends_at_the_high_watermark_stays(
    retains_last_batch: bool, left: list[tuple[int, int, int]]
) -> None:
    """KAFKA-17076: or no read reaches the log end."""
    world = CompactedWorld()
    world.append("a")
    world.clean()
    world.clock.sleep(RETENTION_MS)
    manager = world.logs.cleaner
    manager.maybe_truncate_checkpoint(world.log, 0)
    cleanable = manager.grab_filthiest_compacted_log()
    assert cleanable is not None
    cleaner = Cleaner(
        world.clock, manager.check_cleaning_aborted, retains_last_batch=retains_last_batch
    )
    assert cleaner.clean(cleanable) == 1
    assert spans(world.log) == left
    assert world.log.log_end_offset == 1


def test_segments_are_merged_up_to_their_size() -> None:
    one = CompactedWorld()
    one.append("a=1")
    size = one.log.size
    world = CompactedWorld(segment_bytes=2 * size)
    for key in "abcde":
        world.append(f"{key}=1")
        world.log.roll()
    segments = world.log.log_segments(0, 5)
    assert [
        [segment.base_offset for segment in group]
        for group in group_segments_by_size(segments, 2 * size)
    ] == [[0, 1], [2, 3], [4]]
    world.clean()
    assert [s.base_offset for s in world.log.log_segments(0, 6)] == [0, 2, 4, 5]


def test_a_pass_that_is_aborted_changes_nothing() -> None:
    world = CompactedWorld()
    world.append("a=1")
    world.append("a=2")
    world.log.roll()
    world.replicate()
    cleanable = world.logs.cleaner.grab_filthiest_compacted_log()
    assert cleanable is not None
    asked = iter([False, True])  # it stops when the copy has begun

    def check_done(partition: object) -> None:
        assert partition == PARTITION
        if next(asked):
            raise LogCleaningAbortedException

    with pytest.raises(LogCleaningAbortedException):
        Cleaner(world.clock, check_done).clean(cleanable)
    assert shown(world.log) == [(0, "a=1"), (1, "a=2")]
    assert not [name for name in world.disk.names("logs/t-0") if name.endswith(".cleaned")]


def test_readers_of_the_old_segments_have_their_files_until_these_are_deleted() -> None:
    scheduler = DeferredScheduler()
    world = CompactedWorld(scheduler=scheduler)
    world.append("a=1")
    world.append("a=2")
    world.clean()
    assert world.disk.exists(SEGMENT + ".deleted")
    scheduler.run_pending()
    assert not world.disk.exists(SEGMENT + ".deleted")
    assert shown(world.log) == [(1, "a=2")]


def two_segments() -> CompactedWorld:
    """Two closed segments, flushed."""
    world = CompactedWorld()
    for value in ("a=1", "a=2", "b=1"):
        world.append(value)
        world.log.roll()
    world.replicate()
    world.log.flush(force=True)
    return world


def test_a_crash_in_a_pass_leaves_the_log_as_it_was() -> None:
    world = two_segments()
    cleaned = world.log.create_new_cleaned_segment(0)
    cleaned.append((world.log.batches()[1],))
    cleaned.flush()
    world.disk.crash(everything)
    world.restart()
    assert shown(world.log) == [(0, "a=1"), (1, "a=2"), (2, "b=1")]
    assert not world.disk.exists(SEGMENT + ".cleaned")


def test_a_crash_amid_the_swap_leaves_the_cleaned_log() -> None:
    world = two_segments()
    cleaned = world.log.create_new_cleaned_segment(0)
    cleaned.append((world.log.batches()[1],))
    cleaned.flush()
    cleaned.change_file_suffixes(".cleaned", ".swap")
    world.disk.crash(everything)
    world.restart()
    assert shown(world.log) == [(1, "a=2"), (2, "b=1")]
    assert [s.base_offset for s in world.log.log_segments(0, 9)] == [0, 2, 3]
    assert not world.disk.exists(SEGMENT + ".swap")
