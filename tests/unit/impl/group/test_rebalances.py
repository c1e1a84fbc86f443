"""Dynamic members: joins, generations, syncs, sessions. Scenarios of GroupCoordinatorTest."""

from __future__ import annotations

import dataclasses

import pytest

from impl.errors import Errors, IllegalStateException
from impl.group.group_records import (
    GroupMember,
    GroupMetadataValue,
    group_metadata_key,
    group_metadata_value,
)
from impl.records import MemoryRecords, Record
from tests.unit.impl.group.driver import CONFIG, GROUP, SUPERSET, Driver

NONE = Errors.NONE
UNKNOWN = Errors.UNKNOWN_MEMBER_ID
IN_PROGRESS = Errors.REBALANCE_IN_PROGRESS


def test_g01_the_first_rebalance_is_delayed() -> None:
    driver = Driver()
    join = driver.join()
    driver.advance(25)
    assert not join.done
    driver.advance(26)
    assert join.response.error_code is NONE


def test_g02_each_burst_of_members_is_waited_for_once_more() -> None:
    driver = Driver()
    joins = [driver.join()]
    driver.advance(30)
    joins.append(driver.join())
    driver.advance(21)
    assert [join.done for join in joins] == [False, False]
    driver.advance(51)
    assert [join.response.generation_id for join in joins] == [1, 1]
    assert driver.group.generation_id == 1  # one rebalance for all (KAFKA-4925)


def test_g03_the_initial_delay_ends_with_the_rebalance_timeout() -> None:
    driver = Driver()
    joins = [driver.join(rebalance=100), driver.join(rebalance=100)]
    driver.advance(51)
    joins.append(driver.join(rebalance=100))
    driver.advance(50)
    assert not any(join.done for join in joins)
    driver.advance(1)
    assert [join.response.error_code for join in joins] == [NONE] * 3


@pytest.mark.parametrize("api", ["join", "heartbeat", "sync", "leave", "commit"])
def test_g05_another_broker_coordinates_the_group(api: str) -> None:
    driver = Driver(num_partitions=2, owned=[])
    answers = {
        "join": lambda: driver.join().response.error_code,
        "heartbeat": lambda: driver.heartbeat("m"),
        "sync": lambda: driver.sync("m").response.error_code,
        "leave": lambda: driver.leave_response(("m", None)).error_code,
        "commit": lambda: driver.commit(),
    }
    assert answers[api]() is Errors.NOT_COORDINATOR


@pytest.mark.parametrize("instance", [None, "instance"], ids=["dynamic", "static"])
def test_g07_a_member_id_is_unknown_to_a_new_group(instance: str | None) -> None:
    driver = Driver()
    assert driver.join("memberId", instance).response.error_code is UNKNOWN
    assert driver.coordinator.group(GROUP) is None


@pytest.mark.parametrize(
    ("protocol_type", "names"),
    [
        pytest.param("connect", ("range",), id="other type"),
        pytest.param("consumer", ("roundrobin",), id="no common protocol"),
    ],
)
def test_g09_protocols_must_fit_the_group(protocol_type: str, names: tuple[str, ...]) -> None:
    driver = Driver()
    first = driver.join()
    second = driver.join(names=names, protocol_type=protocol_type)
    assert second.response.error_code is Errors.INCONSISTENT_GROUP_PROTOCOL
    driver.advance(51)
    assert first.response.error_code is NONE


@pytest.mark.parametrize(
    ("protocol_type", "names"),
    [pytest.param("", ("range",), id="no type"), pytest.param("consumer", (), id="no protocols")],
)
def test_g10_a_new_group_needs_a_type_and_protocols(
    protocol_type: str, names: tuple[str, ...]
) -> None:
    answer = Driver().join(names=names, protocol_type=protocol_type)
    assert answer.response.error_code is Errors.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("session", [9, 600_001])
def test_session_timeout_must_be_within_bounds(session: int) -> None:
    driver = Driver()
    assert driver.join(session=session).response.error_code is Errors.INVALID_SESSION_TIMEOUT
    assert driver.coordinator.group(GROUP) is None


def test_g11_a_full_group_takes_nobody() -> None:
    driver = Driver()
    joins = [driver.join(rebalance=100) for _ in range(4)]
    driver.advance(51)
    driver.advance(51)
    assert [join.response.error_code for join in joins] == [NONE] * 4
    late = driver.join(rebalance=100)
    assert late.response.error_code is Errors.GROUP_MAX_SIZE_REACHED
    assert late.response.member_id == ""


