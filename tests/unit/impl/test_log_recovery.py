"""What a log is after a restart, clean or after a crash at a chosen point."""

from __future__ import annotations

from pathlib import Path

import pytest

from impl.concurrency import NoConcurrency
from impl.disk import MemoryDisk, Surviving, bytes_of, everything, nothing
from impl.errors import ApiException, KafkaStorageException
from impl.log_manager import CLEAN_SHUTDOWN_FILE, LogManager
from impl.log_types import LogConfig
from impl.real_disk import ShadowedDisk
from impl.scheduler import DeferredScheduler, ImmediateScheduler
from tests.unit.impl.brokers import TP, batch, epochs_of, make_log, records

SEGMENT = "logs/topic-0/00000000000000000000.log"
ONE_BATCH = batch(0, 0).size_in_bytes


def manager(disk: MemoryDisk | ShadowedDisk, config: LogConfig | None = None) -> LogManager:
    return LogManager(
        disk, ("logs", "other"), ImmediateScheduler(), NoConcurrency(), default_config=config
    )


@pytest.mark.parametrize("make", ["memory", "directory"])
@pytest.mark.parametrize(
    ("surviving", "expected_end", "expected_epochs"),
    [
        pytest.param(nothing, 2, [(0, 0)], id="unflushed-lost"),
        pytest.param(bytes_of({SEGMENT: ONE_BATCH}), 3, [(0, 0), (1, 2)], id="one-batch-survives"),
        pytest.param(bytes_of({SEGMENT: ONE_BATCH - 1}), 2, [(0, 0)], id="torn-batch"),
        pytest.param(bytes_of({SEGMENT: 2 * ONE_BATCH - 1}), 3, [(0, 0), (1, 2)], id="second-torn"),
        pytest.param(everything, 4, [(0, 0), (1, 2), (2, 3)], id="everything-survives"),
    ],
)
def test_crash_loses_the_unflushed_tail_and_its_epochs(
    make: str,
    surviving: Surviving,
    expected_end: int,
    expected_epochs: list[tuple[int, int]],
    tmp_path: Path,
) -> None:
    disk = MemoryDisk() if make == "memory" else ShadowedDisk(tmp_path)
    log = make_log(disk)
    for offset, epoch in ((0, 0), (1, 0)):
        log.append_as_follower(batch(offset, epoch))
    log.flush()
    for offset, epoch in ((2, 1), (3, 2)):
        log.append_as_follower(batch(offset, epoch))

    disk.crash(surviving)
    recovered = make_log(disk, recovery_point=2)

    assert recovered.log_end_offset == expected_end
    assert epochs_of(recovered) == expected_epochs
    recovered.append_as_leader(records(), 7)
    assert epochs_of(recovered) == [*expected_epochs, (7, expected_end)]


def test_corrupt_unflushed_batch_cuts_the_log_and_drops_later_segments() -> None:
    disk = MemoryDisk()
    log = make_log(
        disk, config=LogConfig(segment_bytes=2 * ONE_BATCH), scheduler=DeferredScheduler()
    )
    for offset in range(4):
        log.append_as_follower(batch(offset, offset))
    file = disk.open(SEGMENT)
    content = bytearray(file.read(0, file.size()))
    content[-1] ^= 1
    file.truncate(0)
    file.append(bytes(content))

    tasks = DeferredScheduler()
    recovered = make_log(disk, scheduler=tasks)

    assert (recovered.log_end_offset, recovered.number_of_segments) == (1, 1)
    assert epochs_of(recovered) == [(0, 0)]
    assert [name for name in disk.names("logs/topic-0") if name.endswith(".log.deleted")]
    tasks.run_pending()
    assert not [name for name in disk.names("logs/topic-0") if name.endswith(".log.deleted")]


def test_flushed_segments_are_not_checked_again() -> None:
    disk = MemoryDisk()
    log = make_log(disk, config=LogConfig(segment_bytes=2 * ONE_BATCH))
    for offset in range(4):
        log.append_as_follower(batch(offset, 0))
    file = disk.open(SEGMENT)
    content = bytearray(file.read(0, file.size()))
    content[-1] ^= 1
    file.truncate(0)
    file.append(bytes(content))

    assert make_log(disk, recovery_point=2).log_end_offset == 4


def test_epochs_that_the_checkpoint_lacks_are_recovered_from_the_batches() -> None:
    disk = MemoryDisk()
    log = make_log(disk)
    log.append_as_follower(batch(0, 1))
    log.append_as_follower(batch(1, 4))
    disk.remove("logs/topic-0/leader-epoch-checkpoint")

    assert epochs_of(make_log(disk)) == [(1, 0), (4, 1)]


def test_epoch_of_a_leader_that_wrote_nothing_does_not_outlive_a_restart() -> None:
    disk = MemoryDisk()
    log = make_log(disk)
    log.append_as_leader(records(), 0)
    log.maybe_assign_epoch_start_offset(3, 1)

    assert epochs_of(make_log(disk)) == [(0, 0)]


