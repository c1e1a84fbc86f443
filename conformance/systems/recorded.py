"""What becomes of a recorded cluster: events of a specification, and the mapping that judges them.

A recording is the folder that `kconform cluster record` wrote (docs/cluster.md). Which of its lines
are which steps is the business of `group.recorded` and `replication.recorded`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.errors import DataError

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """A line of the agent's or the tap's file; `time` is in nanoseconds."""

    time: int
    source: str
    node: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """The events of one group or partition, and what the mapping has to declare of them."""

    name: str
    model: str
    """The model whose specification the events follow; all of its constants are in the mapping."""
    events: tuple[JsonObject, ...]
    constants: Mapping[str, str]
    silent: tuple[str, ...]
    steps: int
    """At most so many of the silent actions in a row."""

    @property
    def ndjson(self) -> str:
        """The events, one a line (docs/traces.md)."""
        return "".join(json.dumps(event) + "\n" for event in self.events)

    @property
    def mapping(self) -> str:
        """The mapping that goes with them, as TOML (docs/mapping.md)."""
        silent = ", ".join(f'"{name}"' for name in self.silent)
        lines = ["schema = 1", 'order = "total"', "", "[silent]", f"actions = [{silent}]"]
        lines += [f"steps = {self.steps}", "", "[constants]"]
        # JSON's texts are TOML's.
        lines += [f"{name} = {json.dumps(value)}" for name, value in self.constants.items()]
        return "\n".join(lines) + "\n"


def manifest(recording: Path) -> JsonObject:
    """What `recording.json` says. Raises DataError if the folder is no recording."""
    path = recording / "recording.json"
    if not path.exists():
        raise DataError(
            f"{recording} is no recording: it has no recording.json. `kconform cluster record` "
            "writes one."
        )
    return _read(path)


def series(folder: Path) -> list[str]:
    """The runs of a series (`cluster record --runs N`) by their folders' names; none if it is none.

    Raises DataError if it cannot be read.
    """
    path = folder / "series.json"
    return list(_read(path)["runs"]) if path.exists() else []


def _read(path: Path) -> JsonObject:
    try:
        found: JsonObject = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return found


def read_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """The numbered lines of a part of a recording. Raises DataError for one that is no JSON."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield number, json.loads(line)
    except (OSError, json.JSONDecodeError) as error:
        raise DataError(f"{path} is no part of a recording: {error}") from error


def agents_lines(recording: Path) -> Iterator[Seen]:
    """What the agents of all nodes wrote, node by node; `time` is the section's end."""
    for path in sorted(recording.glob("node*/agent.ndjson")):
        place = path.relative_to(recording)
        for number, line in read_lines(path):
            yield Seen(line["time"], f"{place}:{number}", line["node"], line)
