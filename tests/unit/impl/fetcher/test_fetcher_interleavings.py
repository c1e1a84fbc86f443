"""What happens to a partition while its request is in flight: threads stepped by name, and real."""

from __future__ import annotations

import threading
from collections.abc import Mapping

import pytest

from impl.concurrency import RealConcurrency
from impl.deterministic_scheduler import DeterministicScheduler
from impl.errors import Errors
from impl.fetcher.state import ReplicaState
from impl.metrics import MetricName
from impl.network import FetchRequest
from impl.types import EpochEndOffset, FetchPartitionData, TopicPartition
from tests.unit.impl.fetcher.doubles import FetcherFixture, ReplicaLog, batch, log_of

TP = TopicPartition("topic", 0)
FETCHER = "mock-fetcher"

both_variants = pytest.mark.parametrize(
    "truncate_on_fetch", [True, False], ids=["truncate_on_fetch", "truncate_first"]
)


class SteppedWorld(FetcherFixture):
    """The fetcher's thread is a task of a deterministic scheduler; the test is the main task."""

    def __init__(self, truncate_on_fetch: bool = True, fetch_back_off_ms: int = 10) -> None:
        self.scheduler = DeterministicScheduler(lambda ms: self.clock.sleep(ms))
        super().__init__(truncate_on_fetch, fetch_back_off_ms, self.scheduler)

    def start(self) -> None:
        self.fetcher.start()

    def run_until(self, point: str) -> None:
        self.scheduler.run_until(FETCHER, point)

    def rounds(self, count: int) -> None:
        """Let the thread begin `count` more rounds of truncating and fetching."""
        for _ in range(count):
            self.scheduler.step(FETCHER)
            while self.fetcher.is_running and not self._at_start_of_round():
                self.scheduler.step(FETCHER)

    def _at_start_of_round(self) -> bool:
        return self.scheduler.point(FETCHER) in ("wait partition-map", "fetch request sent")


@both_variants
def test_f21_leader_epoch_changes_while_the_epoch_request_is_in_flight(
    truncate_on_fetch: bool,
) -> None:
    world = SteppedWorld(truncate_on_fetch)
    leader = ReplicaLog(log_of((0, 0)), leader_epoch=1)
    follower = ReplicaLog(log_of((0, 0)), leader_epoch=0)
    world.given(TP, follower, leader, offset=1)
    world.fetcher.mark_partitions_for_truncation(TP, 1)
    world.start()
    world.run_until("epoch request answered")  # FENCED, as the leader is in epoch 1 already

    world.fetcher.remove_partitions((TP,))
    world.given(TP, ReplicaLog(leader_epoch=1), leader, force_truncation=True)
    world.scheduler.step(FETCHER)
    assert world.phase(TP) is ReplicaState.TRUNCATING
    assert world.state(TP).current_leader_epoch == 1
    assert not world.failed.contains(TP)

    world.rounds(4)
    assert world.logs_equal(TP)


@both_variants
def test_f23_partition_is_removed_while_the_epoch_request_is_in_flight(
    truncate_on_fetch: bool,
) -> None:
    world = SteppedWorld(truncate_on_fetch)
    leader = ReplicaLog(log_of((0, 0)))
    world.given(TP, ReplicaLog(), leader)
    world.fetcher.mark_partitions_for_truncation(TP, 0)
    world.start()
    world.run_until("epoch request sent")
    world.fetcher.remove_partitions((TP,))
    world.run_until("wait partition-map")
    assert not world.is_tracked(TP)
    world.run_until("wait partition-map")
    assert world.fetcher.logs[TP].log == []


def test_f13_partition_is_removed_as_truncation_to_high_watermark_starts() -> None:
    world = SteppedWorld(truncate_on_fetch=False)
    world.fetcher.epochs_supported = False
    follower = ReplicaLog(log_of((0, 0), (1, 2), (2, 4)), leader_epoch=5, high_watermark=2)
    world.given(TP, follower, ReplicaLog(leader_epoch=5), offset=2)
    world.start()
    world.run_until("lock partition-map")  # fetch_truncating_partitions
    world.run_until("lock partition-map")  # truncate_to_high_watermark
    world.fetcher.remove_partitions((TP,))
    world.run_until("wait partition-map")
    assert world.fetcher.truncations == []
    assert follower.log_end_offset == 3
    assert not world.is_tracked(TP)


@both_variants
def test_records_of_a_removed_partition_are_dropped(truncate_on_fetch: bool) -> None:
    world = SteppedWorld(truncate_on_fetch)
    world.given(TP, ReplicaLog(), ReplicaLog(log_of((0, 0)), high_watermark=1))
    world.start()
    world.run_until("fetch request answered")
    world.fetcher.remove_partitions((TP,))
    world.run_until("wait partition-map")
    assert world.fetcher.logs[TP].log == []
    assert world.fetcher.fetcher_lag_stats.lag(TP) is None


@both_variants
def test_records_of_an_older_epoch_are_dropped_after_the_partition_comes_back(
    truncate_on_fetch: bool,
) -> None:
    world = SteppedWorld(truncate_on_fetch)
    old_leader = ReplicaLog(log_of((0, 0), (1, 0)), leader_epoch=0)
    world.given(TP, ReplicaLog(log_of((0, 0))), old_leader, offset=1)
    world.start()
    world.run_until("fetch request answered")
    new_leader = ReplicaLog(log_of((0, 0), (1, 2)), leader_epoch=2, high_watermark=2)
    world.fetcher.remove_partitions((TP,))
    world.given(TP, ReplicaLog(log_of((0, 0)), leader_epoch=2), new_leader, offset=1)
    world.scheduler.step(FETCHER)
    assert world.fetcher.logs[TP].log == log_of((0, 0))
    world.rounds(3)
    assert world.logs_equal(TP)