def test_log_start_above_the_log_end_begins_anew() -> None:
    disk = MemoryDisk()
    make_log(disk).append_as_leader(records(2), 0)

    log = make_log(disk, log_start_offset=7)

    assert (log.log_start_offset, log.log_end_offset, epochs_of(log)) == (7, 7, [])


def test_log_start_is_healed_into_the_epochs() -> None:
    disk = MemoryDisk()
    log = make_log(disk)
    for offset in range(4):
        log.append_as_follower(batch(offset, offset // 2))

    assert epochs_of(make_log(disk, log_start_offset=3)) == [(1, 3)]


def test_background_flush_of_a_rolled_segment_moves_the_recovery_point() -> None:
    scheduler = DeferredScheduler()
    log = make_log(scheduler=scheduler, config=LogConfig(segment_bytes=2 * ONE_BATCH))
    for offset in range(3):
        log.append_as_follower(batch(offset, 0))
    assert (log.recovery_point, scheduler.pending()) == (0, ("flush-log",))

    assert scheduler.run_pending() == 1

    assert log.recovery_point == 2


def test_clean_shutdown_keeps_everything_and_restarts_without_recovery() -> None:
    disk = MemoryDisk()
    logs = manager(disk)
    log = logs.get_or_create_log(TP, "logs")
    log.append_as_leader(records(3), 1)
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(2)

    logs.shutdown()
    disk.crash(nothing)
    assert f"logs/{CLEAN_SHUTDOWN_FILE}" in disk.contents()
    again = manager(disk)

    reopened = again.get_log(TP)
    assert reopened is not None
    assert (reopened.log_start_offset, reopened.log_end_offset) == (2, 3)
    assert (reopened.recovery_point, epochs_of(reopened)) == (3, [(1, 2)])
    assert f"logs/{CLEAN_SHUTDOWN_FILE}" not in disk.contents()


def test_who_dies_while_it_loads_has_not_shut_down_in_order() -> None:
    """KAFKA-10471: the marker goes before anything is loaded."""
    disk = MemoryDisk()
    logs = manager(disk)
    logs.get_or_create_log(TP, "logs")
    logs.shutdown()
    disk.open("other/topic-0/00000000000000000000.log")

    with pytest.raises(KafkaStorageException):
        manager(disk)

    assert not [path for path in disk.contents() if path.endswith(CLEAN_SHUTDOWN_FILE)]


@pytest.mark.parametrize("target", [0, 2])
def test_clean_shutdown_makes_a_truncation_durable(target: int) -> None:
    disk = MemoryDisk()
    logs = manager(disk)
    log = logs.get_or_create_log(TP, "logs")
    for epoch in range(4):
        log.append_as_leader(records(), epoch)
    log.flush()
    logs.truncate_to(log, target)

    logs.shutdown()
    disk.crash(nothing)

    reopened = manager(disk).get_log(TP)
    assert reopened is not None
    assert (reopened.log_end_offset, reopened.recovery_point) == (target, target)
    assert epochs_of(reopened) == [(epoch, epoch) for epoch in range(target)]


def test_truncation_lowers_the_checkpointed_recovery_point() -> None:
    disk = MemoryDisk()
    logs = manager(disk)
    log = logs.get_or_create_log(TP, "logs")
    for _ in range(3):
        log.append_as_leader(records(), 0)
    log.flush()
    logs.checkpoint_all()
    assert disk.contents()["logs/recovery-point-offset-checkpoint"] == b"0\n1\ntopic 0 3\n"

    logs.truncate_to(log, 1)

    assert disk.contents()["logs/recovery-point-offset-checkpoint"] == b"0\n1\ntopic 0 1\n"


def test_an_emptied_log_takes_its_recovery_point_down_with_it() -> None:
    """What is written into it later is not flushed, and a crash may damage it unseen."""
    disk = MemoryDisk()
    config = LogConfig(segment_bytes=2 * ONE_BATCH)
    logs = LogManager(disk, ("logs",), DeferredScheduler(), NoConcurrency(), default_config=config)
    log = logs.get_or_create_log(TP)
    for offset in range(12):
        log.append_as_follower(batch(offset, 0))
    log.flush()
    logs.checkpoint_all()

    logs.truncate_fully_and_start_at(log, 0)
    for offset in range(4):
        log.append_as_follower(batch(offset, 1))
    file = disk.open(SEGMENT)
    damaged = bytearray(file.read(0, file.size()))
    damaged[-1] ^= 1
    file.truncate(0)
    file.append(bytes(damaged))
    disk.crash(everything)

    reopened = manager(disk, config).get_log(TP)
    assert reopened is not None
    assert (reopened.log_end_offset, reopened.recovery_point) == (1, 0)


@pytest.mark.parametrize(("old_start", "new_records"), [(5, 8), (10, 3)])
def test_a_log_that_was_deleted_and_made_again_starts_at_zero(
    old_start: int, new_records: int
) -> None:
    """Found here: the deleted log's start and recovery point were applied to the new one."""
    disk = MemoryDisk()
    logs = manager(disk)
    old = logs.get_or_create_log(TP, "logs")
    old.append_as_leader(records(12), 0)
    old.update_high_watermark(12)
    old.maybe_increment_log_start_offset(old_start)
    logs.flush_all()
    logs.checkpoint_all()

    logs.delete_log(old)
    new = logs.get_or_create_log(TP, "logs")
    new.append_as_leader(records(new_records), 1)
    new.flush(force=True)
    disk.crash(nothing)

    reopened = manager(disk).get_log(TP)
    assert reopened is not None
    assert (reopened.log_start_offset, reopened.log_end_offset) == (0, new_records)
    assert reopened.recovery_point == 0


def test_new_logs_go_to_the_emptier_directory() -> None:
    logs = manager(MemoryDisk())

    first = logs.get_or_create_log(TP)
    second = logs.get_or_create_log(TP._replace(partition=1))

    assert [first.directory, second.directory] == ["logs/topic-0", "other/topic-1"]
    assert logs.get_or_create_log(TP) is first


def test_moved_log_replaces_the_old_one_and_survives_a_restart() -> None:
    disk = MemoryDisk()
    logs = manager(disk)
    log = logs.get_or_create_log(TP, "logs")
    log.append_as_leader(records(2), 3)
    future = logs.get_or_create_future_log(TP, "other")
    future.append_as_follower(log.read(0, 1000).records)

    logs.replace_current_with_future_log(log, future)

    assert logs.get_log(TP) is future
    assert logs.get_log(TP, is_future=True) is None
    future.append_as_leader(records(), 4)
    assert not disk.exists("logs/topic-0")
    restarted = manager(disk).get_log(TP)
    assert restarted is not None
    assert (restarted.directory, restarted.log_end_offset) == ("other/topic-0", 3)
    assert epochs_of(restarted) == [(3, 0), (4, 2)]


def test_background_work_of_a_deleted_log_does_not_bring_it_back() -> None:
    disk, scheduler = MemoryDisk(), DeferredScheduler()
    logs = LogManager(
        disk,
        ("logs",),
        scheduler,
        NoConcurrency(),
        default_config=LogConfig(segment_bytes=2 * ONE_BATCH),
    )
    log = logs.get_or_create_log(TP)
    for offset in range(5):
        log.append_as_follower(batch(offset, offset))
    logs.truncate_to(log, 4)
    assert len(scheduler.pending()) == 3

    logs.delete_log(log)
    scheduler.run_pending()

    checkpoints = ["log-start-offset-checkpoint", "recovery-point-offset-checkpoint"]
    assert disk.names("logs") == checkpoints
    assert {disk.contents()[f"logs/{name}"] for name in checkpoints} == {b"0\n0\n"}


def test_background_work_of_a_moved_log_goes_to_its_new_directory() -> None:
    disk, scheduler = MemoryDisk(), DeferredScheduler()
    log = make_log(disk, scheduler=scheduler)
    for offset in range(3):
        log.append_as_follower(batch(offset, offset))
    log.truncate_to(2)

    log.rename_directory("other/topic-0")
    assert epochs_of(log) == [(0, 0), (1, 1)]
    scheduler.run_pending()

    checkpoint = disk.contents()["other/topic-0/leader-epoch-checkpoint"]
    assert checkpoint == b"0\n2\n0 0\n1 1\n"
    assert disk.names("logs") == []


def test_unfinished_move_is_found_again_and_deletions_are_finished() -> None:
    disk = MemoryDisk()
    logs = manager(disk)
    logs.get_or_create_log(TP, "logs")
    logs.get_or_create_future_log(TP, "other").append_as_follower(batch(0, 0))
    disk.open(f"logs/gone-0.{1:032x}-delete/00000000000000000000.log")

    again = manager(disk)

    future = again.get_log(TP, is_future=True)
    assert future is not None
    assert future.log_end_offset == 1
    assert disk.names("logs") == ["topic-0"]


def test_a_future_log_has_a_recovery_point_in_its_own_directory() -> None:
    disk = MemoryDisk()
    logs = manager(disk)
    logs.get_or_create_log(TP, "logs")
    future = logs.get_or_create_future_log(TP, "other")
    future.append_as_follower(batch(0, 0))
    future.flush()

    logs.checkpoint_all()

    checkpoint = disk.contents()["other/recovery-point-offset-checkpoint"]
    assert checkpoint == b"0\n1\ntopic 0 1\n"


def test_while_a_directory_is_offline_no_move_begins() -> None:
    """There may be a future log already."""
    logs = manager(MemoryDisk())
    logs.get_or_create_log(TP, "logs")

    logs.handle_log_dir_failure("other")

    assert not logs.is_log_dir_online("other")
    with pytest.raises(KafkaStorageException, match="offline"):
        logs.get_or_create_future_log(TP, "other")
    with pytest.raises(ApiException, match="no log directory"):
        logs.is_log_dir_online("elsewhere")


def test_one_partition_in_two_directories_is_an_error() -> None:
    disk = MemoryDisk()
    for directory in ("logs", "other"):
        disk.open(f"{directory}/topic-0/00000000000000000000.log")

    with pytest.raises(KafkaStorageException, match="lies in both"):
        manager(disk)
