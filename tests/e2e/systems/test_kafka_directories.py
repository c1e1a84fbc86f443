"""Kafka's own moves between log directories under the suites of DirectoryMove, and in KRaft under
those of DirectoryAssignment."""

from __future__ import annotations

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import Presence, deviations
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.kafka_needed import VERSIONS, jars_or_skip

pytestmark = pytest.mark.tlc

OLDEST, NEWEST = VERSIONS
MODELS = (
    *("elections", "restarts", "failing-directory", "cancels"),
    *("assignment", "assignment-appends", "assignment-cancels", "assignment-restarts"),
)
OF_MOVES = ("overtaken-epoch-answer", "records-read-late")
OF_ASSIGNMENTS = (
    *("answer-to-an-earlier-move", "registered-move-forgets", "shorter-log-promoted-at-start"),
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("model", MODELS)
def test_random_walks_agree_with_the_known_deviations(
    context: Context, model: str, version: str
) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"directories/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=30, length=25)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 30


@pytest.mark.parametrize("version", VERSIONS)
def test_the_table_of_deviations_is_what_the_thread_does(context: Context, version: str) -> None:
    jars_or_skip(version)

    shown = deviations(context, f"kafka-{version}", {"DirectoryMove", "DirectoryAssignment"})

    assert {result.deviation.id: result.presence for result in shown} == dict.fromkeys(
        (*OF_MOVES, *OF_ASSIGNMENTS), Presence.SEEN
    )
    assert all(result.consequence == result.deviation.violated for result in shown)


def test_without_the_overrides_an_overtaken_answer_fails(context: Context) -> None:
    jars_or_skip(NEWEST)
    strict = Context(check=context.check, strict=True)
    bench = workbench(strict, one_model("directories/elections"), f"kafka-{NEWEST}")

    result = replay(strict, bench, make_suite(strict, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.FAIL
    assert Action("ProcessEpochResponse", ()) in {each.action for each in result.divergences}
