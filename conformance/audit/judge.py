"""Asks the formulas about each distinct state and each distinct visit, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conformance.audit.evaluator import Evaluator, StateRows, bound_worker
from conformance.audit.rules import INIT, NEXT
from conformance.audit.verdicts import has_value
from conformance.audit.visited import INITIAL, KEY
from conformance.traces.states import FINGERPRINT

Key = tuple[str, str]
"""What is counted: `("value", formula)`, `("steps", "listed")` and the like."""
Taken = Counter[tuple[int, int]]
"""Steps by the action's code and the disjuncts that they took, as bits."""
Verdict = tuple[int, Sequence[str], Sequence[str]]
"""Of something that is not in order: its fingerprint or row, its violations, its doubts."""

LISTED, CROSS_CHECKED = ("steps", "listed"), ("steps", "cross-checked")
DISPUTED = ("visits", "disputed")

_SLICE = 50_000
_SMALLEST_SLICE = 1_000
"""States or visits: a process must bind the specification before it judges the first."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the formulas say: of what is not in order each, of all others counts."""

    bad: Sequence[Verdict]
    counts: Counter[Key]
    """On how many states, or steps, a formula had a value, and what else is counted."""
    taken: Taken

    @staticmethod
    def nothing() -> Verdicts:
        """What is said of nothing."""
        return Verdicts((), Counter(), Counter())


def merged(item: Verdicts, other: Verdicts) -> Verdicts:
    """What both say."""
    return Verdicts((*item.bad, *other.bad), item.counts + other.counts, item.taken + other.taken)


@dataclass(frozen=True, slots=True)
class StateJudge:
    """Judges states by the invariants."""

    evaluator: Evaluator
    invariants: tuple[str, ...]

    def __call__(self, rows: StateRows) -> Verdicts:
        """Of every state that is whole."""
        counts: Counter[Key] = Counter()
        bad: list[Verdict] = []
        for row in bound_worker(self.evaluator).judge_rows(rows).to_pylist():
            for name in self.invariants:
                counts["value", name] += row["states"] * has_value(name, row["doubts"])
            if row[FINGERPRINT] is not None:
                bad.append((row[FINGERPRINT], row["violations"], row["doubts"]))
        return Verdicts(bad, counts, Counter())


@dataclass(frozen=True, slots=True)
class VisitJudge:
    """Judges slices of the distinct visits by Init, by their action, and by the properties."""

    evaluator: Evaluator
    properties: tuple[str, ...]
    anywhere: bool
    """Whether a trace may begin in any state."""

    def __call__(self, visits: pa.Table) -> Verdicts:
        """Of a slice."""
        (batch,) = visits.combine_chunks().to_batches()
        counts: Counter[Key] = Counter()
        step: Taken = Counter()
        bad: list[Verdict] = []
        rows = bound_worker(self.evaluator).judge_visits(batch).to_pylist()
        for number, row in zip(visits.column("row").to_pylist(), rows, strict=True):
            self._count(row, counts)
            if row["taken"] != "0":
                step[row["action"], int(row["taken"], 16)] += row["visits"]
            violations = [*self._unlike(row), *row["violations"]]
            if violations or row["doubts"]:
                bad.append((number, violations, row["doubts"]))
        return Verdicts(bad, counts, step)

    def _count(self, row: Mapping[str, Any], counts: Counter[Key]) -> None:
        counts[DISPUTED] += bool(row["listed"] and row["illegal"])
        if row["action"] in (None, INITIAL):
            return
        counts[LISTED] += bool(row["listed"])
        counts[CROSS_CHECKED] += bool(row["listed"] and row["asked"])
        for name in self.properties if row["ready"] else ():
            counts["value", name] += has_value(name, row["doubts"])

    def _unlike(self, row: Mapping[str, object]) -> list[str]:
        """What the specification's own behaviours lack: a beginning, or a step."""
        if row["listed"]:
            return []
        if row["action"] == INITIAL:
            return [INIT] if row["ready"] and not self.anywhere else []
        return [NEXT] if row["illegal"] else []


def asked(visits: pa.Table, listed: pa.Table, sample: int) -> pa.Table:
    """The visits with `listed`, whether they are known to be legal, `asked`, and their `row`.

    An action is asked about the steps that are not listed, and about one listed step in `sample`.
    """
    numbers = pa.array(np.arange(len(visits)))
    known = visits.select(list(KEY)).append_column("row", numbers)
    known = known.join(listed, list(KEY), join_type="left semi", use_threads=False)
    there = np.zeros(len(visits), bool)
    there[known.column("row").to_numpy()] = True
    chosen = ~there | (_mixed(visits) % np.uint64(sample) == 0)
    columns = {"listed": pa.array(there), "asked": pa.array(chosen), "row": numbers}
    for name, column in columns.items():
        visits = visits.append_column(name, column)
    return visits


_ODD = tuple(map(np.uint64, (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)))


def _mixed(visits: pa.Table) -> npt.NDArray[np.uint64]:
    """A number of each visit that depends on nothing but its key."""
    mixed = np.zeros(len(visits), np.uint64)
    for name, odd in zip(KEY, _ODD, strict=True):
        values = visits.column(name).fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
        mixed = (mixed ^ values) * odd
        mixed ^= mixed >> np.uint64(31)
    return mixed


def in_order(visits: pa.Table, properties: Sequence[str]) -> Counter[Key]:
    """The counts of steps that are legal and on which every property holds."""
    listed, asked = visits.column("listed"), visits.column("asked")
    counts: Counter[Key] = Counter()
    counts[LISTED] = pc.sum(listed).as_py() or 0
    counts[CROSS_CHECKED] = pc.sum(pc.and_(listed, asked)).as_py() or 0
    counts.update({("value", name): len(visits) for name in properties})
    return counts


def slices(visits: pa.Table, tasks: int) -> Iterator[pa.Table]:
    """The visits in parts."""
    size = _part(len(visits), tasks)
    return (visits.slice(first, size) for first in range(0, len(visits), size))


def state_rows(files: Sequence[StateRows], tasks: int) -> Iterator[StateRows]:
    """The states of these files in parts: often there is one file only, and all workers are to
    have a part."""
    size = _part(sum(rows.count for rows in files), tasks)
    for rows in files:
        for first in range(rows.first, rows.first + rows.count, size):
            count = min(size, rows.first + rows.count - first)
            yield replace(rows, first=first, count=count)


def _part(rows: int, tasks: int) -> int:
    """How many rows a task gets."""
    return min(max(-(-rows // tasks), _SMALLEST_SLICE), _SLICE)
