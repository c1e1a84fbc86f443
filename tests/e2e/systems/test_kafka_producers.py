"""Kafka's TransactionManager under the suites of TransactionManager.tla."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import deviations
from conformance.stages.presence import Presence
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka.producer import KafkaProducerSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

NEWEST, OLDEST = "4.4.0", "3.8.1"
UNSENT = (
    *("InitTransactions", "NextRequest", "Answer NONE", "BeginTransaction"),
    *("FailSend REQUEST_TIMED_OUT", "AbortTransaction", "NextRequest"),
)
"""A send fails before a partition is added, and the transaction is aborted."""


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaProducerSystem]:
    """A producer of the newest release, to be driven by hand."""
    jars_or_skip(NEWEST)
    model = one_model("producer/boundary-failed-send")
    system = workbench(context, model, f"kafka-{NEWEST}", with_graph=False).make_system()
    assert isinstance(system, KafkaProducerSystem)
    yield system
    system.close()


def after(driven: KafkaProducerSystem, *steps: str) -> Observation:
    """What is seen after these steps from the start."""
    driven.reset({})
    for step in steps:
        name, *arguments = step.split()
        driven.apply(Action(name, tuple(arguments)))
    return driven.observe()


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_random_walks_agree_with_the_known_deviations(context: Context, version: str) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model("producer/errors-v1"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=20, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 20


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_table_of_deviations_is_what_the_producer_does(context: Context, version: str) -> None:
    jars_or_skip(version)

    shown = deviations(context, f"kafka-{version}", {"TransactionManager"})

    assert all(result.as_expected for result in shown)
    presence = Presence.SEEN if version == OLDEST else Presence.GONE
    assert {result.deviation.id for result in shown if result.presence is presence} == {
        "KAFKA-18019",
        "KAFKA-19176",
        "KAFKA-19250",
    }


def test_without_an_end_to_send_a_producer_asks_for_another_identity(
    driven: KafkaProducerSystem,
) -> None:
    assert after(driven, *UNSENT)["flight"] == "BumpEpoch"
    seen = after(driven, *UNSENT, "Answer NONE")
    assert (seen["state"], seen["epoch"]) == ("READY", 1)


def test_what_the_adapter_cannot_do_is_refused(driven: KafkaProducerSystem) -> None:
    driven.reset({})
    with pytest.raises(ActionRefused, match="no action"):
        driven.apply(Action("EatTheCake", ()))
    with pytest.raises(ActionRefused):
        after(driven, "InitTransactions", "NextRequest", "NextRequest")
