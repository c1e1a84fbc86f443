"""Which visits a store's files hold: arrays of integers in, distinct visits out, without a JVM.

A visit is one entry of a trace: its initial state, or a step. Spark's workers call this file by
file: reading a column and counting equal rows is Arrow's business from end to end, where Spark's
own operators would first be compiled, and then compiled again as they warm up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from conformance.errors import DataError
from conformance.traces.model import End

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
_BATCH = 65_536
"""Traces that are looked at together: a file's memory does not grow with it."""
_MERGED = 1_000_000
"""Distinct visits of several batches, after which equal ones are put together."""

Positions = npt.NDArray[np.int64]


def distinct_visits_of(files: Iterable[Path]) -> pa.Table:
    """Each distinct visit of these files, with `visits`, how often it occurs."""
    parts: list[pa.Table] = []
    rows = 0
    for batch in _batches(files, ["states", "actions"]):
        found = _counted(visits_of(batch.column("states"), batch.column("actions")), "count_all")
        parts.append(found)
        rows += len(found)
        if rows > _MERGED:
            parts = [_counted(pa.concat_tables(parts), "sum")]
            rows = len(parts[0])
    return merged(parts)


def merged(parts: Sequence[pa.Table]) -> pa.Table:
    """The distinct visits of several parts."""
    if not parts:
        return SCHEMA.empty_table()
    return parts[0] if len(parts) == 1 else _counted(pa.concat_tables(parts), "sum")


def to_bytes(table: pa.Table) -> bytes:
    """A table as a stream of Arrow's."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


def from_bytes(blob: bytes) -> pa.Table:
    """What `to_bytes` wrote."""
    with pa.ipc.open_stream(blob) as stream:
        return stream.read_all()


def flagged_in(files: Iterable[Path]) -> int:
    """How many traces of these files diverged or have a problem."""
    found = 0
    for batch in _batches(files, ["end", "problem"]):
        diverged = pc.fill_null(pc.equal(batch.column("end"), End.DIVERGED.value), fill_value=False)
        problem = pc.is_valid(batch.column("problem"))
        found += pc.sum(pc.or_(diverged, problem)).as_py() or 0
    return found


def _batches(files: Iterable[Path], columns: list[str]) -> Iterator[pa.RecordBatch]:
    for path in files:
        try:
            file = pq.ParquetFile(path, page_checksum_verification=True)
            with file:
                yield from file.iter_batches(_BATCH, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} cannot be read as Parquet: {error}") from error


def visits_of(states: pa.ListArray, actions: pa.ListArray) -> pa.Table:
    """One row for each visit of these traces, by source, action and target.

    A trace of n actions has n + 1 visits; where it is malformed a row has no source, action or
    target. The first visit has the source 0 and the action `INITIAL`.
    """
    found, taken = _lengths(states), _lengths(actions)
    flat = states.flatten(), actions.flatten()
    whole = not (actions.null_count or any(values.null_count for values in flat))
    if whole and np.array_equal(found, taken + 1):
        return _of_whole(found, *(values.to_numpy() for values in flat))
    entries = np.where(actions.is_valid().to_numpy(zero_copy_only=False), taken + 1, 0)
    return _of_any(entries, found, taken, *flat)


def _lengths(lists: pa.ListArray) -> Positions:
    lengths: Positions = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    return lengths


def _starts(lengths: Positions) -> Positions:
    starts: Positions = np.cumsum(lengths) - lengths
    return starts


def _of_whole(
    entries: Positions, states: npt.NDArray[np.int64], actions: npt.NDArray[np.int32]
) -> pa.Table:
    first = _starts(entries)
    source = np.empty_like(states)
    source[1:] = states[:-1]
    source[first] = 0
    step = np.ones(len(states), bool)
    step[first] = False
    action = np.full(len(states), INITIAL, np.int32)
    action[step] = actions
    return pa.table({"source": source, "action": action, "target": states})


def _of_any(
    entries: Positions, found: Positions, taken: Positions, states: pa.Array, actions: pa.Array
) -> pa.Table:
    trace = np.repeat(np.arange(len(entries)), entries)
    step = np.arange(len(trace)) - np.repeat(_starts(entries), entries)
    state, action = _starts(found)[trace] + step, _starts(taken)[trace] + step - 1
    before = _take(states, state - 1, (step > 0) & (step - 1 < found[trace]))
    return pa.table(
        {
            "source": pc.if_else(pa.array(step == 0), pa.scalar(0, pa.int64()), before),
            "action": pc.if_else(
                pa.array(step == 0),
                pa.scalar(INITIAL, pa.int32()),
                _take(actions, action, step > 0),
            ),
            "target": _take(states, state, step < found[trace]),
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
