"""Static members (KIP-345): instances, fencing, replacement. Scenarios of GroupCoordinatorTest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from impl.errors import Errors
from tests.unit.impl.group.driver import GROUP, SUPERSET, Driver

NONE = Errors.NONE
FENCED = Errors.FENCED_INSTANCE_ID
UNKNOWN = Errors.UNKNOWN_MEMBER_ID
IN_PROGRESS = Errors.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param([("", "leader"), ("", "follower")], [NONE, NONE], id="both by instance"),
        pytest.param(
            [("", "leader"), ("invalid-member", "follower")], [NONE, FENCED], id="other member id"
        ),
        pytest.param([("", "unknown"), ("", "follower")], [UNKNOWN, NONE], id="unknown instance"),
        pytest.param([("", None), ("nobody", None)], [UNKNOWN, UNKNOWN], id="nobody"),
    ],
)
def test_g39_members_leave_in_a_batch(
    members: list[tuple[str, str | None]], expected: list[Errors]
) -> None:
    driver = Driver()
    driver.stable_statics()
    assert driver.leave(*members) == expected


def test_g39_leaving_an_unknown_group() -> None:
    assert Driver().leave(("", "leader"), ("", "follower")) == [UNKNOWN, UNKNOWN]


def test_g39_leaving_another_brokers_group() -> None:
    response = Driver(owned=[]).leave_response(("", "leader"))
    assert (response.error_code, response.members) == (Errors.NOT_COORDINATOR, ())


def test_g39_a_pending_member_leaves() -> None:
    driver = Driver()
    pending = driver.pending()
    assert driver.leave((pending, None)) == [NONE]
    assert driver.timers() == []


MISMATCHES = [
    pytest.param("unknown_member", "leader", FENCED, id="known instance, unknown member"),
    pytest.param("follower's", "leader", FENCED, id="follower's id, leader's instance"),
    pytest.param("leader's", "follower", FENCED, id="leader's id, follower's instance"),
    pytest.param("leader's", "unknown", UNKNOWN, id="unknown instance, known member"),
    pytest.param("unknown_member", None, UNKNOWN, id="unknown dynamic member"),
]


@pytest.mark.parametrize(("member", "instance", "error"), MISMATCHES)
@pytest.mark.parametrize("api", ["join", "sync", "heartbeat", "commit", "txn_commit", "leave"])
def test_g41_member_and_instance_must_belong_together(
    api: str, member: str, instance: str | None, error: Errors
) -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    member_id = {"leader's": leader, "follower's": follower}.get(member, member)
    answers: dict[str, Callable[[], Errors]] = {
        "join": lambda: driver.join(member_id, instance, SUPERSET).response.error_code,
        "sync": lambda: driver.sync(member_id, instance=instance).response.error_code,
        "heartbeat": lambda: driver.heartbeat(member_id, 1, instance),
        "commit": lambda: driver.commit(member_id, 1, instance),
        "txn_commit": lambda: driver.txn_commit(member_id, 1, instance),
        "leave": lambda: driver.leave((member_id, instance))[0],
    }
    assert answers[api]() is error
    assert (driver.state, driver.group.size) == ("Stable", 2)


def test_g43_a_duplicate_instance_fences_the_parked_sync() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    leader_join = driver.join(leader, "leader", SUPERSET)
    assert driver.state == "PreparingRebalance"
    follower_join = driver.join(follower, "follower", SUPERSET)
    assert [leader_join.response.generation_id, follower_join.response.generation_id] == [2, 2]
    assert len(leader_join.response.members) == 2
    assert driver.state == "CompletingRebalance"
    sync = driver.sync(follower, 2, instance="follower")
    duplicate = driver.join("", "follower", SUPERSET)
    assert sync.response.error_code is FENCED
    assert driver.state == "PreparingRebalance"
    driver.advance(51)
    driver.advance(501)
    answer = duplicate.response
    assert (answer.error_code, answer.generation_id) == (NONE, 3)
    assert answer.leader == answer.member_id
    assert [member.member_id for member in answer.members] == [answer.member_id]
    assert driver.state == "CompletingRebalance"


def test_g44_a_duplicate_instance_fences_the_parked_join() -> None:
    driver = Driver()
    _, follower = driver.stable_statics()
    join = driver.join(follower, "follower", SUPERSET, metadata=b"new")
    duplicate = driver.join("", "follower", SUPERSET)
    assert (join.response.error_code, join.response.member_id) == (FENCED, follower)
    assert not duplicate.done
    assert (driver.group.size, driver.group.num_members_awaiting_join) == (2, 1)
    assert not driver.group.has(follower)
    assert driver.heartbeat(follower, 1, "follower") is FENCED


def test_g44_in_completing_the_assignment_for_the_old_id_is_not_lost() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    driver.join(leader, "leader", SUPERSET)
    driver.join(follower, "follower", SUPERSET)
    leader_sync = driver.sync(leader, 2, {leader: b"", follower: b"old id"}, instance="leader")
    assert leader_sync.done
    # Now the same before the leader's sync: a new rebalance instead of an empty share.
    driver.join(leader, "leader", SUPERSET)
    driver.join(follower, "follower", SUPERSET)
    assert driver.state == "CompletingRebalance"
    driver.join("", "follower", SUPERSET)
    assert driver.state == "PreparingRebalance"
    assert driver.sync(leader, 3, {follower: b"x"}).response.error_code is IN_PROGRESS


def test_g45_in_completing_a_known_member_learns_the_generation() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    driver.join(leader, "leader", SUPERSET)
    driver.join(follower, "follower", SUPERSET)
    again = driver.join(follower, "follower", SUPERSET)
    assert (again.response.error_code, driver.state) == (NONE, "CompletingRebalance")
    assert driver.sync(leader, 2, instance="leader").response.error_code is NONE
    assert driver.state == "Stable"


def test_g47_the_leader_rejoins_alone() -> None:
    driver = Driver()
    leader, _ = driver.stable_statics(session=250)
    join = driver.join(leader, "leader", SUPERSET, session=250)
    driver.advance(501)
    answer = join.response
    assert (answer.error_code, answer.generation_id, answer.leader) == (NONE, 2, leader)
    assert [member.member_id for member in answer.members] == [leader]
    assert driver.state == "CompletingRebalance"


def test_g49_a_follower_that_changes_protocols_is_elected() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics(session=1000)
    join = driver.join(follower, "follower", ("roundrobin",), session=1000)
    driver.advance(501)
    answer = join.response
    assert (answer.error_code, answer.generation_id, answer.leader) == (NONE, 2, follower)
    assert answer.protocol_name == "roundrobin"
    assert list(driver.group.members) == [leader, follower]
    assert driver.group.current_static_member_id("leader") == leader
    assert driver.state == "CompletingRebalance"


def test_g51_a_restarted_follower_goes_on_in_its_generation() -> None:
    driver = Driver()
    _, follower = driver.stable_statics()
    answer = driver.join("", "follower", ("range",)).response
    assert (answer.error_code, answer.generation_id, answer.members) == (NONE, 1, ())
    assert (driver.state, driver.group.size) == ("Stable", 2)
    assert driver.join(follower, "follower", ("range",)).response.error_code is FENCED
    assert driver.sync(follower, 1, instance="follower").response.error_code is FENCED
    sync = driver.sync(answer.member_id, 1, instance="follower").response
    assert (sync.error_code, sync.assignment) == (NONE, b"follower's")


def test_g52_a_restart_that_changes_the_chosen_protocol_rebalances() -> None:
    driver = Driver()
    driver.stable_statics()
    join = driver.join("", "follower", ("roundrobin",))
    assert not join.done
    assert (driver.state, driver.group.size) == ("PreparingRebalance", 2)


def test_g53_restarted_members_bring_new_time_outs() -> None:
    driver = Driver()
    driver.stable_statics()
    follower = driver.join("", "follower", SUPERSET, session=1000, rebalance=1000).response
    leader = driver.join("", "leader", SUPERSET, session=1000, rebalance=1000).response
    assert [follower.generation_id, leader.generation_id] == [1, 1]
    assert driver.state == "Stable"
    timeouts = [
        (m.session_timeout_ms, m.rebalance_timeout_ms) for m in driver.group.members.values()
    ]
    assert timeouts == [(1000, 1000)] * 2
    assert (follower.skip_assignment, follower.members) == (False, ())
    assert (leader.skip_assignment, len(leader.members)) == (True, 2)
    assert leader.leader == leader.member_id
    # ... and so does the next coordinator.
    after = driver.failed_over()
    assert list(after.group.members) == [follower.member_id, leader.member_id]
    assert after.group.get(leader.member_id).session_timeout_ms == 1000
    assert after.group.get(leader.member_id).assignment == b"leader's"


def test_g53_an_older_leader_is_not_told_that_it_leads() -> None:
    driver = Driver()
    leader, _ = driver.stable_statics()
    answer = driver.join("", "leader", SUPERSET, version=8).response
    assert (answer.leader, answer.members, answer.skip_assignment) == (leader, (), False)
    assert driver.group.leader_id == answer.member_id


@pytest.mark.parametrize("who", ["leader", "follower"])
def test_g54_a_replacement_that_is_not_written_is_undone(who: str) -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    old = {"leader": leader, "follower": follower}[who]
    driver.topic.fail_with = Errors.NOT_ENOUGH_REPLICAS
    answer = driver.join("", who, ("range",), session=1000, rebalance=900).response
    assert answer.error_code is Errors.COORDINATOR_NOT_AVAILABLE
    assert (answer.member_id, answer.generation_id, answer.leader) == ("", 1, leader)
    group = driver.group
    member = group.get(old)
    assert (driver.state, group.leader_id, set(group.members)) == (
        "Stable",
        leader,
        {leader, follower},
    )
    assert group.current_static_member_id(who) == old
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (500, 500)
    assert [protocol.name for protocol in member.supported_protocols] == list(SUPERSET)
    assert (member.is_awaiting_join, group.num_members_awaiting_join) == (False, 0)
    assert sorted(m for _, m in driver.timers() if m) == sorted([leader, follower])
    assert driver.heartbeat(old, 1, who) is NONE
    # The counts of supported protocols are those of before, too.
    other = driver.join("", None, ("roundrobin",))
    assert not other.done


def test_g54_a_replacement_is_answered_once_it_is_written() -> None:
    driver = Driver()
    driver.stable_statics()
    driver.topic.hold = True
    first = driver.join("", "follower", SUPERSET)
    assert not first.done
    second = driver.join("", "follower", SUPERSET)
    assert first.response.error_code is FENCED
    driver.topic.release()
    assert (second.response.error_code, second.response.generation_id) == (NONE, 1)


def test_g55_a_restarted_follower_gets_its_share_again() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    answer = driver.join("", "follower", SUPERSET).response
    assert (answer.generation_id, answer.leader, driver.state) == (1, leader, "Stable")
    assert answer.member_id != follower
    sync = driver.sync(answer.member_id, 1, instance="follower").response
    assert sync.assignment == b"follower's"
    assert ("heartbeat", follower) not in driver.timers()


def test_g55_a_known_follower_without_change_learns_the_generation() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    answer = driver.join(follower, "follower", SUPERSET).response
    assert (answer.error_code, answer.generation_id, answer.leader) == (NONE, 1, leader)
    assert driver.state == "Stable"


def test_g57_every_restart_has_its_own_member_id() -> None:
    driver = Driver()
    ids = [driver.stable_statics()[1]]
    for _ in range(5):
        ids.append(driver.join("", "follower", SUPERSET).response.member_id)
    assert all(member_id.startswith("follower-") for member_id in ids)
    assert len(set(ids)) == 6


def test_g57_ids_differ_also_right_after_a_fail_over() -> None:
    driver = Driver()
    before = driver.stable_statics()[1]
    driver = driver.failed_over()
    after = driver.join("", "follower", SUPERSET).response.member_id
    again = driver.join("", "follower", SUPERSET).response.member_id
    assert len({before, after, again}) == 3


def test_g59_a_static_leader_misses_the_rebalance() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics(session=5000)
    joins = [
        driver.join("", "third", SUPERSET, session=5000),
        driver.join(follower, "follower", SUPERSET, session=5000),
    ]
    driver.advance(501)
    assert [join.response.generation_id for join in joins] == [2, 2]
    joined = {join.response.member_id for join in joins}
    assert driver.group.size == 3
    assert driver.group.leader_id in joined
    assert driver.group.has(leader)


def test_g60_without_any_joined_member_the_rebalance_goes_on() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics(session=5000)
    driver.join(follower, "follower", SUPERSET, session=5000, metadata=b"new")
    driver.leave(("", "follower"))
    driver.advance(501)
    assert (driver.state, driver.group.generation_id) == ("PreparingRebalance", 1)
    assert driver.group.has(leader)
    join = driver.join(leader, "leader", SUPERSET, session=5000)
    assert join.response.generation_id == 2


def test_g61_errors_carry_no_protocol_type() -> None:
    driver = Driver()
    leader, follower = driver.stable_statics()
    assert driver.join("unknown", None, SUPERSET).response.protocol_type is None
    joins = [driver.join(leader, "leader", SUPERSET), driver.join(follower, "follower", SUPERSET)]
    assert [join.response.protocol_type for join in joins] == ["consumer", "consumer"]


@pytest.mark.parametrize(
    ("member", "instance", "generation", "error"),
    [
        pytest.param("", "leader", 1, FENCED, id="static without id"),
        pytest.param("invalid-member", "leader", 1, FENCED, id="static with another id"),
        pytest.param("leader's", "leader", 1, NONE, id="static"),
        pytest.param("invalid-member", None, 1, UNKNOWN, id="dynamic with another id"),
        pytest.param("leader's", None, 6, Errors.ILLEGAL_GENERATION, id="other generation"),
        pytest.param("leader's", None, 1, NONE, id="right generation"),
        pytest.param("", None, -1, NONE, id="a producer from before KIP-447"),
    ],
)
@pytest.mark.parametrize("state", ["Completing", "Stable"])
def test_g63_transactional_commits(
    state: str, member: str, instance: str | None, generation: int, error: Errors
) -> None:
    driver = Driver()
    if state == "Stable":
        leader, _ = driver.stable_statics()
    else:
        join = driver.join("", "leader", SUPERSET)
        driver.advance(51)
        leader = join.response.member_id
    member_id = leader if member == "leader's" else member
    assert driver.txn_commit(member_id, generation, instance) is error


def test_a_static_leader_keeps_leading_under_its_new_id() -> None:
    driver = Driver()
    leader, _ = driver.stable_statics()
    answer = driver.join("", "leader", SUPERSET).response
    assert driver.group.leader_id == answer.member_id != leader
    assert driver.coordinator.group(GROUP) is driver.group


def test_an_instance_keeps_one_member_id_in_every_state() -> None:
    driver = Driver()
    driver.stable_statics()
    driver.join("", None, SUPERSET)  # a rebalance is under way
    assert driver.state == "PreparingRebalance"
    for _ in range(3):
        driver.join("", "follower", SUPERSET)
    instances = [m.group_instance_id for m in driver.group.members.values()]
    assert instances.count("follower") == 1
    mapped = driver.group.current_static_member_id("follower")
    assert driver.group.get(mapped or "").group_instance_id == "follower"
