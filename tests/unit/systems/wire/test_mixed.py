"""Groups that change their protocol at a port: which models, which states, whose session ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest
from kio.schema.errors import ErrorCode

from conformance.kafka.entities import NEWEST, NO_TIME, Entity, class_of, make
from conformance.systems.protocol import SystemFailed, SystemHangs
from conformance.systems.shared.mixed.coordinator import MixedAnswer
from conformance.systems.shared.mixed.settings import settings_of
from conformance.systems.wire.address import Address, parse_address
from conformance.systems.wire.broker import WireBroker
from conformance.systems.wire.connection import Pending
from conformance.systems.wire.consumer.settings import SESSION_MS
from conformance.systems.wire.mixed.classic_members import ClassicMembers
from conformance.systems.wire.mixed.reach import (
    beyond,
    member_id,
    observed,
    passes,
    policy_of,
)
from conformance.systems.wire.mixed.timers import foresight
from conformance.systems.wire.started import Needs
from conformance.tla import Action, Fn, Value

NAMES = ("c", "n", "s")
NOBODY: frozenset[Value] = frozenset()
CLASSIC = frozenset({"c", "s"})
RANGE = Address("localhost", 9092, session=800, assignor="range")


def constants(
    instances: Mapping[str, str] | None = None, policy: str = "bidirectional", two: bool = False
) -> dict[str, Value]:
    """Of a model with two classic members and one of KIP-848; `two`: topics of one partition."""
    static = {"n": "i", "s": "i"} if instances is None else instances
    topics: dict[Value, Value] = {0: "t", 1: "u" if two else "t"}
    both = frozenset({"t", "u"}) if two else frozenset({"t"})
    return {
        "Protocol": Fn({name: "classic" if name in CLASSIC else "consumer" for name in NAMES}),
        "InstanceOf": Fn({name: static.get(name, "none") for name in NAMES}),
        "Malformed": NOBODY,
        "TopicOf": Fn(topics),
        "Reads": Fn({"c": frozenset({"t"}), "n": both, "s": both}),
        "First": Fn({"c": frozenset({0})}),
        "Policy": policy,
        "Cooperative": True,
    }


def state(target: Mapping[str, set[int]]) -> dict[str, Value]:
    """Of a group of these members."""
    return {
        "listed": frozenset(target),
        "target": Fn({name: frozenset(target.get(name, ())) for name in NAMES}),
    }


# ---- which models ----------------------------------------------------------------------------


def test_a_model_is_driven_where_policy_and_assignor_are_its_own() -> None:
    assert beyond(constants(), RANGE) == ""
    assert beyond(constants(policy="upgrade"), replace(RANGE, migration_policy="upgrade")) == ""


@pytest.mark.parametrize(
    ("model", "query", "why"),
    [
        (constants(policy="disabled"), "assignor=range", "say migration-policy=disabled"),
        (constants(), "assignor=range&migration-policy=upgrade", "policy=bidirectional"),
        (constants(), "", "say assignor=range"),
        (constants(instances={}), "assignor=range", "coordinators choose ids"),
    ],
)
def test_what_a_broker_must_be_told_for_a_model(
    model: Mapping[str, Value], query: str, why: str
) -> None:
    assert why in beyond(model, parse_address(f"localhost:9092?{query}"))


def test_a_broker_that_is_started_here_has_the_models_policy() -> None:
    needs = Needs(policy="upgrade")

    assert needs.settings["migration-policy"] == "upgrade"
    assert needs.settings["assignor"] == needs.properties["group.consumer.assignors"] == "range"
    assert needs.properties["group.consumer.migration.policy"] == "upgrade"
    assert Needs().properties == {}
    assert policy_of({"Policy": "latest"}) == "", "auto.offset.reset is another policy"


@pytest.mark.parametrize(
    ("policy", "is_shown"),
    [("bidirectional", True), ("upgrade", True), ("downgrade", False), ("disabled", False)],
)
def test_the_generation_of_a_group_that_stays_classic_is_not_shown(
    policy: str, is_shown: bool
) -> None:
    seen = observed(settings_of(constants(policy=policy)))

    assert ("epoch" in seen) is is_shown
    assert "member" not in seen
    assert {"listed", "described", "client"} <= {*seen}


# ---- which states ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "reached"),
    [
        ({"c": {0, 1}}, True),
        ({"s": {0}, "c": {1}}, True),  # static members come first
        ({"s": {1}, "c": {0}}, False),
        ({"n": {0}, "c": {1}}, True),
        ({"s": set(), "c": {1}}, False),
        ({"c": {1}}, True),  # the first one has gone
        ({}, True),
    ],
)
def test_static_members_are_assigned_before_dynamic_ones(
    target: Mapping[str, set[int]], reached: bool
) -> None:
    assert (passes(constants(), state(target)) == "") is reached


@pytest.mark.parametrize(
    ("target", "reached"), [({"c": {0}, "n": {1}}, True), ({"c": {1}, "n": {0}}, False)]
)
def test_ids_that_a_coordinator_chooses_come_before_ours(
    target: Mapping[str, set[int]], reached: bool
) -> None:
    assert (passes(constants(instances={}), state(target)) == "") is reached


def test_ids_of_ours_are_after_all_that_a_coordinator_writes() -> None:
    """A UUID in letters, digits, minus and underscore, or the client's name before it."""
    assert member_id("n", "run") > max("z", "Z", "_", "-", "9")


