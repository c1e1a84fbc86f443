"""Syncs: the leader's assignment, its append, who never syncs. GroupCoordinatorTest."""

from __future__ import annotations

import pytest

from impl.errors import Errors
from tests.unit.impl.group.driver import Driver

NONE = Errors.NONE
UNKNOWN = Errors.UNKNOWN_MEMBER_ID
IN_PROGRESS = Errors.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("protocol_type", "name", "error"),
    [
        pytest.param("connect", "range", Errors.INCONSISTENT_GROUP_PROTOCOL, id="wrong type"),
        pytest.param("consumer", "sticky", Errors.INCONSISTENT_GROUP_PROTOCOL, id="wrong name"),
        pytest.param(None, None, NONE, id="absent"),
        pytest.param("consumer", "range", NONE, id="right"),
    ],
)
@pytest.mark.parametrize("state", ["Completing", "Stable"])
def test_g23_a_sync_is_checked_against_the_protocol(
    state: str, protocol_type: str | None, name: str | None, error: Errors
) -> None:
    driver = Driver()
    member_id = driver.stable() if state == "Stable" else driver.joined().member_id
    answer = driver.sync(member_id, protocol_type=protocol_type, protocol_name=name)
    assert answer.response.error_code is error
    expected = ("consumer", "range") if error is NONE else (None, None)
    assert (answer.response.protocol_type, answer.response.protocol_name) == expected


def test_g29_the_leader_fails_while_followers_wait_for_it() -> None:
    driver = Driver()
    joins = [driver.join(rebalance=1000), driver.join(rebalance=1000)]
    driver.advance(51)
    driver.advance(51)
    leader = joins[0].response.leader
    follower = next(j.response.member_id for j in joins if j.response.member_id != leader)
    sync = driver.sync(follower)
    assert not sync.done
    driver.advance(600)
    assert sync.response.error_code is IN_PROGRESS
    assert not driver.group.has(leader)
    assert driver.group.has(follower)  # parked, it cannot have expired


def three_members_completing(driver: Driver) -> list[str]:
    """Three members that joined and have not synced; the leader first."""
    joins = [driver.join(session=5000, rebalance=500) for _ in range(3)]
    driver.advance(51)
    driver.advance(51)
    ids = [join.response.member_id for join in joins]
    return sorted(ids, key=lambda member_id: member_id != joins[0].response.leader)


def test_g31_members_that_never_sync_are_removed() -> None:
    driver = Driver()
    ids = three_members_completing(driver)
    driver.advance(250)
    assert [driver.heartbeat(member_id) for member_id in ids] == [NONE] * 3
    driver.advance(251)
    assert [driver.heartbeat(member_id) for member_id in ids] == [UNKNOWN] * 3
    assert driver.state == "Empty"


@pytest.mark.parametrize("silent", ["leader", "follower"])
def test_g33_a_member_that_never_syncs_is_removed(silent: str) -> None:
    driver = Driver()
    ids = three_members_completing(driver)
    absent = ids[0] if silent == "leader" else ids[2]
    present = [member_id for member_id in ids if member_id != absent]
    syncs = [driver.sync(member_id) for member_id in present]
    driver.advance(250)
    assert driver.heartbeat(absent) is NONE
    driver.advance(251)
    expected = IN_PROGRESS if silent == "leader" else NONE
    assert [sync.response.error_code for sync in syncs] == [expected] * 2
    assert driver.heartbeat(absent) is UNKNOWN
    assert [driver.heartbeat(member_id) for member_id in present] == [IN_PROGRESS] * 2


def test_g34_the_sync_time_out_ends_when_all_have_synced() -> None:
    driver = Driver()
    ids = driver.stable_dynamics(3, session=5000)
    assert [kind for kind, _ in driver.timers()] == ["heartbeat"] * 3
    driver.advance(600)
    assert [driver.heartbeat(member_id) for member_id in ids] == [NONE] * 3


def test_members_that_the_leader_leaves_out_get_nothing() -> None:
    driver = Driver()
    first = driver.join()
    second = driver.join()
    driver.advance(51)
    driver.advance(51)
    follower = driver.sync(second.response.member_id)
    leader = driver.sync(first.response.member_id, 1, {first.response.member_id: b"all", "x": b""})
    assert (leader.response.assignment, follower.response.assignment) == (b"all", b"")


def test_a_group_is_stable_once_its_assignment_is_in_the_log() -> None:
    driver = Driver()
    member_id = driver.joined().member_id
    driver.topic.hold = True
    sync = driver.sync(member_id, 1, {member_id: b"a"})
    assert (sync.done, driver.state) == (False, "CompletingRebalance")
    driver.topic.release()
    assert (sync.response.assignment, driver.state) == (b"a", "Stable")


def test_an_assignment_of_a_past_generation_is_dropped() -> None:
    driver = Driver()
    member_id = driver.joined().member_id
    driver.topic.hold = True
    sync = driver.sync(member_id, 1, {member_id: b"a"})
    changed = driver.join(member_id, metadata=b"new")
    assert sync.response.error_code is IN_PROGRESS
    assert changed.response.generation_id == 2
    driver.topic.release()
    assert driver.state == "CompletingRebalance"
    assert driver.group.get(member_id).assignment == b""


STORE_ERRORS = [
    (Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.NOT_ENOUGH_REPLICAS, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.REQUEST_TIMED_OUT, Errors.COORDINATOR_NOT_AVAILABLE),
    (Errors.NOT_LEADER_OR_FOLLOWER, Errors.NOT_COORDINATOR),
    (Errors.KAFKA_STORAGE_ERROR, Errors.NOT_COORDINATOR),
    (Errors.MESSAGE_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
    (Errors.RECORD_LIST_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
    (Errors.INVALID_FETCH_SIZE, Errors.UNKNOWN_SERVER_ERROR),
    (Errors.CORRUPT_MESSAGE, Errors.CORRUPT_MESSAGE),
]


@pytest.mark.parametrize(
    ("stored", "answered"), STORE_ERRORS, ids=[e.name for e, _ in STORE_ERRORS]
)
def test_a_failed_append_of_the_assignment(stored: Errors, answered: Errors) -> None:
    driver = Driver()
    member_id = driver.joined().member_id
    driver.topic.fail_with = stored
    sync = driver.sync(member_id, 1, {member_id: b"a"})
    assert sync.response.error_code is answered
    assert driver.state == "PreparingRebalance"
    assert driver.group.get(member_id).assignment == b""
