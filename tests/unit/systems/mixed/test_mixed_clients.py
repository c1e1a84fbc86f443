"""The consumers of MixedGroup.tla, and what a model's constants say of them."""

from __future__ import annotations

import pytest

from conformance.errors import UserError
from conformance.kafka.consumer_protocol import (
    assignment_of,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from conformance.systems.shared.mixed.client import MixedClient
from conformance.systems.shared.mixed.settings import settings_of
from conformance.tla import Fn, Value

BOTH = frozenset({0, 1})
OWNER = MixedClient("on", 3, BOTH)


def constants(topics: dict[Value, Value]) -> dict[str, Value]:
    names = ("c", "n")
    nobody: frozenset[Value] = frozenset()
    return {
        "Protocol": Fn({"c": "classic", "n": "consumer"}),
        "InstanceOf": Fn({"c": "none", "n": "i"}),
        "Malformed": nobody,
        "TopicOf": Fn(topics),
        "Reads": Fn({name: frozenset({"t"}) for name in names}),
        "First": Fn({"c": frozenset({0})}),
        "Policy": "upgrade",
        "Cooperative": True,
    }


@pytest.mark.parametrize(
    ("before", "error", "after"),
    [
        (OWNER, "REBALANCE_IN_PROGRESS", MixedClient("rejoin", 3, BOTH)),
        (OWNER._replace(does="sync"), "REBALANCE_IN_PROGRESS", MixedClient("rejoin", 0, BOTH)),
        (OWNER, "ILLEGAL_GENERATION", MixedClient("rejoin")),
        (OWNER, "UNKNOWN_MEMBER_ID", MixedClient("out")),
        (OWNER, "FENCED_INSTANCE_ID", MixedClient("failed", error="FENCED_INSTANCE_ID")),
    ],
)
def test_what_an_error_makes_of_a_consumer(
    before: MixedClient, error: str, after: MixedClient
) -> None:
    assert before.refused(error) == after


@pytest.mark.parametrize(("given", "does"), [(BOTH, "on"), (frozenset({1}), "rejoin")])
def test_who_gives_something_up_joins_once_more(given: frozenset[int], does: str) -> None:
    assert OWNER.joined(4).synchronized(given) == MixedClient(does, 4, given)


def test_an_answer_without_an_assignment_leaves_it() -> None:
    assert OWNER.given(4, None) == MixedClient("on", 4, BOTH)
    assert OWNER.given(4, frozenset({1})) == MixedClient("on", 4, frozenset({1}))


def test_partitions_are_places_in_their_topics() -> None:
    settings = settings_of(constants({0: "t", 1: "u", 2: "u"}))

    assert settings.by_topic(frozenset({0, 2})) == {"t": {0}, "u": {1}}
    assert settings.numbers("u", 1) == 2
    assert settings.classic == {"c"}
    assert settings.instances == {"c": None, "n": "i"}
    assert settings.policy == "upgrade"


def test_a_topic_with_a_gap_is_refused() -> None:
    with pytest.raises(UserError, match="follow each other"):
        settings_of(constants({0: "t", 1: "u", 2: "t"}))


def test_a_join_says_what_its_sender_owns() -> None:
    read = read_subscription(subscription_bytes({"t"}, 1, {"t": {1, 0}, "u": ()}))

    assert [(each.topic, each.partitions) for each in read.owned_partitions] == [("t", (0, 1))]


def test_an_assignment_may_have_several_topics() -> None:
    assert read_assignment(assignment_of({"t": {0}, "u": {1}})) == (("t", 0), ("u", 1))
