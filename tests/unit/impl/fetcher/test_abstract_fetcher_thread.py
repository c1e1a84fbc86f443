"""Kafka's own fetcher scenarios (AbstractFetcherThreadTest), in both protocol variants."""

from __future__ import annotations

from impl.errors import (
    Errors,
    FencedLeaderEpochException,
    KafkaException,
    UnknownLeaderEpochException,
)
from impl.fetcher.state import ReplicaState
from impl.types import (
    EpochEndOffset,
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
def test_f03_simple_fetch(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch)
    world.given(TP, ReplicaLog(), ReplicaLog([batch(0, 0, size=2)], high_watermark=2))
    world.work()
    follower = world.fetcher.logs[TP]
    assert (follower.log_end_offset, follower.high_watermark) == (2, 2)
    assert world.fetcher.fetcher_stats.request_rate.count == 1
    size = world.leader.states[TP].log[0].size_in_bytes
    assert world.fetcher.fetcher_stats.byte_rate.count == size
    assert world.fetcher.fetcher_lag_stats.lag(TP) == 0


@both_variants
def test_f05_partitions_in_error_back_off_and_others_do_not(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch, fetch_back_off_ms=250)
    for tp in (P1, P2, P3):
        world.given(tp, ReplicaLog(), ReplicaLog())
    world.leader.fetch_answer = lambda _: {
        P1: answer(Errors.UNKNOWN_TOPIC_ID),
        P2: answer(Errors.INCONSISTENT_TOPIC_ID),
        P3: answer(),
    }
    world.work()
    assert [world.is_delayed(tp) for tp in (P1, P2, P3)] == [True, True, False]
    world.clock.sleep(250)
    assert not world.is_delayed(P1)


@both_variants
def test_f07_fenced_fetch_fails_the_partition(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch)
    world.given(TP, ReplicaLog(), ReplicaLog([batch(0, 0, size=2)], high_watermark=2))
    world.work()
    assert world.fetcher.logs[TP].log_end_offset == 2
    world.leader.states[TP].leader_epoch = 1
    world.work()
    assert not world.is_tracked(TP)
    assert world.failed.contains(TP)
    assert world.fetcher.fetcher_lag_stats.lag(TP) is None


@both_variants
def test_f09_unknown_leader_epoch_waits_for_the_leader(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch)
    leader = ReplicaLog(log_of((0, 0), (1, 0)), leader_epoch=1, high_watermark=2)
    world.given(TP, ReplicaLog(leader_epoch=1), leader, force_truncation=True)
    expected_end = []
    for leader_epoch in (1, 0, 1):
        leader.leader_epoch = leader_epoch
        world.work()
        assert world.phase(TP) is ReplicaState.FETCHING
        expected_end.append(world.fetcher.logs[TP].log_end_offset)
    assert expected_end == [1, 1, 2]


def never_asked() -> None:
    raise AssertionError("the leader must not be asked for an epoch's end")


def test_f11_truncates_to_high_watermark_when_epochs_cannot_be_asked() -> None:
    world = FetcherFixture(truncate_on_fetch=False)
    world.fetcher.epochs_supported = False
    world.leader.before_epochs = never_asked
    log = log_of((0, 0), (1, 2), (2, 4))
    follower = ReplicaLog(log, leader_epoch=5, high_watermark=2)
    leader = ReplicaLog(log_of((0, 0), (1, 2), (2, 4)), leader_epoch=5, high_watermark=2)
    world.given(TP, follower, leader, offset=2)
    world.fetcher.maybe_truncate()
    assert world.fetcher.truncations == [(TP, OffsetTruncationState(2, True))]
    assert follower.log_end_offset == 2
    assert world.state(TP).fetch_offset == 2
    assert world.state(TP).is_ready_for_fetch(world.clock.milliseconds())


def test_f15_truncation_on_fetch_is_skipped_once_the_partition_is_removed() -> None:
    world = FetcherFixture(truncate_on_fetch=True)
    follower = ReplicaLog(log_of((0, 0), (1, 2), (2, 4)), leader_epoch=4, high_watermark=2)
    world.given(TP, follower, ReplicaLog(leader_epoch=4), offset=6)
    world.fetcher.truncate_on_fetch_response({TP: EpochEndOffset(Errors.NONE, 4, 3)})
    assert len(world.fetcher.truncations) == 1
    removed = world.fetcher.remove_partitions((TP,))
    assert [(tp, state.fetch_offset) for tp, state in removed.items()] == [(TP, 3)]
    world.fetcher.truncate_on_fetch_response({TP: EpochEndOffset(Errors.NONE, 4, 2)})
    assert len(world.fetcher.truncations) == 1


@both_variants
def test_f17_fenced_while_resetting_the_offset_fails_the_partition(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch)
    asked = []

    def fence() -> None:
        asked.append("earliest")
        raise FencedLeaderEpochException

    world.leader.before_earliest = fence
    leader = ReplicaLog(log_of((1, 2), (2, 4)), leader_epoch=4, high_watermark=2)
    world.given(TP, ReplicaLog(leader_epoch=4), leader)
    world.work()
    assert asked == ["earliest"]
    assert world.fetcher.logs[TP].log_end_offset == 0
    assert not world.is_tracked(TP)
    assert world.failed.contains(TP)


@both_variants
def test_f19_offset_reset_is_retried_after_unknown_leader_epoch(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch)
    failures = [UnknownLeaderEpochException()]

    def fail_once() -> None:
        if failures:
            raise failures.pop()

    world.leader.before_latest = fail_once
    leader = ReplicaLog(log_of((2, 4)), leader_epoch=4, high_watermark=2)
    world.given(TP, ReplicaLog(leader_epoch=4), leader, force_truncation=True)
    world.work()
    assert world.phase(TP) is ReplicaState.FETCHING
    assert world.state(TP).fetch_offset == 0
    world.work(rounds=2)
    assert world.logs_equal(TP)
    assert world.fetcher.logs[TP].log_start_offset == 2


@both_variants
def test_out_of_range_above_the_leader_truncates_to_its_end(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch)
    leader = ReplicaLog(log_of((0, 0), (1, 2)), leader_epoch=4, high_watermark=1)
    follower = ReplicaLog(log_of((0, 0), (1, 2), (2, 2), (3, 2)), leader_epoch=4)
    world.given(TP, follower, leader, offset=4)
    world.work(rounds=2)
    assert world.logs_equal(TP)
    assert (TP, OffsetTruncationState(2)) in world.fetcher.truncations
    assert world.state(TP).lag == 0


@both_variants
def test_f25_a_failing_append_fails_its_partition_only(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch)
    for tp in (P1, P2):
        leader = ReplicaLog(log_of((0, 0)), high_watermark=1)
        world.given(tp, ReplicaLog(), leader, force_truncation=True)
    failure = KafkaException("disk on fire")
    world.fetcher.append_failure[P1] = failure
    world.work()
    assert world.failed.cause(P1) is failure
    assert not world.is_tracked(P1)
    world.work()
    assert world.phase(P2) is ReplicaState.FETCHING
    assert not world.failed.contains(P2)
    # It comes back when it is added again, for example in a new leader epoch.
    world.fetcher.remove_partitions((P1,))
    world.fetcher.follow(P1, 0, 1, force_truncation=True)
    assert world.phase(P1) is ReplicaState.TRUNCATING
    assert not world.failed.contains(P1)


def test_f27_diverging_epochs_are_cut_one_after_the_other() -> None:
    world = FetcherFixture(truncate_on_fetch=True)
    follower = ReplicaLog(log_of((0, 0), (1, 2), (2, 4)), leader_epoch=5)
    leader = ReplicaLog(log_of((0, 0), (1, 2), (2, 5)), leader_epoch=5, high_watermark=2)
    world.given(TP, follower, leader, offset=3)
    assert world.state(TP).last_fetched_epoch == 4
    world.work()
    assert world.state(TP).last_fetched_epoch == 2
    assert epochs(follower.log) == [(0, 0), (1, 2)]
    world.work()
    assert world.logs_equal(TP)
    assert world.state(TP).last_fetched_epoch == 5


@both_variants
def test_f29_topic_ids_are_set_in_place(truncate_on_fetch: bool) -> None:
    world = FetcherFixture(truncate_on_fetch)
    for tp in (P1, P2):
        world.given(tp, ReplicaLog(), ReplicaLog())
    assert world.state(P1).topic_id is None
    world.fetcher.maybe_update_topic_ids((P1, P3), lambda _: "the-topic-id")
    assert world.state(P1).topic_id == "the-topic-id"
    assert world.fetcher.partitions() == (P1, P2)
