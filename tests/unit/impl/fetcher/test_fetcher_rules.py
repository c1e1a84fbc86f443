"""Rules of the fetcher thread that no scenario of Kafka's own shows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from impl.errors import (
    CorruptRecordException,
    Errors,
    FencedLeaderEpochException,
    IllegalStateException,
    KafkaException,
    KafkaStorageException,
)
from impl.fetcher.abstract_fetcher_thread import TruncatingPartitions
from impl.fetcher.state import PartitionFetchState, ReplicaState
from impl.network import FetchRequest
from impl.records import FileRecords, MemoryRecords
from impl.types import (
    EpochData,
    EpochEndOffset,
    FetchPartitionData,
    FetchPartitionRequest,
    OffsetTruncationState,
    TopicPartition,
)
from tests.unit.impl.fetcher.doubles import (
    FetcherFixture,
    ReplicaLog,
    answer,
    batch,
    both_variants,
    epochs,
    log_of,
)

TP = TopicPartition("topic", 0)
P1, P2, P3 = (TopicPartition("topic", i) for i in (1, 2, 3))


@both_variants
def test_no_answer_makes_every_partition_back_off(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch, fetch_back_off_ms=100)
    for tp in (P1, P2):
        world.given(tp, ReplicaLog(), ReplicaLog())

    def unreachable(_: FetchRequest) -> Mapping[TopicPartition, FetchPartitionData]:
        raise ConnectionError("leader is gone")

    world.leader.fetch_answer = unreachable
    world.work()
    assert world.is_delayed(P1)
    assert world.is_delayed(P2)
    assert world.fetcher.fetcher_stats.request_rate.count == 1
    deadline = world.state(P1).delay
    world.clock.sleep(50)
    world.fetcher.delay_partitions((P1,), 100)
    assert world.state(P1).delay == deadline, "a running delay is not extended"


def test_no_answer_during_shutdown_changes_nothing() -> None:
    world = FetcherFixture(fetch_back_off_ms=100)
    world.given(TP, ReplicaLog(), ReplicaLog())
    before = world.state(TP)
    world.fetcher.initiate_shutdown()
    world.fetcher.handle_fetch_failure(ConnectionError())
    assert world.state(TP) == before


@both_variants
def test_corrupt_record_backs_off_and_keeps_the_offset(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch, fetch_back_off_ms=100)
    world.given(TP, ReplicaLog(), ReplicaLog([batch(0, 0).with_crc(1)], high_watermark=1))
    world.work()
    assert world.is_tracked(TP)
    assert world.is_delayed(TP)
    assert world.state(TP).fetch_offset == 0


@pytest.mark.parametrize(
    ("failure", "failed"),
    [
        (CorruptRecordException(), False),
        (KafkaStorageException(), True),
        (ValueError("bug"), True),
    ],
    ids=["corrupt", "storage", "unexpected"],
)
def test_failures_of_an_append(failure: Exception, failed: bool) -> None:
    world = FetcherFixture(fetch_back_off_ms=100)
    world.given(TP, ReplicaLog(), ReplicaLog(log_of((0, 0))))
    world.fetcher.append_failure[TP] = failure
    world.work()
    assert world.failed.contains(TP) is failed
    assert world.is_tracked(TP) is not failed


def test_failing_truncation_fails_its_partition_only() -> None:
    world = FetcherFixture(truncate_on_fetch=False)
    for tp in (P1, P2):
        follower = ReplicaLog(log_of((0, 0)), leader_epoch=1)
        world.given(tp, follower, ReplicaLog(log_of((0, 0)), leader_epoch=1), offset=1)
    world.fetcher.truncate_failure[P1] = KafkaStorageException()
    world.work()
    assert world.failed.partitions() == {P1}
    assert world.phase(P2) is ReplicaState.FETCHING


def test_idle_partition_learns_its_lag_and_keeps_its_epoch() -> None:
    """KAFKA-15080 and KAFKA-15510."""
    world = FetcherFixture(truncate_on_fetch=True)
    log = log_of((0, 3))
    world.given(TP, ReplicaLog(log, 3), ReplicaLog(log, 3, high_watermark=1), offset=1)
    assert world.state(TP).lag is None
    world.work()
    assert world.state(TP).lag == 0
    assert world.state(TP).is_replica_in_sync
    assert world.state(TP).last_fetched_epoch == 3


def test_lag_is_never_negative() -> None:
    world = FetcherFixture()
    world.given(TP, ReplicaLog(), ReplicaLog([batch(0, 0, size=5)], high_watermark=2))
    world.work()
    assert world.fetcher.fetcher_lag_stats.lag(TP) == 0
    assert world.state(TP).lag == 0


def test_partitions_take_turns() -> None:
    world = FetcherFixture()
    for tp in (P1, P2, P3):
        world.given(tp, ReplicaLog(), ReplicaLog(log_of((0, 0)) if tp is P1 else []))
    world.work()
    world.leader.states[P2].log = log_of((0, 0))
    world.leader.states[P2].log_end_offset = 1
    world.work()
    assert world.fetcher.partitions() == (P1, P3, P2)


@pytest.mark.parametrize(
    ("offset", "epoch", "delayed", "effect"),
    [
        (0, 5, False, True),
        (1, 5, False, False),
        (0, 4, False, False),
        (0, 5, True, False),
    ],
    ids=["as asked", "offset moved", "leader epoch moved", "delayed meanwhile"],
)
def test_data_counts_only_if_the_state_still_fits_the_request(
    offset: int, epoch: int, delayed: bool, effect: bool
) -> None:
    world = FetcherFixture(truncate_on_fetch=True, fetch_back_off_ms=10)
    world.given(TP, ReplicaLog(leader_epoch=5), ReplicaLog(leader_epoch=5))
    if delayed:
        world.fetcher.delay_partitions((TP,), 10)
    asked = {TP: FetchPartitionRequest("", offset, 0, 1, epoch)}
    data = answer(records=MemoryRecords((batch(0, 5),)))
    world.fetcher.process_fetch_response(asked, {TP: data})
    assert (world.fetcher.logs[TP].log_end_offset == 1) is effect
    assert (world.state(TP).fetch_offset == 1) is effect


def test_divergence_told_in_another_epoch_truncates_nothing() -> None:
    world = FetcherFixture(truncate_on_fetch=True)
    follower = ReplicaLog(log_of((0, 0), (1, 2)), leader_epoch=7)
    world.given(TP, follower, ReplicaLog(leader_epoch=7), offset=2)
    asked = {TP: FetchPartitionRequest("", 2, 0, 1, 5, 2)}
    diverging = EpochEndOffset(Errors.NONE, 0, 1)
    world.fetcher.process_fetch_response(asked, {TP: answer(diverging=diverging)})
    world.fetcher.truncate_on_fetch_response({TP: diverging}, asked)
    assert world.fetcher.truncations == []


@pytest.mark.parametrize(("asked_epoch", "reset"), [(5, True), (4, False)])
def test_out_of_range_counts_only_in_the_epoch_in_which_it_was_asked(
    asked_epoch: int, reset: bool
) -> None:
    world = FetcherFixture(truncate_on_fetch=True)
    leader = ReplicaLog(leader_epoch=5, log_start_offset=3, log_end_offset=3)
    world.given(TP, ReplicaLog(log_of((0, 4)), leader_epoch=5), leader, offset=1)
    asked = {TP: FetchPartitionRequest("", 1, 0, 1, asked_epoch)}
    world.fetcher.process_fetch_response(asked, {TP: answer(Errors.OFFSET_OUT_OF_RANGE)})
    assert world.state(TP).fetch_offset == (3 if reset else 1)
    assert world.fetcher.logs[TP].log_end_offset == (3 if reset else 1)


@pytest.mark.parametrize("request_epoch", [5, 4], ids=["same epoch", "epoch moved on"])
def test_fenced_offset_reset(request_epoch: int) -> None:
    """KAFKA-13369's side effect: fenced with a newer local epoch must back off."""
    world = FetcherFixture(fetch_back_off_ms=10)
    world.given(TP, ReplicaLog(leader_epoch=5), ReplicaLog(leader_epoch=6))
    handled = world.fetcher.handle_out_of_range_error(TP, world.state(TP), request_epoch)
    moved_on = request_epoch != 5
    assert world.failed.contains(TP) is not moved_on
    assert handled is not moved_on


