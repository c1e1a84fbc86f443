"""The group adapter: what a path of actions makes of real consumers and a real coordinator."""

from __future__ import annotations

import gc
from collections.abc import Mapping

import pytest
from greenlet import greenlet

from conformance.errors import UserError
from conformance.systems.group import create
from conformance.systems.protocol import ActionRefused, Offers, SystemUnderTest
from conformance.tla import Fn, Value
from tests.unit.systems.group.constants import actions, alone, constants, started

STATIC = {"InstanceOf": Fn({"m1": "i1", "m2": "i2"})}
SHARED = {"InstanceOf": Fn({"m1": "i1", "m2": "i1"})}
TWO_PROTOCOLS: dict[str, Value] = {
    "Protocols": frozenset({"range", "sticky"}),
    "ProtocolsOf": Fn(dict.fromkeys(("m1", "m2"), frozenset({"range", "sticky"}))),
}

BOTH_JOIN = (
    "SendJoinGroup m1, HandleJoinGroup m1, SendJoinGroup m2, HandleJoinGroup m2,"
    "ExpireInitialDelay, ProcessJoinGroup m1, ProcessJoinGroup m2,"
)
BOTH_CONSUME = (
    BOTH_JOIN + "HandleSyncGroup m2, HandleSyncGroup m1, ProcessSyncGroup m1, ProcessSyncGroup m2,"
    "CompleteJoin m1, CompleteJoin m2,"
)
HEARD = "SendHeartbeat m1, HandleHeartbeat m1, ProcessHeartbeat m1,"


def at(observed: Mapping[str, Value], place: str) -> Value:
    """The value at `variable.key.field`."""
    variable, *keys = place.split(".")
    value = observed[variable]
    for key in keys:
        assert isinstance(value, Fn)
        value = value[key]
    return value


@pytest.mark.parametrize(
    ("path", "shown", "changed"),
    [
        ("", {"groupState": "Dead", "memberState.m1": "UNJOINED", "channel.m1.type": "None"}, {}),
        (
            "SendJoinGroup m1",
            {"memberState.m1": "PREPARING_REBALANCE", "channel.m1.type": "JoinGroupRequest"},
            {},
        ),
        (
            "SendJoinGroup m1, HandleJoinGroup m1",
            {
                "groupState": "PreparingRebalance",
                "joinTimer": "Initial",
                "newMembers": frozenset({"m1-1"}),
                "channel.m1.type": "JoinGroupParked",
                "channel.m1.memberId": "m1-1",
            },
            {},
        ),
        (
            "SendJoinGroup m1, HandleJoinGroup m1, SendJoinGroup m2, HandleJoinGroup m2",
            {"initialDelays": 2, "newMemberAdded": True},
            {"InitialDelays": 2},
        ),
        (
            "SendJoinGroup m1, HandleJoinGroup m1, SendJoinGroup m2, HandleJoinGroup m2,"
            "ExpireInitialDelay",
            {"initialDelays": 1, "newMemberAdded": False, "joinTimer": "Initial"},
            {"InitialDelays": 2},
        ),
        (
            alone(),
            {
                "groupState": "Stable",
                "owned.m1": frozenset({0, 1}),
                "assignment.m1-1": frozenset({0, 1}),
                "groupRecord.present": True,
                "groupRecord.leader": "m1-1",
                "isLeader.m1": True,
                "needsJoinPrepare.m1": True,
            },
            {},
        ),
        (
            BOTH_CONSUME,
            {"owned.m1": frozenset({0}), "owned.m2": frozenset({1}), "pendingSync": frozenset()},
            {},
        ),
        (
            BOTH_JOIN + "HandleSyncGroup m2",
            {"awaitingSync": frozenset({"m2-1"}), "channel.m2.type": "SyncGroupParked"},
            {},
        ),
        (
            "SendJoinGroup m1, HandleJoinGroup m1, ProcessJoinGroup m1",
            {
                "pendingMembers": frozenset({"m1-1"}),
                "memberGeneration.m1.memberId": "m1-1",
                "joinFuture.m1.state": "None",
            },
            {"RequireKnownMemberId": True},
        ),
        (
            "SendJoinGroup m1, HandleJoinGroup m1, ProcessJoinGroup m1, ExpirePendingMember m1-1",
            {"pendingMembers": frozenset()},
            {"RequireKnownMemberId": True},
        ),
        (
            alone() + "ExpireSession m1-1," + HEARD,
            {"groupState": "Empty", "memberState.m1": "UNJOINED", "owned.m1": frozenset({0, 1})},
            {},
        ),
        (
            BOTH_JOIN + "FailToStoreAssignment m1",
            {
                "groupState": "PreparingRebalance",
                "channel.m1.error": "COORDINATOR_NOT_AVAILABLE",
                "groupRecord.present": False,
            },
            {},
        ),
        (
            BOTH_JOIN + "SendHeartbeat m1, HandleSyncGroup m2, FailOver, ProcessSyncGroup m2",
            {"groupState": "Dead", "heartbeat.m1.type": "HeartbeatRequest"},
            {},
        ),
        (
            BOTH_JOIN + "SendHeartbeat m2, HandleSyncGroup m2, FailOver, ProcessSyncGroup m2",
            {"groupState": "Dead", "heartbeat.m2.type": "None", "joinFuture.m2.state": "None"},
            {},
        ),
        (alone() + "FailOver", {"groupState": "Stable", "members": frozenset({"m1-1"})}, {}),
        (
            alone() + "FailOver, FailOver, LeaveGroup m1, HandleLeaveGroup m1, DeleteGroup",
            {"groupState": "Dead", "groupRecord.present": False},
            {},
        ),
        (
            alone() + "RestartProcess m1, SendJoinGroup m1, HandleJoinGroup m1",
            {
                "groupState": "Stable",
                "staticMembers.i1": "m1-2",
                "leader": "m1-2",
                "channel.m1.skipAssignment": True,
            },
            STATIC,
        ),
        (
            alone() + "SendHeartbeat m1, SendJoinGroup m2, HandleJoinGroup m2,"
            "HandleHeartbeat m1, ProcessHeartbeat m1",
            {"failed.m1": True, "failed.m2": False, "staticMembers.i1": "m2-1"},
            SHARED,
        ),
        (
            alone() + "ChangeProtocols m1 {sticky}, SendJoinGroup m1, HandleJoinGroup m1",
            {"protocolName": "sticky", "supported.m1-1": frozenset({"sticky"})},
            TWO_PROTOCOLS,
        ),
        (
            alone() + "SendOffsetCommit m1, HandleOffsetCommit m1, ProcessOffsetCommit m1",
            {"heartbeat.m1.type": "None", "memberState.m1": "STABLE"},
            {},
        ),
        (
            alone() + "RequestRejoin m1, SendJoinGroup m1, LoseMessage m1",
            {"channel.m1.type": "None", "joinFuture.m1.state": "None", "rejoinNeeded.m1": True},
            {},
        ),
        (
            "SendJoinGroup m1, AbandonRequest m1",
            {"channel.m1.abandoned": True, "joinFuture.m1.state": "None"},
            {},
        ),
        (
            "SendJoinGroup m1, AbandonRequest m1, HandleJoinGroup m1",
            {"channel.m1.type": "None", "members": frozenset({"m1-1"})},
            {},
        ),
        (
            "SendJoinGroup m1, RestartProcess m1",
            {"channel.m1.abandoned": True, "memberState.m1": "UNJOINED"},
            {"LateRequests": True},
        ),
        ("SendJoinGroup m1, RestartProcess m1", {"channel.m1.type": "None"}, {}),
    ],
)
def test_a_path_is_shown_as_the_specs_values(
    path: str, shown: Mapping[str, Value], changed: Mapping[str, Value]
) -> None:
    system = started(**changed)
    for action in actions(path):
        system.apply(action)
    observed = system.observe()
    assert {place: at(observed, place) for place in shown} == shown