def write_group(driver: Driver, members: int) -> list[str]:
    """A Stable group of that many members, written by a coordinator without a maximum size."""
    unlimited = Driver(dataclasses.replace(CONFIG, group_max_size=100), topic=driver.topic)
    return unlimited.stable_dynamics(members)


def test_g13_the_last_to_rejoin_an_oversized_group_have_to_go() -> None:
    driver = Driver()
    ids = write_group(driver, 6)
    driver = driver.failed_over()
    assert driver.state == "PreparingRebalance"
    joins = [driver.join(member_id) for member_id in ids]
    refused = [join.response.error_code for join in joins[4:]]
    assert refused == [Errors.GROUP_MAX_SIZE_REACHED] * 2
    assert [join.response.error_code for join in joins[:4]] == [NONE] * 4
    assert list(driver.group.members) == ids[:4]


def test_g14_a_parked_member_of_an_oversized_group_may_join_again() -> None:
    driver = Driver()
    ids = write_group(driver, 6)
    driver = driver.failed_over()
    for member_id in ids[:4]:
        driver.join(member_id)
    again = driver.join(ids[0])
    assert not again.done
    assert driver.join(ids[4]).response.error_code is Errors.GROUP_MAX_SIZE_REACHED


def test_g15_the_limit_of_new_members_ends_with_their_first_generation() -> None:
    driver = Driver()
    driver.stable(session=305_000)
    driver.advance(300_100)
    assert driver.group.size == 1
    driver.advance(305_100)
    assert driver.group.size == 0


@pytest.mark.parametrize("version", [3, 4], ids=["join v3", "join v4"])
def test_g16_a_new_member_may_stay_parked_five_minutes(version: int) -> None:
    driver = Driver(dataclasses.replace(CONFIG, group_initial_rebalance_delay_ms=600_000))
    member_id = driver.pending() if version == 4 else ""
    join = driver.join(member_id, rebalance=600_000)
    driver.advance(300_000)
    assert not join.done
    driver.advance(1)
    assert (join.response.error_code, join.response.member_id) == (UNKNOWN, "")
    assert driver.group.size == 0


@pytest.mark.parametrize("synced", [False, True], ids=["after join", "after sync"])
def test_g17_members_that_fall_silent_are_removed(synced: bool) -> None:
    driver = Driver()
    first = driver.join()
    second = driver.join()
    driver.advance(51)
    driver.advance(51)
    if synced:
        assert driver.sync(first.response.member_id).response.error_code is NONE
        assert driver.sync(second.response.member_id).response.error_code is NONE
    driver.advance(501)
    assert (driver.state, driver.group.size) == ("Empty", 0)
    assert driver.timers() == []


def test_g19_a_silent_session_expires() -> None:
    driver = Driver()
    member_id = driver.stable()
    driver.advance(600)
    assert driver.heartbeat(member_id) is UNKNOWN


@pytest.mark.parametrize("sign", ["heartbeat", "commit", "sync"])
def test_g19_a_sign_of_life_keeps_the_session(sign: str) -> None:
    driver = Driver()
    member_id = driver.stable(session=1000)
    driver.advance(500)
    signs = {
        "heartbeat": lambda: driver.heartbeat(member_id),
        "commit": lambda: driver.commit(member_id, 1),
        "sync": lambda: driver.sync(member_id).response.error_code,
    }
    assert signs[sign]() is NONE
    driver.advance(600)
    assert driver.heartbeat(member_id) is NONE


def test_g21_a_rebalance_ends_without_a_static_member() -> None:
    driver = Driver()
    first = driver.join(instance="static", session=1000, rebalance=1200)
    driver.advance(51)
    first_id = first.response.member_id
    driver.sync(first_id, 1, {first_id: b""})
    second = driver.join(session=500)
    for _ in range(2):
        driver.advance(500)
        assert driver.heartbeat(first_id) is IN_PROGRESS
    driver.advance(500)
    second_id = second.response.member_id
    assert second.response.leader == second_id
    assert driver.sync(second_id, 2, {second_id: b""}).response.error_code is NONE
    assert driver.heartbeat(first_id) is Errors.ILLEGAL_GENERATION
    assert driver.group.has(first_id)
    seen = []
    for _ in range(3):
        driver.advance(500)
        seen.append(driver.heartbeat(second_id, 2))
    assert seen == [NONE, NONE, IN_PROGRESS]
    again = driver.join(second_id)
    assert again.response.error_code is NONE
    generation = again.response.generation_id
    assert driver.sync(second_id, generation).response.error_code is NONE
    for _ in range(20):
        driver.advance(500)
        assert driver.heartbeat(second_id, generation) is NONE


