"""Which versions and models the system `kafka-VERSION` takes, without starting it."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.registry import load_factory
from conformance.systems.kafka import KafkaFactory, of_version
from conformance.systems.kafka.factory import specification_of
from tests.bundled import MODELS
from tests.kafka_needed import DRIVEN

EXTENDED = {
    "CoordinatorGroups": "CoordinatorStore",
    "CoordinatorTransactions": "CoordinatorStore",
    "ReplicationInterruptedFetches": "Replication",
    "TransactionErrors": "Transactions",
    "TransactionExpiry": "Transactions",
    "TransactionProducerIds": "Transactions",
}
"""Specifications whose models the system of another one takes."""


def test_a_version_that_is_too_old_is_told_with_those_that_were_tried() -> None:
    with pytest.raises(UserError, match=r"Kafka 2\.4\.0 cannot be driven.*3\.8\.1.*4\.4\.0"):
        of_version("2.4.0")


def test_something_else_than_a_version_is_no_version() -> None:
    with pytest.raises(UserError, match="'newest' is no version of Kafka"):
        of_version("newest")


def test_the_own_build_needs_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KCONFORM_KAFKA_LIB", raising=False)

    with pytest.raises(UserError, match="--kafka-lib or KCONFORM_KAFKA_LIB"):
        of_version("")


@pytest.mark.parametrize(
    ("version", "specification", "protocol", "reason"),
    [
        ("3.8.1", "Replication", "TruncateOnFetch", ""),
        ("3.8.1", "Replication", "Kip101", "speaks Kip101"),
        ("3.8.1", "Replication", "Kip320", ""),
        ("3.9.1", "Replication", "Kip320", ""),
        ("4.0.0", "Replication", "Kip320", "from 4.0 on"),
        ("4.0.0", "Replication", "TruncateOnFetch", ""),
        ("3.8.1", "GroupMembership", "", ""),
        ("3.8.1", "ConsumerCommits", "", ""),
        ("3.8.1", "ConsumerPositions", "", ""),
        ("3.8.1", "ConsumerTopics", "", ""),
        ("3.8.1", "DelayedOperations", "", "not by DelayedOperations"),
    ],
)
def test_it_takes_what_that_version_speaks(
    version: str, specification: str, protocol: str, reason: str
) -> None:
    told = KafkaFactory(version).cannot_take(specification, {"Protocol": protocol})

    assert reason in told
    assert bool(told) is bool(reason)


@pytest.mark.parametrize("specification", sorted(DRIVEN))
def test_a_models_constants_tell_its_specification(specification: str) -> None:
    """Two specifications may have a constant of one name: share partitions and producers have."""
    told = {specification_of(model.constants) for model in MODELS if model.spec == specification}

    assert told == {EXTENDED.get(specification, specification)}


@pytest.mark.parametrize(
    ("window", "batches", "reason"),
    [
        (5, 6, ""),
        (2, 2, ""),  # neither window is ever full
        (2, 3, "Kafka keeps 5 batches of a producer, and this model 2 of 3"),
        (6, 6, "Kafka keeps 5 batches of a producer, and this model 6 of 6"),
    ],
)
def test_it_takes_producers_whose_window_is_kafkas(window: int, batches: int, reason: str) -> None:
    constants = {"Window": window, "MaxBatches": batches, "MaxInFlight": 2}

    assert KafkaFactory("4.4.0").cannot_take("IdempotentProduce", constants) == reason


@pytest.mark.parametrize(
    ("text", "client", "name"),
    [
        ("3.8.1", None, "kafka-3.8.1"),
        ("3.8.1+client", "3.8.1", "kafka-3.8.1+client"),
        ("3.8.1+client-4.4.0", "4.4.0", "kafka-3.8.1+client-4.4.0"),
        ("3.8.1+client-3.8.1", "3.8.1", "kafka-3.8.1+client"),
    ],
)
def test_a_name_says_whose_members_a_group_has(text: str, client: str | None, name: str) -> None:
    factory = of_version(text)

    assert isinstance(factory, KafkaFactory)
    assert (factory.client, factory.name) == (client, name)


def test_ones_own_build_can_have_its_own_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCONFORM_KAFKA_LIB", str(tmp_path))

    own, released = load_factory("kafka+client"), load_factory("kafka+client-4.4.0")

    assert own == KafkaFactory("", "")
    assert released == KafkaFactory("", "4.4.0")
    assert isinstance(released, KafkaFactory)
    assert released.name == "kafka+client-4.4.0"


def test_a_folder_of_jars_is_a_build_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no Kafka"):
        load_factory(f"kafka-{tmp_path}")


@pytest.mark.parametrize("text", ["3.8.1+clients", "3.8.1+client4.4.0", "3.8.1+client=4.4.0"])
def test_a_client_that_is_not_named_so_is_told(text: str) -> None:
    with pytest.raises(UserError, match=r"\+client-VERSION"):
        of_version(text)


def test_a_client_that_is_too_old_is_told() -> None:
    with pytest.raises(UserError, match=r"Kafka 2\.4\.0 cannot be driven"):
        of_version("3.8.1+client-2.4.0")


def test_java_consumers_take_no_part_in_replication() -> None:
    told = KafkaFactory("3.8.1", "3.8.1").cannot_take("Replication", {})

    assert "driven by GroupMembership and ConsumerGroup only" in told
    assert KafkaFactory("3.8.1", "3.8.1").cannot_take("GroupMembership", {}) == ""


@pytest.mark.parametrize(("release", "client"), [("3.8.1", "4.0.0"), ("4.0.0", "3.8.1")])
def test_groups_of_kip_848_have_java_consumers_from_4_0_on(release: str, client: str) -> None:
    assert "before 4.0" in KafkaFactory(release, client).cannot_take("ConsumerGroup", {})
    assert KafkaFactory("4.0.0", "4.4.0").cannot_take("ConsumerGroup", {}) == ""


def test_a_clients_deviations_are_of_its_own_version() -> None:
    mixed, plain = KafkaFactory("3.8.1", "4.4.0"), KafkaFactory("3.8.1")

    with_client = {one.part for one in mixed.deviations()}
    assert with_client - {one.part for one in plain.deviations()} == {"client"}
    assert (mixed.version_of(""), mixed.version_of("client")) == ("3.8.1", "4.4.0")