@pytest.mark.parametrize(
    "path",
    [
        "HandleJoinGroup m1",
        "ProcessJoinGroup m1",
        "CompleteJoin m1",
        "SendHeartbeat m1",
        "SendOffsetCommit m1",
        "LoseMessage m1",
        "LoseHeartbeat m1",
        "AbandonRequest m1",
        "HandleHeartbeat m1",
        "ExpireSession m1-1",
        "ExpireSync",
        "ExpireRebalance",
        "SendJoinGroup m1, SendJoinGroup m1",
        "SendJoinGroup m1, SendHeartbeat m1",
        "SendJoinGroup m1, HandleJoinGroup m1, HandleJoinGroup m1",
        alone() + "SendJoinGroup m1",
        alone() + "ExpireSync",
    ],
)
def test_what_the_implementation_cannot_do_is_refused(path: str) -> None:
    system = started()
    *before, last = actions(path)
    for action in before:
        system.apply(action)
    with pytest.raises(ActionRefused):
        system.apply(last)


@pytest.mark.parametrize(
    ("path", "offered"),
    [
        ("", "SendJoinGroup m1, SendJoinGroup m2"),
        ("SendJoinGroup m1", "SendJoinGroup m2"),
        ("SendJoinGroup m1, LoseMessage m1", "SendJoinGroup m1, SendJoinGroup m2"),
        (alone(), "SendHeartbeat m1, SendJoinGroup m2"),
        (
            alone().removesuffix("CompleteJoin m1,"),
            "CompleteJoin m1, SendHeartbeat m1,SendJoinGroup m2",
        ),
        (alone() + "SendHeartbeat m1", "SendJoinGroup m2"),
        (alone() + "RequestRejoin m1, SendHeartbeat m1", "SendJoinGroup m1, SendJoinGroup m2"),
    ],
)
def test_members_offer_what_they_would_do_by_themselves(path: str, offered: str) -> None:
    system = started()
    for action in actions(path):
        system.apply(action)
    before = system.observe()
    assert system.offers() == frozenset(actions(offered))
    assert {action.name for action in system.offers()} <= system.offerable
    assert system.observe() == before


def test_without_heartbeats_none_are_offered() -> None:
    system = started(Heartbeats=False)
    for action in actions(alone()):
        system.apply(action)
    assert system.offers() == frozenset(actions("SendJoinGroup m2"))


def test_it_is_a_system_that_offers_and_observes_all_but_the_ghosts() -> None:
    system = started()
    assert isinstance(system, SystemUnderTest)
    assert isinstance(system, Offers)
    assert system.observe().keys() == set(system.variables)
    assert not {"idsGiven", "failures"} & set(system.variables)


@pytest.mark.parametrize(
    ("name", "value"), [("Members", ("m1", "m2")), ("Partitions", 2), ("MemberIds", frozenset())]
)
def test_constants_of_another_shape_are_the_users_mistake(name: str, value: Value) -> None:
    with pytest.raises(UserError, match=name):
        create(constants(**{name: value}))


@pytest.mark.parametrize("path", [BOTH_CONSUME, BOTH_CONSUME + "RestartProcess m1"])
def test_a_reset_leaves_nothing_of_the_run_before(path: str) -> None:
    system = started()

    def suspended_after_a_run() -> int:
        system.reset({})
        for action in actions(path):
            system.apply(action)
        gc.collect()
        return sum(isinstance(each, greenlet) and bool(each) for each in gc.get_objects())

    first = suspended_after_a_run()
    assert [suspended_after_a_run() for _ in range(3)] == [first] * 3
