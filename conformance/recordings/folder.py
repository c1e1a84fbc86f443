"""What becomes of a recorded cluster: events of a specification, and the mapping that judges them.

A recording is the folder that `kconform cluster record` wrote (docs/cluster.md). Which of its lines
are which steps is the business of `group` and `replication`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import DataError
from conformance.inputs import open_plain, read_text
from conformance.recordings.lines import JsonObject, check_agents_line, check_manifest
from conformance.tla import load_json


@dataclass(frozen=True, slots=True)
class RecordedLine:
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
    """What `recording.json` says. Raises DataError if it is none, or the folder no recording."""
    path = recording / "recording.json"
    if not os.path.lexists(path):
        raise DataError(
            f"{recording} is no recording: it has no recording.json. `kconform cluster record` "
            "writes one."
        )
    report = _read(path)
    check_manifest(str(path), report)
    return report


def series(folder: Path) -> list[str]:
    """The runs of a series (`cluster record --runs N`) by their folders' names; none if it is none.

    Raises DataError if it cannot be read.
    """
    path = folder / "series.json"
    runs = _read(path).get("runs", {}) if os.path.lexists(path) else {}
    return list(runs) if isinstance(runs, Mapping) else []


def _read(path: Path) -> JsonObject:
    return _object(path, read_text(path))


def _object(place: Path | str, text: str | bytes) -> JsonObject:
    try:
        result = load_json(text)
    except DataError as error:
        raise DataError(f"{place} is no part of a recording: {error}.") from error
    if not isinstance(result, dict):
        raise DataError(f"{place} is no part of a recording: it holds no object.")
    return result


def read_lines(path: Path) -> Iterator[tuple[int, JsonObject]]:
    """The numbered lines of a part of a recording. Raises DataError for one that is no object."""
    with open_plain(path) as file:
        for number, line in enumerate(file, 1):
            yield number, _object(f"{path}:{number}", line)


def agents_lines(recording: Path) -> Iterator[RecordedLine]:
    """What the agents of all nodes wrote, node by node; `time` is the section's end.

    Raises DataError for a line that lacks what the readers of groups and partitions use.
    """
    for path in sorted(recording.glob("node*/agent.ndjson")):
        place = path.relative_to(recording)
        for number, line in read_lines(path):
            check_agents_line(f"{path}:{number}", line)
            yield RecordedLine(line["time"], f"{place}:{number}", line["node"], line)
