"""Kafka's own logs and idempotent producer under the law of IdempotentProduce.tla."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka.produce import KafkaProduceSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.breadth import every
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

NEWEST = "4.4.0"
MODELS = ["bench/window-1b", "bench/restarts-1b", "bumps-1b", "expiry-1b", "elections-2b"]
OLDER = ["3.9.1", "4.0.0"]
"""Scala's log, and Scala's beside a Java class of that name; since 4.1 it is Java's."""
OF_OLDER = [("bench/restarts-1b", version) for version in OLDER]


@pytest.mark.parametrize(
    ("model", "version"), every(2, [*((model, NEWEST) for model in MODELS), *OF_OLDER])
)
def test_random_walks_agree(context: Context, model: str, version: str) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"produce/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=40, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 40


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaProduceSystem]:
    """One broker of the newest release, to be driven by hand."""
    jars_or_skip(NEWEST)
    bench = workbench(
        context, one_model("produce/bench/restarts-1b"), f"kafka-{NEWEST}", with_graph=False
    )
    system = bench.make_system()
    assert isinstance(system, KafkaProduceSystem)
    yield system
    system.close()


def after(driven: KafkaProduceSystem, *steps: tuple[str | int | bool, ...]) -> Observation:
    """What is seen after these steps from the start."""
    driven.reset({"leader": "b1"})
    for name, *args in steps:
        driven.apply(Action(str(name), tuple(args)))
    return driven.observe()


@pytest.mark.parametrize("clean", [True, False])
def test_after_a_start_a_retry_from_the_window_is_out_of_order(
    driven: KafkaProduceSystem, clean: bool
) -> None:
    """The model `boundary-restart`, on Kafka's classes."""
    both = (("Send", 1), ("Send", 1), ("Produce", 0, 1), ("Produce", 0, 2))

    seen = after(driven, *both, ("Restart", "b1", clean), ("Produce", 0, 1))

    assert {(answer["seq"], answer["error"]) for answer in seen["answers"]} == {
        (0, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (1, "NONE"),
    }
    assert len(seen["log"]["b1"]) == 2


def test_a_step_that_nothing_allows_is_refused(driven: KafkaProduceSystem) -> None:
    after(driven, ("Send", 1))

    with pytest.raises(ActionRefused, match="batch 2 was not sent"):
        driven.apply(Action("Produce", (0, 2)))
    with pytest.raises(ActionRefused, match="batch 1 is not acknowledged"):
        driven.apply(Action("Acknowledge", (1, True)))
    with pytest.raises(ActionRefused, match="batch 1 is not answered"):
        driven.apply(Action("Bump", (1,)))
