"""The leader side of a partition: the cases of Kafka's PartitionTest by their ids."""

from __future__ import annotations

import pytest

from impl.errors import (
    ApiException,
    Errors,
    FencedLeaderEpochException,
    OffsetNotAvailableException,
    OffsetOutOfRangeException,
)
from impl.log_types import FetchIsolation, LogConfig
from impl.records import MemoryRecords, Record
from impl.replica import StaticMetadataCache
from impl.types import (
    CONSUMER_REPLICA_ID,
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    EpochEndOffset,
)
from tests.unit.impl.brokers import (
    F1,
    F2,
    LEADER,
    PartitionBed,
    a_leader,
    batch,
    epochs_of,
    records,
    state,
)

P01_LOG = [(0, 0, 2), (2, 3, 3), (5, 3, 3), (8, 4, 5), (13, 7, 1), (14, 9, 3)]


def leader_of_p01() -> PartitionBed:
    bed = PartitionBed()
    log = bed.partition.create_log_if_not_exists()
    for base_offset, epoch, count in P01_LOG:
        log.append_as_follower(batch(base_offset, epoch, count))
    return a_leader(10, bed=bed)


@pytest.mark.parametrize(
    ("last_fetched_epoch", "offset", "expected"),
    [
        (2, 5, (0, 2)),
        (0, 4, (0, 2)),
        (6, 6, (4, 13)),
        (5, 9, (4, 13)),
        (10, 18, (10, 17)),
        (0, 2, None),
        (7, 14, None),
        (9, 17, None),
        (10, 17, None),
    ],
    ids=lambda value: f"P01-{value}",
)
def test_p01_last_fetched_offset_validation(
    last_fetched_epoch: int, offset: int, expected: tuple[int, int] | None
) -> None:
    bed = leader_of_p01()
    assert epochs_of(bed.log)[-1] == (10, 17)

    read = bed.fetch(F1, offset, epoch=10, last_fetched_epoch=last_fetched_epoch)

    if expected is None:
        assert read.diverging_epoch is None
        assert bed.partition.remote_replicas()[0].state.log_end_offset == offset
    else:
        assert read.diverging_epoch == EpochEndOffset(Errors.NONE, *expected)
        assert read.records is MemoryRecords.EMPTY
        # A34: what is known of the follower has not changed.
        assert bed.partition.remote_replicas()[0].state.log_end_offset == -1


@pytest.mark.parametrize(
    ("log_start", "last_fetched_epoch", "offset"),
    [
        pytest.param(0, 11, 5, id="P01-epoch-later-than-the-leaders"),
        pytest.param(0, 10, -1, id="negative-offset"),
        pytest.param(6, 5, 3, id="A16-below-the-log-start-is-out-of-range-not-diverging"),
        pytest.param(6, 3, 4, id="below-the-log-start"),
    ],
)
def test_fetch_out_of_range(log_start: int, last_fetched_epoch: int, offset: int) -> None:
    bed = leader_of_p01()
    bed.log.update_high_watermark(log_start)
    bed.log.maybe_increment_log_start_offset(log_start)

    with pytest.raises(OffsetOutOfRangeException):
        bed.fetch(F1, offset, epoch=10, last_fetched_epoch=last_fetched_epoch)

    replica = bed.partition.get_replica(F1)
    assert replica is not None
    assert replica.state.log_end_offset == -1


def test_p03_make_leader_updates_the_epoch_cache() -> None:
    bed = PartitionBed()
    log = bed.partition.create_log_if_not_exists()
    log.append_as_follower(batch(0, 0, 2))
    log.append_as_follower(batch(2, 5, 2))

    a_leader(8, bed=bed)

    assert bed.partition.last_offset_for_leader_epoch(8, 8, True) == EpochEndOffset(
        Errors.NONE, 8, 4
    )