def test_g25_every_join_phase_makes_a_generation() -> None:
    driver = Driver()
    member_id = driver.stable()
    assert driver.group.generation_id == 1
    assert driver.join(member_id).response.generation_id == 2


def test_g26_a_pending_member_holds_a_rebalance_up() -> None:
    driver = Driver()
    first, second = driver.stable_dynamics(2)
    pending = driver.pending(session=100)
    joins = [driver.join(first), driver.join(second)]
    assert not any(join.done for join in joins)
    assert driver.leave((pending, None)) == [NONE]
    assert all(join.done for join in joins)
    assert driver.state == "CompletingRebalance"
    assert ("heartbeat", pending) not in driver.timers()


def test_g27_a_rebalance_ends_when_the_pending_member_joins() -> None:
    driver = Driver()
    first, second = driver.stable_dynamics(2)
    pending = driver.pending(session=100)
    driver.join(first)
    driver.join(second)
    assert driver.state == "PreparingRebalance"
    join = driver.join(pending, version=9)
    assert join.response.error_code is NONE
    assert driver.state == "CompletingRebalance"
    assert (driver.group.size, len(driver.group.pending_members)) == (3, 0)


def test_g28_a_pending_member_that_does_not_join_is_forgotten() -> None:
    driver = Driver()
    first, second = driver.stable_dynamics(2)
    pending = driver.pending(session=100)
    joins = [driver.join(first), driver.join(second)]
    driver.advance(100)
    assert not any(join.done for join in joins)
    driver.advance(1)
    assert [join.response.generation_id for join in joins] == [2, 2]
    assert not driver.group.is_pending_member(pending)
    assert driver.join(pending).response.error_code is UNKNOWN


def test_a_follower_that_joins_unchanged_learns_the_generation() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2)
    answer = driver.join(follower).response
    assert (answer.generation_id, answer.leader, answer.members) == (1, leader, ())
    assert driver.state == "Stable"


@pytest.mark.parametrize("who", ["leader", "changed follower"])
def test_a_stable_group_rebalances_for(who: str) -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2)
    answer = driver.join(leader) if who == "leader" else driver.join(follower, metadata=b"new")
    assert not answer.done
    assert driver.state == "PreparingRebalance"


def test_in_completing_an_unchanged_join_is_answered_once_more() -> None:
    driver = Driver()
    first = driver.join()
    second = driver.join()
    driver.advance(51)
    driver.advance(51)
    leader_again = driver.join(first.response.member_id).response
    follower_again = driver.join(second.response.member_id).response
    assert [member.member_id for member in leader_again.members] == [
        first.response.member_id,
        second.response.member_id,
    ]
    assert follower_again.members == ()
    assert driver.state == "CompletingRebalance"


def test_in_completing_a_changed_join_rebalances_and_unparks_the_syncs() -> None:
    driver = Driver()
    first = driver.join()
    second = driver.join()
    driver.advance(51)
    driver.advance(51)
    sync = driver.sync(second.response.member_id)
    changed = driver.join(first.response.member_id, metadata=b"new")
    assert not changed.done
    assert sync.response.error_code is IN_PROGRESS
    assert driver.state == "PreparingRebalance"


def test_only_the_leader_learns_the_members_and_only_of_the_chosen_protocol() -> None:
    driver = Driver()
    first = driver.join(names=SUPERSET, metadata=b"first")
    second = driver.join(names=SUPERSET, metadata=b"second")
    driver.advance(51)
    driver.advance(51)
    members = first.response.members
    assert [member.metadata for member in members] == [b"first", b"second"]
    assert (second.response.members, second.response.protocol_name) == ((), "range")


def test_a_rebalance_that_times_out_drops_who_did_not_join() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2, session=5000)
    join = driver.join(follower, metadata=b"new")
    driver.advance(501)
    assert (join.response.generation_id, join.response.leader) == (2, follower)
    assert not driver.group.has(leader)
    assert ("heartbeat", leader) not in driver.timers()


def test_rejoining_does_not_restart_the_rebalance_time_out() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2, session=5000)
    driver.join(follower, metadata=b"new")
    driver.advance(300)
    again = driver.join(follower, metadata=b"newer")
    driver.advance(201)
    assert again.response.error_code is NONE
    assert not driver.group.has(leader)


def test_a_parked_member_does_not_expire() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2, session=500, rebalance=2000)
    join = driver.join(follower, session=500, rebalance=2000, metadata=b"new")
    for _ in range(4):
        driver.advance(400)
        assert driver.heartbeat(leader) is IN_PROGRESS
    assert driver.group.has(follower)
    driver.join(leader)
    assert join.response.generation_id == 2


