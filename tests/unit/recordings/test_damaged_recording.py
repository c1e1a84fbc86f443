"""A recording with any field of any line gone, or of another type, is refused by its line."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.errors import DataError
from conformance.recordings.group import group_traces
from conformance.recordings.replication import (
    partitions_in,
    replication_traces,
    unfit_settings,
)
from tests.unit.recordings.test_group_recorded import AGENT, TAP, recording
from tests.unit.recordings.test_replication_recorded import APPEND, Lines, broker

OTHERS = ("x", -7, 10**400, 1.5, None, [], [None], {}, {"x": None}, True)


def group(folder: Path) -> Path:
    made = recording(folder, AGENT, TAP)
    fault = {"action": "kill-client", "client": "m1", "time": 90, "node": 0, "problem": ""}
    told = {"kafka": "3.9.0", "faults": [fault]}
    (folder / "recording.json").write_text(json.dumps(told))
    return made


def partition(folder: Path) -> Path:
    made = Lines()
    made.registered(1, leader=1, epoch=0, isr=[1, 2], version=0)
    made.section(1, "$anonfun$makeLeader$1", broker(1, 0, 0, -1))
    made.section(2, "$anonfun$makeFollower$1", broker(1, 0, 0))
    made.section(1, APPEND, broker(1, 1, 0, -1))
    made.request(2)
    made.fetch(1, 2, broker(1, 1, 0, 0), overlaps=["append"])
    made.section(2, "processPartitionData", broker(1, 1, 0))
    fault = {"action": "kill", "time": made.time + 1, "node": 2, "problem": ""}
    settings = {"replica.fetch.max.bytes": "100", "num.io.threads": "1"}
    made.write(folder, {"faults": [fault], "settings": settings, "brokers": [1, 2]})
    return folder


def read(folder: Path) -> int:
    """The number of events; DataError names a line of a file, or the file."""
    partitions_in(folder)
    unfit_settings(folder)
    traces = [*group_traces(folder), *replication_traces(folder)]
    return sum(len(trace.events) for trace in traces if trace.mapping and trace.ndjson)


def damaged(value: Any) -> Iterator[tuple[str, Any]]:
    """The value with each of its parts gone, or of another type."""
    places = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(places):
        gone = copy.deepcopy(value)
        del gone[key]
        yield f"{key} gone", gone
        for other in OTHERS:
            changed = copy.deepcopy(value)
            changed[key] = other
            yield f"{key} = {str(other)[:20]}", changed
        if isinstance(part, dict | list):
            for what, inner in damaged(part):
                changed = copy.deepcopy(value)
                changed[key] = inner
                yield f"{key}.{what}", changed


@pytest.mark.parametrize("make", [group, partition])
def test_a_damaged_line_is_refused_by_its_place(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = make(tmp_path)
    assert read(folder)
    refused = 0
    faults: list[str] = []
    for path in sorted(folder.rglob("*.*json")):
        text = path.read_text()
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            for what, value in damaged(json.loads(line)):
                path.write_text(
                    "\n".join([*lines[: number - 1], json.dumps(value), *lines[number:]])
                )
                try:
                    read(folder)
                except DataError as error:
                    refusal = str(error)
                except Exception as error:  # noqa: BLE001  every one is a fault, all are listed
                    faults.append(f"{path.name}:{number}: {what}: {error!r}")
                    continue
                else:
                    continue
                refused += 1
                place = path.name if path.suffix == ".json" else f"{path.name}:{number}"
                # A line of the right form may contradict the others: the partition is named.
                if place not in refusal and "t-0" not in refusal:
                    faults.append(f"{path.name}:{number}: {what}: {refusal}")
        path.write_text(text)
    assert not faults, "\n".join(faults)
    assert refused > 500


@pytest.mark.parametrize("field", ["entered", "operation", "state"])
def test_a_line_of_the_agent_without_a_field_is_named(tmp_path: Path, field: str) -> None:
    folder = group(tmp_path)
    path = folder / "node1" / "agent.ndjson"
    first, *others = map(json.loads, path.read_text().splitlines())
    del first[field]
    path.write_text("".join(json.dumps(line) + "\n" for line in [first, *others]))
    wanted = rf"agent\.ndjson:1 is not a line of an agent: .*{re.escape(field)}"
    with pytest.raises(DataError, match=wanted):
        read(folder)
