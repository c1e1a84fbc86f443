"""Which visits a store's files hold: arrays of integers in, distinct visits out.

A visit is one entry of a trace: the initial state (action `INITIAL`, source 0), or a step. All that
the formulas say is said about distinct visits, so the many are counted without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from conformance.errors import DataError
from conformance.traces.model import TraceEnd

INITIAL = -1
"""The action code of the visit of an initial state."""
KEY = ("source", "action", "target")
"""What makes a visit distinct."""
SCHEMA = pa.schema(
    [
        ("source", pa.int64()),
        ("action", pa.int32()),
        ("target", pa.int64()),
        ("visits", pa.int64()),
    ]
)
_BATCH = 1_000_000
"""Steps, about, of the traces that are looked at together: memory does not grow with a file."""
_MERGED = 1_000_000
"""Distinct visits of several batches, after which equal ones are put together."""

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Visited:
    """What some files hold."""

    visits: pa.Table
    """Each distinct visit, with `visits`, how often it occurs: see `SCHEMA`."""
    flagged: int
    """Traces that diverged or have a problem."""

    @staticmethod
    def nothing() -> Visited:
        """What no file holds."""
        return Visited(SCHEMA.empty_table(), 0)


def distinct_visits(files: Iterable[Path]) -> Visited:
    """What these files hold. DataError names one that is damaged."""
    parts: list[pa.Table] = []
    rows = flagged = 0
    for batch in batches(files, ["states", "actions", "end", "problem"]):
        flagged += pc.sum(flagged_in(batch)).as_py() or 0
        visits = visits_of(batch.column("states"), batch.column("actions"))
        parts.append(_counted(visits, "count_all"))
        rows += len(parts[-1])
        if rows > _MERGED:
            parts = [_merged(parts)]
            rows = len(parts[0])
    return Visited(_merged(parts), flagged)


def merged(item: Visited, other: Visited) -> Visited:
    """What both hold."""
    return Visited(_merged([item.visits, other.visits]), item.flagged + other.flagged)


def _merged(parts: Sequence[pa.Table]) -> pa.Table:
    if not parts:
        return SCHEMA.empty_table()
    return parts[0] if len(parts) == 1 else _counted(pa.concat_tables(parts), "sum")


def flagged_in(batch: pa.RecordBatch) -> pa.Array:
    """For each trace whether it diverged or has a problem."""
    return pc.or_(diverged_in(batch), pc.is_valid(batch.column("problem")))


def diverged_in(batch: pa.RecordBatch) -> pa.Array:
    """For each trace whether it diverged."""
    return pc.fill_null(pc.equal(batch.column("end"), TraceEnd.DIVERGED.value), fill_value=False)


def batches(files: Iterable[Path], columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The traces of these files, some at a time. DataError names a file that is damaged."""
    for path in files:
        try:
            file = pq.ParquetFile(path, page_checksum_verification=True)
            with file:
                yield from file.iter_batches(
                    _size(file.metadata), columns=columns, use_threads=False
                )
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{path} cannot be read: it is damaged, or was changed while it was audited. "
                "Restore the store from a copy, or record it again."
            ) from error


def _size(metadata: pq.FileMetaData) -> int:
    """How many traces of a file are looked at together."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values = sum(
        max(group.column(number).num_values for number in range(group.num_columns))
        for group in groups
    )
    rows: int = metadata.num_rows
    size: int = _BATCH * rows // max(values, 1)
    return max(1, size)


def visits_of(states: pa.ListArray, actions: pa.ListArray) -> pa.Table:
    """One row for each visit of these traces, by source, action and target.

    A trace of n actions has n + 1 visits; where it is malformed a row has no source, action or
    target. The first visit has the source 0 and the action `INITIAL`.
    """
    result, selection = _lengths(states), _lengths(actions)
    flat = states.flatten(), actions.flatten()
    whole = not (actions.null_count or any(values.null_count for values in flat))
    if whole and np.array_equal(result, selection + 1):
        return _of_whole(result, *(values.to_numpy() for values in flat))
    return _of_any(entries_of(actions), result, selection, *flat)


def entries_of(actions: pa.ListArray) -> Positions:
    """How many visits each trace has, by its actions."""
    there = actions.is_valid().to_numpy(zero_copy_only=False)
    return np.where(there, _lengths(actions) + 1, 0)


def _lengths(lists: pa.ListArray) -> Positions:
    lengths: Positions = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    return lengths


def starts(lengths: Positions) -> Positions:
    """The position of each list in the flat values."""
    first: Positions = np.cumsum(lengths) - lengths
    return first


def _of_whole(
    entries: Positions, states: npt.NDArray[np.int64], actions: npt.NDArray[np.int32]
) -> pa.Table:
    first = starts(entries)
    source = np.empty_like(states)
    source[1:] = states[:-1]
    source[first] = 0
    step = np.ones(len(states), bool)
    step[first] = False
    action = np.full(len(states), INITIAL, np.int32)
    action[step] = actions
    return pa.table({"source": source, "action": action, "target": states})


def _of_any(
    entries: Positions, result: Positions, selection: Positions, states: pa.Array, actions: pa.Array
) -> pa.Table:
    trace = np.repeat(np.arange(len(entries)), entries)
    step = np.arange(len(trace)) - np.repeat(starts(entries), entries)
    state, action = starts(result)[trace] + step, starts(selection)[trace] + step - 1
    before = _take(states, state - 1, (step > 0) & (step - 1 < result[trace]))
    return pa.table(
        {
            "source": pc.if_else(pa.array(step == 0), pa.scalar(0, pa.int64()), before),
            "action": pc.if_else(
                pa.array(step == 0),
                pa.scalar(INITIAL, pa.int32()),
                _take(actions, action, step > 0),
            ),
            "target": _take(states, state, step < result[trace]),
        }
    )


def _take(values: pa.Array, positions: Positions, there: npt.NDArray[np.bool_]) -> pa.Array:
    """The values at the positions; null where there is none."""
    return values.take(pa.array(np.where(there, positions, 0), mask=~there))


def _counted(visits: pa.Table, how: str) -> pa.Table:
    """The distinct rows with how many there are, or with the sum of their `visits`."""
    wanted = ([], how) if how == "count_all" else ("visits", how)
    table = visits.group_by(list(KEY), use_threads=False).aggregate([wanted])
    return table.rename_columns([*KEY, "visits"]).cast(SCHEMA)
