"""What the tests of Kafka's classes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.modelcheck.cache import Cache
from conformance.modelcheck.check import CheckOptions
from conformance.stages.context import Context
from conformance.systems.external import CHANNELS


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """State graphs of their own; the JVMs end with the module."""
    yield Context(check=CheckOptions(cache=Cache(tmp_path_factory.mktemp("cache"))), seed=3)
    CHANNELS.close()
