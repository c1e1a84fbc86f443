"""Which models of KIP-848 a port shows, and Kafka's classes of which release take."""

from __future__ import annotations

import pytest

from conformance.systems.kafka.factory import KafkaFactory
from conformance.systems.wire.consumer.reach import NO_ASSIGNOR, beyond
from conformance.tla import Fn, Value

TOPIC: dict[Value, Value] = {
    "name": "topic",
    "partitions": frozenset({0, 1}),
    "size": 2,
    "isThere": True,
    "mayGo": False,
    "mayMove": False,
}


def constants(
    instances: tuple[str, str] = ("none", "none"),
    assignors: tuple[str, ...] = ("range",),
    named: tuple[str, str] = ("range", "range"),
    *,
    interval: bool = False,
) -> dict[str, Value]:
    """Of a model with two members and one topic."""
    return {
        "InstanceOf": Fn(dict(zip(("m1", "m2"), instances, strict=True))),
        "Reads": Fn(dict.fromkeys(("m1", "m2"), frozenset({"topic"}))),
        "Topics": Fn({"topic": Fn(TOPIC)}),
        "MaxSize": 2,
        "NamesWhileReconciling": True,
        "Assignors": assignors,
        "NamedAssignor": Fn(dict(zip(("m1", "m2"), named, strict=True))),
        "AssignmentInterval": interval,
        "Matches": Fn({}),
    }


BOTH = ("uniform", "range")


def test_a_port_shows_two_members_that_name_the_range_assignor() -> None:
    assert beyond(constants()) == ""


def test_a_port_does_not_show_when_an_assignment_interval_is_over() -> None:
    assert "assignment interval" in beyond(constants(interval=True))


@pytest.mark.parametrize("named", [("range", "uniform"), ("range", NO_ASSIGNOR)])
def test_two_members_at_a_time_need_one_assignor(named: tuple[str, str]) -> None:
    assert "is not foreseen" in beyond(constants(assignors=BOTH, named=named))


def test_one_member_at_a_time_may_name_any_assignor() -> None:
    assert beyond(constants(("i1", "i1"), BOTH, ("range", "uniform"))) == ""
    assert beyond(constants(assignors=BOTH, named=("range", "mine"))) == ""


@pytest.mark.parametrize(("release", "reason"), [("4.2.2", "before 4.3"), ("4.3.0", "")])
def test_releases_have_an_assignment_interval_from_4_3_on(release: str, reason: str) -> None:
    told = KafkaFactory(release).cannot_take("ConsumerGroup", constants(interval=True))

    assert told.startswith(reason)
    assert bool(told) is bool(reason)


def test_java_consumers_name_no_assignor() -> None:
    factory = KafkaFactory("4.4.0", "4.4.0")

    assert factory.cannot_take("ConsumerGroup", constants()) == ""
    assert "name no assignor" in factory.cannot_take("ConsumerGroup", constants(assignors=BOTH))
