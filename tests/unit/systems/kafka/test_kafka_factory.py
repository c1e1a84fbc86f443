"""Which versions and models the system `kafka-VERSION` takes, without starting it."""

from __future__ import annotations

import pytest

from conformance.errors import UserError
from conformance.systems.kafka import KafkaFactory, of_version


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
        ("3.8.1", "DelayedOperations", "", "not by DelayedOperations"),
    ],
)
def test_it_takes_what_that_version_speaks(
    version: str, specification: str, protocol: str, reason: str
) -> None:
    told = KafkaFactory(version).cannot_take(specification, {"Protocol": protocol})

    assert reason in told
    assert bool(told) is bool(reason)
