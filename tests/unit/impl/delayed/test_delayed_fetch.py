"""Kafka's DelayedFetchTest as tables: what a fetch waits for, and with what it is answered."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from impl.clock import SystemClock
from impl.concurrency import RealConcurrency
from impl.delayed.delayed_fetch import Cause, FetchWait
from impl.deterministic_scheduler import FINISHED, DeterministicScheduler
from impl.errors import Errors
from impl.log_types import LogConfig
from impl.network import FetchMetadata, FetchRequest, FetchResponse
from impl.replica_requests import StopReplicaPartitionState
from impl.types import UNKNOWN_OFFSET_METADATA, LogOffsetMetadata, TopicPartition
from tests.unit.impl.brokers import TP
from tests.unit.impl.delayed.bed import LeaderBed, eventually

FOLLOWER, CONSUMER = 1, -1
SMALL_SEGMENTS = LogConfig(segment_bytes=1)


def end_of(bed: LeaderBed) -> LogOffsetMetadata:
    return bed.log.convert_to_offset_metadata(bed.log.log_end_offset)


def leave(bed: LeaderBed) -> None:
    bed.decide(1, 1)


def delete(bed: LeaderBed) -> None:
    bed.replicas.stop_replicas({TP: StopReplicaPartitionState(0, delete_partition=True)})


def truncate(bed: LeaderBed) -> None:
    bed.partition.truncate_to(0, is_future=False)


@pytest.mark.parametrize(
    ("happens", "epoch", "expected"),
    [
        pytest.param(lambda _: None, 0, None, id="nothing"),
        pytest.param(leave, None, Cause.NOT_LEADER, id="A: leads no longer, an old client asks"),
        pytest.param(leave, 0, Cause.EPOCH_FENCED, id="E: leads no longer, the epoch is newer"),
        pytest.param(delete, 0, Cause.PARTITION_UNKNOWN, id="C: deleted"),
        pytest.param(truncate, 0, Cause.OTHER_SEGMENT, id="F: truncated below the offset"),
        pytest.param(LeaderBed.append, 0, Cause.ENOUGH_BYTES, id="G: an append"),
    ],
)
def test_why_a_waiting_fetch_is_answered(
    happens: Callable[[LeaderBed], None], epoch: int | None, expected: Cause | None
) -> None:
    bed = LeaderBed()
    bed.append(2)
    start = end_of(bed)
    happens(bed)
    assert bed.cause(FOLLOWER, start, epoch=epoch) is expected


def test_f_an_offset_in_an_older_segment_is_answered_but_for_a_throttled_follower() -> None:
    bed = LeaderBed(SMALL_SEGMENTS)
    bed.decide(0, 1, isr=(0, 2))
    bed.append()
    start = bed.log.convert_to_offset_metadata(0)
    bed.append()
    assert start.segment_base_offset < end_of(bed).segment_base_offset
    assert bed.cause(FOLLOWER, start, epoch=1) is Cause.OTHER_SEGMENT
    bed.quota.exceeded = True
    assert bed.cause(FOLLOWER, start, epoch=1) is None
    assert bed.cause(2, start, epoch=1) is Cause.OTHER_SEGMENT  # in sync: KAFKA-6937


def test_f_a_rolled_segment_alone_is_no_other_segment() -> None:
    """KAFKA-3159: else a fetch at the log's end would come back empty, again and again."""
    bed = LeaderBed()
    bed.append()
    start = end_of(bed)
    bed.log.roll()
    assert end_of(bed).segment_base_offset != start.segment_base_offset
    assert bed.cause(FOLLOWER, start) is None


def test_an_unlocated_end_counts_only_if_it_is_below() -> None:
    """KAFKA-16452: a high watermark below the local log is an offset without a place."""
    bed = LeaderBed()
    bed.append(2)
    assert bed.cause(FOLLOWER, LogOffsetMetadata(1)) is None
    assert bed.cause(FOLLOWER, LogOffsetMetadata(3)) is Cause.OTHER_SEGMENT
    assert bed.cause(FOLLOWER, UNKNOWN_OFFSET_METADATA) is None


