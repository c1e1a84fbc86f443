"""The scans of a store's traces on Spark: distinct visits, and what decides each trace.

A visit is one entry of a trace: the initial state (action `INITIAL`, source 0) or a step. All
that the formulas say is said about distinct visits, so the many are scanned without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from conformance.audit import paths
from conformance.audit.visited import (
    INITIAL,
    KEY,
    distinct_visits_of,
    flagged_in,
    from_bytes,
    merged,
    to_bytes,
)
from conformance.traces.model import End

_TRACES = (
    "trace_id BIGINT, seed BIGINT, states ARRAY<BIGINT>, actions ARRAY<INT>, end STRING, "
    "problem STRING, source STRING"
)
Result = TypeVar("Result")
_VISITS = "source long, action int, target long, visits long"
_TASKS = 4
"""For each core: enough to keep all of them busy to the end, few enough to cost little."""


def read_traces(spark: SparkSession, files: Iterable[Path]) -> DataFrame:
    """The traces of a store, one row each."""
    return paths.parquet(spark.read.schema(_TRACES), files)


def visits(traces: DataFrame) -> DataFrame:
    """One row per visit: trace_id, step (0 for the initial state), source, action, target.

    A column is NULL where a malformed trace has no such entry.
    """
    steps = traces.select(
        "trace_id", "states", "actions", F.expr("explode(sequence(0, size(actions))) AS step")
    )
    return steps.selectExpr(
        "trace_id",
        "step",
        "if(step = 0, 0L, get(states, step - 1)) AS source",
        f"if(step = 0, {INITIAL}, get(actions, step - 1)) AS action",
        "get(states, step) AS target",
    )


@dataclass(frozen=True, slots=True)
class Visited:
    """What a first look at all traces found."""

    traces: int
    steps: Mapping[int | None, int]
    """By the action's code."""
    distinct: int
    """Distinct steps."""
    flagged: int
    """Traces that diverged or have a problem."""
    visits: pa.Table | DataFrame
    """The distinct visits: here if they are few, else on Spark."""


def visited(spark: SparkSession, files: Sequence[Path], few: int) -> Visited:
    """Scan all traces; up to `few` distinct visits come back as an Arrow table.

    More are found again by Spark itself: that is little beside what their formulas will take.
    """

    def look(share: Sequence[Path]) -> tuple[bytes | None, int]:
        found = distinct_visits_of(share)
        return (to_bytes(found) if len(found) <= few else None), flagged_in(share)

    parts = shared_out(spark, files, look)
    flags = sum(flagged for _, flagged in parts)
    known = [from_bytes(part) for part, _ in parts if part is not None]
    if len(known) == len(parts):
        table = merged(known)
        if len(table) <= few:
            return _visited(table, _totals(table), flags)
    frame = distinct_visits(spark, files).persist()
    totals = frame.groupBy("action").agg(F.sum("visits"), F.count("*")).collect()
    return _visited(frame, [tuple(row) for row in totals], flags)


def _totals(visits: pa.Table) -> list[tuple[int | None, int, int]]:
    """By action code how many visits there are, and how many distinct ones."""
    found = visits.group_by("action").aggregate([("visits", "sum"), ([], "count_all")])
    return [(row["action"], row["visits_sum"], row["count_all"]) for row in found.to_pylist()]


def _visited(
    visits: pa.Table | DataFrame, totals: Sequence[tuple[int | None, int, int]], flagged: int
) -> Visited:
    steps = {code: count for code, count, _ in totals if code != INITIAL}
    traces = sum(count for code, count, _ in totals if code == INITIAL)
    distinct = sum(kinds for code, _, kinds in totals if code != INITIAL)
    return Visited(traces, steps, distinct, flagged, visits)