@pytest.mark.parametrize("request_epoch", [5, 4], ids=["same epoch", "epoch moved on"])
def test_fenced_fetch_is_retried_only_if_the_epoch_has_moved(request_epoch: int) -> None:
    world = FetcherFixture(fetch_back_off_ms=10)
    world.given(TP, ReplicaLog(leader_epoch=5), ReplicaLog(leader_epoch=5))
    asked = {TP: FetchPartitionRequest("", 0, 0, 1, request_epoch)}
    world.fetcher.process_fetch_response(asked, {TP: answer(Errors.FENCED_LEADER_EPOCH)})
    assert world.failed.contains(TP) is (request_epoch == 5)


def test_answer_that_nobody_asked_for_is_an_error() -> None:
    world = FetcherFixture(truncate_on_fetch=False)
    with pytest.raises(IllegalStateException, match="not asked for"):
        world.fetcher.process_epoch_end_offsets({}, {TP: EpochEndOffset()})


def test_truncation_repeats_until_the_leader_knows_the_epoch() -> None:
    """KIP-279: the follower has epochs that the leader lacks."""
    world = FetcherFixture(truncate_on_fetch=False)
    follower = ReplicaLog(log_of((0, 0), (1, 1), (2, 2), (3, 4)), leader_epoch=5)
    leader = ReplicaLog(log_of((0, 0), (1, 1), (2, 3), (3, 5)), leader_epoch=5)
    world.given(TP, follower, leader, offset=4)
    asked = []
    for _ in range(6):
        request = world.fetcher.fetch_truncating_partitions().with_epoch
        if not request:
            break
        asked.append(request[TP].leader_epoch)
        world.fetcher.truncate_to_epoch_end_offsets(request)
    assert asked == [4, 2]
    assert epochs(follower.log) == [(0, 0), (1, 1)]
    assert world.phase(TP) is ReplicaState.FETCHING