@pytest.mark.parametrize(
    ("more", "expected"), [(-1, Cause.ENOUGH_BYTES), (0, Cause.ENOUGH_BYTES), (1, None)]
)
def test_g_bytes_are_counted_up_to_min_bytes(more: int, expected: Cause | None) -> None:
    bed = LeaderBed()
    start = end_of(bed)
    bed.append()
    size = bed.log.size
    assert bed.cause(FOLLOWER, start, min_bytes=size + more) is expected


def test_g_consumers_wait_for_the_high_watermark() -> None:
    bed = LeaderBed()
    start = end_of(bed)
    bed.append()
    assert bed.cause(CONSUMER, start) is None
    for follower in (1, 2):
        bed.fetch(follower, 1, max_wait_ms=0)
    assert bed.cause(CONSUMER, start) is Cause.ENOUGH_BYTES


@pytest.mark.parametrize(
    ("last_fetched_epoch", "expected"),
    [(None, None), (0, None), (3, Cause.DIVERGED)],
    ids=["not asked", "on the log", "X03: beyond what the log knows"],
)
def test_h_divergence_is_told(last_fetched_epoch: int | None, expected: Cause | None) -> None:
    bed = LeaderBed()
    bed.append(2)
    assert bed.cause(FOLLOWER, end_of(bed), last_fetched_epoch=last_fetched_epoch) is expected


def test_h_a_leader_that_begins_an_epoch_where_the_follower_is_beyond_diverges() -> None:
    bed = LeaderBed()
    bed.append(2)
    start = end_of(bed)
    bed.partition.truncate_to(1, is_future=False)
    bed.decide(0, 5)
    bed.append(1)
    assert bed.cause(FOLLOWER, start, epoch=5, last_fetched_epoch=0) is Cause.DIVERGED


@pytest.mark.parametrize(
    ("arguments", "at_once"),
    [
        pytest.param({}, False, id="waits"),
        pytest.param({"max_wait_ms": 0}, True, id="must not wait"),
        pytest.param({"min_bytes": 0}, True, id="asks for nothing"),
        pytest.param({"epoch": 1}, True, id="an error"),
        pytest.param({"last_fetched_epoch": 0}, False, id="on the log"),
        pytest.param({"partition": TopicPartition("other", 0)}, True, id="unknown partition"),
    ],
)
def test_what_is_answered_at_once(arguments: dict[str, int], at_once: bool) -> None:
    bed = LeaderBed()
    bed.append(2)
    assert bed.fetch(FOLLOWER, 2, **arguments) is at_once


def test_an_append_answers_followers_and_the_high_watermark_answers_consumers() -> None:
    bed = LeaderBed()
    bed.fetch(CONSUMER, 0)
    bed.fetch(1, 0)
    bed.fetch(2, 0)
    bed.append(3)
    assert [(d.high_watermark, d.records.size_in_bytes > 0) for d in bed.fetched] == [(0, True)] * 2
    bed.fetched.clear()
    bed.fetch(1, 3)
    assert bed.fetched == []
    bed.fetch(2, 3)
    (answer,) = bed.fetched
    assert (answer.high_watermark, answer.records.size_in_bytes > 0) == (3, True)


def test_the_first_read_acknowledges_and_the_second_does_not() -> None:
    """A parked fetch tells where the follower was when it came; it may have moved on since."""
    bed = LeaderBed()
    bed.fetch(1, 0)
    replica = bed.partition.get_replica(1)
    assert replica is not None
    bed.sleep(100)
    caught_up = replica.state.last_caught_up_time_ms
    bed.sleep(1000)
    assert len(bed.fetched) == 1
    assert replica.state.last_caught_up_time_ms == caught_up


