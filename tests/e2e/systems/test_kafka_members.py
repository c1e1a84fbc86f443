"""Kafka's own Java consumers as members: each client with each coordinator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import deviations
from conformance.stages.presence import Presence
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.external import CHANNELS
from conformance.systems.kafka import KafkaGroupSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.kafka_needed import VERSIONS, jars_or_skip

pytestmark = pytest.mark.tlc

OLD, NEW = VERSIONS
EACH = [
    f"kafka-{OLD}+client",
    f"kafka-{NEW}+client",
    f"kafka-{OLD}+client-{NEW}",
    f"kafka-{NEW}+client-{OLD}",
]
"""Every coordinator with every client."""


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """With the state graphs of the user's cache; the JVMs end with the module."""
    for version in VERSIONS:
        jars_or_skip(version)
    yield Context(seed=7)
    CHANNELS.close()


def driven_by(context: Context, system: str, model: str) -> KafkaGroupSystem:
    """One to be driven by hand."""
    made = workbench(context, one_model(model), system, with_graph=False).make_system()
    assert isinstance(made, KafkaGroupSystem)
    return made


def take(driven: KafkaGroupSystem, *steps: str) -> Observation:
    """What is seen after these steps, written as `Name m1`."""
    for step in steps:
        name, *args = step.split()
        driven.apply(Action(name, tuple(args)))
    return driven.observe()


JOINING = ("SendJoinGroup m1", "HandleJoinGroup m1", "ExpireInitialDelay", "ProcessJoinGroup m1")
STABLE = (*JOINING, "HandleSyncGroup m1", "ProcessSyncGroup m1", "CompleteJoin m1")


@pytest.mark.parametrize("system", EACH)
@pytest.mark.parametrize("model", ["dynamic-2m", "losses-2m", "static-restart-2m"])
def test_random_walks_agree_with_the_known_deviations(
    context: Context, system: str, model: str
) -> None:
    bench = workbench(context, one_model(f"group/{model}"), system)
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=15, length=30)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 15


@pytest.mark.parametrize("system", EACH)
def test_the_table_of_deviations_is_what_the_clients_do(context: Context, system: str) -> None:
    shown = deviations(context, system, {"GroupMembership"})

    assert all(one.as_expected for one in shown)
    assert [one.presence for one in shown if one.deviation.part == "client"] == [Presence.SEEN]


@pytest.mark.parametrize("system", EACH)
def test_the_clients_own_heartbeat_thread_keeps_the_member_alive(
    context: Context, system: str
) -> None:
    driven = driven_by(context, system, "group/dynamic-2m")
    try:
        driven.reset({})
        sent = take(driven, *STABLE, "SendHeartbeat m1")
        answered = take(driven, "HandleHeartbeat m1", "ProcessHeartbeat m1")
        again = take(driven, "SendHeartbeat m1")
    finally:
        driven.close()

    assert sent["owned"]["m1"] == frozenset({0, 1})
    assert sent["heartbeat"]["m1"]["type"] == "HeartbeatRequest"
    assert answered["heartbeat"]["m1"]["type"] == "None"
    assert again["heartbeat"]["m1"]["generation"] == 1


def test_what_a_client_would_not_do_is_refused(context: Context) -> None:
    driven = driven_by(context, EACH[0], "group/dynamic-2m")
    try:
        driven.reset({})
        with pytest.raises(ActionRefused, match="in no generation"):
            take(driven, "SendHeartbeat m1")
        take(driven, "SendJoinGroup m1")
        with pytest.raises(ActionRefused, match="joining already"):
            take(driven, "SendJoinGroup m1")
        with pytest.raises(ActionRefused, match="no join has completed"):
            take(driven, "CompleteJoin m1")
    finally:
        driven.close()


def test_a_restarted_member_is_a_new_consumer_whose_thread_has_ended(context: Context) -> None:
    driven = driven_by(context, EACH[0], "group/static-restart-2m")
    try:
        driven.reset({})
        before = take(driven, *STABLE)
        after = take(driven, "RestartProcess m1")
    finally:
        driven.close()

    assert before["memberState"]["m1"] == "STABLE"
    assert after["memberState"]["m1"] == "UNJOINED"
    assert after["memberGeneration"]["m1"]["memberId"] == ""
    assert after["members"] == before["members"]
