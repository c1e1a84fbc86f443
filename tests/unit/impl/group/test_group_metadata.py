"""GroupMetadata by itself: states, members, leaders, protocols. Scenarios of GroupMetadataTest."""

from __future__ import annotations

import pytest

from impl.clock import MockClock
from impl.concurrency import NoConcurrency
from impl.errors import Errors, IllegalArgumentException, IllegalStateException
from impl.group.group_metadata import VALID_PREVIOUS_STATES, GroupMetadata, GroupState
from impl.group.member_metadata import MemberMetadata
from impl.group.messages import DeleteGroupsRequest, JoinGroupResponse, SyncGroupResponse
from tests.unit.impl.group.driver import Answer, Driver, protocols

E, P, C, S, D = GroupState
LEGAL = {(E, P), (P, C), (P, E), (C, S), (C, P), (S, P), *((state, D) for state in GroupState)}


def a_group(state: GroupState = E) -> GroupMetadata:
    return GroupMetadata("g", state, MockClock(), NoConcurrency().lock("g"))


def a_member(
    member_id: str, *names: str, instance: str | None = None, protocol_type: str = "consumer"
) -> MemberMetadata:
    supported = protocols(*names or ("range", "roundrobin"))
    return MemberMetadata(member_id, instance, "c", "/h", 60_000, 10_000, protocol_type, supported)


@pytest.mark.parametrize("source", GroupState, ids=lambda state: state.value)
@pytest.mark.parametrize("target", GroupState, ids=lambda state: state.value)
def test_gm01_transitions(source: GroupState, target: GroupState) -> None:
    group = a_group(source)
    if (source, target) in LEGAL:
        group.transition_to(target)
        assert group.state is target
    else:
        with pytest.raises(IllegalStateException):
            group.transition_to(target)
        assert group.state is source


def test_gm01_every_state_can_be_left_for_dead() -> None:
    assert VALID_PREVIOUS_STATES[D] == frozenset(GroupState)


@pytest.mark.parametrize(
    ("state", "can"), [(E, True), (P, False), (C, True), (S, True), (D, False)]
)
def test_gm02_who_can_rebalance(state: GroupState, can: bool) -> None:
    assert a_group(state).can_rebalance is can


def test_gm03_the_protocol_with_most_votes() -> None:
    group = a_group()
    group.add(a_member("1", "range", "roundrobin"))
    assert group.select_protocol() == "range"
    group.add(a_member("2", "roundrobin", "range"))
    assert group.select_protocol() in {"range", "roundrobin"}
    group.add(a_member("3", "roundrobin", "range"))
    assert group.select_protocol() == "roundrobin"


def test_gm03_only_what_all_support_can_be_chosen() -> None:
    group = a_group()
    group.add(a_member("1", "range", "roundrobin"))
    group.add(a_member("2", "sticky", "roundrobin"))
    assert group.select_protocol() == "roundrobin"
    with pytest.raises(IllegalStateException):
        a_group().select_protocol()


def test_gm05_supported_protocols() -> None:
    group = a_group()
    assert group.supports_protocols("consumer", protocols("anything"))
    group.add(a_member("1", "range", "roundrobin"))
    group.transition_to(P)
    assert group.supports_protocols("consumer", protocols("roundrobin", "foo"))
    assert group.supports_protocols("consumer", protocols("range", "foo"))
    assert not group.supports_protocols("consumer", protocols("foo", "bar"))
    group.add(a_member("2", "roundrobin", "blah"))
    assert group.supports_protocols("consumer", protocols("roundrobin", "foo"))
    assert not group.supports_protocols("connect", protocols("roundrobin", "foo"))
    assert not group.supports_protocols("consumer", protocols("range", "foo"))


