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
from conformance.systems.protocol import ActionRefused
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.e2e.systems.runtimes import NEWEST, after, driven_by_hand
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

SEEN = {
    "4.0.0": {
        "stale-load",
        "full-batch-waits",
        "KAFKA-20634",
        "KAFKA-19274",
        "KAFKA-19857",
        "marker-out-of-sync",
    },
    "4.4.0": {"stale-load", "marker-out-of-sync"},
}
"""By version, the deviations of the runtime that it shows."""
SEEN_OF_GROUPS = {
    "4.0.0": {"empty-group-unassigned", "first-epoch-one", "topics-in-the-log", "KAFKA-18688"},
    "4.1.0": {"empty-group-unassigned", "first-epoch-one", "KAFKA-19862"},
    "4.3.0": {"empty-group-unassigned"},
    "4.4.0": set(),
}
"""By version, the deviations of its shard of groups that it shows."""

ACTIVE = (("Elect", "b1"), ("RunRole", "b1"), ("CompleteLoad", "b1", 1))


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaRuntimeSystem]:
    """One broker of the newest release, to be driven by hand."""
    model = with_constants(
        one_model("runtime/batches-1b"), {"Kinds": '{"put", "two", "large", "nothing"}'}
    )
    with driven_by_hand(context, model, KafkaRuntimeSystem) as system:
        yield system


@pytest.fixture
def group(context: Context) -> Iterator[KafkaRuntimeSystem]:
    """The same with Kafka's shard of groups."""
    model = one_model("runtime/groups-1b")
    with driven_by_hand(context, model, KafkaRuntimeSystem) as system:
        yield system


@pytest.mark.parametrize(
    "model", ["batches-1b", "appends-1b", "elections-2b", "parts-1b", "marker-appends-1b"]
)
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

    shown = deviations(context, f"kafka-{version}", {"CoordinatorStore", "CoordinatorTransactions"})

    assert all(result.as_expected for result in shown)
    seen = [result for result in shown if result.presence is Presence.SEEN]
    assert {result.deviation.id for result in seen} == SEEN[version]
    assert all(result.consequence == result.deviation.violated for result in seen)


@pytest.mark.parametrize("version", SEEN_OF_GROUPS)
def test_the_table_of_deviations_is_what_the_shard_of_groups_does(
    context: Context, version: str
) -> None:
    jars_or_skip(version)
    name, factory, record = f"kafka-{version}", KafkaFactory(version), PresenceRecord()
    rows = [row for row in factory.deviations() if row.specification == "CoordinatorGroups"]

    shown = [
        record.result(name, factory, row, bench_maker(context, name, factory, (row,)))
        for row in rows
    ]

    assert all(result.as_expected for result in shown)
    seen = [result for result in shown if result.presence is Presence.SEEN]
    assert {result.deviation.id for result in seen} == SEEN_OF_GROUPS[version]
    assert all(result.consequence == result.deviation.violated for result in seen)


