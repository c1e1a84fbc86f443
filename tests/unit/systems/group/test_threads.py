"""Which actions are those of two threads, of a coordinator or of a member."""

from __future__ import annotations

import pytest

from conformance.systems.shared.group.threads import concurrent, in_heartbeat_thread, in_parts
from conformance.tla import Action


@pytest.mark.parametrize(
    ("running", "between", "expected"),
    [
        ("HandleJoinGroup", "HandleSyncGroup", True),
        ("HandleJoinGroup", "HandleJoinGroup", True),
        ("ExpireSync", "HandleHeartbeat", True),
        ("DeleteGroup", "HandleOffsetCommit", True),
        # The one leaves a dead group to the other.
        ("DeleteGroup", "HandleJoinGroup", False),
        ("HandleJoinGroup", "DeleteGroup", False),
        # Of members, or of several brokers.
        ("SendJoinGroup", "HandleSyncGroup", False),
        ("HandleSyncGroup", "ProcessSyncGroup", False),
        ("FailOver", "HandleSyncGroup", False),
        ("ExpireSession", "HandleSyncGroup", False),
        ("HandleSyncGroup", "FailToStoreAssignment", False),
    ],
)
def test_which_actions_are_those_of_two_threads(running: str, between: str, expected: bool) -> None:
    assert concurrent(Action(running), Action(between)) is expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("CompleteJoin", "ProcessHeartbeat", True),
        ("ProcessSyncGroup", "SendHeartbeat", True),
        ("ProcessSyncGroup", "ProcessHeartbeat", True),
        ("LeaveGroup", "SendHeartbeat", True),
        # Of one thread.
        ("CompleteJoin", "SendOffsetCommit", False),
        # Of one request.
        ("ProcessSyncGroup", "LoseMessage", False),
        # Two failures, where a model may allow one.
        ("LoseMessage", "LoseHeartbeat", False),
        # What the spec has as one step.
        ("LoseHeartbeat", "ProcessJoinGroup", False),
        ("SendJoinGroup", "ProcessOffsetCommit", False),
        # A process that starts again has no threads left.
        ("RestartProcess", "SendHeartbeat", False),
    ],
)
def test_which_actions_are_those_of_a_members_two_threads(
    one: str, other: str, expected: bool
) -> None:
    mine, too, theirs = Action(one, ("m1",)), Action(other, ("m1",)), Action(other, ("m2",))
    assert concurrent(mine, too) is concurrent(too, mine) is expected
    assert not concurrent(mine, theirs)


def test_an_answer_is_called_back_in_the_thread_that_is_free() -> None:
    answer, other = Action("ProcessSyncGroup", ("m1",)), Action("ProcessHeartbeat", ("m1",))
    assert in_heartbeat_thread(answer, Action("CompleteJoin", ("m1",)), interrupts=False)
    assert not in_heartbeat_thread(answer, Action("SendHeartbeat", ("m1",)), interrupts=True)
    assert in_heartbeat_thread(answer, other, interrupts=True)
    assert not in_heartbeat_thread(answer, other, interrupts=False)


def test_a_join_is_prepared_and_sent() -> None:
    join, beaten = Action("SendJoinGroup", ("m1",)), Action("ProcessHeartbeat", ("m1",))
    assert in_parts(join, beaten)
    assert in_parts(beaten, join)
    assert not in_parts(Action("CompleteJoin", ("m1",)), beaten)
