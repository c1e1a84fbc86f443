"""Asks the formulas about each distinct state and each distinct visit, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from conformance.audit import paths
from conformance.audit.rules import (
    INIT,
    NEXT,
    Rulebook,
    doubts,
    literal,
    quoted,
    strings,
    value_of,
    valued,
    violations,
)
from conformance.audit.visited import INITIAL, KEY
from conformance.audit.workers import Evaluator
from conformance.tla.spark import with_verdicts
from conformance.traces.states import FINGERPRINT, StateColumns


def read_states(spark: SparkSession, files: Iterable[Path], columns: StateColumns) -> DataFrame:
    """The states of a store with `whole`: whether all variables were observed."""
    # Given the schema, Spark starts no job to find it.
    reader = spark.read.schema(from_arrow_schema(columns.arrow))
    states = paths.parquet(reader, files)
    variables = columns.schema.names()
    whole = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in variables) or "true"
    return states.withColumn("whole", F.expr(whole))


def judge_states(
    spark: SparkSession,
    files: Sequence[Path],
    columns: StateColumns,
    rules: Rulebook,
    evaluator: Evaluator,
) -> DataFrame:
    """The verdict on every state that is whole: fingerprint, violations, doubts, and `states`, for
    how many a row stands: those of which nothing is to be said may be one row.

    Native invariants are judged in one scan.
    """
    if not rules.native:
        return evaluator.judged_states(spark, files)
    rows = _values(read_states(spark, files, columns).where("whole"), rules)
    return rows.select(
        FINGERPRINT,
        violations(rules.invariants).alias("violations"),
        doubts(rules.invariants).alias("doubts"),
        F.lit(1).cast("long").alias("states"),
    )


def states_as_table(
    spark: SparkSession,
    files: Sequence[Path],
    columns: StateColumns,
    rules: Rulebook,
    evaluator: Evaluator,
) -> pa.Table:
    """As `judge_states`, as a table."""
    if rules.native:
        return judge_states(spark, files, columns, rules, evaluator).toArrow()
    return evaluator.found_in_states(spark, files)


def _values(states: DataFrame, rules: Rulebook) -> DataFrame:
    """The fingerprint, and a column with the value of each invariant."""
    if not rules.compiled:
        return states.select(FINGERPRINT, *valued(rules.invariants))
    rows = with_verdicts(states, rules.compiled, keep=[FINGERPRINT])
    return rows.withColumnsRenamed({rule.name: value_of(rule) for rule in rules.invariants})


def judge_visits(
    visits: DataFrame, evaluator: Evaluator, table: DataFrame, sample: int, *, anywhere: bool
) -> DataFrame:
    """The verdict on every distinct visit.

    `table` lists the visits that are known to be legal: all initial states, and the model's
    transitions if there is a model. The formula of the action is asked about the other
    transitions, and about one listed transition in `sample`: where it says no, the visit is
    disputed. `anywhere`: a trace may begin in any state. Columns: source, action, target, visits,
    listed, asked, ready (both states are known whole), disputed, violations, doubts, taken.
    """
    begins = "false" if anywhere else f"action = {INITIAL}"
    joined = visits.join(table.withColumn("in_table", F.lit(True)), list(KEY), "left")
    marked = joined.withColumn("listed", F.col("in_table").isNotNull()).withColumn(
        "asked", F.expr(f"NOT listed OR pmod(xxhash64(source, action, target), {sample}) = 0")
    )
    judged = evaluator.judged_visits(marked).withColumn(
        "unlike",
        strings(
            [
                f"CASE WHEN {begins} AND ready AND NOT listed THEN {literal(INIT)} END",
                f"CASE WHEN illegal THEN {literal(NEXT)} END",
            ]
        ),
    )
    return judged.select(
        *(*KEY, "visits", "listed", "asked", "ready", "doubts", "taken"),
        F.expr("listed AND illegal").alias("disputed"),
        F.expr("if(listed, violations, concat(unlike, violations))").alias("violations"),
    )


def suspects(judged: DataFrame, states: DataFrame) -> DataFrame:
    """The visits that are not in order, numbered from 1: the visit's own verdict and that on
    the state that it leads to. Columns as of `judged`, with suspect and failed."""
    bad = states.where("size(violations) > 0 OR size(doubts) > 0").select(
        F.col(FINGERPRINT).alias("after"),
        F.col("violations").alias("state_violations"),
        F.col("doubts").alias("state_doubts"),
    )
    joined = judged.join(bad, F.col("target") == F.col("after"), "left")
    merged = joined.select(
        *(*KEY, "visits"),
        _merged("violations").alias("violations"),
        _merged("doubts").alias("doubts"),
    ).where("size(violations) > 0 OR size(doubts) > 0")
    order = Window.orderBy(*KEY)
    return merged.withColumn("suspect", F.row_number().over(order)).withColumn(
        "failed", F.expr("size(violations) > 0")
    )


def _merged(name: str) -> Column:
    return F.expr(f"concat({name}, coalesce(state_{name}, CAST(array() AS array<string>)))")
