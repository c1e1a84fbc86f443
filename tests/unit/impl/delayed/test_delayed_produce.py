"""Produces and deletions that wait for their replicas."""

from __future__ import annotations

import pytest

from impl.errors import Errors
from impl.log_types import LogConfig
from tests.unit.impl.delayed.bed import LeaderBed

ACKS_ALL = -1


def acknowledge(bed: LeaderBed, *followers: int) -> None:
    """These followers fetch what there is."""
    for follower in followers:
        bed.fetch(follower, bed.log.log_end_offset, max_wait_ms=0)


@pytest.mark.parametrize("acks", [0, 1])
def test_without_acks_all_the_local_append_is_enough(acks: int) -> None:
    bed = LeaderBed()
    assert bed.produce(acks)
    assert bed.produced == [Errors.NONE]


def test_acks_all_waits_for_the_whole_isr() -> None:
    bed = LeaderBed()
    assert not bed.produce()
    acknowledge(bed, 1)
    assert bed.produced == []
    acknowledge(bed, 2)
    assert bed.produced == [Errors.NONE]
    assert bed.waiting.num_delayed == 0


def test_acks_all_alone_in_the_isr_is_answered_at_once() -> None:
    bed = LeaderBed()
    bed.decide(0, 1, isr=(0,))
    assert bed.produce()
    assert bed.produced == [Errors.NONE]


def test_too_few_in_sync_is_told_before_the_append() -> None:
    bed = LeaderBed(LogConfig(min_insync_replicas=2))
    bed.decide(0, 1, isr=(0,))
    assert bed.produce()
    assert bed.produced == [Errors.NOT_ENOUGH_REPLICAS]
    assert bed.log.log_end_offset == 0
    assert bed.produce(1)
    assert bed.produced[-1] is Errors.NONE


def test_too_few_in_sync_after_the_append_is_told_when_the_record_is_on_all_others() -> None:
    """The high watermark was there already when the ISR shrank below the minimum."""
    bed = LeaderBed(LogConfig(min_insync_replicas=2))
    bed.append()
    acknowledge(bed, 1, 2)
    assert bed.log.high_watermark == 1
    assert bed.partition.check_enough_replicas_reach_offset(1) is Errors.NONE
    bed.decide(0, 1, isr=(0,))
    assert (
        bed.partition.check_enough_replicas_reach_offset(1)
        is Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    )
    assert bed.partition.check_enough_replicas_reach_offset(2) is None


def test_replicas_that_do_not_answer_time_the_produce_out() -> None:
    bed = LeaderBed()
    bed.produce(timeout_ms=100)
    acknowledge(bed, 1)
    bed.sleep(100)
    assert bed.produced == [Errors.REQUEST_TIMED_OUT]
    assert bed.expired("DelayedProduce") == 1
    acknowledge(bed, 2)
    assert bed.produced == [Errors.REQUEST_TIMED_OUT]


def test_a_leader_that_is_deposed_answers_who_waits() -> None:
    bed = LeaderBed()
    bed.produce()
    bed.decide(1, 1)
    assert bed.produced == [Errors.NOT_LEADER_OR_FOLLOWER]
    assert bed.produce()
    assert bed.produced[-1] is Errors.NOT_LEADER_OR_FOLLOWER


def test_an_isr_that_shrinks_answers_who_waited_for_the_lost_follower() -> None:
    bed = LeaderBed()
    bed.produce(timeout_ms=60_000)
    bed.sleep(20_000)
    acknowledge(bed, 1)
    bed.sleep(15_000)
    bed.replicas.maybe_shrink_isr()
    assert bed.produced == []
    bed.controller.accept()
    assert bed.produced == [Errors.NONE]


def test_unknown_acks_are_refused_without_an_append() -> None:
    bed = LeaderBed()
    assert bed.produce(2)
    assert (bed.produced, bed.log.log_end_offset) == ([Errors.INVALID_REQUIRED_ACKS], 0)


# ---- DeleteRecords ----


def with_records(count: int = 3) -> LeaderBed:
    bed = LeaderBed()
    for _ in range(count):
        bed.append()
    acknowledge(bed, 1, 2)
    return bed


def follow(bed: LeaderBed, follower: int, log_start: int) -> None:
    bed.fetch(follower, bed.log.log_end_offset, max_wait_ms=0, log_start=log_start)


def test_a_deletion_waits_until_the_followers_have_deleted() -> None:
    bed = with_records()
    assert not bed.delete(2)
    assert bed.log.log_start_offset == 2
    follow(bed, 1, 2)
    follow(bed, 2, 1)
    assert bed.deleted == []
    follow(bed, 2, 2)
    assert bed.deleted == [(Errors.NONE, 2)]


def test_a_deletion_to_the_high_watermark_waits_for_that() -> None:
    bed = with_records()
    assert not bed.delete(-1)
    for follower in (1, 2):
        follow(bed, follower, 3)
    assert bed.deleted == [(Errors.NONE, 3)]


def test_a_deletion_that_all_have_made_already_is_answered_at_once() -> None:
    bed = with_records()
    bed.delete(2)
    for follower in (1, 2):
        follow(bed, follower, 2)
    assert bed.delete(1)
    assert bed.deleted == [(Errors.NONE, 2)] * 2


@pytest.mark.parametrize("offset", [4, -2])
def test_a_deletion_beyond_the_high_watermark_is_refused(offset: int) -> None:
    bed = with_records()
    assert bed.delete(offset)
    assert bed.deleted == [(Errors.OFFSET_OUT_OF_RANGE, -1)]


def test_a_deletion_that_a_follower_does_not_make_times_out_with_what_is_reached() -> None:
    bed = with_records()
    bed.delete(2, timeout_ms=100)
    follow(bed, 1, 2)
    follow(bed, 2, 1)
    bed.sleep(100)
    assert bed.deleted == [(Errors.REQUEST_TIMED_OUT, 1)]


def test_a_leader_that_is_deposed_answers_who_waits_for_a_deletion() -> None:
    bed = with_records()
    bed.delete(2)
    bed.decide(1, 1)
    assert bed.deleted == [(Errors.NOT_LEADER_OR_FOLLOWER, -1)]