def test_a19_make_leader_leaves_an_old_format_without_epochs() -> None:
    """KAFKA-7897."""
    bed = a_leader(8, bed=PartitionBed(config=LogConfig(message_format=1)))

    assert bed.partition.last_offset_for_leader_epoch(8, 8, True) == EpochEndOffset()
    assert "logs/topic-0/leader-epoch-checkpoint" not in bed.disk.contents()


P05 = [
    (False, 5, Errors.NONE),
    (False, None, Errors.NONE),
    (False, 4, Errors.FENCED_LEADER_EPOCH),
    (False, 6, Errors.UNKNOWN_LEADER_EPOCH),
    (True, 5, Errors.NOT_LEADER_OR_FOLLOWER),
    (True, None, Errors.NOT_LEADER_OR_FOLLOWER),
    (True, 4, Errors.FENCED_LEADER_EPOCH),
    (True, 6, Errors.UNKNOWN_LEADER_EPOCH),
]


@pytest.mark.parametrize(
    ("only_leader", "epoch", "expected"), P05, ids=lambda value: f"P05-{value}"
)
def test_p05_epoch_errors_come_before_not_leader(
    only_leader: bool, epoch: int | None, expected: Errors
) -> None:
    bed = PartitionBed()
    bed.partition.make_follower(state(F1, 5))

    def snapshot_error() -> Errors:
        try:
            bed.partition.fetch_offset_snapshot(epoch, only_leader)
        except ApiException as error:
            return error.error
        return Errors.NONE

    assert snapshot_error() is expected
    assert bed.partition.last_offset_for_leader_epoch(epoch, 0, only_leader).error is expected


def test_p07_offsets_stay_monotonic_after_a_leader_change() -> None:
    bed = a_leader(8, isr=(LEADER, F2))
    partition = bed.partition
    stamps = (10, 11, 12, 13, 14)
    partition.append_records_to_leader(records(2, timestamps=stamps[:2]))
    partition.append_records_to_leader(records(3, timestamps=stamps[2:]))
    for follower in (F1, F2):
        bed.fetch(follower, 0)
        bed.fetch(follower, 2)
    assert bed.log.high_watermark == 2

    partition.make_follower(state(F2, 9))
    partition.make_leader(state(LEADER, 10, isr=(LEADER, F2)))

    def client_offset(timestamp: int) -> int | None:
        found = partition.fetch_offset_for_timestamp(
            timestamp, FetchIsolation.HIGH_WATERMARK, None, True
        )
        return None if found is None else found.offset

    def replica_offset(timestamp: int) -> int | None:
        found = partition.fetch_offset_for_timestamp(timestamp, None, None, True)
        return None if found is None else found.offset

    for timestamp in (LATEST_TIMESTAMP, 100):
        with pytest.raises(OffsetNotAvailableException):
            client_offset(timestamp)
    assert replica_offset(LATEST_TIMESTAMP) == 5
    assert client_offset(EARLIEST_TIMESTAMP) == 0
    assert client_offset(11) == 1
    with pytest.raises(FencedLeaderEpochException):
        partition.fetch_offset_for_timestamp(LATEST_TIMESTAMP, None, 9, True)

    bed.fetch(F1, 5)
    bed.fetch(F2, 5)

    assert client_offset(LATEST_TIMESTAMP) == 5
    assert client_offset(100) is None


def test_p09_make_follower_again() -> None:
    partition = PartitionBed().partition

    assert partition.make_follower(state(F1, 1))
    assert partition.make_follower(state(F1, 4))
    assert not partition.make_follower(state(F1, 4))
    assert not partition.make_follower(state(F2, 3))
    assert partition.leader_epoch == 4


def test_p17_epoch_start_stays_if_only_the_partition_epoch_grows() -> None:
    bed = a_leader(8)
    bed.append(2)

    assert not bed.partition.make_leader(state(LEADER, 8, partition_epoch=82))

    assert bed.partition.leader_epoch_start_offset == 0
    assert epochs_of(bed.log) == [(8, 0)]
    assert bed.partition.partition_epoch == 82


