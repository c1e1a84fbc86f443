"""Kafka's own leader under the suites of Reassignment: replicas leave, brokers stop."""

from __future__ import annotations

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import Presence, deviations
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.verdict import Verdict
from tests.kafka_needed import VERSIONS, jars_or_skip

pytestmark = pytest.mark.tlc

_, NEWEST = VERSIONS
MODELS = ("restarts-2b", "fencing-2b", "shutdown-2b", "lags-2b", "removed-2b", "replaced-3b")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("model", MODELS)
def test_random_walks_agree_with_the_known_deviations(
    context: Context, model: str, version: str
) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"reassignment/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=40, length=25)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 40


@pytest.mark.parametrize("version", VERSIONS)
def test_a_leader_that_is_told_again_forgets_what_it_has_sent(
    context: Context, version: str
) -> None:
    jars_or_skip(version)

    (shown,) = deviations(context, f"kafka-{version}", {"Reassignment"})

    assert shown.deviation.id == "told-again"
    assert shown.presence is Presence.SEEN
    assert shown.consequence == "CommittedIsOnIsr"


def test_without_the_overrides_the_leader_fails(context: Context) -> None:
    jars_or_skip(NEWEST)
    strict = Context(check=context.check, strict=True)
    bench = workbench(strict, one_model("reassignment/lags-2b"), f"kafka-{NEWEST}")

    result = replay(strict, bench, make_suite(strict, "cover", bench.graph, bench.prepared))

    assert result.verdict is Verdict.FAIL
    assert "ApplyDelta" in {each.action.name for each in result.divergences if each.action}
