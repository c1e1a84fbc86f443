"""Which paths a port lets happen, and which timeouts their members ask for."""

from __future__ import annotations

import pytest

from conformance.systems.wire.address import Address, parse_address
from conformance.systems.wire.timers import foresight, not_drivable
from conformance.tla import Action, parse_action
from impl.group.messages import JoinGroupRequest

ADDRESS = parse_address("localhost:9092?session=150&initial-delay=400&rebalance=700")


def path(*texts: str) -> list[Action]:
    return [parse_action(text) for text in texts]


@pytest.mark.parametrize(
    ("address", "actions", "reason"),
    [
        (ADDRESS, ['HandleJoinGroup("m1")', "ExpireInitialDelay"], ""),
        (ADDRESS, ["ExpireInitialDelay", 'ExpireSession("m1-1")'], ""),
        (ADDRESS, ['ExpirePendingMember("m1-1")', "ExpireInitialDelay"], ""),
        (ADDRESS, ['ExpireNewMember("m1-1")'], "takes five minutes"),
        (ADDRESS, ["FailOver"], "move the coordinator"),
        (Address("h", 1), ['ExpireSession("m1-1")'], "needs a short session"),
        (
            Address("h", 1, session=600, initial_delay=100),
            ['ExpirePendingMember("m1-1")', "ExpireInitialDelay"],
            "less than initial-delay",
        ),
        (
            Address("h", 1, session=600, initial_delay=100),
            ['ExpireSession("m1-1")', "ExpireInitialDelay"],
            "",
        ),
        (
            Address("h", 1, session=600, initial_delay=100),
            ["ExpireInitialDelay", 'ExpirePendingMember("m1-1")'],
            "",
        ),
    ],
)
def test_a_path_is_driven_or_the_reason_is_given(
    address: Address, actions: list[str], reason: str
) -> None:
    said = not_drivable(path(*actions), address)
    assert (reason in said) if reason else said == ""


@pytest.mark.parametrize(
    ("actions", "id", "session", "rebalance"),
    [
        (["ExpireInitialDelay"], "m1-1", 30_000, 20_000),
        (['ExpireSession("m1-1")'], "m1-1", 150, 20_000),
        (['ExpireSession("m1-1")'], "m2-1", 30_000, 20_000),
        (["ExpireRebalance"], "m1-1", 30_000, 700),
        (["ExpireSync"], "m2-1", 30_000, 700),
    ],
)
def test_just_the_timers_that_expire_are_short(
    actions: list[str], id: str, session: int, rebalance: int
) -> None:
    request = JoinGroupRequest("g", 30_000, 20_000, "", "consumer", ())
    asked = foresight(path(*actions)).asking(request, id, ADDRESS)
    assert (asked.session_timeout_ms, asked.rebalance_timeout_ms) == (session, rebalance)
