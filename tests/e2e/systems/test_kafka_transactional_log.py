"""Kafka's own log and read_committed consumer under the law of TransactionalLog.tla."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka.transactional_log import KafkaTransactionalLogSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.breadth import every
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

NEWEST = "4.4.0"
MODELS = ["log", "log-deletions", "log-elections", "log-restarts", "log-expiry-truncation"]
OLDER = ["3.9.1", "4.0.0", "4.3.1"]
"""Scala's log; Scala's beside a Java class of that name; a consumer that drains its fetches."""


@pytest.mark.parametrize(
    ("model", "version"),
    [
        *((model, NEWEST) for model in MODELS),
        *every(3, product(("log-elections", "log-restarts"), OLDER)),
    ],
)
def test_random_walks_agree(context: Context, model: str, version: str) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"transaction/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=40, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 40


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaTransactionalLogSystem]:
    """A log of the newest release, to be driven by hand."""
    jars_or_skip(NEWEST)
    model = one_model("transaction/log-deletions")
    system = workbench(context, model, f"kafka-{NEWEST}", with_graph=False).make_system()
    assert isinstance(system, KafkaTransactionalLogSystem)
    yield system
    system.close()


def after(driven: KafkaTransactionalLogSystem, *steps: tuple[str | int, ...]) -> Observation:
    """What is seen after these steps from the start."""
    driven.reset({})
    for name, *args in steps:
        driven.apply(Action(str(name), tuple(args)))
    return driven.observe()


@pytest.mark.parametrize(("kind", "delivered"), [("Committed", {1, 3}), ("Aborted", {3})])
def test_a_consumer_gets_what_is_committed(
    driven: KafkaTransactionalLogSystem, kind: str, delivered: set[int]
) -> None:
    written = (("AppendData", "a"), ("AppendMarker", "a", kind), ("AppendPlain",))

    seen = after(driven, *written, ("AdvanceHighWatermark", 3), ("Fetch", 3))

    assert seen["delivered"] == delivered
    assert seen["position"] == 3


def test_a_step_that_nothing_allows_is_refused(driven: KafkaTransactionalLogSystem) -> None:
    after(driven, ("AppendData", "a"), ("AdvanceHighWatermark", 1))

    with pytest.raises(ActionRefused, match="nothing is readable at 0"):
        driven.apply(Action("Fetch", (1,)))
    with pytest.raises(ActionRefused, match="0 is in range"):
        driven.apply(Action("ResetPosition", ()))
