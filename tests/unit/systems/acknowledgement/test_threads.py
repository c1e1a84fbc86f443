"""Which steps of a broker with waiting requests can meet, and which are seen in parts."""

from __future__ import annotations

import pytest

from conformance.systems.acknowledgement.observation import VARIABLES
from conformance.systems.acknowledgement.threads import (
    BY_REQUEST,
    concurrent,
    in_parts,
    replication_step,
    request_step,
)
from conformance.tla import Action


def action(text: str) -> Action:
    name, *args = text.split()
    return Action(name, tuple(args))


@pytest.mark.parametrize(
    ("running", "between", "meet"),
    [
        ("Produce b1 p1 all", "AnswersFetch b1 b2", True),
        ("Produce b1 p1 all", "Produce b1 p2 all", False),
        ("CheckWaiting b1", "Follows b1 1", True),
        ("CheckWaiting b1", "Follows b2 1", False),
        ("CheckWaiting b1", "FetchAsConsumer b1 c1", True),
        ("FetchAsConsumer b1 c1", "CheckWaiting b2", False),
        ("ExpireProduce p1", "CheckWaiting b1", False),
        ("ProcessesFetch b2", "SendsFetch b2", False),
    ],
)
def test_threads_of_one_broker_meet(running: str, between: str, meet: bool) -> None:
    assert concurrent(action(running), action(between), restarts=False) is meet


def test_a_look_at_what_waits_is_seen_in_parts() -> None:
    assert in_parts(action("CheckWaiting b1"), action("ShrinksIsr b1 b2"))
    assert in_parts(action("AnswersFetch b1 b2"), action("Follows b1 1"))
    assert not in_parts(action("Leads b1 1"), action("ProcessesFetch b1"))


def test_each_variable_of_requests_is_observed() -> None:
    assert {*VARIABLES} > BY_REQUEST


def test_the_protocols_steps_have_one_name_each() -> None:
    assert replication_step(action("ParkFetch b1 b2")) == action("HandleFetch b1 b2")
    assert replication_step(action("Leads b1 1")) == action("BecomeLeader b1 1")
    assert request_step("SendFetch") == "SendsFetch"
