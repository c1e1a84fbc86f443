"""Kafka's own log cleaner under the law of LogCompaction.tla."""

from __future__ import annotations

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.verdict import Verdict
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

OLDEST, NEWEST = "3.8.1", "4.4.0"
"""Scala's cleaner, before KAFKA-17076; Java's."""
BEFORE = ("KAFKA-17076",)


@pytest.mark.parametrize(("version", "deviations"), [(OLDEST, BEFORE), (NEWEST, ())])
def test_random_walks_agree(context: Context, version: str, deviations: tuple[str, ...]) -> None:
    jars_or_skip(version)
    model = one_model("compaction/transactions")
    bench = workbench(context, model, f"kafka-{version}", deviations=deviations)
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=20, length=12)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 20


@pytest.mark.parametrize(
    ("version", "deviations", "verdict"),
    [
        (OLDEST, BEFORE, Verdict.PASS),
        (OLDEST, (), Verdict.FAIL),
        (NEWEST, (), Verdict.PASS),
    ],
)
def test_a_late_followers_first_pass(
    context: Context, version: str, deviations: tuple[str, ...], verdict: Verdict
) -> None:
    jars_or_skip(version)
    model = one_model("compaction/late-follower")
    bench = workbench(context, model, f"kafka-{version}", deviations=deviations)
    suite = make_suite(context, "cover", bench.graph, bench.prepared)

    assert replay(context, bench, suite).verdict is verdict
