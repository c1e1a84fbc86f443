"""Kafka's classic consumer under the suites of ConsumerCommits, -Positions and -Topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import deviations
from conformance.stages.presence import Presence
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka.consumer_commits import KafkaCommitsSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action, Fn, Value
from conformance.verdict import Verdict
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

NEWEST, OLDEST = "4.4.0", "3.8.1"
SPECIFICATIONS = {"ConsumerCommits", "ConsumerPositions", "ConsumerTopics"}
KNOWN = {"KAFKA-16599", "full-poll-keeps-fetch", "owned-partition-unknown"}
MODELS = ("commits-sync", "commits-rebalance", "validation", "two-partitions", "cooperative-lost")


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaCommitsSystem]:
    """A consumer of the newest release, to be driven by hand."""
    jars_or_skip(NEWEST)
    model = one_model("positions/commits-sync")
    system = workbench(context, model, f"kafka-{NEWEST}", with_graph=False).make_system()
    assert isinstance(system, KafkaCommitsSystem)
    yield system
    system.close()


def after(driven: KafkaCommitsSystem, *steps: tuple[Value, ...]) -> Observation:
    """What is seen after these steps, each a name and its arguments, from the start."""
    driven.reset({})
    for name, *arguments in steps:
        driven.apply(Action(str(name), tuple(arguments)))
    return driven.observe()


STANDS_STILL = (("Assign",), ("Begin",), ("CallCommitSync",))
"""commitSync waits for the look-up of the coordinator, and holds the coordinator's monitor."""


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("model", MODELS)
def test_random_walks_agree_with_the_known_deviations(
    context: Context, version: str, model: str
) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"positions/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=20, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 20


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_table_of_deviations_is_what_the_consumer_does(context: Context, version: str) -> None:
    jars_or_skip(version)

    shown = deviations(context, f"kafka-{version}", SPECIFICATIONS)

    assert all(result.as_expected for result in shown)
    seen = {result.deviation.id for result in shown if result.presence is Presence.SEEN}
    assert seen == KNOWN | ({"KAFKA-20253"} if version == OLDEST else set())


def test_a_call_that_stands_still_goes_on_when_something_comes(driven: KafkaCommitsSystem) -> None:
    assert after(driven, *STANDS_STILL)["call"] == call("sync", 0, "lookup")
    known = after(driven, *STANDS_STILL, ("AnswerLookup", True))
    assert known["call"] == call("sync", 0, "answer")
    taken = after(driven, *STANDS_STILL, ("AnswerLookup", True), ("AnswerCommit", "NONE"))
    assert (taken["call"], taken["result"]) == (call("none", -1, "none"), "NONE")


def call(kind: str, offset: int, waits: str) -> Fn:
    return Fn({"type": kind, "offset": offset, "waits": waits})


def test_a_wakeup_ends_a_call_that_stands_still(driven: KafkaCommitsSystem) -> None:
    seen = after(driven, *STANDS_STILL, ("Wakeup",))

    assert (seen["result"], seen["wakeup"]) == ("WAKEUP", False)


def test_a_consumer_that_stands_still_can_be_reset(driven: KafkaCommitsSystem) -> None:
    after(driven, *STANDS_STILL)

    assert after(driven, ("Assign",))["call"] == call("none", -1, "none")


def test_what_the_adapter_cannot_do_is_refused(driven: KafkaCommitsSystem) -> None:
    driven.reset({})
    with pytest.raises(ActionRefused, match="no action"):
        driven.apply(Action("EatTheCake", ()))
    with pytest.raises(ActionRefused, match="no OFFSET_COMMIT is in flight"):
        after(driven, ("Assign",), ("AnswerCommit", "NONE"))
    with pytest.raises(ActionRefused, match="no heartbeat thread is awake"):
        after(driven, ("Subscribe",), ("OverrunPollInterval",))
