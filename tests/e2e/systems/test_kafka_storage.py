"""Kafka's own log on a real disk under the law of LogStorage.tla."""

from __future__ import annotations

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.verdict import Verdict
from tests.kafka_needed import VERSIONS, jars_or_skip

pytestmark = pytest.mark.tlc

MODELS = (
    "storage/anew",
    "storage/log-start",
    "storage/recovery",
    "storage/refusals",
    "storage/retention",
    "storage/stops",
    "storage/truncation",
    "storage/truncation-kills",
    "storage/watermark-file",
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("model", MODELS)
def test_random_walks_agree_with_the_known_deviations(
    context: Context, version: str, model: str
) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(model), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=25, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 25
