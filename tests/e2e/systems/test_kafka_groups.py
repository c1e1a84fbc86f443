"""Kafka's own group coordinators under the suites: the Scala one and the rewrite."""

from __future__ import annotations

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import deviations
from conformance.stages.presence import Presence
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka import KafkaGroupSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.kafka_needed import VERSIONS, jars_or_skip

pytestmark = pytest.mark.tlc

OLD, NEW = VERSIONS
OF_THE_REWRITE = {
    "created-group-stored",
    "initial-delay-cut-short",
    "initial-delay-prolonged-again",
    "replaced-member-not-new",
}


def system(context: Context, version: str, model: str) -> KafkaGroupSystem:
    """One to be driven by hand."""
    jars_or_skip(version)
    bench = workbench(context, one_model(model), f"kafka-{version}", with_graph=False)
    made = bench.make_system()
    assert isinstance(made, KafkaGroupSystem)
    return made


def after(driven: KafkaGroupSystem, *steps: str) -> Observation:
    """What is seen after these steps from the start; written as `Name m1`."""
    driven.reset({})
    for step in steps:
        name, *args = step.split()
        driven.apply(Action(name, tuple(args)))
    return driven.observe()


STABLE = (
    "SendJoinGroup m1",
    "HandleJoinGroup m1",
    "ExpireInitialDelay",
    "ProcessJoinGroup m1",
    "HandleSyncGroup m1",
    "ProcessSyncGroup m1",
    "CompleteJoin m1",
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "model",
    ["static-restart-2m", "pending-timeouts-2m", "fail-over-2m", "store-failure-2m", "delete-2m"],
)
def test_random_walks_agree_with_the_known_deviations(
    context: Context, version: str, model: str
) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"group/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=40, length=30)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 40


@pytest.mark.parametrize("version", VERSIONS)
def test_the_table_of_deviations_is_what_the_coordinators_do(
    context: Context, version: str
) -> None:
    jars_or_skip(version)

    shown = deviations(context, f"kafka-{version}", {"GroupMembership"})

    assert all(one.as_expected for one in shown)
    seen = {one.deviation.id for one in shown if one.presence is Presence.SEEN}
    assert seen == (OF_THE_REWRITE if version == NEW else set())


def test_without_the_overrides_the_rewrite_fails(context: Context) -> None:
    jars_or_skip(NEW)
    strict = Context(check=context.check, strict=True)
    bench = workbench(strict, one_model("group/protocols-2m"), f"kafka-{NEW}")

    result = replay(strict, bench, make_suite(strict, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.FAIL
    assert result.divergences[0].action is not None
    assert result.divergences[0].action.name == "HandleJoinGroup"


@pytest.mark.parametrize("version", VERSIONS)
def test_member_ids_are_the_same_in_every_run(context: Context, version: str) -> None:
    driven = system(context, version, "group/dynamic-2m")
    try:
        joined = [f"{step} m2" for step in ("SendJoinGroup", "HandleJoinGroup")]
        first = after(driven, *joined)
        again = after(driven, *joined)
    finally:
        driven.close()

    assert first == again
    assert first["members"] == frozenset({"m2-1"})


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fail_over_loses_who_waits_and_keeps_what_is_stored(
    context: Context, version: str
) -> None:
    driven = system(context, version, "group/fail-over-2m")
    try:
        before = after(driven, *STABLE)
        behind = after(
            driven, *STABLE, "SendJoinGroup m2", "HandleJoinGroup m2", "FailOver", "FailOver"
        )
    finally:
        driven.close()

    assert before["groupState"] == behind["groupState"] == "Stable"
    assert behind["members"] == frozenset({"m1-1"})
    assert behind["channel"]["m2"]["error"] == "NOT_COORDINATOR"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ((), "no timer SYNC"),
        (("SendJoinGroup m1", "HandleJoinGroup m1"), "no timer SYNC"),
    ],
    ids=["no group", "joining"],
)
def test_a_timer_that_does_not_run_cannot_fire(
    context: Context, version: str, steps: tuple[str, ...], reason: str
) -> None:
    driven = system(context, version, "group/dynamic-2m")
    try:
        after(driven, *steps)
        with pytest.raises(ActionRefused, match=reason):
            driven.apply(Action("ExpireSync", ()))
    finally:
        driven.close()
