"""What server logs tell of a partition, in order: who led, what was truncated, high watermarks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformance.inspect.evidence import Evidence
from conformance.inspect.history import Key

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a server log that says something of a replica. Numbers that it lacks are -1."""

    broker: str
    kind: str
    """started, truncated, loaded, isr-shrinks, high-watermark, or unclean."""
    time: int
    source: str
    text: str
    leads: bool = False
    leader: int = UNKNOWN
    epoch: int = UNKNOWN
    offset: int = UNKNOWN
    """Where a leader or follower starts; to what a log was truncated."""
    high_watermark: int = UNKNOWN
    cause: str = ""


def read_lines(evidence: Evidence) -> dict[Key, list[Line]]:
    """The lines of each partition, by time, and by file and number within one millisecond."""
    found: dict[Key, list[tuple[tuple[int, str, int], Line]]] = {}
    for row in evidence.rows("log_lines"):
        if row["topic"] is None or row["partition"] is None:
            continue
        line = _line(row)
        if line is not None:
            order = (row["time"] or 0, row["path"], row["line"])
            found.setdefault((row["topic"], row["partition"]), []).append((order, line))
    return {
        key: [line for _, line in sorted(lines, key=lambda one: one[0])]
        for key, lines in found.items()
    }


def _line(row: Mapping[str, Any]) -> Line | None:
    raise NotImplementedError
