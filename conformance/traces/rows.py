"""Traces as rows of integers: the columns of traces/*.parquet, gathered and written."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

TRACE_SCHEMA = pa.schema(
    [
        pa.field("trace_id", pa.int64(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("states", pa.list_(pa.int64()), nullable=False),
        pa.field("actions", pa.list_(pa.int32()), nullable=False),
        pa.field("end", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
        pa.field("source", pa.string()),
        pa.field("nodes", pa.list_(pa.string())),
        pa.field("sequences", pa.list_(pa.int64())),
        pa.field("happens_before", pa.list_(pa.list_(pa.int64()))),
    ]
)
"""One row per trace: n + 1 state fingerprints, n action codes, why it ended.

The last three are per event: the node that it happened on, its number there, and the events
known to precede it. They are null where a trace has a total order.
"""

_DICTIONARY_BYTES = 8 << 20
"""Fingerprints repeat: a dictionary that holds them all takes 2 bytes each instead of 8."""

_ODD = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)))


class TraceRows:
    """Gathers traces in compact arrays; `write` makes one Parquet file of them."""

    def __init__(self) -> None:
        self._ids = array("q")
        self._seeds = array("q")
        self._states = array("q")
        self._actions = array("i")
        self._ends: list[str] = []
        self._problems: list[str | None] = []
        self._sources: list[str | None] = []
        self._lengths = array("q")

    def __len__(self) -> int:
        """The number of traces gathered."""
        return len(self._ids)

    @property
    def steps(self) -> int:
        """The number of their steps."""
        return len(self._actions)

    @property
    def ends(self) -> Counter[str]:
        """How many traces ended for each reason."""
        return Counter(self._ends)

    @property
    def problems(self) -> int:
        """How many traces cannot be judged whole."""
        return sum(problem is not None for problem in self._problems)

    def add(
        self,
        trace_id: int,
        seed: int,
        states: Sequence[int],
        actions: Sequence[int],
        end: str,
        problem: str | None = None,
        source: str | None = None,
    ) -> None:
        """One trace: the fingerprints of its n + 1 states and the codes of its n actions.

        Only a trace with a problem may lack its initial state. ValueError if states and
        actions do not fit together.
        """
        if len(states) != len(actions) + 1 and not (problem and not states and not actions):
            raise ValueError(f"{len(actions)} actions need {len(actions) + 1} states")
        self._ids.append(trace_id)
        self._seeds.append(seed)
        self._states.extend(states)
        self._actions.extend(actions)
        self._lengths.append(len(states))
        self._ends.append(end)
        self._problems.append(problem)
        self._sources.append(source)

    def distinct_states(self) -> npt.NDArray[np.int64]:
        """The fingerprints that occur, sorted."""
        return np.unique(np.asarray(self._states, np.int64))

    def distinct_transitions(self) -> npt.NDArray[np.int64]:
        """A hash of each (state, action, state) that occurs, sorted; for counting them."""
        states = np.asarray(self._states, np.int64).view(np.uint64)
        lengths = np.asarray(self._lengths, np.int64)
        if not len(self._actions):
            return np.zeros(0, np.int64)
        last = np.zeros(len(states), bool)
        last[np.cumsum(lengths)[lengths > 0] - 1] = True
        first = np.concatenate([[True], last[:-1]])
        mixed = states[~last] * _ODD[0] + np.asarray(self._actions).astype(np.uint64) * _ODD[1]
        mixed ^= mixed >> np.uint64(29)
        hashes = (mixed + states[~first]) * _ODD[2]
        return np.unique((hashes ^ (hashes >> np.uint64(32))).view(np.int64))

    def write(self, path: Path) -> None:
        """Write the traces, in the order in which they were added."""
        states = np.asarray(self._states, np.int64)
        actions = np.asarray(self._actions, np.int32)
        lengths = np.asarray(self._lengths, np.int64)
        count = len(lengths)
        columns = {
            "trace_id": pa.array(np.asarray(self._ids, np.int64)),
            "seed": pa.array(np.asarray(self._seeds, np.int64)),
            "states": _lists(states, lengths),
            "actions": _lists(actions, np.maximum(lengths - 1, 0)),
            "end": pa.array(self._ends, pa.string()),
            "problem": pa.array(self._problems, pa.string()),
            "source": pa.array(self._sources, pa.string()),
        }
        for field in TRACE_SCHEMA:
            columns.setdefault(field.name, pa.nulls(count, field.type))
        write_parquet(pa.table(columns, schema=TRACE_SCHEMA), path)


def _lists(values: npt.NDArray[np.generic], lengths: npt.NDArray[np.int64]) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def write_parquet(table: pa.Table, path: Path) -> None:
    """Write one row group with page checksums; equal tables give equal bytes."""
    pq.write_table(
        table,
        path,
        row_group_size=max(len(table), 1),
        compression="zstd",
        write_page_checksum=True,
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        store_schema=False,
    )
