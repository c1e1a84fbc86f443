"""Kafka's own timers and executor in its CoordinatorRuntime."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka import KafkaTasksSystem
from conformance.systems.protocol import ActionRefused
from conformance.tla import Action
from conformance.verdict import Verdict
from tests.e2e.systems.runtimes import NEWEST, after, driven_by_hand
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

ACTIVE = (("BecomeLeader", "b1"), ("HandleRole", "b1"), ("EndLoad", "b1", 1))
PUT = ("Operate", "b1", "put", "appended")
FIRE, RUN = ("Fire", "b1", "k1"), ("RunTimeout", "b1", "k1", "appended")


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaTasksSystem]:
    """One broker of the newest release, to be driven by hand; each write is a batch."""
    model = one_model("runtime/timers-timeouts-1b")
    with driven_by_hand(context, model, KafkaTasksSystem) as system:
        yield system


@pytest.mark.parametrize("model", ["timers-appends-1b", "timers-2b", "executor-1b"])
def test_random_walks_agree(context: Context, model: str) -> None:
    jars_or_skip(NEWEST)
    bench = workbench(context, one_model(f"runtime/{model}"), f"kafka-{NEWEST}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=40, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 40


def test_a_refused_append_brings_a_value_back_without_its_timer(driven: KafkaTasksSystem) -> None:
    """runtime/boundary-cancelled-timer: nothing deletes the value any more."""
    seen = after(driven, *ACTIVE, PUT, ("Operate", "b1", "delete", "refused"))

    assert seen["shard"]["b1"]["memory"]["k1"] == 1
    assert seen["timers"]["b1"]["running"]["k1"]["kind"] == "NONE"
    with pytest.raises(ActionRefused, match="no timer k1 waits"):
        driven.apply(Action("Fire", ("b1", "k1")))


def test_a_value_that_was_put_back_has_a_timer_again(driven: KafkaTasksSystem) -> None:
    seen = after(driven, *ACTIVE, PUT, ("Operate", "b1", "delete", "refused"), PUT)

    assert seen["timers"]["b1"]["running"]["k1"]["kind"] == "WAITS"


def test_the_retry_of_a_write_that_timed_out_cuts_a_later_session_short(
    driven: KafkaTasksSystem,
) -> None:
    """runtime/boundary-late-retry: write 3 has 500 ms in the place of its session's time."""
    retried = after(driven, *ACTIVE, PUT, FIRE, RUN, PUT, ("OperationTimeOut", 2))

    assert retried["shard"]["b1"]["memory"]["k1"] == 3
    assert retried["timers"]["b1"]["running"]["k1"]["of"] == 1
    driven.apply(Action("Fire", ("b1", "k1")))
    driven.apply(Action("RunTimeout", ("b1", "k1", "appended")))
    assert driven.observe()["shard"]["b1"]["memory"]["k1"] == 0
