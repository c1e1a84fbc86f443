"""What server logs tell of a partition, in order: who led, what was truncated, high watermarks."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from conformance.inspect.evidence import Evidence, about
from conformance.inspect.history import Key
from conformance.inspect.server_logs import out_of_order, read_server_logs

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class ServerLogLine:
    """A line of a server log that says something of a replica. Numbers that it lacks are -1."""

    broker: str
    kind: str
    """started, truncated, restarted (the whole log was cut), or high-watermark."""
    time: int
    source: str
    text: str
    leads: bool = False
    leader: int = UNKNOWN
    epoch: int = UNKNOWN
    offset: int = UNKNOWN
    """Where a leader or follower starts; to what a log was truncated."""
    high_watermark: int = UNKNOWN


def read_lines(evidence: Evidence, keys: Collection[Key]) -> dict[Key, list[ServerLogLine]]:
    """The lines of these partitions, by time, and by file and number within one millisecond.

    Lines of nobody's log are left out, and those whose place in time is not known: `server_logs`
    says so.
    """
    result: dict[Key, list[tuple[tuple[int, str, int], ServerLogLine]]] = {}
    unordered = out_of_order(read_server_logs(replace(evidence, parts=None)))
    for row in evidence.rows("log_lines", about(keys)):
        if (row["topic"], row["partition"]) not in keys or not row["broker"]:
            continue
        if row["time"] is None and row["broker"] in unordered:
            continue
        line = _line(row)
        if line is not None:
            order = (row["time"] or 0, row["path"], row["line"])
            result.setdefault((row["topic"], row["partition"]), []).append((order, line))
    return {
        key: [line for _, line in sorted(lines, key=lambda pair: pair[0])]
        for key, lines in result.items()
    }


_STARTED = ("become-leader", "become-follower")
_HIGH_WATERMARK = {
    "isr-shrink": "high_watermark",
    "log-loaded": "high_watermark",
    "log-load-completed": "high_watermark",
    "high-watermark-fell": "high_watermark_before",
    "high-watermark-updated": "high_watermark",
    "high-watermark-set": "high_watermark",
    "follower-high-watermark": "high_watermark",
    "truncate-below-high-watermark": "high_watermark",
}
"""Kinds of lines, and the field that tells what was reached."""


def _line(row: Mapping[str, Any]) -> ServerLogLine | None:
    """A row that bears on who led, on a truncation or a high watermark; else None."""
    kind, fields = row["kind"], json.loads(row["fields"])
    if kind in _STARTED:
        own = "started"
    elif kind == "truncated":
        own = "truncated"
    elif "future" in fields:
        return None  # of the log that is on its way to another directory, not of the replica
    elif kind == "truncated-fully":
        own = "restarted"
    elif kind in _HIGH_WATERMARK and _number(fields, _HIGH_WATERMARK[kind]) != UNKNOWN:
        own = "high-watermark"
    else:
        return None
    return ServerLogLine(
        row["broker"],
        own,
        -1 if row["time"] is None else row["time"],
        f"{row['path']}:{row['line']}",
        row["text"],
        kind == "become-leader",
        _number(fields, "leader"),
        _number(fields, "epoch"),
        _number(fields, "offset"),
        _number(fields, _HIGH_WATERMARK.get(kind, "high_watermark")),
    )


def _number(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name, UNKNOWN)
    return value if isinstance(value, int) else UNKNOWN
