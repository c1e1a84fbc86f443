"""Which records of the metadata log were committed, by what a majority of its voters holds.

Copies may be of different moments. So a record is committed if its batch, or a later one of the
same copy, is held by a majority of the voters, or if a snapshot contains it; it is not committed if
the committed log has something else at its offset; else nobody can tell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from conformance.inspect.evidence import BATCHES, IDENTITIES, METADATA
from conformance.inspect.reading.names import CLUSTER_METADATA
from conformance.inspect.store import METADATA_COPIES, PartWriter

_CONFIG_OF_TOPIC = 2
_TIERED = "remote.storage.enable"


@dataclass(frozen=True, slots=True)
class CommittedEnds:
    """Up to where the metadata log is known to be committed; the ends are left out."""

    by_broker: Mapping[str, int]
    """In each copy: its records below are committed."""
    overall: int
    """Of all copies."""


def write_metadata(folder: Path, writer: PartWriter) -> None:
    """Give the records of all copies their `committed`, and note the topics in tiered storage."""
    copies = _dataset(folder, METADATA_COPIES, METADATA)
    ends = _ends(folder, copies)
    for batch in copies.to_batches():
        if batch.num_rows:
            writer.batch("metadata", _judged(batch, ends))
    for topic, value in sorted(_tiered(copies).items()):
        row = {"broker": "", "directory": "", "kind": "tiered", "path": "", "key": topic}
        writer.row("identities", row | {"value": value})


def _dataset(folder: Path, table: str, schema: pa.Schema, beside: str | None = None) -> ds.Dataset:
    """A table; with `beside` only of those parts that have rows in that other table too."""
    names = {path.name for path in (folder / (beside or table)).glob("part-*.parquet")}
    paths = sorted(str(path) for path in (folder / table).glob("*") if path.name in names)
    if not paths:
        return ds.dataset(schema.empty_table())
    return ds.dataset(paths, schema=schema, format="parquet")


def _judged(batch: pa.RecordBatch, ends: CommittedEnds) -> pa.RecordBatch:
    offsets = batch.column("offset").to_pylist()
    committed = [
        True if source == "snapshot" else _committed(offset, ends.by_broker[broker], ends.overall)
        for broker, offset, source in zip(
            batch.column("broker").to_pylist(),
            offsets,
            batch.column("source").to_pylist(),
            strict=True,
        )
    ]
    place = METADATA.get_field_index("committed")
    return batch.set_column(place, METADATA.field(place), pa.array(committed, pa.bool_()))


def _committed(offset: int, end: int, overall: int) -> bool | None:
    if offset < end:
        return True
    return False if offset < overall else None


def _ends(folder: Path, copies: ds.Dataset) -> CommittedEnds:
    voters = _voters(copies)
    nodes = _nodes(folder)
    snapshots = _snapshot_ends(copies)
    batches = _batches(folder)
    majority = _held_by_majority(batches, {name for name in nodes if nodes[name] in voters}, voters)
    ends = {name: snapshots.get(name, 0) for name in _names(copies)}
    for name, batch in batches:
        if batch in majority:
            ends[name] = max(ends.get(name, 0), batch[1] + 1)
    return CommittedEnds(ends, max(ends.values(), default=0))


_Batch = tuple[int, int, int, int]
"""First and last offset, leader epoch and checksum: Raft's followers copy batches as they are."""


def _batches(folder: Path) -> list[tuple[str, _Batch]]:
    names = ["broker", "base_offset", "last_offset", "leader_epoch", "stored_crc"]
    where = (pc.field("topic") == CLUSTER_METADATA) & (pc.field("state") == "")
    batches = _dataset(folder, "batches", BATCHES, beside=METADATA_COPIES)
    table = batches.to_table(columns=names, filter=where)
    broker, *columns = (table.column(name).to_pylist() for name in names)
    return list(zip(broker, zip(*columns, strict=True), strict=True))


def _held_by_majority(
    content: Iterable[tuple[str, _Batch]], names: set[str], voters: set[int]
) -> set[_Batch]:
    holders: dict[_Batch, set[str]] = {}
    for name, batch in content:
        if name in names:
            holders.setdefault(batch, set()).add(name)
    return {batch for batch, who in holders.items() if 2 * len(who) > len(voters)}


def _voters(copies: ds.Dataset) -> set[int]:
    """The voters that the newest leader's message, or the newest set of voters, names."""
    newest: tuple[int, set[int]] = (-2, set())
    where = pc.field("type").isin(["LeaderChangeMessage", "VotersRecord"])
    for row in _rows(copies, where):
        result = {int(voter["voterId"]) for voter in json.loads(row["body"])["voters"]}
        newest = max(newest, (int(row["offset"]), result), key=lambda entry: entry[0])
    return newest[1]


def _nodes(folder: Path) -> dict[str, int]:
    """Each broker's node id, by its meta.properties."""
    where = (pc.field("kind") == "meta.properties") & pc.field("key").isin(["node.id", "broker.id"])
    rows = _rows(_dataset(folder, "identities", IDENTITIES), where)
    return {row["broker"]: int(row["value"]) for row in rows if row["value"].isdecimal()}


def _names(copies: ds.Dataset) -> set[str]:
    return {
        name
        for batch in copies.to_batches(columns=["broker"])
        for name in batch.column("broker").unique().to_pylist()
    }


def _snapshot_ends(copies: ds.Dataset) -> dict[str, int]:
    ends: dict[str, int] = {}
    for batch in copies.to_batches(
        columns=["broker", "offset"], filter=pc.field("source") == "snapshot"
    ):
        for row in batch.to_pylist():
            ends[row["broker"]] = max(ends.get(row["broker"], 0), row["offset"] + 1)
    return ends


def _tiered(copies: ds.Dataset) -> dict[str, str]:
    """Topics whose segments go to remote storage, by the newest of their configuration records."""
    newest: dict[str, tuple[int, str]] = {}
    for row in _rows(copies, pc.field("type") == "ConfigRecord"):
        body = json.loads(row["body"])
        if body["resourceType"] == _CONFIG_OF_TOPIC and body["name"] == _TIERED:
            topic, entry = body["resourceName"], (int(row["offset"]), str(body["value"]))
            newest[topic] = max(newest.get(topic, entry), entry)
    return {topic: value for topic, (_, value) in newest.items() if value == "true"}


def _rows(dataset: ds.Dataset, where: ds.Expression) -> Iterator[dict[str, Any]]:
    for batch in dataset.to_batches(filter=where):
        yield from batch.to_pylist()
