"""What an inspection leaves behind: findings and histories as JSON and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.files import written_aside
from conformance.inspect.groups import GROUP_SCHEMA, group_rows
from conformance.inspect.inspection import Inspection
from conformance.inspect.judgement import Judged

_TEXT, _BOOL, _I64, _I32 = pa.string(), pa.bool_(), pa.int64(), pa.int32()
_PLACE = [("topic", _TEXT), ("partition", _I32)]

SCHEMAS: Mapping[str, pa.Schema] = {
    "findings": pa.schema(
        [
            ("key", _TEXT), ("kind", _TEXT), ("verdict", _TEXT), ("subject", _TEXT), *_PLACE,
            ("first_offset", _I64), ("end_offset", _I64), ("brokers", pa.list_(_TEXT)),
            ("title", _TEXT), ("message", _TEXT), ("formula", _TEXT), ("location", _TEXT),
            ("sources", pa.list_(_TEXT)), ("commands", pa.list_(_TEXT)),
        ]
    ),
    "unjudged": pa.schema(
        [("subject", _TEXT), ("what", _TEXT), ("why", _TEXT), ("matters", _BOOL)]
    ),
    "registrations": pa.schema(
        [
            *_PLACE, ("metadata_offset", _I64), ("time", _I64), ("leader", _TEXT),
            ("leader_epoch", _I32), ("isr", pa.list_(_TEXT)), ("eligible", pa.list_(_TEXT)),
            ("partition_epoch", _I32), ("unclean", _BOOL), ("began_at_offset", _I64),
        ]
    ),
    "replicas": pa.schema(
        [
            *_PLACE, ("broker", _TEXT), ("directory", _TEXT), ("log_start", _I64),
            ("log_end", _I64), ("high_watermark", _I64), ("batches", _I64), ("in_isr", _BOOL),
        ]
    ),
    "runs": pa.schema(
        [*_PLACE, ("broker", _TEXT), ("start", _I64), ("end", _I64), ("leader_epoch", _I32)]
    ),
    "differences": pa.schema(
        [*_PLACE, ("start", _I64), ("end", _I64), ("broker", _TEXT), ("leader_epoch", _I32),
         ("conflicting", _BOOL)]
    ),
    "truncations": pa.schema(
        [
            *_PLACE, ("broker", _TEXT), ("offset", _I64), ("log_end_before", _I64),
            ("epoch", _I32), ("time", _I64), ("high_watermark_known", _I64),
            ("cuts_exposed", _BOOL), ("verdict", _TEXT), ("source", _TEXT),
        ]
    ),
    "formulas": pa.schema([*_PLACE, ("formula", _TEXT), ("holds", _BOOL)]),
    "groups": GROUP_SCHEMA,
}  # fmt: skip
"""The tables, one Parquet file each. Times are milliseconds since 1970; ends are exclusive."""


def write(inspection: Inspection, output: Path) -> None:
    """findings.json and the tables; each whole or absent."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    rows["findings"] = [_finding_row(one.as_json()) for one in inspection.found]
    rows["unjudged"] = [
        {"subject": one.subject, "what": one.what, "why": one.why, "matters": one.matters}
        for one in inspection.unjudged
    ]
    for judged in inspection.partitions.values():
        for name, found in _of_partition(inspection, judged):
            rows[name].append(found)
    rows["groups"] = [row for group in inspection.groups for row in group_rows(group)]
    for name, schema in SCHEMAS.items():
        with written_aside(output / f"{name}.parquet") as path:
            pq.write_table(pa.Table.from_pylist(rows[name], schema), path, compression="zstd")
    body = {
        "schema_version": 1,
        "verdict": str(inspection.verdict),
        **inspection.figures(),
        "copies": {
            name: {"copied_at": copy.copied_at, "window_ms": copy.window, "node": copy.node,
                   "shut_down_in_order": sorted(copy.clean)}
            for name, copy in inspection.copies.copies.items()
        },
        "findings": [one.as_json() for one in inspection.found],
    }  # fmt: skip
    with written_aside(output / "findings.json") as path:
        path.write_text(json.dumps(body, indent=1), encoding="utf-8")


def _finding_row(one: dict[str, Any]) -> dict[str, Any]:
    offsets = one["offsets"] or [None, None]
    return {**one, "first_offset": offsets[0], "end_offset": offsets[1]}


def _of_partition(inspection: Inspection, judged: Judged) -> Iterator[tuple[str, dict[str, Any]]]:
    subject, copies = judged.subject, inspection.copies
    place = {"topic": subject.key[0], "partition": subject.key[1]}
    if subject.elections is not None:
        unclean = {one.offset for one in subject.elections.unclean}
        for one in subject.elections.registrations:
            yield (
                "registrations",
                {
                    **place,
                    "metadata_offset": one.offset,
                    "time": one.time,
                    "leader": None if one.leader < 0 else copies.name(one.leader),
                    "leader_epoch": one.leader_epoch,
                    "isr": [copies.name(node) for node in one.isr],
                    "eligible": [copies.name(node) for node in one.eligible],
                    "partition_epoch": one.partition_epoch,
                    "unclean": one.offset in unclean,
                    "began_at_offset": judged.starts.get(one.leader_epoch),
                },
            )
    for broker, state in judged.states.items():
        held = subject.held[broker]
        yield (
            "replicas",
            {
                **place,
                "broker": broker,
                "directory": held.directory,
                "log_start": state.start,
                "log_end": state.end,
                "high_watermark": held.high_watermark,
                "batches": held.log.batches if held.log else 0,
                "in_isr": broker in judged.moment.registered.isr,
            },
        )
        for run in state.runs:
            found = {"start": run.start, "end": run.end, "leader_epoch": run.epoch}
            yield "runs", {**place, "broker": broker, **found}
    for part in judged.differences:
        for broker, epoch in part.epochs.items():
            where = {"start": part.start, "end": part.end, "conflicting": part.conflicting}
            yield "differences", {**place, "broker": broker, "leader_epoch": epoch, **where}
    for cut in judged.truncations:
        yield (
            "truncations",
            {
                **place,
                "broker": cut.broker,
                "offset": cut.offset,
                "log_end_before": cut.end,
                "epoch": cut.epoch,
                "time": cut.time,
                "high_watermark_known": cut.known,
                "cuts_exposed": cut.cuts_exposed,
                "verdict": cut.verdict,
                "source": cut.source,
            },
        )
    for formula, holds in judged.truths.items():
        yield "formulas", {**place, "formula": formula, "holds": holds}
