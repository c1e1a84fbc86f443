"""Which models of KIP-848 a port shows, and Kafka's classes of which release take."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.systems.kafka.factory import KafkaFactory
from conformance.systems.wire.address import Address, parse_address
from conformance.systems.wire.consumer.reach import NO_ASSIGNOR, beyond, limit_of, passes
from conformance.systems.wire.factory import WireFactory
from conformance.systems.wire.started import BrokerFactory, Needs
from conformance.tla import Fn, Value

ADDRESS = Address("localhost", 9092)


def topic(
    name: str, numbers: set[int], *, there: bool = True, changes: bool = False
) -> dict[Value, Value]:
    """A topic of a model."""
    return {
        "name": name,
        "partitions": frozenset(numbers),
        "size": len(numbers),
        "isThere": there,
        "mayGo": changes,
        "mayMove": False,
    }


ONE = {"topic": topic("topic", {0, 1})}


def constants(
    instances: tuple[str, str] = ("none", "none"),
    assignors: tuple[str, ...] = ("range",),
    named: tuple[str, str] = ("range", "range"),
    *,
    interval: bool = False,
    size: int = 2,
    topics: Mapping[str, dict[Value, Value]] = ONE,
    reads: tuple[set[str], set[str]] = ({"topic"}, {"topic"}),
    regexes: Mapping[str, set[str]] | None = None,
) -> dict[str, Value]:
    """Of a model with two members."""
    matches: dict[Value, Value] = {
        regex: frozenset(names) for regex, names in (regexes or {}).items()
    }
    return {
        "InstanceOf": Fn(dict(zip(("m1", "m2"), instances, strict=True))),
        "Reads": Fn(dict(zip(("m1", "m2"), map(frozenset, reads), strict=True))),
        "Topics": Fn({key: Fn({**value}) for key, value in topics.items()}),
        "MaxSize": size,
        "NamesWhileReconciling": True,
        "Assignors": assignors,
        "NamedAssignor": Fn(dict(zip(("m1", "m2"), named, strict=True))),
        "AssignmentInterval": interval,
        "Matches": Fn(matches),
    }


BOTH = ("uniform", "range")
REGEX = constants(reads=({"t.*"}, {"t.*"}), regexes={"t.*": {"topic"}})


def test_a_port_shows_two_members_that_name_the_range_assignor() -> None:
    assert beyond(constants(), ADDRESS) == ""


def test_a_port_shows_topics_that_change() -> None:
    assert beyond(constants(topics={"t": topic("t", {0}, changes=True)}), ADDRESS) == ""


@pytest.mark.parametrize(
    ("model", "query", "why"),
    [
        (constants(size=1), "", "say consumer-max-size=1"),
        (constants(size=1), "consumer-max-size=3", "say consumer-max-size=1"),
        (constants(size=1), "consumer-max-size=1", ""),
        (constants(size=2), "", ""),
        (constants(interval=True), "", "assignment-interval="),
        (constants(interval=True), "assignment-interval=20", "of 500 or more"),
        (constants(interval=True), "assignment-interval=1000", ""),
        (constants(), "assignment-interval=1000", "assignment.interval.ms=0"),
        (REGEX, "", "say assignor=range"),
        (REGEX, "assignor=range", ""),
    ],
)
def test_what_a_broker_must_be_told_for_a_model(
    model: Mapping[str, Value], query: str, why: str
) -> None:
    told = beyond(model, parse_address(f"localhost:9092?{query}"))

    assert why in told
    assert bool(told) is bool(why)


def test_a_broker_that_is_started_here_is_the_models() -> None:
    full = Needs(consumers=1)
    late = Needs(interval=1000)

    assert full.properties == {"group.consumer.max.size": "1"}
    assert full.settings["consumer-max-size"] == 1
    assert late.properties == {"group.consumer.assignment.interval.ms": "1000"}
    assert late.settings["assignment-interval"] == 1000
    assert Needs(assignor="range").properties == {"group.consumer.assignors": "range"}
    assert limit_of(constants(size=1)) == 1
    assert limit_of(constants(size=2)) == 0, "all may join"


@pytest.mark.parametrize(("release", "reason"), [("4.2.2", "before 4.3"), ("4.0.0", "before 4.3")])
def test_a_broker_of_a_release_before_4_3_has_no_interval(release: str, reason: str) -> None:
    told = BrokerFactory(release).cannot_take("ConsumerGroup", constants(interval=True))

    assert told.startswith(reason), "and no broker is started to find that out"


@pytest.mark.parametrize(
    ("is_there", "size", "is_driven"), [(True, 1, True), (False, 0, True), (False, 1, False)]
)
def test_no_topic_appears_beside_other_groups_with_regular_expressions(
    is_there: bool, size: int, is_driven: bool
) -> None:
    model = constants(
        topics={"t": topic("topic", {0}), "u": topic("u", {1}, there=is_there)},
        reads=({"t.*"}, {"t.*"}),
        regexes={"t.*": {"topic"}},
    )

    told = passes(model, {**state({}), "topics": Fn({"t": 1, "u": size})})

    assert (told == "") is is_driven


@pytest.mark.parametrize(
    ("resolution", "steps"),
    [("None", set()), ("Scheduled", {"RunResolution"}), ("Run", {"WriteResolution"})],
)
def test_a_broker_goes_on_by_itself_while_it_resolves(resolution: str, steps: set[str]) -> None:
    factory = WireFactory("localhost:9092")

    assert factory.goes_on(REGEX, {"resolution": resolution}) == steps
    assert factory.goes_on({}, {"groupState": "Empty"}) == set(), "of another specification"


# ---- targets ---------------------------------------------------------------------------------


def state(
    target: Mapping[str, set[int]],
    reads: Mapping[str, set[str]] | None = None,
    *,
    lags: bool = False,
    resolved: Mapping[str, set[str]] | None = None,
) -> dict[str, Value]:
    """Of a group of these members."""
    read = reads or {name: {"topic"} for name in target}
    known: dict[Value, Value] = {
        regex: frozenset(names) for regex, names in (resolved or {}).items()
    }
    return {
        "groupEpoch": 3,
        "assignmentEpoch": 2 if lags else 3,
        "target": Fn({name: frozenset(target.get(name, ())) for name in ("m1", "m2")}),
        "memberState": Fn({n: "Stable" if n in target else "None" for n in ("m1", "m2")}),
        "subscribed": Fn({name: frozenset(read.get(name, ())) for name in ("m1", "m2")}),
        "resolved": Fn(known),
        "topics": Fn({"topic": 2}),
    }


def test_who_has_come_since_the_target_was_made_has_no_part_of_it() -> None:
    late: Mapping[str, set[int]] = {"m1": set(), "m2": {0, 1}}

    assert passes(constants(), state(late, lags=True)) == ""
    assert "gives another target" in passes(constants(), state(late))


def test_each_topic_is_a_range_of_its_readers() -> None:
    topics = {"a": topic("a", {0}), "b": topic("b", {1})}
    model = constants(topics=topics, reads=({"a", "b"}, {"b"}))
    both = {"m1": {"a", "b"}, "m2": {"b"}}

    assert passes(model, state({"m1": {0, 1}, "m2": set()}, both)) == ""
    assert passes(model, state({"m1": {0}, "m2": {1}}, both)), "m1 comes first"
    assert passes(model, state({"m1": {0}, "m2": {1}}, {"m1": {"a"}, "m2": {"b"}})) == ""


def test_who_waits_for_a_regular_expression_reads_nothing_by_it() -> None:
    reads = {"m1": {"t.*"}, "m2": {"topic"}}
    target: Mapping[str, set[int]] = {"m1": set(), "m2": {0, 1}}

    assert passes(REGEX, state(target, reads, resolved={"t.*": {"unresolved"}})) == ""
    assert passes(REGEX, state(target, reads, resolved={"t.*": {"topic"}}))


# ---- assignors and releases ------------------------------------------------------------------


@pytest.mark.parametrize("named", [("range", "uniform"), ("range", NO_ASSIGNOR)])
def test_two_members_at_a_time_need_one_assignor(named: tuple[str, str]) -> None:
    assert "is not foreseen" in beyond(constants(assignors=BOTH, named=named), ADDRESS)


def test_one_member_at_a_time_may_name_any_assignor() -> None:
    assert beyond(constants(("i1", "i1"), BOTH, ("range", "uniform")), ADDRESS) == ""
    assert beyond(constants(assignors=BOTH, named=("range", "mine")), ADDRESS) == ""


@pytest.mark.parametrize(("release", "reason"), [("4.2.2", "before 4.3"), ("4.3.0", "")])
def test_releases_have_an_assignment_interval_from_4_3_on(release: str, reason: str) -> None:
    told = KafkaFactory(release).cannot_take("ConsumerGroup", constants(interval=True))

    assert told.startswith(reason)
    assert bool(told) is bool(reason)


def test_java_consumers_name_no_assignor() -> None:
    factory = KafkaFactory("4.4.0", "4.4.0")

    assert factory.cannot_take("ConsumerGroup", constants()) == ""
    assert "name no assignor" in factory.cannot_take("ConsumerGroup", constants(assignors=BOTH))
