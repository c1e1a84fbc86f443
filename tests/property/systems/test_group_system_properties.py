"""A group system is a function of its path: whatever was before a reset, nothing is left of it."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from conformance.systems.group import GroupSystem
from conformance.systems.protocol import ActionRefused
from conformance.tla import Action, Fn, Value
from tests.unit.systems.group.constants import started

OF_MEMBERS = (
    "SendJoinGroup",
    "HandleJoinGroup",
    "ProcessJoinGroup",
    "HandleSyncGroup",
    "FailToStoreAssignment",
    "ProcessSyncGroup",
    "CompleteJoin",
    "SendHeartbeat",
    "HandleHeartbeat",
    "ProcessHeartbeat",
    "LoseMessage",
    "LoseHeartbeat",
    "AbandonRequest",
    "RestartProcess",
    "LeaveGroup",
    "HandleLeaveGroup",
)
OF_IDS = ("ExpireSession", "ExpirePendingMember")
OF_NOBODY = ("ExpireInitialDelay", "ExpireRebalance", "ExpireSync", "FailOver", "DeleteGroup")

ACTIONS = st.one_of(
    st.builds(Action, st.sampled_from(OF_MEMBERS), st.sampled_from([("m1",), ("m2",)])),
    st.builds(Action, st.sampled_from(OF_IDS), st.sampled_from([("m1-1",), ("m2-1",)])),
    st.builds(Action, st.sampled_from(OF_NOBODY), st.just(())),
)
SHAPES: list[dict[str, Value]] = [
    {},
    {"RequireKnownMemberId": True},
    {"InstanceOf": Fn({"m1": "i1", "m2": "none"}), "LateRequests": True},
]


def run(system: GroupSystem, path: list[Action]) -> list[Mapping[str, Value]]:
    """What is seen after each step; a step that cannot be taken is left out."""
    seen: list[Mapping[str, Value]] = [system.observe()]
    for action in path:
        try:
            system.apply(action)
        except ActionRefused:
            continue
        seen.append(system.observe())
    return seen


@given(st.sampled_from(SHAPES), st.lists(ACTIONS, max_size=60), st.lists(ACTIONS, max_size=60))
def test_a_reset_forgets_everything(
    shape: dict[str, Value], before: list[Action], path: list[Action]
) -> None:
    used = started(**shape)
    run(used, before)
    used.reset({})
    assert run(used, path) == run(started(**shape), path)


@given(st.sampled_from(SHAPES), st.lists(ACTIONS, max_size=60))
def test_to_ask_what_is_on_offer_changes_nothing(
    shape: dict[str, Value], path: list[Action]
) -> None:
    asked, left_alone = started(**shape), started(**shape)
    for action in path:
        asked.offers()
        assert run(asked, [action])[-1] == run(left_alone, [action])[-1]