@pytest.mark.parametrize(
    ("target", "reached"),
    [
        ({"s": {0, 1}, "c": set()}, True),  # c reads one of the two
        ({"s": {1}, "c": {0}}, False),
    ],
)
def test_each_topic_is_assigned_by_itself(target: Mapping[str, set[int]], reached: bool) -> None:
    assert (passes(constants(two=True), state(target)) == "") is reached


# ---- whose session ends ----------------------------------------------------------------------


BOTH_CRASH = ("Crash n", "Crash s")


def path(*steps: str) -> list[Action]:
    return [Action(name, (member,)) for name, member in map(str.split, steps)]


@pytest.mark.parametrize(
    ("steps", "heartbeats", "members"),
    [
        (("ConsumerJoin n", "ConsumerHeartbeat n", "Crash n"), {}, {}),
        (("ConsumerJoin n", "Crash n", "ExpireSession n"), {0: 800}, {}),
        (("ConsumerJoin n", "ConsumerHeartbeat n", "Crash n", "ExpireSession n"), {1: 800}, {}),
        # It was there before the path.
        (("Crash n", "ExpireSession n"), {-1: 800}, {}),
        # A classic member's session is its own, and outlasts the one that is waited for before.
        (
            ("ConsumerJoin n", "ClassicJoin s", *BOTH_CRASH, "ExpireSession n", "ExpireSession s"),
            {0: 800},
            {"s": 1600},
        ),
        (
            ("ClassicJoin s", "ConsumerJoin n", *BOTH_CRASH, "ExpireSession s", "ExpireSession n"),
            {1: 1600},
            {"s": 800},
        ),
    ],
)
def test_sessions_run_out_in_the_paths_order(
    steps: Sequence[str], heartbeats: Mapping[int, int], members: Mapping[str, int]
) -> None:
    found = foresight(path(*steps), CLASSIC, RANGE)

    assert found.heartbeats == heartbeats
    assert found.members == members
    assert all(length < SESSION_MS for length in (*heartbeats.values(), *members.values()))


# ---- joins under way -------------------------------------------------------------------------


class _Port:
    """A coordinator that answers when a test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[Entity, Pending]] = []

    def submit(self, message: Entity, _client_id: str) -> Pending:
        pending = Pending("join_group", NEWEST["join_group"], b"")
        self.sent.append((message, pending))
        return pending

    def receive(self, _seconds: float = 0.0) -> bool:
        return False

    def answer(self, error: ErrorCode, member_id: str, generation: int = -1) -> None:
        kind = class_of("join_group", NEWEST["join_group"], "response")
        self.sent[-1][1].body = make(
            kind,
            throttle_time=NO_TIME,
            error_code=error,
            generation_id=generation,
            protocol_name=None,
            leader="",
            member_id=member_id,
            members=(),
        )


class _Broker:
    def __init__(self) -> None:
        self.coordinator = _Port()


@pytest.fixture
def port() -> _Port:
    return _Port()


@pytest.fixture
def members(port: _Port) -> ClassicMembers:
    broker = _Broker()
    broker.coordinator = port
    return ClassicMembers(cast("WireBroker", broker), "group", {"c": None})


def test_a_dynamic_member_joins_with_the_id_that_it_is_given(
    members: ClassicMembers, port: _Port
) -> None:
    members.send_join("c", b"subscription", 1000)
    port.answer(ErrorCode.member_id_required, "c-1")

    assert members.take_answers() == {}
    assert members.parked == {"c"}
    assert [request.member_id for request, _ in port.sent] == ["", "c-1"]

    port.answer(ErrorCode.none, "c-1", generation=4)

    assert members.take_answers() == {"c": MixedAnswer("NONE", 4)}
    assert members.parked == frozenset()
    assert members.name_of("c-1") == "c"
    assert members.name_of("d-1") == "d-1"


def test_who_is_asked_for_an_id_twice_has_met_a_broken_broker(
    members: ClassicMembers, port: _Port
) -> None:
    members.send_join("c", b"subscription", 1000)
    port.answer(ErrorCode.member_id_required, "c-1")
    members.take_answers()
    port.answer(ErrorCode.member_id_required, "c-2")

    with pytest.raises(SystemFailed, match="with a member id was answered MEMBER_ID_REQUIRED"):
        members.take_answers()


def test_a_new_process_has_no_id(members: ClassicMembers, port: _Port) -> None:
    members.send_join("c", b"subscription", 1000)
    port.answer(ErrorCode.none, "c-1", generation=1)
    members.take_answers()
    assert members.sender("c").member_id == "c-1"

    members.forget("c")

    assert members.sender("c").member_id == ""
    assert members.name_of("c-1") == "c", "the group may still list it"


def test_a_join_that_is_never_answered_hangs(members: ClassicMembers) -> None:
    members.send_join("c", b"subscription", 1000)

    with pytest.raises(SystemHangs, match="JoinGroup of c was not answered"):
        members.await_answers(0.0)
