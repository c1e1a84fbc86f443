"""Kafka's own Java consumers as members of KIP-848: each client with each coordinator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context, one_model, workbench
from conformance.stages.deviations import Presence, deviations
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.kafka.consumers import JavaConsumerGroupSystem
from conformance.systems.protocol import ActionRefused, Observation
from conformance.systems.wire.consumer.member import CommitAnswer
from conformance.tla import Action, Fn, Value
from conformance.verdict import Verdict
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

OLD, NEW = "4.0.0", "4.4.0"
EACH = [
    f"kafka-{OLD}+client",
    f"kafka-{NEW}+client",
    f"kafka-{OLD}+client-{NEW}",
    f"kafka-{NEW}+client-{OLD}",
]
"""Every coordinator with every client."""
JOINED = ("Join m1", "SendHeartbeat m1", "HandleHeartbeat m1", "ReceiveAnswer m1")
OWNING = (*JOINED, "Assign m1")


@pytest.fixture(autouse=True)
def jars() -> None:
    """Those of both releases."""
    jars_or_skip(OLD)
    jars_or_skip(NEW)


@pytest.fixture
def driven(context: Context) -> Iterator[JavaConsumerGroupSystem]:
    """A group of the newest release, to be driven by hand."""
    model = one_model("consumer/commits-2m")
    system = workbench(context, model, f"kafka-{NEW}+client", with_graph=False).make_system()
    assert isinstance(system, JavaConsumerGroupSystem)
    yield system
    system.close()


def after(driven: JavaConsumerGroupSystem, *steps: str) -> Observation:
    """What is seen after these steps from the start."""
    driven.reset({})
    take(driven, *steps)
    return driven.observe()


def take(driven: JavaConsumerGroupSystem, *steps: str) -> None:
    for step in steps:
        name, member = step.split()
        driven.apply(Action(name, (member,)))


def of_member(seen: Observation, variable: str, field: str) -> Value:
    value = seen[variable]
    assert isinstance(value, Fn)
    member = value["m1"]
    assert isinstance(member, Fn)
    return member[field]


@pytest.mark.parametrize(
    ("system", "model"),
    [
        *((system, "losses-2m") for system in EACH),
        *((EACH[1], model) for model in ("commits-2m", "expiries-2m", "static-2m")),
    ],
)
def test_random_walks_agree_with_the_known_deviations(
    context: Context, system: str, model: str
) -> None:
    bench = workbench(context, one_model(f"consumer/{model}"), system)
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=10, length=30)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS
    assert result.passed == 10


@pytest.mark.parametrize("version", [OLD, NEW])
def test_the_table_of_deviations_is_what_the_client_does(context: Context, version: str) -> None:
    shown = deviations(context, f"kafka-{version}+client", {"ConsumerGroup"})

    assert all(result.as_expected for result in shown)
    of_client = {
        result.deviation.id: result.presence
        for result in shown
        if result.deviation.part == "client"
    }
    assert of_client == {
        "names-while-reconciling": Presence.SEEN,
        "revoked-partitions-lost": Presence.GONE if version == OLD else Presence.SEEN,
        "stale-assignment": Presence.GONE if version == OLD else Presence.SEEN,
    }


@pytest.mark.parametrize(
    ("version", "owned_by_both"), [(OLD, frozenset()), (NEW, frozenset({0, 1}))]
)
def test_an_assignment_of_an_ended_membership_has_two_owners_and_a_commit_of_it_is_taken(
    context: Context, version: str, owned_by_both: frozenset[int]
) -> None:
    model = one_model("consumer/expiries-2m")
    system = workbench(context, model, f"kafka-{version}+client", with_graph=False).make_system()
    assert isinstance(system, JavaConsumerGroupSystem)
    system.reset({})
    take(system, *JOINED, "ExpireSession m1", "SendHeartbeat m1", "RefuseHeartbeat m1")
    system.interrupt(Action("Assign", ("m1",)), 1, Action("ReceiveAnswer", ("m1",)))
    take(system, "Join m2", "SendHeartbeat m2", "HandleHeartbeat m2", "ReceiveAnswer m2")
    take(system, "Assign m2", "SendHeartbeat m1")
    system.choose({"target": Fn({"m1": frozenset(), "m2": frozenset({0, 1})})})
    take(system, "HandleHeartbeat m1", "ReceiveAnswer m1")

    first, second = (system.members[name] for name in ("m1", "m2"))
    assert first.consumer.owned & second.consumer.owned == owned_by_both
    if owned_by_both:
        take(system, "SendCommit m1", "HandleCommit m1")
        assert isinstance(first.commit, CommitAnswer)
        assert first.commit.committed == owned_by_both
    system.close()


def test_what_a_consumer_sends_and_owns_is_seen(driven: JavaConsumerGroupSystem) -> None:
    assert of_member(after(driven, *JOINED), "consumer", "given") == frozenset({0, 1})
    assert of_member(after(driven, *JOINED), "consumer", "owned") == frozenset()
    assert of_member(after(driven, *OWNING), "consumer", "owned") == frozenset({0, 1})
    assert of_member(after(driven, *OWNING, "SendHeartbeat m1"), "channel", "owned") == frozenset(
        {0, 1}
    )
    committed = after(driven, *OWNING, "SendCommit m1", "HandleCommit m1", "ReceiveCommit m1")
    assert of_member(committed, "commit", "type") == "None"


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (("SendHeartbeat m1",), "is UNSUBSCRIBED and sends no heartbeat"),
        (("Join m1", "Join m1"), "is JOINING and does not join"),
        ((*OWNING, "Revoke m1"), "nothing to revoke"),
        ((*OWNING, "Assign m1"), "assigns nothing"),
        ((*OWNING, "Abandon m1"), "is not fenced"),
        ((*OWNING, "ReceiveAnswer m1"), "has no answer"),
        ((*OWNING, "LoseMessage m1"), "nothing in flight"),
        ((*OWNING, "SendHeartbeat m1", "SendHeartbeat m1"), "a heartbeat in flight"),
        ((*OWNING, "ReceiveCommit m1"), "no commit of m1 is answered"),
        ((*OWNING, "LoseCommit m1"), "commits nothing"),
    ],
)
def test_what_a_client_would_not_do_is_refused(
    driven: JavaConsumerGroupSystem, steps: tuple[str, ...], reason: str
) -> None:
    with pytest.raises(ActionRefused, match=reason):
        after(driven, *steps)