def test_a_removed_parked_member_is_told() -> None:
    driver = Driver()
    driver.stable_dynamics(2)
    third = driver.join()
    third_id = next(reversed(driver.group.members))
    assert driver.leave((third_id, None)) == [NONE]
    assert (third.response.error_code, third.response.member_id) == (UNKNOWN, "")


def test_leaving_rebalances_and_the_leadership_passes_on() -> None:
    driver = Driver()
    leader, follower = driver.stable_dynamics(2)
    assert driver.leave((leader, None)) == [NONE]
    assert (driver.state, driver.group.leader_id) == ("PreparingRebalance", follower)
    assert driver.heartbeat(follower) is IN_PROGRESS
    assert ("heartbeat", leader) not in driver.timers()


def test_an_empty_generation_is_written() -> None:
    driver = Driver()
    member_id = driver.stable()
    before = len(driver.records())
    driver.leave((member_id, None))
    assert (driver.state, driver.group.generation_id, driver.group.leader_id) == ("Empty", 2, None)
    assert len(driver.records()) == before + 1


def test_a_member_of_no_group_is_unknown() -> None:
    driver = Driver()
    assert driver.heartbeat("m") is UNKNOWN
    assert driver.sync("m").response.error_code is UNKNOWN


def test_a_pending_member_has_no_instance() -> None:
    driver = Driver()
    pending = driver.pending()
    with pytest.raises(IllegalStateException):
        driver.join(pending, "instance")


def test_a_member_of_an_empty_group_is_unknown() -> None:
    driver = Driver()
    member_id = driver.stable()
    driver.leave((member_id, None))
    assert driver.join(member_id).response.error_code is UNKNOWN
    assert driver.heartbeat(member_id, 2) is UNKNOWN
    assert driver.sync(member_id, 2).response.error_code is UNKNOWN


def test_j01_a_new_group_can_be_written_at_once() -> None:
    driver = Driver(dataclasses.replace(CONFIG, record_new_groups=True))
    driver.pending()
    assert len(driver.records()) == 1
    assert driver.state == "Empty"


def test_j01_a_group_that_cannot_be_written_is_not_made() -> None:
    driver = Driver(dataclasses.replace(CONFIG, record_new_groups=True))
    driver.topic.fail_with = Errors.NOT_LEADER_OR_FOLLOWER
    assert driver.join().response.error_code is Errors.NOT_COORDINATOR
    assert driver.coordinator.group(GROUP) is None


def loaded_member(member_id: str, rebalance_timeout_ms: int) -> GroupMember:
    return GroupMember(member_id, None, "c", "/h", rebalance_timeout_ms, 4000, b"sub", b"asg")


@pytest.mark.parametrize(
    ("rebalance", "expected"),
    [pytest.param(-1, 4000, id="absent"), pytest.param(9000, 9000, id="given")],
)
def test_j03_a_stable_group_comes_back_from_its_record(rebalance: int, expected: int) -> None:
    driver = Driver(owned=[])
    members = (loaded_member("member-0", rebalance), loaded_member("member-1", rebalance))
    value = GroupMetadataValue("consumer", 1, "range", "member-0", 17, members)
    record = Record(group_metadata_value(value), group_metadata_key(GROUP))
    driver.topic.log(0).append_as_leader(MemoryRecords.with_records(record), 0)
    driver.coordinator.on_election(0, 1)
    group = driver.group
    assert (driver.state, group.generation_id, group.leader_id) == ("Stable", 1, "member-0")
    assert (group.protocol_name, group.current_state_timestamp) == ("range", 17)
    assert group.get("member-1").rebalance_timeout_ms == expected
    assert group.get("member-1").metadata("range") == b"sub"
    assert group.get("member-1").assignment == b"asg"


def test_j05_loaded_members_have_sessions() -> None:
    before = Driver()
    first, second = before.stable_dynamics(2, session=4000)
    driver = before.failed_over()
    now = driver.clock.milliseconds()
    timers = [(t.kind, t.member_id, t.deadline_ms) for t in driver.coordinator.timers()]
    assert timers == [("heartbeat", first, now + 4000), ("heartbeat", second, now + 4000)]


def test_j07_a_group_whose_only_member_gave_up_becomes_empty() -> None:
    driver = Driver(dataclasses.replace(CONFIG, group_initial_rebalance_delay_ms=600_000))
    join = driver.join()
    driver.advance(300_001)
    assert (join.response.error_code, driver.group.size) == (UNKNOWN, 0)
    driver.advance(300_000)  # the initial delay is never cut short
    assert (driver.state, len(driver.records())) == ("Empty", 1)
