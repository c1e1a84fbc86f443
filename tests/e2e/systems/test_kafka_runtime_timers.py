"""Kafka's own session timers of group members in its CoordinatorRuntime."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka import KafkaTimedGroupsSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action, Value
from conformance.verdict import Verdict
from tests.e2e.systems.runtimes import NEWEST, Step, after, driven_by_hand
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

ACTIVE: tuple[Step, ...] = (("BecomeLeader", "b1"), ("HandleRole", "b1"), ("EndLoad", "b1", 1))
JOIN: Step = ("Operate", "b1", ("join", "m1"), "appended")
LEAVE: Step = ("Operate", "b1", ("leave", "m1"), "appended")
FLUSH: Step = ("Flush", "b1", "appended")
REFUSED: Step = ("Flush", "b1", "refused")
FIRE: Step = ("Fire", "b1", "m1")
EXPIRE: Step = ("RunTimeout", "b1", "m1", "appended")


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaTimedGroupsSystem]:
    """One broker of the newest release, to be driven by hand."""
    model = one_model("runtime/groups-timers-appends-1b")
    with driven_by_hand(context, model, KafkaTimedGroupsSystem) as system:
        yield system


def members(seen: Observation) -> set[Value]:
    return set(seen["shard"]["b1"]["memory"]["members"])


def timer(seen: Observation) -> Value:
    return seen["timers"]["b1"]["running"]["m1"]["kind"]


@pytest.mark.parametrize("model", ["groups-timers-static-1b", "groups-timers-2b"])
def test_random_walks_agree(context: Context, model: str) -> None:
    jars_or_skip(NEWEST)
    bench = workbench(context, one_model(f"runtime/{model}"), f"kafka-{NEWEST}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=40, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 40


def test_a_refused_departure_leaves_a_member_without_a_timer(
    driven: KafkaTimedGroupsSystem,
) -> None:
    """runtime/boundary-groups-cancelled-timer: who asks no more keeps its partition."""
    seen = after(driven, *ACTIVE, JOIN, FLUSH, LEAVE, REFUSED)

    memory = seen["shard"]["b1"]["memory"]
    assert members(seen) == {"m1"}
    assert memory["owners"][1, 0] == memory["metadata"]
    assert timer(seen) == "NONE"
    with pytest.raises(ActionRefused, match="no timer m1 waits"):
        driven.apply(Action("Fire", ("b1", "m1")))


def test_a_refused_removal_is_tried_again(driven: KafkaTimedGroupsSystem) -> None:
    seen = after(driven, *ACTIVE, JOIN, FLUSH, FIRE, EXPIRE, REFUSED)

    assert members(seen) == {"m1"}
    assert timer(seen) == "WAITS"


def test_the_retry_of_a_removal_that_timed_out_removes_who_has_joined_again(
    driven: KafkaTimedGroupsSystem,
) -> None:
    """runtime/boundary-groups-late-retry: its session has 500 ms in the place of 45 s."""
    removed = (*ACTIVE, JOIN, FLUSH, FIRE, EXPIRE, FLUSH)
    again = after(driven, *removed, JOIN, FLUSH, ("OperationTimeOut", 2))

    assert members(again) == {"m1"}
    assert again["answers"] == ("none", "timeout", "none")
    assert again["timers"]["b1"]["running"]["m1"]["of"] == 1
    for name, *args in (FIRE, EXPIRE):
        driven.apply(Action(str(name), tuple(args)))
    assert members(driven.observe()) == set()
