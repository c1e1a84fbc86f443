"""Followers as their leader sees them: positions, ISR, high watermark; PartitionTest's ids."""

from __future__ import annotations

import pytest

from impl.errors import (
    ApiException,
    Errors,
    NotEnoughReplicasException,
)
from impl.log_types import LogConfig
from tests.unit.impl.brokers import (
    F1,
    F2,
    LEADER,
    PartitionBed,
    a_leader,
    records,
    state,
)


def test_p11_update_follower_fetch_state() -> None:
    bed = a_leader()
    bed.append(6)
    became_leader = bed.clock.milliseconds()
    replica = bed.partition.get_replica(F1)
    assert replica is not None

    bed.clock.sleep(500)
    bed.fetch(F1, 3)
    assert (replica.state.last_caught_up_time_ms, replica.state.log_end_offset) == (
        became_leader,
        3,
    )
    bed.clock.sleep(500)
    bed.fetch(F1, 6)

    assert replica.state.last_caught_up_time_ms == bed.clock.milliseconds()
    assert replica.state.log_end_offset == 6


def test_p13_isr_is_not_shrunk_if_the_previous_fetch_caught_up() -> None:
    """KAFKA-4485: under load a follower is always a little behind the present log end."""
    bed = a_leader(isr=(LEADER, F1), bed=PartitionBed(max_lag_ms=10_000))
    bed.append(5)
    replica = bed.partition.get_replica(F1)
    assert replica is not None

    bed.clock.sleep(5_000)
    bed.append(5)
    first_fetch = bed.clock.milliseconds()
    bed.fetch(F1, 5)
    assert bed.log.high_watermark == 5
    bed.clock.sleep(5_001)
    bed.append(5)
    bed.fetch(F1, 10)

    assert replica.state.last_caught_up_time_ms == first_fetch
    assert bed.log.high_watermark == 10
    bed.partition.maybe_shrink_isr()
    assert bed.controller.proposals() == []


def test_a41_idle_follower_at_the_log_end_is_not_dropped() -> None:
    """KAFKA-7152."""
    bed = a_leader(isr=(LEADER, F1))
    bed.append(1)
    bed.fetch(F1, 1)

    bed.clock.sleep(30_001)
    bed.partition.maybe_shrink_isr()

    assert bed.controller.proposals() == []


@pytest.mark.parametrize(("waited", "expected"), [(30_000, []), (30_001, [[LEADER, F2]])])
def test_lagging_follower_is_dropped_after_the_lag_time(
    waited: int, expected: list[list[int]]
) -> None:
    bed = a_leader()
    bed.append(1)
    bed.clock.sleep(waited)
    bed.fetch(F2, 1)

    bed.partition.maybe_shrink_isr()

    assert bed.controller.proposals() == expected


def test_shrink_takes_effect_only_when_committed() -> None:
    """The high watermark waits for all who may still be in the ISR; then it rises (KAFKA-13091)."""
    bed = a_leader()
    bed.append(2)
    bed.clock.sleep(30_001)
    bed.fetch(F2, 2)
    bed.partition.maybe_shrink_isr()
    assert bed.partition.partition_state.maximal_isr == {LEADER, F1, F2}
    assert bed.log.high_watermark == 0

    bed.controller.accept()

    assert bed.partition.in_sync_replica_ids == {LEADER, F2}
    assert bed.partition.partition_epoch == 1
    assert bed.log.high_watermark == 2
    assert len(bed.completed) == 1


def test_p15_high_watermark_waits_for_min_insync_replicas() -> None:
    bed = PartitionBed(config=LogConfig(min_insync_replicas=3))
    a_leader(isr=(LEADER, F1), bed=bed)
    bed.append(10)

    bed.fetch(F1, 10)
    assert bed.log.high_watermark == 0
    bed.fetch(F2, 10)
    assert bed.log.high_watermark == 0
    assert len(bed.partition.partition_state.maximal_isr) == 3
    assert bed.controller.proposals() == [[LEADER, F1, F2]]
    with pytest.raises(NotEnoughReplicasException):
        bed.partition.append_records_to_leader(records(), required_acks=-1)

    bed.controller.accept()

    assert bed.log.high_watermark == 10