def distinct_visits(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Each distinct (source, action, target) with `visits`, how often it occurs."""
    found = by_file(spark, files, _VISITS, lambda share: distinct_visits_of(share).to_batches())
    return found.groupBy(*KEY).agg(F.sum("visits").alias("visits"))


def shared_out(
    spark: SparkSession, files: Sequence[Path], look: Callable[[Sequence[Path]], Result]
) -> list[Result]:
    """What `look` makes of the files, shared out among Spark's workers.

    They must be where the workers can read them, as the states are. Of what comes back the JVM
    knows nothing: a DataFrame's operators would have to be compiled first.
    """
    shares = [list(share) for share in _shares(spark, files)]
    tasks = spark.sparkContext.parallelize(shares, max(len(shares), 1))
    return tasks.map(look).collect()


def _shares(spark: SparkSession, files: Sequence[Path]) -> Iterator[Sequence[Path]]:
    paths = [path.resolve() for path in files]
    tasks = min(len(paths), _TASKS * spark.sparkContext.defaultParallelism)
    return (paths[first::tasks] for first in range(tasks))


def by_file(
    spark: SparkSession,
    files: Sequence[Path],
    schema: str,
    read: Callable[[Sequence[Path]], Iterable[pa.RecordBatch]],
) -> DataFrame:
    """As `shared_out`, as a frame on Spark."""
    shares = list(_shares(spark, files))

    def read_shares(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.column("id").to_pylist():
                yield from read(shares[share])

    return spark.range(0, len(shares), 1, max(len(shares), 1)).mapInArrow(read_shares, schema)


def outcomes(traces: DataFrame, suspects: DataFrame) -> DataFrame:
    """The traces that do not pass, one row each, with what decided it.

    `suspects` holds the distinct visits that are not in order: the key, `suspect` (a number from
    1) and `failed`. A trace fails at its first failing visit or where it diverged; it is
    inconclusive if it has only doubtful visits or a problem. Columns: trace_id, failed, step,
    suspect (0: it diverged or has a problem) and `cause`, the first line of that problem.
    """
    keys = suspects.select(*(F.col(name).alias(f"of_{name}") for name in KEY), "suspect", "failed")
    same = [F.col(name).eqNullSafe(F.col(f"of_{name}")) for name in KEY]
    found = visits(traces).join(F.broadcast(keys), same)
    rows = found.select("trace_id", _pack(F.col("failed"), F.col("step"), F.col("suspect")))
    flagged = traces.where((F.col("end") == End.DIVERGED.value) | F.col("problem").isNotNull())
    ended = flagged.select(
        "trace_id",
        _pack(F.col("end") == End.DIVERGED.value, F.size("actions"), F.lit(0)),
        F.substring_index(F.coalesce("problem", F.lit("")), "\n", 1).alias("cause"),
    )
    both = rows.withColumn("cause", F.lit(None).cast("string")).unionByName(ended)
    first = both.groupBy("trace_id").agg(
        F.min("packed").alias("packed"), F.max("cause").alias("cause")
    )
    return first.selectExpr(
        "trace_id",
        f"packed < {_DOUBTFUL}L AS failed",
        f"CAST(shiftright(packed & {_DOUBTFUL - 1}L, {_SUSPECT_BITS}) AS int) AS step",
        f"packed & {(1 << _SUSPECT_BITS) - 1}L AS suspect",
        f"if((packed & {(1 << _SUSPECT_BITS) - 1}L) = 0, cause, NULL) AS cause",
    )


_SUSPECT_BITS = 36
_DOUBTFUL = 1 << 62


def _pack(failed: Column, step: Column, suspect: Column) -> Column:
    """Severity, step and suspect in one integer whose minimum is what decides a trace.

    Spark aggregates a number in a hash map, and would sort for a struct.
    """
    severity = F.when(failed, F.lit(0)).otherwise(F.lit(_DOUBTFUL)).cast("long")
    return (severity + F.shiftleft(step.cast("long"), _SUSPECT_BITS) + suspect).alias("packed")


def causes(outcome: DataFrame) -> DataFrame:
    """The outcomes by what decided them: how many traces, and the shortest as the example."""
    return outcome.groupBy("failed", "suspect", "cause").agg(
        F.count("*").alias("traces"), F.min(F.struct("step", "trace_id")).alias("example")
    )
