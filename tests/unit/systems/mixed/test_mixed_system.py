"""MixedGroup.tla's steps on a coordinator: what is seen of it, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.shared.mixed.coordinator import (
    HeartbeatOf848,
    MixedAnswer,
    MixedMember,
    MixedView,
)
from conformance.systems.shared.mixed.settings import MixedSettings, Partitions
from conformance.systems.shared.mixed.system import VARIABLES, MixedGroupSystem
from conformance.systems.shared.topics import ModelTopic
from conformance.tla import Action, Fn

BOTH = frozenset({0, 1})
TOPIC = ModelTopic("t", "t", 0, 2, 2, is_there=True, stays=True)
SETTINGS = MixedSettings(
    instances={"c": None, "n": None},
    classic=frozenset({"c"}),
    malformed=frozenset(),
    reads={"c": frozenset({"t"}), "n": frozenset({"t"})},
    first={"c": BOTH},
    topics=(TOPIC,),
    policy="bidirectional",
    is_cooperative=True,
)
OWNER = MixedMember("Classic", assigned=BOTH, described=BOTH)
STABLE = MixedView("classic", "Stable", 1, 0, {"c": OWNER}, frozenset())


class _Coordinator:
    """It says what a test wants, and keeps what it was asked."""

    def __init__(self) -> None:
        self.shown = STABLE
        self.asked: list[str] = []
        self.joins: dict[str, MixedAnswer] = {}

    def begin_group(self) -> None:
        self.asked.append("begin")

    def heartbeat_of_848(self, name: str, sent: HeartbeatOf848) -> MixedAnswer:
        self.asked.append(f"{name} {sent.epoch}")
        return MixedAnswer(epoch=2, partitions=frozenset())

    def join_group(self, name: str, _owned: Partitions) -> MixedAnswer | None:
        self.asked.append(f"{name} joins")
        return None

    def forget(self, name: str) -> None:
        self.asked.append(f"{name} is new")

    def joins_answered(self) -> Mapping[str, MixedAnswer]:
        answers, self.joins = self.joins, {}
        return answers

    def sync_group(
        self, _name: str, _generation: int, _given: Mapping[str, Partitions]
    ) -> MixedAnswer:
        return MixedAnswer(partitions=BOTH)

    def heartbeat(self, _name: str, _generation: int) -> MixedAnswer:
        return MixedAnswer("REBALANCE_IN_PROGRESS")

    def leave_group(self, _name: str) -> MixedAnswer:
        return MixedAnswer()

    def expire(self, name: str) -> None:
        self.asked.append(f"{name} expires")

    def end_initial_delay(self) -> None:
        self.joins["c"] = MixedAnswer(epoch=1)

    def view(self) -> MixedView:
        return self.shown


@pytest.fixture
def coordinator() -> _Coordinator:
    return _Coordinator()


@pytest.fixture
def system(coordinator: _Coordinator) -> MixedGroupSystem:
    """The group of the beginning: c owns both partitions in generation 1."""
    made = MixedGroupSystem(SETTINGS, coordinator)
    made._begin()
    return made


def does(system: MixedGroupSystem, name: str) -> object:
    clients = system.observe()["client"]
    assert isinstance(clients, Fn)
    client = clients[name]
    assert isinstance(client, Fn)
    return client["does"]


def test_all_is_seen_inside(system: MixedGroupSystem) -> None:
    seen = system.observe()

    assert {*seen} == {*VARIABLES}
    assert seen["listed"] == {"c"}
    assert seen["described"] == Fn(
        {
            "c": Fn({"epoch": 0, "assignment": BOTH}),
            "n": Fn({"epoch": 0, "assignment": frozenset()}),
        }
    )


def test_what_a_description_does_not_show_is_left_out(
    system: MixedGroupSystem, coordinator: _Coordinator
) -> None:
    unseen = {"c": OWNER._replace(described=None)}
    coordinator.shown = STABLE._replace(phase="PreparingRebalance", epoch=None, members=unseen)

    seen = system.observe()

    assert {*VARIABLES} - {*seen} == {"epoch", "described"}


def test_a_join_that_waits_is_answered_when_somebody_looks(
    system: MixedGroupSystem, coordinator: _Coordinator
) -> None:
    system.apply(Action("ClassicHeartbeat", ("c",)))
    system.apply(Action("ClassicRejoin", ("c",)))
    assert does(system, "c") == "wait"

    coordinator.joins["c"] = MixedAnswer(epoch=2)

    assert does(system, "c") == "sync"


def test_a_process_that_joins_anew_knows_no_id(
    system: MixedGroupSystem, coordinator: _Coordinator
) -> None:
    system.apply(Action("ClassicLeave", ("c",)))
    system.apply(Action("ClassicJoin", ("c",)))

    assert coordinator.asked[-2:] == ["c is new", "c joins"]


def test_a_member_that_nobody_sent_is_no_state_of_the_specification(
    system: MixedGroupSystem, coordinator: _Coordinator
) -> None:
    coordinator.shown = STABLE._replace(members={"c": OWNER, "x-1": OWNER})

    with pytest.raises(SystemFailed, match=r"members that nobody sent: \['x-1'\]"):
        system.observe()


def test_an_action_that_nobody_knows_is_refused(system: MixedGroupSystem) -> None:
    with pytest.raises(ActionRefused, match="no action EatTheCake"):
        system.apply(Action("EatTheCake", ("c",)))
