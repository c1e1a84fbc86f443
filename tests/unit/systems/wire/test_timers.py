"""Which paths a port lets happen, and which timeouts their members ask for."""

from __future__ import annotations

import pytest

from conformance.kafka.entities import in_milliseconds, make, milliseconds, newest
from conformance.systems.wire.address import Address, parse_address
from conformance.systems.wire.timers import beyond_reach, foresight, not_drivable
from conformance.tla import Action, parse_action

ADDRESS = parse_address("localhost:9092?session=150&initial-delay=400&rebalance=700")
SLOW = parse_address("localhost:9092?session=600&initial-delay=100")
BRIEF = parse_address("localhost:9092?session=600&min-session=10&initial-delay=100")


def path(*texts: str) -> list[Action]:
    return [parse_action(text) for text in texts]


@pytest.mark.parametrize(
    ("address", "actions", "reason"),
    [
        (ADDRESS, ['HandleJoinGroup("m1")', "ExpireInitialDelay"], ""),
        (ADDRESS, ["ExpireInitialDelay", 'ExpireSession("m1-1")'], ""),
        (ADDRESS, ['ExpirePendingMember("m1-1")', "ExpireInitialDelay"], ""),
        (SLOW, ['ExpirePendingMember("m1-1")', "ExpireInitialDelay"], "min-session"),
        (SLOW, ['ExpireSession("m1-1")', "ExpireInitialDelay"], ""),
        (SLOW, ["ExpireInitialDelay", 'ExpirePendingMember("m1-1")'], ""),
        (BRIEF, ['ExpirePendingMember("m1-1")', "ExpireInitialDelay"], ""),
        (ADDRESS, ["ExpireInitialDelay", "FailOver"], "FailOver: it needs --fail-over"),
    ],
)
def test_a_path_is_driven_or_the_reason_is_given(
    address: Address, actions: list[str], reason: str
) -> None:
    said = not_drivable(path(*actions), address)
    assert (reason in said) if reason else said == ""


def test_what_settings_make_impossible_is_named() -> None:
    assert set(beyond_reach(Address("h", 1))) == {
        "ExpireNewMember",
        "FailOver",
        "FailToStoreAssignment",
        "ExpireSession",
        "ExpirePendingMember",
    }
    able = Address("h", 1, session=150, fail_over="move", store_failures=1)
    assert set(beyond_reach(able)) == {"ExpireNewMember"}


@pytest.mark.parametrize(
    ("actions", "id", "session", "rebalance"),
    [
        (["ExpireInitialDelay"], "m1-1", 30_000, 20_000),
        (['ExpireSession("m1-1")'], "m1-1", 150, 20_000),
        (['ExpireSession("m1-1")'], "m2-1", 30_000, 20_000),
        (["ExpireRebalance"], "m1-1", 30_000, 700),
        (["ExpireSync"], "m2-1", 30_000, 700),
        # A rebalance outlasts the sessions that expire before it.
        (['ExpireSession("m1-1")', "ExpireRebalance"], "m2-1", 30_000, 850),
        # A pending member has no heartbeats: its session outlasts what is waited for meanwhile.
        (
            ['HandleJoinGroup("m1")', "ExpireInitialDelay", 'ExpirePendingMember("m1-1")'],
            "m1-1",
            3 * 400 + 150,
            20_000,
        ),
    ],
)
def test_timers_run_out_in_the_order_of_the_path(
    actions: list[str], id: str, session: int, rebalance: int
) -> None:
    request = make(
        newest("join_group", "request").JoinGroupRequest,
        group_id="g",
        session_timeout=milliseconds(30_000),
        rebalance_timeout=milliseconds(20_000),
        member_id="",
        protocol_type="consumer",
        protocols=(),
    )
    asked = foresight(path(*actions), ADDRESS).asking(request, id)
    timeouts = asked.session_timeout, asked.rebalance_timeout
    assert tuple(map(in_milliseconds, timeouts)) == (session, rebalance)