def test_without_the_overrides_a_stale_load_fails(context: Context) -> None:
    jars_or_skip(NEWEST)
    strict = Context(check=context.check, strict=True)
    bench = workbench(strict, one_model("runtime/elections-2b"), f"kafka-{NEWEST}")

    result = replay(strict, bench, make_suite(strict, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.FAIL
    assert result.divergences[0].action == Action("CompleteLoad", ("b2", 1))


def test_without_the_overrides_a_marker_behind_unknown_records_fails(context: Context) -> None:
    jars_or_skip(NEWEST)
    strict = Context(check=context.check, strict=True)
    bench = workbench(strict, one_model("runtime/transaction-appends-1b"), f"kafka-{NEWEST}")

    result = replay(strict, bench, make_suite(strict, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.FAIL
    action = result.divergences[0].action
    assert action is not None
    assert (action.name, action.args[-1]) == ("CompleteTransaction", "appended")


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


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("groups-appends-1b", NEWEST),
        ("groups-deleted-1b", NEWEST),
        ("groups-2b", NEWEST),
        ("groups-1b", "4.0.0"),
        ("groups-deleted-1b", "4.1.0"),
        ("groups-2b", "4.3.0"),
    ],
)
def test_the_coordinator_of_groups_keeps_the_law(
    context: Context, model: str, version: str
) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"runtime/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=60, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 60


def test_without_the_overrides_an_emptied_group_fails(context: Context) -> None:
    jars_or_skip("4.3.0")
    strict = Context(check=context.check, strict=True)
    bench = workbench(strict, one_model("runtime/groups-1b"), "kafka-4.3.0")

    result = replay(strict, bench, make_suite(strict, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.FAIL
    action = result.divergences[0].action
    assert action == Action("Write", ("b1", ("leave", "m1"), "appended"))


def test_an_append_that_throws_after_the_log_has_it_leaves_no_coordinator(
    group: KafkaRuntimeSystem,
) -> None:
    """The model boundary-groups-thrown: the batch that shows that the shard is out of sync was made
    from the wrong state, and is in the log as well."""
    first = (("Write", "b1", ("join", "m1"), "appended"), ("FlushBatch", "b1", "thrown"))
    second = (("Write", "b1", ("join", "m2"), "appended"), ("FlushBatch", "b1", "appended"))
    loads = (("CompleteLoad", "b1", 1),)

    seen = after(group, *ACTIVE, *first, *second, *loads)

    assert seen["state"]["b1"] == "FAILED"
    assert seen["answers"] == ("error", "error")
    owners = [
        record["value"]
        for record in seen["log"]["b1"]
        if record["value"]["part"] == "Current" and record["value"]["holds"]
    ]
    assert [(owner["key"], owner["epoch"]) for owner in owners] == [("m1", 2), ("m2", 2)]


def test_the_next_election_does_not_help(group: KafkaRuntimeSystem) -> None:
    first = (("Write", "b1", ("join", "m1"), "appended"), ("FlushBatch", "b1", "thrown"))
    second = (("Write", "b1", ("join", "m2"), "appended"), ("FlushBatch", "b1", "appended"))
    again = (("Elect", "b1"), ("RunRole", "b1"), ("CompleteLoad", "b1", 2))

    seen = after(group, *ACTIVE, *first, *second, ("CompleteLoad", "b1", 1), *again)

    assert seen["state"]["b1"] == "FAILED"


def test_a_watermark_beyond_what_is_written_leaves_a_committed_write_unanswered(
    driven: KafkaRuntimeSystem,
) -> None:
    """runtime/boundary-dropped-watermark, with a batch that two records fill."""
    two, thrown = ("Write", "b1", "two", "appended"), ("Write", "b1", "two", "thrown")
    to_the_end = (("AdvanceWatermark", "b1", 4), ("ApplyWatermark", "b1"))

    seen = after(driven, *ACTIVE, two, thrown, *to_the_end)

    assert (seen["hw"]["b1"], len(seen["log"]["b1"])) == (4, 4)
    assert (seen["shard"]["b1"]["written"], seen["shard"]["b1"]["committed"]) == (2, 0)
    assert seen["answers"] == ("none", "error")
    with pytest.raises(ActionRefused, match="HighWatermarkUpdate"):
        driven.apply(Action("ApplyWatermark", ("b1",)))


def test_a_watermark_between_the_load_and_its_event_is_not_heard_of(
    driven: KafkaRuntimeSystem,
) -> None:
    """runtime/boundary-unheard-watermark, where the shard is loaded anew as it is out of sync."""
    two, thrown = ("Write", "b1", "two", "appended"), ("Write", "b1", "two", "thrown")
    after(driven, *ACTIVE, thrown, two)

    driven.read_log("b1", 1)
    driven.apply(Action("AdvanceWatermark", ("b1", 4)))
    driven.apply(Action("CompleteLoad", ("b1", 1)))
    driven.apply(Action("Write", ("b1", "nothing", "appended")))

    seen = driven.observe()
    assert (seen["hw"]["b1"], seen["shard"]["b1"]["committed"]) == (4, 0)
    assert seen["answers"][-1] == "none"
    with pytest.raises(ActionRefused, match="HighWatermarkUpdate"):
        driven.apply(Action("ApplyWatermark", ("b1",)))


def test_a_step_without_its_event_is_refused(driven: KafkaRuntimeSystem) -> None:
    after(driven, *ACTIVE)

    with pytest.raises(ActionRefused, match="FlushBatch"):
        driven.apply(Action("FlushBatch", ("b1", "appended")))
    with pytest.raises(ActionRefused, match="no load of epoch 1"):
        driven.apply(Action("CompleteLoad", ("b1", 1)))


def test_releases_before_the_runtime_do_not_take_its_models() -> None:
    assert "before 4.0" in KafkaFactory("3.8.1").cannot_take("CoordinatorStore", {})
    assert KafkaFactory("4.0.0").cannot_take("CoordinatorStore", {}) == ""
    assert "before 4.0" in KafkaFactory("3.8.1").cannot_take("CoordinatorGroups", {})
    assert KafkaFactory("4.0.0").cannot_take("CoordinatorGroups", {}) == ""


def test_what_a_patch_release_has_mended_leads_no_other_path_astray(context: Context) -> None:
    """No table names 4.3.1: KAFKA-20634, which the release before it has, is gone there."""
    jars_or_skip("4.3.1")
    name, factory = "kafka-4.3.1", KafkaFactory("4.3.1")
    (deviation,) = (each for each in factory.deviations() if each.id == "KAFKA-20115")
    maker = bench_maker(context, name, factory, (deviation,))

    shown = PresenceRecord().result(name, factory, deviation, maker)

    assert shown.presence is Presence.GONE
    assert "KAFKA-20634" not in {each.id for each in shown.judged_with}