@pytest.mark.parametrize(
    ("offset", "joins"),
    [
        pytest.param(4, False, id="below-the-high-watermark"),
        pytest.param(5, False, id="A8-below-the-epoch-start"),
        pytest.param(6, True, id="at-the-epoch-start"),
    ],
)
def test_follower_joins_the_isr(offset: int, joins: bool) -> None:
    bed = a_leader(1, isr=(LEADER,))
    bed.append(5)
    assert bed.log.high_watermark == 5
    bed.partition.make_leader(state(LEADER, 1, isr=(LEADER, F1), partition_epoch=11))
    bed.append(1)
    bed.partition.make_leader(state(LEADER, 2, isr=(LEADER, F1)))
    assert (bed.log.high_watermark, bed.partition.leader_epoch_start_offset) == (5, 6)

    bed.fetch(F2, offset)

    assert bed.controller.proposals() == ([[LEADER, F1, F2]] if joins else [])


def test_one_isr_change_in_flight() -> None:
    bed = a_leader(isr=(LEADER,))
    bed.fetch(F1, 0)
    bed.fetch(F2, 0)
    assert bed.controller.proposals() == [[LEADER, F1]]

    bed.controller.accept()
    bed.fetch(F2, 0)

    assert bed.controller.proposals() == [[LEADER, F1, F2]]


@pytest.mark.parametrize(
    ("answer", "waited", "expected"),
    [
        pytest.param(None, 0, 1, id="proposed"),
        pytest.param(None, 30_001, 1, id="proposed-and-lagging: the controller may have accepted"),
        pytest.param(Errors.INELIGIBLE_REPLICA, 0, 1, id="rejected-but-caught-up"),
        pytest.param(Errors.INELIGIBLE_REPLICA, 30_001, 2, id="rejected-and-lagging"),
    ],
)
def test_high_watermark_waits_for_a_follower_about_to_join(
    answer: Errors | None, waited: int, expected: int
) -> None:
    bed = a_leader(isr=(LEADER,))
    bed.append(1)
    bed.fetch(F1, 1)
    assert bed.controller.proposals() == [[LEADER, F1]]
    if answer is not None:
        bed.controller.reject(answer)

    bed.clock.sleep(waited)
    bed.append(1)

    assert bed.log.high_watermark == expected
    assert bed.partition.in_sync_replica_ids == {LEADER}


@pytest.mark.parametrize(
    ("error", "pending", "sent_again"),
    [
        (Errors.INELIGIBLE_REPLICA, False, False),
        (Errors.OPERATION_NOT_ATTEMPTED, False, False),
        (Errors.INVALID_UPDATE_VERSION, True, False),
        (Errors.FENCED_LEADER_EPOCH, True, False),
        (Errors.NEW_LEADER_ELECTED, True, False),
        (Errors.UNKNOWN_SERVER_ERROR, True, True),
        (Errors.NETWORK_EXCEPTION, True, True),
    ],
)
def test_alter_partition_errors(error: Errors, pending: bool, sent_again: bool) -> None:
    bed = a_leader(isr=(LEADER,))
    bed.fetch(F1, 0)

    bed.controller.reject(error)

    assert bed.partition.partition_state.is_inflight is pending
    assert bed.partition.in_sync_replica_ids == {LEADER}
    assert len(bed.controller.sent) == int(sent_again)


@pytest.mark.parametrize("error", [None, Errors.INELIGIBLE_REPLICA, Errors.NETWORK_EXCEPTION])
@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(1, 10), (0, 1)])
def test_late_answer_to_an_isr_change_is_ignored(
    error: Errors | None, leader_epoch: int, partition_epoch: int
) -> None:
    bed = a_leader(isr=(LEADER,))
    bed.fetch(F1, 0)

    bed.partition.make_leader(
        state(LEADER, leader_epoch, isr=(LEADER, F2), partition_epoch=partition_epoch)
    )
    if error is None:
        bed.controller.accept()
    else:
        bed.controller.reject(error)

    assert bed.partition.in_sync_replica_ids == {LEADER, F2}
    assert bed.partition.partition_epoch == partition_epoch
    assert bed.controller.sent == []


