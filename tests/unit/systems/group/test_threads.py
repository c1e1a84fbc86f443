"""Which actions are those of two threads of a coordinator."""

from __future__ import annotations

import pytest

from conformance.systems.group.threads import concurrent
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
