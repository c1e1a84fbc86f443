"""Kafka's jars for tests: fetched at the first use; without network or Java the test is skipped."""

from __future__ import annotations

import os

import pytest

from conformance.errors import EnvironmentProblem
from conformance.kafka.jars import KafkaJars, kafka_jars

VERSIONS = ("3.8.1", "4.4.0")


def jars_or_skip(version: str) -> KafkaJars:
    """The jars; KCONFORM_REQUIRE_KAFKA=1 makes their lack a failure (as in CI), not a skip."""
    try:
        return kafka_jars(version)
    except EnvironmentProblem as problem:
        if os.environ.get("KCONFORM_REQUIRE_KAFKA") == "1":
            raise
        pytest.skip(f"Kafka {version} is not to be had here: {problem}")
