"""The adapter of a member and the topics that it knows."""

from __future__ import annotations

import pytest

from conformance.systems.positions import TopicsSystem, create
from conformance.systems.protocol import ActionRefused, Snapshots, SystemUnderTest
from conformance.tla import Action, Fn, Value

CONSTANTS: dict[str, Value] = {
    "Topics": frozenset({"a", "c"}),
    "Others": frozenset({"c"}),
    "Cooperative": False,
}
JOINS = "Subscribe, AddPartition a, UpdateMetadata, Poll"
LEADS = f"{JOINS}, AnswerJoin leader all, Poll"
A1 = ("a", 1)
A2 = ("a", 2)


def after(path: str, *, cooperative: bool = False) -> TopicsSystem:
    """A system that has taken these steps."""
    system = create(CONSTANTS | {"Cooperative": cooperative})
    assert isinstance(system, TopicsSystem)
    system.reset({})
    for step in path.split(", "):
        name, *words = step.split()
        args: tuple[Value, ...] = tuple(words)
        system.apply(Action(name, (frozenset({"a"}),) if name.startswith("Subscribe") else args))
    return system


def test_it_offers_what_the_harness_can_use() -> None:
    for capability in (SystemUnderTest, Snapshots):
        assert isinstance(create(CONSTANTS), capability)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param(JOINS, {"joining": "sent", "owned": frozenset()}, id="joins"),
        pytest.param(
            LEADS,
            {
                "leads": True,
                "owned": frozenset({A1}),
                "watched": frozenset({"a", "c"}),
                "snapshot": Fn({"a": 1, "c": 1}),
            },
            id="leads",
        ),
        pytest.param(
            f"{JOINS}, AddPartition a, AnswerJoin follower all, Poll",
            {"leads": False, "owned": frozenset({A1, A2}), "snapshot": Fn({"a": -1, "c": -1})},
            id="follows",
        ),
        pytest.param(
            f"{LEADS}, AddPartition c, UpdateMetadata, Poll",
            {"joining": "sent", "owned": frozenset()},
            id="a-topic-of-the-other-grows",
        ),
        pytest.param(
            LEADS, {"calls": (("assigned", frozenset({A1})),), "gone": False}, id="is-called"
        ),
        pytest.param(
            f"{JOINS}, FailCallback, AnswerJoin follower all, Poll",
            {
                "calls": (("assigned", frozenset({A1})), ("raised", frozenset())),
                "joining": "answered",
            },
            id="a-callback-raises",
        ),
        pytest.param(
            "SubscribePattern, AddPartition a, UpdateMetadata, Poll",
            {"subscription": frozenset({"a"}), "pattern": frozenset({"a"}), "joining": "sent"},
            id="a-pattern-matches",
        ),
        pytest.param(f"{LEADS}, HearRebalance", {"rejoinNeeded": True}, id="hears-a-rebalance"),
    ],
)
def test_steps_show_in_the_variables(path: str, shown: dict[str, Value]) -> None:
    observation = after(path).observe()
    assert {name: observation[name] for name in shown} == shown


def test_a_cooperative_member_keeps_what_it_owns_while_it_joins() -> None:
    grown = "AddPartition a, UpdateMetadata, HearRebalance, Poll"
    follows = f"{JOINS}, AnswerJoin follower all, Poll, {grown}"
    observation = after(follows, cooperative=True).observe()
    assert observation["owned"] == observation["claimed"] == frozenset({A1})
    assert observation["joining"] == "sent"


def test_a_join_that_was_not_sent_is_not_answered() -> None:
    with pytest.raises(ActionRefused):
        after("Subscribe, AnswerJoin leader all")
