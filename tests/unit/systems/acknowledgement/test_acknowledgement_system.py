"""The adapter of requests that wait at a leader: an action brings each look and each time-out."""

from __future__ import annotations

import re

import pytest

from conformance.resources import spec_dir
from conformance.systems.acknowledgement import AcknowledgementSystem, create
from conformance.systems.protocol import ActionRefused, Interruptible, Offers, SystemUnderTest
from conformance.tla import Action, Fn, Value

CONSTANTS: dict[str, Value] = {
    "Brokers": frozenset({"b1", "b2"}),
    "Protocol": "TruncateOnFetch",
    "Fine": True,
    "Crashes": False,
    "UncleanElection": False,
    "LogStartMoves": False,
    "TwoStepIsr": False,
    "Producers": frozenset({"p1"}),
    "Consumers": frozenset({"c1"}),
    "MinInsync": 1,
}
INITIAL = {
    "registration": Fn(
        {
            "leader": "b1",
            "leaderEpoch": 0,
            "isr": frozenset({"b1", "b2"}),
            "partitionEpoch": 0,
        }
    )
}
REPLICATED = "AnswersFetch b1 b2, ProcessesFetch b2, SendsFetch b2"
PRODUCED = f"Produce b1 p1 all, SendsFetch b2, {REPLICATED}"


def actions(path: str) -> list[Action]:
    """`Leads b2 1, CheckWaiting b2` as actions."""
    steps = [step.split() for step in path.split(",")]
    return [
        Action(name, tuple(int(of) if of.isdigit() and name != "Produce" else of for of in rest))
        for name, *rest in steps
    ]


def after(path: str, **constants: Value) -> AcknowledgementSystem:
    """A system that has taken these steps."""
    system = create({**CONSTANTS, **constants})
    system.reset(INITIAL)
    for action in actions(path) if path else []:
        system.apply(action)
    return system


def produce(system: AcknowledgementSystem) -> tuple[Value, ...]:
    """The produce's answers, error and base offset."""
    value = system.observe()["produce"]
    assert isinstance(value, Fn)
    one = value["p1"]
    assert isinstance(one, Fn)
    return one["answers"], one["error"], one["baseOffset"]


def test_it_offers_what_the_harness_can_use() -> None:
    system = create(CONSTANTS)
    assert isinstance(system, SystemUnderTest)
    assert isinstance(system, Offers)
    assert isinstance(system, Interruptible)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("", (0, "NONE", -1)),
        ("Produce b1 p1 1", (1, "NONE", 0)),
        ("Produce b1 p1 all", (0, "NONE", -1)),
        ("RefuseProduce b2 p1 all", (1, "NOT_LEADER_OR_FOLLOWER", -1)),
        (PRODUCED, (0, "NONE", -1)),
        (f"{PRODUCED}, ParkFetch b1 b2", (0, "NONE", -1)),
        (f"{PRODUCED}, ParkFetch b1 b2, CheckWaiting b1", (1, "NONE", 0)),
        ("Produce b1 p1 all, ExpireProduce p1", (1, "REQUEST_TIMED_OUT", 0)),
        (
            "Produce b1 p1 all, Elects 1 b2, Follows b1 1, CheckWaiting b1",
            (1, "NOT_LEADER_OR_FOLLOWER", 0),
        ),
    ],
)
def test_a_produce_is_answered(path: str, answer: tuple[Value, ...]) -> None:
    assert produce(after(path)) == answer


def test_too_few_in_sync_before_and_after_the_append() -> None:
    before = after("ShrinksIsr b1 b2, RefuseProduce b1 p1 all", MinInsync=2)
    later = after(
        f"{PRODUCED}, ParkFetch b1 b2, Fences 1 b2 b1, Leads b1 1, CheckWaiting b1", MinInsync=2
    )

    assert produce(before) == (1, "NOT_ENOUGH_REPLICAS", -1)
    assert produce(later) == (1, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", 0)


def test_a_parked_fetch_is_answered_by_data_by_its_time_or_by_a_fence() -> None:
    parked = "SendsFetch b2, ParkFetch b1 b2"
    message = {
        "data": after(f"{parked}, Produce b1 p1 1, CheckWaiting b1"),
        "time": after(f"{parked}, ExpireFetch b2"),
        "fence": after(f"{parked}, Elects 1 b2, Follows b1 1, CheckWaiting b1"),
    }
    seen = {}
    for cause, system in message.items():
        channel = system.observe()["channel"]
        assert isinstance(channel, Fn)
        assert isinstance(channel["b2"], Fn)
        seen[cause] = (channel["b2"]["type"], channel["b2"]["records"], channel["b2"]["error"])

    assert after(parked).observe()["parked"] == Fn({"b1": False, "b2": True})
    assert seen == {
        "data": ("FetchResponse", (0,), "NONE"),
        "time": ("FetchResponse", (), "NONE"),
        "fence": ("FetchResponse", (), "FENCED_LEADER_EPOCH"),
    }


def test_whoever_changes_state_is_about_to_look() -> None:
    system = after("Produce b1 p1 all, Elects 1 b2, Follows b1 1")

    assert system.observe()["checks"] == Fn({"b1": "StateChange", "b2": "None"})
    assert Action("CheckWaiting", ("b1",)) in system.offers()


def test_a_consumer_waits_for_the_high_watermark() -> None:
    waits = "FetchAsConsumer b1 c1, Produce b1 p1 1, CheckWaiting b1"
    still = after(waits).observe()["consumer"]
    got = after(f"{waits}, SendsFetch b2, {REPLICATED}, ParkFetch b1 b2, CheckWaiting b1")

    assert still == Fn(
        {"c1": Fn({"leader": "b1", "offset": 0, "error": "NONE", "highWatermark": -1})}
    )
    assert got.observe()["consumer"] == Fn(
        {"c1": Fn({"leader": "none", "offset": 1, "error": "NONE", "highWatermark": 1})}
    )


def test_what_waits_goes_with_its_broker() -> None:
    system = after(f"{PRODUCED}, ParkFetch b1 b2, BreaksDown b1 1 0", Crashes=True)

    assert produce(system) == (0, "NETWORK_EXCEPTION", -1)
    assert system.observe()["parked"] == Fn({"b1": False, "b2": False})


@pytest.mark.parametrize(
    "path",
    [
        "CheckWaiting b1",
        "ExpireFetch b2",
        "ExpireProduce p1",
        "Produce b1 p1 1, ExpireProduce p1",
        "ExpireConsumerFetch c1",
        "SendsFetch b2, ParkFetch b1 b2, ParkFetch b1 b2",
    ],
)
def test_what_cannot_be_is_refused(path: str) -> None:
    with pytest.raises(ActionRefused):
        after(path)


def test_what_is_left_to_replication_is_its_step_and_touches_no_request() -> None:
    text = (spec_dir() / "ReplicationRequests.tla").read_text(encoding="utf-8")
    for name in create.taken_elsewhere():
        assert re.search(rf"^{name}\(.*\) *== \w+\(.*\) /\\ RequestsStay$", text, re.MULTILINE)
