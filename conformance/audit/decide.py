"""What decides each trace that does not pass: the second look at a store's files.

A trace fails at its first failing visit or where it diverged. It is inconclusive if it has only
doubtful visits or a problem. `suspects` are the distinct visits that are not in order (`SUSPECTS`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from conformance.audit.visited import (
    KEY,
    batches,
    diverged_in,
    entries_of,
    flagged_in,
    starts,
    visits_of,
)
from conformance.files import space_for

_TEXTS = pa.list_(pa.string())
SUSPECTS = pa.schema(
    [
        ("source", pa.int64()),
        ("action", pa.int32()),
        ("target", pa.int64()),
        ("visits", pa.int64()),
        ("violations", _TEXTS),
        ("doubts", _TEXTS),
    ]
)
"""A suspect's number is its row's, counted from 1. It fails its traces if it has violations."""

CAUSES = pa.schema(
    [
        ("failed", pa.bool_()),
        ("suspect", pa.int64()),
        ("cause", pa.string()),
        ("traces", pa.int64()),
        ("step", pa.int32()),
        ("trace_id", pa.int64()),
    ]
)
"""How many traces a suspect decided, and the shortest of them. Suspect 0: they diverged or have a
problem, of which `cause` is the first line."""


class Suspect(NamedTuple):
    """A row of `SUSPECTS`."""

    source: int | None
    action: int | None
    target: int
    visits: int
    violations: Sequence[str]
    doubts: Sequence[str]


class Decision(NamedTuple):
    """A row of `CAUSES`."""

    failed: bool
    suspect: int
    cause: str | None
    traces: int
    step: int
    trace_id: int


def suspect_of(suspects: pa.Table, decision: Decision) -> Suspect:
    """The suspect that decided so; there must be one."""
    (row,) = suspects.slice(decision.suspect - 1, 1).to_pylist()
    return Suspect(**row)


_OUTCOMES = pa.schema(
    [
        ("suspect", pa.int64()),
        ("trace_id", pa.int64()),
        ("failed", pa.bool_()),
        ("step", pa.int32()),
        ("cause", pa.string()),
    ]
)
_SUSPECT_BITS = 36
_DOUBTFUL = 1 << 62
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Decider:
    """Decides the traces of files."""

    suspects: pa.Table
    listing: Path | None = None
    """The folder in which the traces that do not pass are listed: a Parquet file for each file of
    traces, with the columns of an outcome and of the suspect that decided it."""

    def __call__(self, files: Sequence[tuple[int, Path]]) -> pa.Table:
        """The causes in these files, which are given with their numbers."""
        result = [CAUSES.empty_table()]
        for number, path in files:
            columns = ["trace_id", "states", "actions", "end", "problem"]
            parts = [outcomes(batch, self.suspects) for batch in batches([path], columns)]
            decided = pa.concat_tables([_OUTCOMES.empty_table(), *parts])
            if self.listing is not None and len(decided):
                self._list(self.listing / f"part-{number:05d}.parquet", decided)
            result.append(_causes(decided))
        return merged_causes(*result)

    def _list(self, path: Path, decided: pa.Table) -> None:
        rows = pa.array(decided.column("suspect").to_numpy() - 1)
        details = self.suspects.take(pc.if_else(pc.less(rows, 0), None, rows))
        for name in SUSPECTS.names:
            decided = decided.append_column(SUSPECTS.field(name), details.column(name))
        aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        with space_for(path.parent):
            pq.write_table(decided, aside)
            aside.replace(path)  # a task that is tried again writes the same


def outcomes(batch: pa.RecordBatch, suspects: pa.Table) -> pa.Table:
    """The traces of a batch that do not pass, in its order, each with what decided it."""
    ended_at, ended = _ended(batch)
    trace, packed = _visited(batch, suspects)
    trace, packed = np.concatenate([ended_at, trace]), np.concatenate([ended, packed])
    order = np.lexsort((packed, trace))
    trace, first = np.unique(trace[order], return_index=True)
    packed = packed[order][first]
    suspect = packed & ((1 << _SUSPECT_BITS) - 1)
    problem = pc.fill_null(batch.column("problem").take(pa.array(trace)), "")
    lines = pc.list_element(pc.split_pattern(problem, "\n", max_splits=1), 0)
    return pa.Table.from_arrays(
        [
            pa.array(suspect),
            batch.column("trace_id").take(pa.array(trace)),
            pa.array(packed < _DOUBTFUL),
            pa.array(((packed & (_DOUBTFUL - 1)) >> _SUSPECT_BITS).astype(np.int32)),
            pc.if_else(pa.array(suspect == 0), lines, None),
        ],
        schema=_OUTCOMES,
    )


def _pack(failed: npt.NDArray[np.bool_], step: Ints, suspect: Ints) -> Ints:
    """Severity, step and suspect in one integer, whose minimum is what decides a trace."""
    packed: Ints = np.where(failed, 0, _DOUBTFUL) + (step << _SUSPECT_BITS) + suspect
    return packed


def _ended(batch: pa.RecordBatch) -> tuple[Ints, Ints]:
    """The traces that diverged or have a problem: at their last step, before any suspect there."""
    trace = np.flatnonzero(flagged_in(batch).to_numpy(zero_copy_only=False))
    failed = diverged_in(batch).to_numpy(zero_copy_only=False)[trace]
    last = np.maximum(entries_of(batch.column("actions"))[trace] - 1, 0)
    return trace, _pack(failed, last, np.zeros_like(last))


def _visited(batch: pa.RecordBatch, suspects: pa.Table) -> tuple[Ints, Ints]:
    """The traces that visit a suspect, once for each visit."""
    visits = visits_of(batch.column("states"), batch.column("actions"))
    entries = entries_of(batch.column("actions"))
    trace = np.repeat(np.arange(len(entries)), entries)
    step = np.arange(len(trace)) - starts(entries)[trace]
    maybe = pc.is_in(visits.column("target"), value_set=suspects.column("target"))
    visits = visits.append_column("trace", pa.array(trace)).append_column("step", pa.array(step))
    numbered = suspects.select(list(KEY)).append_column(
        "suspect", pa.array(np.arange(len(suspects)) + 1)
    )
    numbered = numbered.append_column(
        "failed", pc.greater(pc.list_value_length(suspects.column("violations")), 0)
    )
    result = _keyed(visits.filter(maybe)).join(
        _keyed(numbered), [*KEY, "missing"], join_type="inner", use_threads=False
    )
    names = ("failed", "step", "suspect", "trace")
    failed, at, suspect, trace = (result.column(name).to_numpy() for name in names)
    return trace, _pack(failed, at, suspect)


def _keyed(rows: pa.Table) -> pa.Table:
    """Rows whose keys are equal where they lack the same: a join holds no null for equal."""
    missing = pa.array(np.zeros(len(rows), np.int64))
    for place, name in enumerate(KEY):
        column = rows.column(name)
        missing = pc.add(missing, pc.multiply(pc.cast(column.is_null(), pa.int64()), 1 << place))
        rows = rows.set_column(
            rows.schema.get_field_index(name), name, pc.fill_null(column, fill_value=0)
        )
    return rows.append_column("missing", missing)


def _causes(decided: pa.Table) -> pa.Table:
    ones = pa.array(np.ones(len(decided), np.int64))
    return merged_causes(decided.append_column("traces", ones).select(CAUSES.names))


def merged_causes(*parts: pa.Table) -> pa.Table:
    """The causes of several parts: see `CAUSES`."""
    rows = pa.concat_tables(parts).sort_by([("step", "ascending"), ("trace_id", "ascending")])
    result = rows.group_by(["failed", "suspect", "cause"], use_threads=False).aggregate(
        [("traces", "sum"), ("step", "first"), ("trace_id", "first")]
    )
    names = ["failed", "suspect", "cause", "traces_sum", "step_first", "trace_id_first"]
    return result.select(names).rename_columns(CAUSES.names).cast(CAUSES)
