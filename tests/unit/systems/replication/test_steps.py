"""impl and Kafka are driven by the same actions of Replication.tla."""

from __future__ import annotations

from conformance.systems.kafka.steps import STEPS as OF_KAFKA
from conformance.systems.replication.disk_failures import DISK_FAILURES
from conformance.systems.replication.steps import STEPS as OF_IMPL
from conformance.systems.shared.replication.controller import DECISIONS

SECTIONS = {"ReadFetch", "CountFetch"}
"""Of ReplicationInterruptedFetches, which only Kafka is driven by."""


def test_each_action_that_moves_impl_moves_kafka() -> None:
    assert OF_IMPL.keys() - DISK_FAILURES.keys() == OF_KAFKA.keys() - SECTIONS


def test_both_take_the_decisions_of_the_same_controller() -> None:
    for table in (OF_IMPL, OF_KAFKA):
        assert DECISIONS.keys() <= table.keys()
        assert all(DECISIONS[name] in table[name].args for name in DECISIONS)  # type: ignore[attr-defined]  # each is a partial