def test_answers_of_another_epoch_leave_the_partition_truncating() -> None:
    world = FetcherFixture(truncate_on_fetch=False)
    follower = ReplicaLog(log_of((0, 0)), leader_epoch=5)
    world.given(TP, follower, ReplicaLog(leader_epoch=5), offset=1)
    asked = {TP: EpochData(4, 0)}
    world.fetcher.process_epoch_end_offsets(asked, {TP: EpochEndOffset(Errors.NONE, 0, 0)})
    assert world.fetcher.truncations == []
    assert world.phase(TP) is ReplicaState.TRUNCATING


def test_follower_without_epochs_truncates_to_the_high_watermark() -> None:
    """KAFKA-6859: there is no epoch to ask for."""
    world = FetcherFixture(truncate_on_fetch=False)
    world.given(TP, ReplicaLog(leader_epoch=3), ReplicaLog(leader_epoch=3))
    world.fetcher.epoch_of_empty_log = None
    partitions = world.fetcher.fetch_truncating_partitions()
    assert partitions == TruncatingPartitions({}, (TP,))
    world.fetcher.maybe_truncate()
    assert world.fetcher.truncations == [(TP, OffsetTruncationState(0, True))]
    assert world.phase(TP) is ReplicaState.FETCHING


def test_out_of_range_inside_the_leaders_log_keeps_the_local_one() -> None:
    """The leader's answer was overtaken: it has the offset by now."""
    world = FetcherFixture()
    log = log_of((0, 0), (1, 0), (2, 0))
    world.given(TP, ReplicaLog(log[:2]), ReplicaLog(log), offset=2)
    asked = {TP: FetchPartitionRequest("", 2, 0, 1, 0)}
    world.fetcher.process_fetch_response(asked, {TP: answer(Errors.OFFSET_OUT_OF_RANGE)})
    assert world.fetcher.logs[TP].log == log[:2]
    assert world.fetcher.truncations == []
    assert (world.state(TP).fetch_offset, world.state(TP).lag) == (2, 1)


def test_adding_again_in_the_same_epoch_keeps_the_state() -> None:
    world = FetcherFixture(truncate_on_fetch=False)
    world.given(TP, ReplicaLog(leader_epoch=5), ReplicaLog([batch(0, 5, 2)], 5, 2))
    world.work()
    before = world.state(TP)
    world.fetcher.follow(TP, 0, 5)
    assert world.state(TP) == before
    world.fetcher.follow(TP, 1, 6)
    after = world.state(TP)
    assert (after.fetch_offset, after.state, after.lag) == (1, ReplicaState.TRUNCATING, None)


