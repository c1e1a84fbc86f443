"""Releases' classes, one JVM each for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.kafka.jars import kafka_jars
from conformance.kafka.schemas import Schemas
from conformance.load.classes import release_classes
from conformance.load.topics import TOPICS
from conformance.modelcheck.specifications import Specifications
from tests.e2e.load.written import LogWriter

NEWEST = "4.4.0"


@pytest.fixture(scope="session")
def specifications() -> Specifications:
    parsed = Specifications()
    parsed.prepare([topic.model for topic in TOPICS.values()])
    return parsed


@pytest.fixture
def writer() -> Iterator[LogWriter]:
    with release_classes(NEWEST) as classes:
        yield LogWriter(classes.channel, Schemas.of(kafka_jars(NEWEST).classpath))
