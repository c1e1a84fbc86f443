"""Server logs into rows: the lines that tell of replication, groups and damage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.inspect.reading.folders import Buffer
from conformance.inspect.reading.inputs import Filters


def rows(data: Buffer, path: str, zone: str, filters: Filters) -> Iterator[dict[str, Any]]:
    """The rows of a log's lines."""
    yield from ()
