"""The scan of a store's traces: arrays of integers in, distinct transitions and verdicts out.

A visit is one entry of a trace: the initial state (action `INITIAL`, source 0) or a step. All
that the formulas say is said about distinct visits, so the many are scanned without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from conformance.audit import paths
from conformance.traces.model import End

INITIAL = -1
"""The action code of the visit of an initial state."""

_TRACES = (
    "trace_id BIGINT, seed BIGINT, states ARRAY<BIGINT>, actions ARRAY<INT>, end STRING, "
    "problem STRING, source STRING"
)
KEY = ("source", "action", "target")
"""What makes a visit distinct."""


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


def distinct_visits(traces: DataFrame) -> DataFrame:
    """Each distinct (source, action, target) with `visits`, how often it occurs."""
    return visits(traces).groupBy(*KEY).agg(F.count("*").alias("visits"))


def endings(traces: DataFrame) -> DataFrame:
    """How many traces there are, by `diverged` and `problematic`; reads two small columns."""
    return traces.groupBy(
        (F.col("end") == End.DIVERGED.value).alias("diverged"),
        F.col("problem").isNotNull().alias("problematic"),
    ).count()


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