def test_negative_initial_offset_asks_the_leader() -> None:
    world = FetcherFixture()
    leader = ReplicaLog(log_of((4, 0), (5, 0)), high_watermark=6)
    world.given(TP, ReplicaLog(), leader, offset=-1)
    assert (world.state(TP).fetch_offset, world.state(TP).lag) == (4, 2)
    assert world.fetcher.logs[TP].log_start_offset == 4


def test_marking_for_truncation_goes_back_and_truncates_again() -> None:
    world = FetcherFixture()
    log = log_of((0, 0), (1, 0))
    world.given(TP, ReplicaLog(log), ReplicaLog(log, high_watermark=2), offset=2)
    world.work()
    for offset, expected in ((7, 2), (1, 1)):
        world.fetcher.mark_partitions_for_truncation(TP, offset)
        assert world.state(TP).fetch_offset == expected
        assert world.phase(TP) is ReplicaState.TRUNCATING
        assert world.state(TP).last_fetched_epoch is None
    world.fetcher.mark_partitions_for_truncation(P1, 0)
    assert not world.is_tracked(P1)


def test_metrics_follow_the_partitions() -> None:
    world = FetcherFixture()
    world.given(TP, ReplicaLog(), ReplicaLog(log_of((0, 0)), high_watermark=3))
    world.work()
    names = sorted(name.name for name in world.metrics.names())
    assert names == ["BytesPerSec", "ConsumerLag", "RequestsPerSec"]
    lag = next(name for name in world.metrics.names() if name.name == "ConsumerLag")
    assert dict(lag.tags) == {"clientId": "mock-fetcher", "topic": "topic", "partition": "0"}
    assert world.metrics.value(lag) == 2
    world.fetcher.remove_partitions((TP,))
    assert sorted(name.name for name in world.metrics.names()) == ["BytesPerSec", "RequestsPerSec"]
    world.fetcher.shutdown()
    world.fetcher.shutdown()
    assert world.metrics.names() == frozenset()


class File:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, position: int, size: int) -> bytes:
        return self.data[position : position + size]


def test_records_of_a_file_are_read_into_memory() -> None:
    in_memory = MemoryRecords((batch(3, 1, 2), batch(5, 2)))
    data = in_memory.to_bytes()
    from_file = FileRecords(File(b"before" + data + b"after"), len(b"before"), len(data))
    world = FetcherFixture()
    assert world.fetcher.to_memory_records(in_memory) is in_memory
    assert world.fetcher.to_memory_records(from_file) == in_memory


class TierMachine:
    """Answers with a prepared state or failure."""

    def __init__(self, outcome: int | Exception) -> None:
        self.outcome = outcome

    def start(
        self, _tp: TopicPartition, state: PartitionFetchState, _data: FetchPartitionData, /
    ) -> PartitionFetchState:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return state._replace(fetch_offset=self.outcome)


@pytest.mark.parametrize(
    ("outcome", "offset", "delayed"),
    [
        (None, 0, True),
        (40, 40, False),
        (KafkaException("remote storage is away"), 0, True),
        (FencedLeaderEpochException(), None, False),
    ],
    ids=["no tiered storage", "rebuilt", "failed", "fenced"],
)
def test_offset_moved_to_tiered_storage(
    outcome: int | Exception | None, offset: int | None, delayed: bool
) -> None:
    """KIP-405."""
    world = FetcherFixture(fetch_back_off_ms=10)
    world.given(TP, ReplicaLog(), ReplicaLog())
    world.fetcher.tier_state_machine = None if outcome is None else TierMachine(outcome)
    asked = {TP: FetchPartitionRequest("", 0, 0, 1, 0)}
    world.fetcher.process_fetch_response(asked, {TP: answer(Errors.OFFSET_MOVED_TO_TIERED_STORAGE)})
    assert world.failed.contains(TP) is (offset is None)
    if offset is not None:
        assert (world.state(TP).fetch_offset, world.is_delayed(TP)) == (offset, delayed)