def test_older_partition_epoch_is_ignored() -> None:
    bed = a_leader(8)

    assert not bed.partition.make_leader(state(LEADER, 9, isr=(LEADER,), partition_epoch=79))
    assert not bed.partition.make_follower(state(F1, 9, partition_epoch=79))

    assert (bed.partition.leader_epoch, bed.partition.is_leader) == (8, True)
    assert bed.partition.in_sync_replica_ids == {LEADER, F1, F2}


def test_new_leader_epoch_forgets_the_followers() -> None:
    bed = a_leader(1, isr=(LEADER, F1))
    bed.append(3)
    bed.fetch(F1, 3)
    bed.fetch(F2, 2)

    bed.partition.make_leader(state(LEADER, 2, isr=(LEADER, F1)))

    states = {replica.broker_id: replica.state for replica in bed.partition.remote_replicas()}
    assert [states[id_].log_end_offset for id_ in (F1, F2)] == [-1, -1]
    now = bed.clock.milliseconds()
    assert [states[id_].last_caught_up_time_ms for id_ in (F1, F2)] == [now, 0]
    assert bed.log.high_watermark == 3


def test_a44_new_assignment_keeps_what_is_known_of_staying_followers() -> None:
    """KAFKA-10301."""
    bed = a_leader(isr=(LEADER, F1))
    bed.append(2)
    bed.fetch(F1, 2)

    bed.partition.make_leader(
        state(LEADER, 0, isr=(LEADER, F1), replicas=(LEADER, F1, 7), partition_epoch=1)
    )

    known = {
        replica.broker_id: replica.state.log_end_offset
        for replica in bed.partition.remote_replicas()
    }
    assert known == {F1: 2, 7: -1}


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(5, Errors.UNKNOWN_LEADER_EPOCH, id="A37-right-epoch"),
        pytest.param(None, Errors.NOT_LEADER_OR_FOLLOWER, id="A37-no-epoch"),
        pytest.param(4, Errors.FENCED_LEADER_EPOCH, id="A38-old-epoch-comes-first"),
        pytest.param(6, Errors.UNKNOWN_LEADER_EPOCH, id="newer-epoch"),
    ],
)
def test_fetch_of_a_broker_without_a_replica(epoch: int | None, expected: Errors) -> None:
    """KAFKA-13837, KAFKA-14078."""
    bed = a_leader(5)

    with pytest.raises(ApiException) as raised:
        bed.fetch(9, 0, epoch=epoch)

    assert raised.value.error is expected


def test_answers_carry_the_offsets_of_before_the_fetch() -> None:
    bed = a_leader(isr=(LEADER, F1))
    bed.append(2)

    read = bed.fetch(F1, 2)

    assert (read.high_watermark, read.log_end_offset) == (0, 2)
    assert bed.log.high_watermark == 2
    assert bed.fetch(F1, 2).high_watermark == 2


def test_consumers_do_not_see_beyond_the_high_watermark() -> None:
    bed = a_leader(isr=(LEADER, F1))
    bed.append(1)
    bed.fetch(F1, 1)
    bed.append(1)

    assert [offset for offset, _ in bed.fetch(F1, 0).records.records()] == [0, 1]
    seen = bed.fetch(CONSUMER_REPLICA_ID, 0, isolation=FetchIsolation.HIGH_WATERMARK)
    assert [offset for offset, _ in seen.records.records()] == [0]


def test_delete_records() -> None:
    bed = a_leader(isr=(LEADER,))
    bed.append(3)
    bed.partition.make_leader(state(LEADER, 0, isr=(LEADER, F1), partition_epoch=1))
    bed.append(1)

    with pytest.raises(OffsetOutOfRangeException):
        bed.partition.delete_records_on_leader(4)
    with pytest.raises(OffsetOutOfRangeException):
        bed.partition.delete_records_on_leader(-2)
    assert bed.partition.delete_records_on_leader(2) == -1
    assert bed.log.log_start_offset == 2
    bed.partition.delete_records_on_leader(-1)
    assert bed.log.log_start_offset == 3


