"""What the tests of Kafka's classes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.stages.context import Context
from conformance.systems.external import CHANNELS


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    """With the state graphs of the user's cache; the JVMs end with the module."""
    yield Context(seed=3)
    CHANNELS.close()