@pytest.mark.parametrize(
    ("fetched_with", "current", "joins"),
    [
        pytest.param(5, 5, True, id="current"),
        pytest.param(-1, 5, True, id="follower-without-broker-epochs"),
        pytest.param(5, 4, False, id="leader-has-not-heard-of-the-restart"),
    ],
)
def test_broker_epoch_of_a_joining_follower(fetched_with: int, current: int, joins: bool) -> None:
    """KIP-903."""
    bed = a_leader(isr=(LEADER,))
    bed.metadata.set_broker_epoch(F1, current)

    bed.fetch(F1, 0, broker_epoch=fetched_with)

    sent = [proposed.isr_with_broker_epoch for proposed, _ in bed.controller.sent]
    assert sent == ([((LEADER, -1), (F1, fetched_with))] if joins else [])


def test_fetch_from_an_earlier_life_of_the_follower_is_fenced() -> None:
    """KIP-903."""
    bed = a_leader()
    bed.append(2)
    bed.metadata.set_broker_epoch(F1, 7)

    with pytest.raises(ApiException) as raised:
        bed.fetch(F1, 2, broker_epoch=6)

    assert raised.value.error is Errors.NOT_LEADER_OR_FOLLOWER
    replica = bed.partition.get_replica(F1)
    assert replica is not None
    assert replica.state.log_end_offset == -1


def test_follower_that_restarted_since_its_last_fetch_does_not_join() -> None:
    """KIP-903: its position may be a memory of records that it has lost."""
    bed = a_leader(isr=(LEADER,))
    bed.metadata.set_broker_epoch(F1, 5)
    bed.fetch(F1, 0, broker_epoch=5)
    bed.controller.reject(Errors.INELIGIBLE_REPLICA)
    bed.metadata.set_broker_epoch(F1, 6)
    replica = bed.partition.get_replica(F1)
    assert replica is not None

    bed.partition.maybe_expand_isr(replica)

    assert bed.controller.sent == []


@pytest.mark.parametrize(("read_in_epoch", "expected"), [(0, -1), (1, 2), (None, 2)])
def test_a_read_of_an_earlier_epoch_does_not_count_in_this_one(
    read_in_epoch: int | None, expected: int
) -> None:
    bed = a_leader(0)
    bed.append(2)
    bed.partition.make_leader(state(LEADER, 1))
    replica = bed.partition.get_replica(F1)
    assert replica is not None

    bed.partition.update_follower_fetch_state(
        replica,
        bed.log.convert_to_offset_metadata(2),
        follower_start_offset=0,
        fetch_time_ms=bed.clock.milliseconds(),
        leader_end_offset=2,
        read_in_epoch=read_in_epoch,
    )

    assert replica.state.log_end_offset == expected


def test_isr_changes_are_counted_when_the_controller_has_answered() -> None:
    bed = a_leader(isr=(LEADER,))
    bed.fetch(F1, 0)
    assert bed.isr_changes == (0, 0, 0), "a proposal is no change"
    bed.controller.accept()
    assert bed.isr_changes == (1, 0, 0)

    bed.append(1)
    bed.clock.sleep(30_001)
    bed.partition.maybe_shrink_isr()
    assert bed.isr_changes == (1, 0, 0)
    bed.controller.accept()
    assert bed.isr_changes == (1, 1, 0)


@pytest.mark.parametrize(
    "error", [Errors.INELIGIBLE_REPLICA, Errors.FENCED_LEADER_EPOCH, Errors.NETWORK_EXCEPTION]
)
def test_a_refused_isr_change_is_counted_as_failed(error: Errors) -> None:
    bed = a_leader(isr=(LEADER,))
    bed.fetch(F1, 0)
    bed.controller.reject(error)
    assert bed.isr_changes == (0, 0, 1)


def test_an_answer_to_a_change_that_was_overtaken_is_not_counted() -> None:
    bed = a_leader(isr=(LEADER,))
    bed.fetch(F1, 0)
    bed.partition.make_leader(state(LEADER, 1, isr=(LEADER, F2)))
    bed.controller.accept()
    assert bed.isr_changes == (0, 0, 0)


def test_an_answer_of_an_earlier_epoch_is_counted_as_failed() -> None:
    bed = a_leader(isr=(LEADER,))
    bed.fetch(F1, 0)
    proposed = bed.partition.partition_state
    bed.partition.make_leader(state(LEADER, 1, isr=(LEADER,), partition_epoch=5))
    bed.partition.partition_state = proposed  # as if the new epoch had kept what is in flight
    bed.controller.accept()
    assert bed.isr_changes == (0, 0, 1)