def test_gm07_replacing_an_instance() -> None:
    group = a_group()
    member = a_member("old", instance="instance")
    join: Answer[JoinGroupResponse] = Answer()
    sync: Answer[SyncGroupResponse] = Answer()
    group.add(member, join)
    member.awaiting_sync_callback = sync
    group.replace_static_member("instance", "old", "new")
    assert (group.leader_id, list(group.members)) == ("new", ["new"])
    assert group.current_static_member_id("instance") == "new"
    assert join.response.error_code is Errors.FENCED_INSTANCE_ID
    assert sync.response.error_code is Errors.FENCED_INSTANCE_ID
    assert not member.is_awaiting_join
    assert not member.is_awaiting_sync
    assert group.num_members_awaiting_join == 0
    with pytest.raises(IllegalArgumentException):
        group.replace_static_member("instance", "nobody", "newer")


def parked(_response: JoinGroupResponse) -> None:
    """A JoinGroup that nobody asks about."""


def test_gm09_a_joined_member_is_elected() -> None:
    group = a_group()
    group.add(a_member("leader"))
    assert not group.maybe_elect_new_joined_leader()
    group.add(a_member("new-leader"), parked)
    group.add(a_member("new-member"))
    assert group.maybe_elect_new_joined_leader()
    assert group.leader_id == "new-leader"


def test_gm09_a_leader_that_joined_stays() -> None:
    group = a_group()
    group.add(a_member("leader"), parked)
    group.add(a_member("member"), parked)
    assert group.maybe_elect_new_joined_leader()
    assert group.leader_id == "leader"
    assert not a_group().maybe_elect_new_joined_leader()


def test_gm11_pending_members() -> None:
    group = a_group()
    group.add(a_member("m"))
    with pytest.raises(IllegalStateException):
        group.add_pending_member("m")
    group.add_pending_member("p")
    group.add(a_member("p"))
    assert not group.is_pending_member("p")
    group.add_pending_member("q")
    group.remove("q")
    assert not group.is_pending_member("q")
    group.add(a_member("s", instance="instance"))
    with pytest.raises(IllegalStateException):
        group.add(a_member("t", instance="instance"))
    with pytest.raises(IllegalStateException):
        group.add_pending_sync_member("nobody")


def test_gm12_the_leadership_goes_to_a_remaining_member() -> None:
    group = a_group()
    for name in ("a", "b"):
        group.add(a_member(name))
    group.remove("a")
    assert group.leader_id == "b"
    group.remove("b")
    assert group.leader_id is None


@pytest.mark.parametrize(
    ("stage", "error"),
    [
        ("pending", Errors.NONE),
        ("preparing", Errors.NON_EMPTY_GROUP),
        ("completing", Errors.NON_EMPTY_GROUP),
        ("stable", Errors.NON_EMPTY_GROUP),
        ("empty", Errors.NONE),
        ("absent", Errors.GROUP_ID_NOT_FOUND),
    ],
)
def test_gm13_only_empty_groups_can_be_deleted(stage: str, error: Errors) -> None:
    driver = Driver()
    if stage == "pending":
        driver.pending()
    elif stage in ("preparing", "completing", "stable"):
        driver.join()
        if stage != "preparing":
            driver.advance(51)
        if stage == "stable":
            member_id = next(iter(driver.group.members))
            driver.sync(member_id, 1, {member_id: b""})
    elif stage == "empty":
        driver.leave((driver.stable(), None))
    response = driver.coordinator.handle_delete_groups(DeleteGroupsRequest(("groupId",)))
    assert [result.error_code for result in response.results] == [error]
    if error is Errors.NONE:
        assert driver.coordinator.group("groupId") is None
        assert driver.timers() == []


def test_a_members_vote_and_metadata_need_a_supported_protocol() -> None:
    member = a_member("m", "range")
    with pytest.raises(IllegalArgumentException):
        member.metadata("sticky")
    with pytest.raises(IllegalArgumentException):
        member.vote({"sticky"})


def test_the_members_of_no_generation_are_nobodys_business() -> None:
    group = a_group()
    group.add(a_member("m"))
    group.transition_to(P)
    with pytest.raises(IllegalStateException):
        group.current_member_metadata()
