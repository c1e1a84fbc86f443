"""Kafka's own CoordinatorRuntime under the law of the coordinators."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import (
    Context,
    bench_maker,
    one_model,
    with_constants,
    workbench,
)
from conformance.stages.deviations import Presence, deviations
from conformance.stages.presence import PresenceRecord
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka import KafkaFactory, KafkaRuntimeSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

NEWEST = "4.4.0"
SEEN = {
    "4.0.0": {"stale-load", "full-batch-waits", "KAFKA-20634", "KAFKA-19274"},
    "4.4.0": {"stale-load"},
}
"""By version, the deviations of the runtime that it shows."""

ACTIVE = (("Elect", "b1"), ("RunRole", "b1"), ("CompleteLoad", "b1", 1))


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaRuntimeSystem]:
    """One broker of the newest release, to be driven by hand."""
    jars_or_skip(NEWEST)
    model = with_constants(one_model("runtime/batches-1b"), {"Kinds": '{"put", "two", "large"}'})
    bench = workbench(context, model, f"kafka-{NEWEST}", with_graph=False)
    system = bench.make_system()
    assert isinstance(system, KafkaRuntimeSystem)
    yield system
    system.close()


def after(driven: KafkaRuntimeSystem, *steps: tuple[str | int, ...]) -> Observation:
    """What is seen after these steps from the start."""
    driven.reset({})
    for name, *args in steps:
        driven.apply(Action(str(name), tuple(args)))
    return driven.observe()


@pytest.mark.parametrize("model", ["batches-1b", "appends-1b", "elections-2b"])
def test_random_walks_agree_with_the_known_deviations(context: Context, model: str) -> None:
    jars_or_skip(NEWEST)
    bench = workbench(context, one_model(f"runtime/{model}"), f"kafka-{NEWEST}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=40, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 40


@pytest.mark.parametrize("version", SEEN)
def test_the_table_of_deviations_is_what_the_runtime_does(context: Context, version: str) -> None:
    jars_or_skip(version)

    shown = deviations(context, f"kafka-{version}", {"CoordinatorStore"})

    assert all(result.as_expected for result in shown)
    seen = [result for result in shown if result.presence is Presence.SEEN]
    assert {result.deviation.id for result in seen} == SEEN[version]
    assert all(result.consequence == result.deviation.violated for result in seen)


def test_without_the_overrides_a_stale_load_fails(context: Context) -> None:
    jars_or_skip(NEWEST)
    strict = Context(check=context.check, strict=True)
    bench = workbench(strict, one_model("runtime/elections-2b"), f"kafka-{NEWEST}")

    result = replay(strict, bench, make_suite(strict, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.FAIL
    assert result.divergences[0].action == Action("CompleteLoad", ("b2", 1))


def test_a_direct_change_is_in_the_snapshot_of_the_batch_that_it_pushes_out(
    driven: KafkaRuntimeSystem,
) -> None:
    put, large = ("Write", "b1", "put", "appended"), ("Write", "b1", "large", "appended")

    seen = after(driven, *ACTIVE, put, large)["shard"]["b1"]

    assert seen["written"] == 2
    assert seen["snapshots"][1]["k1"] == 2  # the log up to there says 1


def test_a_refused_append_undoes_what_its_operation_changed(driven: KafkaRuntimeSystem) -> None:
    seen = after(driven, *ACTIVE, ("Write", "b1", "large", "refused"))

    assert seen["shard"]["b1"]["memory"]["k1"] == 0
    assert seen["answers"] == ("error",)


def test_a_step_without_its_event_is_refused(driven: KafkaRuntimeSystem) -> None:
    after(driven, *ACTIVE)

    with pytest.raises(ActionRefused, match="FlushBatch"):
        driven.apply(Action("FlushBatch", ("b1", "appended")))
    with pytest.raises(ActionRefused, match="no load of epoch 1"):
        driven.apply(Action("CompleteLoad", ("b1", 1)))


def test_releases_before_the_runtime_do_not_take_its_models() -> None:
    assert "before 4.0" in KafkaFactory("3.8.1").cannot_take("CoordinatorStore", {})
    assert KafkaFactory("4.0.0").cannot_take("CoordinatorStore", {}) == ""


def test_what_a_patch_release_has_mended_leads_no_other_path_astray(context: Context) -> None:
    """No table names 4.3.1: KAFKA-20634, which the release before it has, is gone there."""
    jars_or_skip("4.3.1")
    name, factory = "kafka-4.3.1", KafkaFactory("4.3.1")
    (deviation,) = (each for each in factory.deviations() if each.id == "KAFKA-20115")
    maker = bench_maker(context, name, factory, (deviation,))

    shown = PresenceRecord().result(name, factory, deviation, maker)

    assert shown.presence is Presence.GONE
    assert "KAFKA-20634" not in {each.id for each in shown.judged_with}