def test_deleting_records_does_not_wait_for_brokers_that_are_gone() -> None:
    class NobodyElse(StaticMetadataCache):
        def get_alive_broker_epoch(self, _broker_id: int, /) -> int | None:
            return None

    bed = a_leader(isr=(LEADER,), bed=PartitionBed(metadata=NobodyElse()))
    bed.append(2)

    assert bed.partition.delete_records_on_leader(2) == 2


@pytest.mark.parametrize(
    ("log_start", "base_offset", "count", "expected_start", "expected_end"),
    [
        pytest.param(10, 8, 5, 8, 13, id="first-batch-spans-the-start"),
        pytest.param(10, 10, 1, 10, 11, id="at-the-start"),
        pytest.param(10, 12, 1, 10, 13, id="after-the-start"),
    ],
)
def test_follower_append_around_the_log_start(
    log_start: int, base_offset: int, count: int, expected_start: int, expected_end: int
) -> None:
    """KAFKA-6975."""
    bed = PartitionBed()
    bed.partition.make_follower(state(F1, 1))
    bed.partition.truncate_fully_and_start_at(log_start, is_future=False)

    bed.partition.append_records_to_follower_or_future_replica(batch(base_offset, 1, count), False)

    assert (bed.log.log_start_offset, bed.log.log_end_offset) == (expected_start, expected_end)


@pytest.mark.parametrize(
    ("filled", "base_offset", "count"),
    [(False, 5, 5), (True, 8, 5)],
    ids=["batch-ends-below-the-start", "log-is-not-empty"],
)
def test_follower_append_below_the_log_end_is_an_error(
    filled: bool, base_offset: int, count: int
) -> None:
    bed = PartitionBed()
    bed.partition.make_follower(state(F1, 1))
    bed.partition.truncate_fully_and_start_at(10, is_future=False)
    if filled:
        bed.partition.append_records_to_follower_or_future_replica(batch(10, 1), False)

    with pytest.raises(ApiException, match="below the log end offset"):
        bed.partition.append_records_to_follower_or_future_replica(
            batch(base_offset, 1, count), False
        )


def test_move_to_another_directory() -> None:
    """KAFKA-8002: the logs are swapped when their ends meet, whatever their segments."""
    bed = a_leader(isr=(LEADER,))
    bed.append(2)
    partition = bed.partition
    assert not partition.maybe_create_future_replica("logs")
    assert partition.maybe_create_future_replica("other")
    assert not partition.maybe_create_future_replica("other")
    assert not partition.maybe_replace_current_with_future_replica()

    partition.append_records_to_follower_or_future_replica(bed.log.read(0, 1000).records, True)

    assert partition.maybe_replace_current_with_future_replica()
    assert bed.log.directory == "other/topic-0"
    assert partition.future_log is None
    assert partition.append_records_to_follower_or_future_replica(batch(2, 0), True) is None
    assert bed.log.high_watermark == 2


def test_given_up_move_leaves_nothing() -> None:
    bed = a_leader()
    bed.partition.maybe_create_future_replica("other")

    bed.partition.remove_future_local_replica()

    assert bed.disk.names("other") == []
    with pytest.raises(ApiException):
        bed.partition.future_local_log_or_exception()


def test_records_are_stamped_with_the_leaders_epoch() -> None:
    bed = a_leader(3)
    bed.partition.append_records_to_leader(MemoryRecords.with_records(Record(b"x")))

    assert [entry.partition_leader_epoch for entry in bed.log.batches()] == [3]


def test_a_follower_takes_no_appends() -> None:
    bed = PartitionBed()
    bed.partition.make_follower(state(F1, 1))

    with pytest.raises(ApiException) as raised:
        bed.partition.append_records_to_leader(records())

    assert raised.value.error is Errors.NOT_LEADER_OR_FOLLOWER


def test_a_partition_that_is_deleted_knows_no_followers() -> None:
    bed = a_leader(1)
    assert bed.partition.get_replica(F1) is not None
    bed.partition.delete()
    assert bed.partition.get_replica(F1) is None
    assert bed.partition.remote_replicas() == ()
