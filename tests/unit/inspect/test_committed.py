"""Which records of the metadata log count as committed, by what the voters' copies hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from conformance.inspect.evidence import BATCHES, TABLES, Evidence
from conformance.inspect.reading.committed import write_metadata
from conformance.inspect.store import METADATA_COPIES, PartWriter

VOTERS = {"voters": [{"voterId": 1}, {"voterId": 2}, {"voterId": 3}]}
Copy = list[tuple[int, int]]
"""Offset and epoch of batches of one record each."""


def evidence(folder: Path, copies: dict[str, Copy], snapshots: dict[str, int]) -> Evidence:
    with PartWriter(folder, 0) as writer:
        for number, (broker, copy) in enumerate(copies.items(), 1):
            identity = {"broker": broker, "directory": "", "path": "meta.properties"}
            writer.row(
                "identities",
                identity | {"kind": "meta.properties", "key": "node.id", "value": str(number)},
            )
            for offset, epoch in copy:
                writer.row(METADATA_COPIES, record(broker, offset, epoch))
                writer.row("batches", batch(broker, offset, epoch))
        for broker, end in snapshots.items():
            row = record(broker, end - 1, 1) | {"source": "snapshot", "type": "NoOpRecord"}
            writer.row(METADATA_COPIES, row)
    with PartWriter(folder, 1) as writer:
        write_metadata(folder, writer)
    return Evidence(folder, {})


def record(broker: str, offset: int, epoch: int) -> dict[str, Any]:
    first = offset == 0
    return {
        "broker": broker,
        "offset": offset,
        "epoch": epoch,
        "timestamp": 0,
        "type": "LeaderChangeMessage" if first else "NoOpRecord",
        "version": 0,
        "body": json.dumps(VOTERS if first else {}),
        "source": "log",
        "path": "x",
        "sequence": offset,
    }


def batch(broker: str, offset: int, epoch: int) -> dict[str, Any]:
    numbers = {field.name: 0 for field in BATCHES if not pa.types.is_string(field.type)}
    texts = {field.name: "" for field in BATCHES if pa.types.is_string(field.type)}
    own = {"broker": broker, "topic": "__cluster_metadata", "crc_ok": True}
    return numbers | texts | own | {
        "base_offset": offset,
        "last_offset": offset,
        "leader_epoch": epoch,
        "stored_crc": 1000 * epoch + offset,
    }  # fmt: skip


def committed(found: Evidence) -> dict[str, list[bool | None]]:
    rows = [row for row in found.rows("metadata") if row["source"] == "log"]
    return {
        name: [row["committed"] for row in rows if row["broker"] == name]
        for name in sorted({row["broker"] for row in rows})
    }


SHARED: Copy = [(0, 1), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("copies", "snapshots", "expected"),
    [
        (
            {"a": SHARED, "b": SHARED, "c": SHARED[:2]},
            {},
            {"a": [True] * 3, "b": [True] * 3, "c": [True] * 2},
        ),
        (
            {"a": [*SHARED, (3, 1)], "b": SHARED, "c": SHARED},
            {},
            {"a": [True, True, True, None], "b": [True] * 3, "c": [True] * 3},
        ),
        (
            {"a": [*SHARED, (3, 1)], "b": [*SHARED, (3, 2)], "c": [*SHARED, (3, 2)]},
            {},
            {"a": [True] * 3 + [False], "b": [True] * 4, "c": [True] * 4},
        ),
        ({"a": SHARED}, {}, {"a": [None] * 3}),
        ({"a": SHARED}, {"a": 2}, {"a": [True, True, None]}),
        (
            {"a": SHARED, "b": SHARED[:1], "c": SHARED[:1], "d": SHARED},
            {},
            {"a": [True, None, None], "b": [True], "c": [True], "d": [True, None, None]},
        ),
    ],
    ids=[
        "a majority holds it",
        "one holds more: its copy may be later",
        "another record was committed there",
        "one copy of three tells nothing",
        "a snapshot holds what was committed",
        "a broker that is no voter does not count",
    ],
)
def test_committed(
    tmp_path: Path,
    copies: dict[str, Copy],
    snapshots: dict[str, int],
    expected: dict[str, list[bool | None]],
) -> None:
    assert committed(evidence(tmp_path, copies, snapshots)) == expected


def test_topics_in_tiered_storage_are_noted(tmp_path: Path) -> None:
    with PartWriter(tmp_path, 0) as writer:
        for offset, (topic, value) in enumerate(
            [("t", "true"), ("u", "true"), ("u", "false"), ("v", "true")]
        ):
            body = {"resourceType": 2 if topic != "v" else 4, "resourceName": topic}
            body |= {"name": "remote.storage.enable", "value": value}
            row = record("a", offset + 1, 1) | {"type": "ConfigRecord", "body": json.dumps(body)}
            writer.row(METADATA_COPIES, row)
    with PartWriter(tmp_path, 1) as writer:
        write_metadata(tmp_path, writer)
    rows = list(Evidence(tmp_path, {}).rows("identities"))
    assert [(row["kind"], row["key"], row["value"]) for row in rows] == [("tiered", "t", "true")]


def test_without_any_metadata_log_the_table_is_empty(tmp_path: Path) -> None:
    with PartWriter(tmp_path, 0) as writer:
        write_metadata(tmp_path, writer)
    assert Evidence(tmp_path, {}).table("metadata").schema == TABLES["metadata"]
