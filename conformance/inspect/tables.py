"""The tables of findings and histories that an inspection leaves behind, as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.files import written_aside
from conformance.inspect.copies import Copies
from conformance.inspect.findings import Discovery, UnjudgedSubject
from conformance.inspect.groups import GROUP_SCHEMA, JudgedGroup, group_rows
from conformance.inspect.judgement import PartitionJudgement

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


class TableWriter:
    """Takes tables piece by piece; at the end of the `with` block each is whole, or none is."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._files = ExitStack()
        self._writers: dict[str, pq.ParquetWriter] = {}

    def __enter__(self) -> TableWriter:
        with ExitStack() as stack:
            for name, schema in SCHEMAS.items():
                path = stack.enter_context(written_aside(self._output / f"{name}.parquet"))
                writer = pq.ParquetWriter(path, schema, compression="zstd")
                self._writers[name] = stack.enter_context(writer)
            self._files = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._files.__exit__(kind, error, trace)

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Append rows."""
        for name, table in tables.items():
            if table.num_rows:
                self._writers[name].write_table(table)


def finding_tables(
    discoveries: Sequence[Discovery], unjudged: Sequence[UnjudgedSubject]
) -> dict[str, pa.Table]:
    """The tables of what was found and of what was not judged."""
    rows: dict[str, list[dict[str, Any]]] = {
        "findings": [_finding_row(discovery.as_json()) for discovery in discoveries],
        "unjudged": [
            {
                "subject": subject.subject,
                "what": subject.what,
                "why": subject.why,
                "matters": subject.matters,
            }
            for subject in unjudged
        ],
    }
    return {name: pa.Table.from_pylist(rows[name], SCHEMAS[name]) for name in rows}


def histories(
    copies: Copies, partitions: Iterable[PartitionJudgement], groups: Iterable[JudgedGroup]
) -> dict[str, pa.Table]:
    """The tables of what was read of partitions and groups, and how it was judged."""
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in SCHEMAS if name not in ("findings", "unjudged")
    }
    for judged in partitions:
        for name, result in _of_partition(copies, judged):
            rows[name].append(result)
    for group in groups:
        rows["groups"] += group_rows(group)
    return {name: pa.Table.from_pylist(rows[name], SCHEMAS[name]) for name in rows}


def _finding_row(row: dict[str, Any]) -> dict[str, Any]:
    offsets = row["offsets"] or [None, None]
    return {**row, "first_offset": offsets[0], "end_offset": offsets[1]}


def _of_partition(
    copies: Copies, judged: PartitionJudgement
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of one partition, each with its table's name."""
    subject = judged.subject
    place = {"topic": subject.key[0], "partition": subject.key[1]}
    for table, rows in (
        ("registrations", _registrations(copies, judged)),
        ("replicas", _replicas(judged)),
        ("runs", _runs(judged)),
        ("differences", _differences(judged)),
        ("truncations", _truncations(judged)),
    ):
        for row in rows:
            yield table, {**place, **row}
    for formula, holds in judged.truths.items():
        yield "formulas", {**place, "formula": formula, "holds": holds}


def _registrations(copies: Copies, judged: PartitionJudgement) -> Iterator[dict[str, Any]]:
    elections = judged.subject.elections
    if elections is None:
        return
    unclean = {registration.offset for registration in elections.unclean}
    for registration in elections.registrations:
        yield {
            "metadata_offset": registration.offset,
            "time": registration.time,
            "leader": None if registration.leader < 0 else copies.name(registration.leader),
            "leader_epoch": registration.leader_epoch,
            "isr": [copies.name(node) for node in registration.isr],
            "eligible": [copies.name(node) for node in registration.eligible],
            "partition_epoch": registration.partition_epoch,
            "unclean": registration.offset in unclean,
            "began_at_offset": judged.starts.get(registration.leader_epoch),
        }


def _replicas(judged: PartitionJudgement) -> Iterator[dict[str, Any]]:
    for broker, state in judged.states.items():
        copy = judged.subject.copies[broker]
        yield {
            "broker": broker,
            "directory": copy.directory,
            "log_start": state.start,
            "log_end": state.end,
            "high_watermark": copy.high_watermark,
            "batches": copy.log.batches if copy.log else 0,
            "in_isr": broker in judged.moment.registered.isr,
        }


def _runs(judged: PartitionJudgement) -> Iterator[dict[str, Any]]:
    for broker, state in judged.states.items():
        for run in state.runs:
            ends = {"start": run.start, "end": run.end, "leader_epoch": run.epoch}
            yield {"broker": broker, **ends}


def _differences(judged: PartitionJudgement) -> Iterator[dict[str, Any]]:
    for part in judged.differences:
        for broker, epoch in part.epochs.items():
            where = {"start": part.start, "end": part.end, "conflicting": part.conflicting}
            yield {"broker": broker, "leader_epoch": epoch, **where}


def _truncations(judged: PartitionJudgement) -> Iterator[dict[str, Any]]:
    for cut in judged.truncations:
        yield {
            "broker": cut.broker,
            "offset": cut.offset,
            "log_end_before": cut.end,
            "epoch": cut.epoch,
            "time": cut.time,
            "high_watermark_known": cut.known,
            "cuts_exposed": cut.cuts_exposed,
            "verdict": cut.verdict,
            "source": cut.source,
        }