@pytest.mark.parametrize(("replica", "fetcher"), [(FOLLOWER, "follower"), (CONSUMER, "consumer")])
def test_after_its_max_wait_a_fetch_is_answered_with_what_there_is(
    replica: int, fetcher: str
) -> None:
    bed = LeaderBed()
    bed.fetch(replica, 0)
    bed.sleep(499)
    assert bed.fetched == []
    bed.sleep(1)
    (answer,) = bed.fetched
    assert (answer.error, answer.records.size_in_bytes) == (Errors.NONE, 0)
    assert bed.expired("DelayedFetch", fetcher) == 1
    assert bed.waiting.num_delayed == 0


def test_a_consumer_that_times_out_does_not_get_what_is_not_committed() -> None:
    """KAFKA-5355: the second read sees no further than the first one."""
    bed = LeaderBed()
    bed.fetch(CONSUMER, 0)
    bed.append()
    bed.sleep(500)
    (answer,) = bed.fetched
    assert (answer.high_watermark, answer.records.size_in_bytes) == (0, 0)


def test_who_waits_is_answered_without_the_partitions_lock() -> None:
    """KAFKA-7697: an answer under the lock waits for whoever waits for the lock."""
    scheduler = DeterministicScheduler()
    bed = LeaderBed(concurrency=scheduler)
    bed.decide(0, 1, isr=(0,))
    bed.waiting.fetch_messages(
        bed.replicas,
        bed.params(CONSUMER),
        FetchWait(500, 1, 1 << 20),
        {TP: bed.request(0, epoch=1)},
        lambda _: scheduler.checkpoint("answering"),
    )
    scheduler.spawn("append", bed.produce)
    scheduler.run_until("append", "answering")

    def read() -> None:
        bed.partition.fetch_offset_snapshot(1, fetch_only_from_leader=True)

    scheduler.spawn("reader", read)
    while scheduler.point("reader") != FINISHED:
        assert "reader" in scheduler.runnable()
        scheduler.step("reader")


@pytest.mark.parametrize(
    ("happens", "epoch", "error"),
    [
        pytest.param(leave, None, Errors.NOT_LEADER_OR_FOLLOWER, id="P25: an old client"),
        pytest.param(leave, 0, Errors.FENCED_LEADER_EPOCH, id="P25: a new client"),
        pytest.param(delete, 0, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="P25: stopped"),
    ],
)
def test_p25_who_waits_at_a_broker_that_leads_no_longer_is_answered_at_once(
    happens: Callable[[LeaderBed], None], epoch: int | None, error: Errors
) -> None:
    bed = LeaderBed()
    bed.fetch(CONSUMER, 0, epoch=epoch)
    happens(bed)
    assert [answer.error for answer in bed.fetched] == [error]


def test_a_request_of_a_session_waits_and_is_answered_in_its_session() -> None:
    bed = LeaderBed()
    answers: list[FetchResponse] = []
    request = FetchRequest(16, 1, -1, 500, 1, 1 << 20, FetchMetadata(0, 0), {TP: bed.request(0)})
    bed.waiting.handle_fetch(bed.replicas, request, answers.append)
    assert answers == []
    bed.append()
    (answer,) = answers
    assert answer.session_id > 0
    assert answer.partitions[TP].records.size_in_bytes > 0
    bed.waiting.handle_fetch(
        bed.replicas, request._replace(metadata=FetchMetadata(99, 1)), answers.append
    )
    assert answers[-1].error is Errors.FETCH_SESSION_ID_NOT_FOUND


def test_with_real_threads_an_append_answers_long_before_the_time_out() -> None:
    bed = LeaderBed(clock=SystemClock(), concurrency=RealConcurrency())
    for follower in (1, 2):
        bed.fetch(follower, 0, max_wait_ms=600_000)
    bed.fetch(CONSUMER, 0, max_wait_ms=1)
    assert eventually(lambda: len(bed.fetched) == 1)
    writer = threading.Thread(target=bed.produce)
    writer.start()
    assert eventually(lambda: len(bed.fetched) == 3)
    for follower in (1, 2):
        bed.fetch(follower, 1, max_wait_ms=600_000)
    writer.join(30)
    assert bed.produced == [Errors.NONE]
    bed.waiting.shutdown()