@pytest.mark.parametrize("comes_back", [False, True], ids=["removed", "added in a newer epoch"])
def test_partition_leaves_between_reading_the_answer_and_truncating(comes_back: bool) -> None:
    """KAFKA-13207: both happen under the lock, but not in the same section."""
    world = SteppedWorld(truncate_on_fetch=True)
    follower = ReplicaLog(log_of((0, 0), (1, 2), (2, 4)), leader_epoch=5)
    leader = ReplicaLog(log_of((0, 0), (1, 2), (2, 5)), leader_epoch=5)
    world.given(TP, follower, leader, offset=3)
    world.start()
    world.run_until("fetch request answered")
    world.run_until("lock partition-map")  # process_fetch_response
    world.run_until("lock partition-map")  # truncate_on_fetch_response
    world.fetcher.remove_partitions((TP,))
    if comes_back:
        leader.leader_epoch = follower.leader_epoch = 6
        world.fetcher.follow(TP, 3, 6)
    world.scheduler.step(FETCHER)
    assert world.fetcher.truncations == []
    assert world.is_tracked(TP) is comes_back


@pytest.mark.parametrize("point", ["latest offset asked", "earliest offset asked"])
def test_the_leader_deletes_records_while_a_follower_asks_where_its_log_lies(point: str) -> None:
    """The follower starts where the log starts by then, or its next fetch is out of range too."""
    world = SteppedWorld()
    leader = ReplicaLog(log_of((4, 0), (5, 0), (6, 0)), high_watermark=7)
    world.given(TP, ReplicaLog(log_of((0, 0), (1, 0))), leader, offset=2)
    world.start()
    world.run_until(point)
    leader.log, leader.log_start_offset = leader.log[1:], 5
    world.rounds(1)
    assert world.state(TP).fetch_offset == 5
    world.rounds(3)
    assert world.logs_equal(TP)


@pytest.mark.parametrize("seed", range(25))
def test_every_schedule_of_a_changing_leader_ends_with_equal_logs(seed: int) -> None:
    world = SteppedWorld(truncate_on_fetch=seed % 2 == 0)
    follower = ReplicaLog(log_of((0, 0), (1, 0), (2, 0)))
    leader = ReplicaLog(log_of((0, 0), (1, 0)), high_watermark=1)
    world.given(TP, follower, leader, offset=3)
    world.start()

    def change_leader() -> None:
        for epoch in (1, 2, 3):
            leader.leader_epoch = epoch
            leader.log.append(batch(leader.log_end_offset, epoch))
            leader.log_end_offset += 1
            leader.high_watermark = leader.log_end_offset - 1
            world.scheduler.checkpoint(f"leader in epoch {epoch}")
            follower.leader_epoch = epoch
            world.fetcher.follow(TP, follower.log_end_offset, epoch)

    world.scheduler.spawn("controller", change_leader)
    world.scheduler.run_random(seed, max_steps=200)
    while world.scheduler.point("controller") != "finished":
        world.scheduler.step("controller")
    for _ in range(200):
        world.scheduler.step(FETCHER)
    assert not world.failed.contains(TP)
    assert world.logs_equal(TP)
    world.fetcher.shutdown()
    assert not world.fetcher.is_thread_failed


def test_f01_metrics_are_removed_on_shutdown_of_a_real_thread() -> None:
    world = FetcherFixture(fetch_back_off_ms=1, concurrency=RealConcurrency())
    topic_metric = MetricName("BrokerTopicMetrics", "BytesInPerSec", (("topic", "topic"),))
    world.metrics.new_meter(topic_metric)
    fetched = threading.Event()
    answer = world.leader.fetch_answer
    rounds = iter(range(3))

    def counted(request: FetchRequest) -> Mapping[TopicPartition, FetchPartitionData]:
        if next(rounds, None) is None:
            fetched.set()
        return answer(request)

    world.leader.fetch_answer = counted
    world.given(TP, ReplicaLog(), ReplicaLog(log_of((0, 0), (1, 0)), high_watermark=2))
    world.fetcher.start()
    assert fetched.wait(timeout=20)
    names = {name.name for name in world.metrics.names()}
    assert names == {"BytesPerSec", "RequestsPerSec", "ConsumerLag", "BytesInPerSec"}
    world.fetcher.shutdown()
    assert world.metrics.names() == {topic_metric}
    assert world.logs_equal(TP)
    assert not world.fetcher.is_thread_failed


def test_a_real_thread_that_waits_wakes_up_when_a_partition_is_added() -> None:
    world = FetcherFixture(fetch_back_off_ms=60_000, concurrency=RealConcurrency())
    arrived = threading.Event()
    world.fetcher.after_append = arrived.set
    world.fetcher.start()
    world.given(TP, ReplicaLog(), ReplicaLog(log_of((0, 0)), high_watermark=1))
    assert arrived.wait(timeout=20)
    world.fetcher.shutdown()
    assert world.logs_equal(TP)


def test_an_escaping_exception_ends_the_thread_and_shows() -> None:
    world = SteppedWorld(truncate_on_fetch=False)
    world.given(TP, ReplicaLog(), ReplicaLog())
    other = TopicPartition("other", 0)
    world.leader.epochs_answer = lambda _: {other: EpochEndOffset(Errors.NONE, 0, 0)}
    world.start()
    world.run_until("finished")
    assert world.fetcher.is_thread_failed
