"""Kafka's own coordinator of KIP-848 under the suites of ConsumerGroup."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import Presence, deviations
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka import KafkaConsumerGroupSystem, KafkaFactory
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action, Fn, Value
from conformance.verdict import Verdict
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

NEWEST = "4.4.0"
JOINED = ("Join m1", "SendHeartbeat m1", "HandleHeartbeat m1", "ReceiveAnswer m1")
BOTH = ("Assign m1", "Join m2", "SendHeartbeat m2")
"""After these m1 owns both partitions, and the join of m2 is under way."""


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaConsumerGroupSystem]:
    """A coordinator of the newest release, to be driven by hand."""
    jars_or_skip(NEWEST)
    model = one_model("consumer/commits-2m")
    system = workbench(context, model, f"kafka-{NEWEST}", with_graph=False).make_system()
    assert isinstance(system, KafkaConsumerGroupSystem)
    yield system
    system.close()


def after(driven: KafkaConsumerGroupSystem, *steps: str) -> Observation:
    """What is seen after these steps from the start."""
    driven.reset({})
    for step in steps:
        name, member = step.split()
        driven.apply(Action(name, (member,)))
    return driven.observe()


def test_a_suite_takes_every_transition_to_every_even_target(context: Context) -> None:
    jars_or_skip(NEWEST)
    bench = workbench(context, one_model("consumer/dynamic-2m"), f"kafka-{NEWEST}")

    result = replay(context, bench, make_suite(context, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.PASS
    assert result.visits.all()


@pytest.mark.parametrize("model", ["commits-2m", "expiries-2m", "losses-2m", "static-2m"])
def test_random_walks_agree_with_the_known_deviations(context: Context, model: str) -> None:
    jars_or_skip(NEWEST)
    bench = workbench(context, one_model(f"consumer/{model}"), f"kafka-{NEWEST}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=40, length=30)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 40


@pytest.mark.parametrize("version", ["4.0.0", NEWEST])
def test_the_table_of_deviations_is_what_the_coordinator_does(
    context: Context, version: str
) -> None:
    jars_or_skip(version)

    shown = deviations(context, f"kafka-{version}", {"ConsumerGroup"})

    assert all(result.as_expected for result in shown)
    is_old = version == "4.0.0"
    seen = Presence.GONE if is_old else Presence.SEEN
    assert {result.deviation.id: result.presence for result in shown} == dict.fromkeys(
        (
            "commit-within-assignment-epoch",
            "empty-group-assigned",
            "epoch-kept-after-revocation",
            "first-epoch-two",
            "join-always-accepted",
            "own-revocation-released",
            "pending-revocation-described",
            "assignor-tie",
        ),
        seen,
    ) | dict.fromkeys(
        ("KAFKA-19431", "KAFKA-20601", "KAFKA-19891", "KAFKA-18961", "KAFKA-20434"),
        Presence.SEEN if is_old else Presence.GONE,
    ) | {
        "assignor-tie-made": Presence.SEEN,
        "interval-outlasts-members": Presence.NOT_DRIVEN if is_old else Presence.GONE,
    }


def test_without_the_overrides_the_first_epoch_is_a_finding(context: Context) -> None:
    jars_or_skip(NEWEST)
    strict = Context(check=context.check, strict=True)
    bench = workbench(strict, one_model("consumer/dynamic-2m"), f"kafka-{NEWEST}")

    result = replay(strict, bench, make_suite(strict, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.FAIL
    assert result.divergences[0].step == 3
    assert result.divergences[0].observed["groupEpoch"] == 2


@pytest.mark.parametrize("kept", [0, 1])
def test_the_harness_chooses_the_target(driven: KafkaConsumerGroupSystem, kept: int) -> None:
    after(driven, *JOINED, *BOTH)
    target = Fn({"m1": frozenset({kept}), "m2": frozenset({1 - kept})})

    driven.choose({"target": target})
    driven.apply(Action("HandleHeartbeat", ("m2",)))

    assert driven.observe()["target"] == target
    assert of_member(driven.observe(), "memberState", "m2") == "UnreleasedPartitions"


def test_what_is_to_be_revoked_is_seen(driven: KafkaConsumerGroupSystem) -> None:
    steps = (*JOINED, *BOTH, "HandleHeartbeat m2", "SendHeartbeat m1", "HandleHeartbeat m1")

    seen = after(driven, *steps)

    assert of_member(seen, "memberState", "m1") == "UnrevokedPartitions"
    assert of_member(seen, "assignedPartitions", "m1") == frozenset({0})
    assert of_member(seen, "partitionsPendingRevocation", "m1") == frozenset({1})


def test_a_commit_is_in_the_groups_offsets(driven: KafkaConsumerGroupSystem) -> None:
    seen = after(driven, *JOINED, "Assign m1", "SendCommit m1", "HandleCommit m1")

    assert of_member(seen, "commit", "m1")["partitions"] == frozenset({0, 1})


def test_a_timer_that_does_not_run_cannot_expire(driven: KafkaConsumerGroupSystem) -> None:
    assert after(driven, *JOINED, "ExpireSession m1")["target"]["m1"] == frozenset()

    with pytest.raises(ActionRefused, match="no timer SESSION of m1"):
        driven.apply(Action("ExpireSession", ("m1",)))
    with pytest.raises(ActionRefused, match="no timer REBALANCE of m1"):
        after(driven, *JOINED, "ExpireRebalance m1")


def of_member(seen: Observation, variable: str, member: str) -> Value:
    value = seen[variable]
    assert isinstance(value, Fn)
    return value[member]


def test_releases_before_4_0_do_not_take_its_models() -> None:
    assert "before 4.0" in KafkaFactory("3.8.1").cannot_take("ConsumerGroup", {})
    assert KafkaFactory("4.0.0").cannot_take("ConsumerGroup", {}) == ""
