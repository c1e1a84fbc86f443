"""Kafka's own coordinator under the suites of MixedGroup: groups that change their protocol."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import deviations
from conformance.stages.presence import Presence
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka.mixed import KafkaMixedGroupSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.tla import Action, Fn
from conformance.verdict import Verdict
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

NEWEST, OLDEST = "4.4.0", "4.0.0"
MODELS = ["moves-2m", "eager-2m", "replaced-3m", "topics-3m", "upgrade-3m", "malformed-2m"]


@pytest.fixture
def driven(context: Context) -> Iterator[KafkaMixedGroupSystem]:
    """A coordinator of the newest release, to be driven by hand."""
    jars_or_skip(NEWEST)
    model = one_model("mixed/replaced-3m")
    system = workbench(context, model, f"kafka-{NEWEST}", with_graph=False).make_system()
    assert isinstance(system, KafkaMixedGroupSystem)
    yield system
    system.close()


def after(driven: KafkaMixedGroupSystem, *steps: str) -> Observation:
    """What is seen after these steps from the start."""
    driven.reset({})
    for step in steps:
        name, member = step.split()
        driven.apply(Action(name, (member,)))
    return driven.observe()


def owned(seen: Observation, member: str) -> object:
    clients = seen["client"]
    assert isinstance(clients, Fn)
    client = clients[member]
    assert isinstance(client, Fn)
    return client["owned"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("model", MODELS)
def test_random_walks_agree_with_the_known_deviations(
    context: Context, model: str, version: str
) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"mixed/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=20, length=20)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 20


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_table_of_deviations_is_what_the_coordinator_does(
    context: Context, version: str
) -> None:
    jars_or_skip(version)

    shown = deviations(context, f"kafka-{version}", {"MixedGroup"})

    assert all(result.as_expected for result in shown)
    still = {one.deviation.id for one in shown if one.presence is Presence.SEEN}
    assert len(shown) == 9
    assert still == (
        {one.deviation.id for one in shown} if version == OLDEST else {"target-given-at-downgrade"}
    )


def test_two_consumers_own_a_partition_after_a_downgrade(driven: KafkaMixedGroupSystem) -> None:
    driven.reset({})
    driven.choose({"target": Fn({"c": frozenset({0}), "n": frozenset({1}), "s": frozenset()})})
    driven.apply(Action("ConsumerJoin", ("n",)))
    driven.apply(Action("ConsumerLeave", ("n",)))
    driven.choose({"target": Fn({"c": frozenset({0}), "n": frozenset({1}), "s": frozenset()})})
    driven.apply(Action("ConsumerJoin", ("n",)))

    seen = driven.observe()

    assert owned(seen, "c") == frozenset({0, 1})
    assert owned(seen, "n") == frozenset({1})


def test_a_group_is_upgraded_and_downgraded(driven: KafkaMixedGroupSystem) -> None:
    assert after(driven)["type"] == "classic"
    assert after(driven, "ConsumerJoin n")["type"] == "consumer"
    assert after(driven, "ConsumerJoin n", "ConsumerLeave n")["phase"] == "PreparingRebalance"


def test_what_the_adapter_cannot_do_is_refused(driven: KafkaMixedGroupSystem) -> None:
    driven.reset({})
    with pytest.raises(ActionRefused, match="no action"):
        driven.apply(Action("EatTheCake", ("c",)))
    with pytest.raises(ActionRefused):
        driven.apply(Action("ExpireSession", ("c",)))
