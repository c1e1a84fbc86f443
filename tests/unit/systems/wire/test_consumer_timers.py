"""KIP-848's timers: which heartbeat begins a session that is to expire, and how long it must be."""

from __future__ import annotations

import re

import pytest

from conformance.systems.wire.address import parse_address
from conformance.systems.wire.consumer.reach import passes
from conformance.systems.wire.consumer.timers import foresight
from conformance.tla import Action, Fn, Value

ADDRESS = parse_address("localhost:9092?session=400&rebalance=1000")
JOINED = "SendHeartbeat m1, HandleHeartbeat m1, ReceiveAnswer m1, "


def path(text: str) -> list[Action]:
    return [Action(name, (member,)) for name, member in re.findall(r"(\w+) (m\d)", text)]


@pytest.mark.parametrize(
    ("text", "sessions", "rebalances"),
    [
        (JOINED, {}, {}),
        # The last heartbeat before it, not one that is refused.
        (JOINED + "HandleHeartbeat m1, RefuseHeartbeat m1, ExpireSession m1", {3: 400}, {}),
        # A session that waits through another one's end has to be longer.
        (
            JOINED + "HandleHeartbeat m2, ExpireSession m2, ExpireSession m1",
            {1: 800, 3: 400},
            {},
        ),
        (JOINED + "ExpireSession m1, HandleHeartbeat m1, ExpireSession m1", {1: 400, 4: 400}, {}),
        (JOINED + "ExpireRebalance m1", {}, {"m1": 1000}),
        (
            "HandleHeartbeat m2, HandleHeartbeat m1, ExpireRebalance m1, ExpireSession m2",
            {0: 1400},
            {"m1": 1000},
        ),
    ],
)
def test_timers_run_out_in_the_paths_order(
    text: str, sessions: dict[int, int], rebalances: dict[str, int]
) -> None:
    seen = foresight(path(text), ADDRESS)
    assert seen.sessions == sessions
    assert seen.rebalances == rebalances


@pytest.mark.parametrize(
    ("first", "second", "reached"),
    [
        ({0, 1}, {2}, True),
        ({0}, {1, 2}, False),  # the first ones get more
        ({1}, {0}, False),  # ranges are in the order of names
        ({0, 2}, {1}, False),
        (None, {0, 1}, True),  # the first one has gone
        (set(), {0}, False),  # it has not
        ({0}, None, True),
        ({0}, set(), True),  # there is one partition
        (set(), set(), True),
    ],
)
def test_the_range_assignor_gives_ranges_in_the_members_order(
    first: set[int] | None, second: set[int] | None, reached: bool
) -> None:
    given = {"m1": first, "m2": second}
    model: dict[str, Value] = {
        "InstanceOf": Fn(dict.fromkeys(given, "none")),
        "Reads": Fn(dict.fromkeys(given, frozenset({"topic"}))),
        "Topics": Fn(
            {
                "topic": Fn(
                    {
                        "name": "topic",
                        "partitions": frozenset(range(3)),
                        "size": 3,
                        "isThere": True,
                        "mayGo": False,
                        "mayMove": False,
                    }
                )
            }
        ),
        "MaxSize": 2,
        "NamesWhileReconciling": True,
        "Assignors": ("range",),
        "NamedAssignor": Fn(dict.fromkeys(given, "range")),
        "Matches": (),
    }
    state: dict[str, Value] = {
        "groupEpoch": 2,
        "assignmentEpoch": 2,
        "subscribed": Fn(dict.fromkeys(given, frozenset({"topic"}))),
        "resolved": (),
        "topics": Fn({"topic": 3}),
        "target": Fn({name: frozenset(numbers or ()) for name, numbers in given.items()}),
        "memberState": Fn(
            {name: "None" if numbers is None else "Stable" for name, numbers in given.items()}
        ),
    }
    assert (passes(model, state) == "") is reached
