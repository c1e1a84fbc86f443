"""Kafka's jars for tests: fetched at the first use; without network or Java the test is skipped."""

from __future__ import annotations

import os

import pytest

from conformance.errors import EnvironmentProblem
from conformance.kafka.jars import KafkaJars, kafka_jars
from conformance.kafka.maven import Coordinate, maven_jars

VERSIONS = ("3.8.1", "4.4.0")
JUNIT_RELEASES = ("3.8.1", "4.0.0", "4.1.0", "4.3.0", "4.4.0")
"""For the JUnit tests: each finding is seen in one of so few, and most are gone in another. Only
tests of logs are written for 3.8.1."""
COMMON_RELEASES = frozenset({*VERSIONS, *JUNIT_RELEASES})
"""The releases that several tests share: the jars of one more cost about a minute."""
DRIVEN = frozenset(
    {
        "ConsumerCommits",
        "ConsumerGroup",
        "ConsumerPositions",
        "ConsumerTopics",
        "CoordinatorGroupTimers",
        "CoordinatorGroups",
        "CoordinatorStore",
        "CoordinatorTasks",
        "CoordinatorTransactions",
        "DirectoryAssignment",
        "DirectoryMove",
        "GroupMembership",
        "IdempotentProduce",
        "LogCompaction",
        "LogStorage",
        "MixedGroup",
        "Reassignment",
        "Replication",
        "ReplicationInterruptedFetches",
        "ShareCoordinator",
        "SharePartition",
        "TransactionErrors",
        "TransactionExpiry",
        "TransactionManager",
        "TransactionProducerIds",
        "TransactionalLog",
        "TransactionalLogExpiry",
        "TransactionalLogRestarts",
        "Transactions",
    }
)
"""The specifications that Kafka's classes take."""
WITHOUT_JUNIT = frozenset({"max-timestamp-deleted", "stable-below-start"})
"""Deviations of which no JUnit test is written: those of brokers at a port. A script is written of
them (`kconform story --script`)."""


def jars_or_skip(version: str) -> KafkaJars:
    """The jars; KCONFORM_REQUIRE_KAFKA=1 makes their lack a failure (as in CI), not a skip."""
    try:
        return kafka_jars(version)
    except EnvironmentProblem as problem:
        if os.environ.get("KCONFORM_REQUIRE_KAFKA") == "1":
            raise
        pytest.skip(f"Kafka {version} is not to be had here: {problem}")


def dump_log_class_path(version: str) -> str:
    """The class path of kafka.tools.DumpLogSegments in 3.x, or a skip as above."""
    jars = jars_or_skip(version)
    tools = maven_jars(
        f"kafka-tools-api-{version}", [Coordinate("org.apache.kafka", "kafka-tools-api", version)]
    )
    return os.pathsep.join([str(jars), *map(str, tools)])
