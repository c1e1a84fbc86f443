"""Kafka's own coordinator of transactions and its partitions under the law of Transactions.tla."""

from __future__ import annotations

import pytest

from conformance.errors import UserError
from conformance.stages.context import Context, one_model, workbench
from conformance.stages.replay import replay
from conformance.stages.suite import make_suite
from conformance.systems.protocol import ActionRefused, SystemFailed
from conformance.systems.transaction.bridged import KafkaTransactionSystem
from conformance.tla import Action, Fn, Value
from conformance.verdict import Verdict
from tests.breadth import every
from tests.kafka_needed import jars_or_skip

pytestmark = pytest.mark.tlc

NEWEST = "4.4.0"
MODELS = [
    "v2-instances-1-transaction",
    "v2-append-failures-1-batch",
    "v2-outages",
    "errors-v2",
    "ids-fail-over",
    "expiry-v2",
    "expiry-fail-over",
    "v1",
]
OF_OLDER = [
    ("v1-instances-1-transaction", "3.9.1"),
    ("v2-4-0-instances-1-transaction", "4.0.0"),
    ("v2-4-0-instances-1-transaction", "4.1.0"),
    ("v2-instances-1-transaction", "4.2.0"),
    ("errors-v2", "4.0.0"),
    ("ids-fail-over", "4.1.0"),
    ("ids-time-outs", "4.2.0"),
    ("expiry-v1", "3.9.1"),
    ("expiry-v1", "4.0.0"),
]
"""With what the table of deviations knows set aside: Scala's log and metadata, then Java's."""


@pytest.mark.parametrize(
    ("model", "version"), every(2, [*((model, NEWEST) for model in MODELS), *OF_OLDER])
)
def test_random_walks_agree(context: Context, model: str, version: str) -> None:
    jars_or_skip(version)
    bench = workbench(context, one_model(f"transaction/{model}"), f"kafka-{version}")
    walks = make_suite(context, "walks", bench.graph, bench.prepared, walks=20, length=30)

    result = replay(context, bench, walks)

    assert result.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("model", "version", "reason"),
    [
        ("v2", "3.9.1", "before 4.0"),
        ("v2-4-0", "4.2.0", "from 4.2 on"),
        ("ids-time-outs", "4.0.0", "to -32768"),
    ],
)
def test_another_version_of_the_protocol_is_refused(
    context: Context, model: str, version: str, reason: str
) -> None:
    with pytest.raises(UserError, match=reason):
        workbench(context, one_model(f"transaction/{model}"), f"kafka-{version}")


def driven(context: Context, model: str, version: str) -> KafkaTransactionSystem:
    """To be driven by hand."""
    jars_or_skip(version)
    bench = workbench(
        context, one_model(f"transaction/{model}"), f"kafka-{version}", with_graph=False
    )
    system = bench.make_system()
    assert isinstance(system, KafkaTransactionSystem)
    system.reset({"leader": "c1"})
    return system


ZOMBIE: tuple[tuple[Value, ...], ...] = (
    ("BeginTransaction", "a"),
    ("AddPartitionOfClient", "c1", "a", "p"),
    ("AcknowledgeAppend", "c1", 1),
    ("TakeAdded", "a", "c1", "p"),
    ("SendBatch", "a", "p"),
    ("EndTransaction", "a", False),
    ("HandleEndTxn", "c1", 1, False),
    ("Elect", "c2", 3),
    ("Load", "c2"),
    ("WriteMarker", "p", 1, 2),
    ("AcknowledgeMarker", "c2", "p"),
    ("CompleteTransaction", "c2"),
    ("AcknowledgeAppend", "c2", 2),
    ("StartVerification", "p", 1, 0),
    ("Verify", "c1", "p"),
    ("AppendBatch", "p", 1, 0),
)
"""The counterexample of boundary-v1-zombie-verifies, with the completion before the late batch."""


def kinds(system: KafkaTransactionSystem) -> list[object]:
    log = system.observe()["log"]
    assert isinstance(log, Fn)
    records = log["p"]
    assert isinstance(records, tuple)
    return [record["kind"] for record in records if isinstance(record, Fn)]


@pytest.mark.parametrize("version", ["3.9.1", NEWEST])
def test_version_1_a_replaced_coordinator_verifies_a_late_batch(
    context: Context, version: str
) -> None:
    """The batch hangs: no marker comes behind it, and the transaction is complete."""
    system = driven(context, "boundary-v1-zombie-verifies", version)

    for name, *args in ZOMBIE:
        system.apply(Action(str(name), tuple(args)))

    assert kinds(system) == ["Aborted", "data"]
    log = system.observe()["transactionLog"]
    assert isinstance(log, tuple)
    last = log[-1]
    assert isinstance(last, Fn)
    assert last["state"] == "CompleteAbort"
    system.close()


AMID_A_FENCE: tuple[tuple[Value, ...], ...] = (
    ("BeginTransaction", "a"),
    ("SendBatch", "a", "p"),
    ("StartVerification", "p", 1, 0),
    ("AddPartitionOfLeader", "c1", "p"),
    ("AcknowledgeAppend", "c1", 1),
    ("Verify", "c1", "p"),
    ("AppendBatch", "p", 1, 0),
    ("EndTransaction", "a", True),
    ("BeginFence", "c1"),
)
"""A transaction's time is over while its commit is on its way; the fence has had one section."""


def test_a_commit_amid_a_fence_raises(context: Context) -> None:
    """Interrupted steps of `impl` show it; KafkaApis answers UNKNOWN_SERVER_ERROR."""
    system = driven(context, "v2-instances-1-transaction", NEWEST)
    for name, *args in AMID_A_FENCE:
        system.apply(Action(str(name), tuple(args)))

    with pytest.raises((ActionRefused, SystemFailed), match="already a pending state"):
        system.apply(Action("HandleEndTxn", ("c1", 1, True)))

    system.close()
