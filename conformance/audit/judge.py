"""Asks the formulas about each distinct state and each distinct visit, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from conformance.audit.rules import (
    Rule,
    Rulebook,
    doubts,
    literal,
    primed,
    quoted,
    strings,
    violations,
)
from conformance.audit.scan import INITIAL
from conformance.traces.states import FINGERPRINT

UNKNOWN_STATE = "the store lacks a state that the trace refers to"
UNKNOWN_ACTION = "the trace has an action that the store's dictionary lacks"
UNOBSERVED = "a state has variables that were not observed"


def read_states(spark: SparkSession, files: Iterable[Path], variables: Sequence[str]) -> DataFrame:
    """The states of a store with `whole`: whether all variables were observed."""
    states = spark.read.parquet(*(path.resolve().as_uri() for path in files))
    whole = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in variables) or "true"
    return states.withColumn("whole", F.expr(whole))


def judge_states(states: DataFrame, rules: Rulebook) -> DataFrame:
    """The verdict on every state that is whole: fingerprint, violations, doubts.

    All invariants stand in one select, hence in one scan.
    """
    return states.where("whole").select(
        FINGERPRINT,
        violations(rules.invariants).alias("violations"),
        doubts(rules.invariants).alias("doubts"),
    )


def judge_visits(
    visits: DataFrame, states: DataFrame, rules: Rulebook, table: DataFrame | None, sample: int
) -> DataFrame:
    """The verdict on every distinct visit.

    A visit that the model's `table` (source, action, target) lists is legal. The action's
    formula is asked about the others, and about one listed visit in `sample`: where table and
    formula differ, the visit is disputed. Columns: source, action, target, visits, listed,
    asked, ready (both states are known whole), disputed, violations, doubts.
    """
    marked = _listed(visits, table)
    chosen = f"NOT listed OR pmod(xxhash64(source, action, target), {sample}) = 0"
    rows = _with_states(marked.withColumn("asked", F.expr(chosen)), states, rules.variables)
    legal = _legality(rules)
    properties = [_only(f"ready AND action <> {INITIAL}", rule) for rule in rules.properties]
    judged = rows.select(
        "source",
        "action",
        "target",
        "visits",
        "listed",
        "asked",
        "ready",
        violations(legal).alias("illegal"),
        violations(properties).alias("violations"),
        _doubts([*legal, *properties], rules).alias("doubts"),
    )
    return judged.select(
        *("source", "action", "target", "visits", "listed", "asked", "ready", "doubts"),
        F.expr("listed AND size(illegal) > 0").alias("disputed"),
        F.expr("if(listed, violations, concat(illegal, violations))").alias("violations"),
    )


def _listed(visits: DataFrame, table: DataFrame | None) -> DataFrame:
    if table is None:
        return visits.withColumn("listed", F.lit(False))
    marked = table.withColumn("in_table", F.lit(True))
    joined = visits.join(marked, ["source", "action", "target"], "left")
    return joined.withColumn("listed", F.col("in_table").isNotNull()).drop("in_table")


def _with_states(visits: DataFrame, states: DataFrame, variables: Sequence[str]) -> DataFrame:
    """The visits with the variables' values before and after; `ready` if all are known.

    For an initial state, before and after are the same state.
    """
    before = states.select(
        F.col(FINGERPRINT).alias("before"),
        F.col("whole").alias("whole_before"),
        *(F.col(quoted(name)) for name in variables),
    )
    after = states.select(
        F.col(FINGERPRINT).alias("after"),
        F.col("whole").alias("whole_after"),
        *(F.col(quoted(name)).alias(primed(name)) for name in variables),
    )
    start = visits.withColumn("origin", F.expr(f"if(action = {INITIAL}, target, source)"))
    joined = start.join(before, F.col("origin") == F.col("before"), "left").join(
        after, F.col("target") == F.col("after"), "left"
    )
    return joined.withColumn("ready", F.expr("coalesce(whole_before AND whole_after, false)"))


def _legality(rules: Rulebook) -> list[Rule]:
    """One rule per action code, asked of that action's visits only."""
    coded = {INITIAL: rules.init, **rules.actions}
    return [_only(f"asked AND ready AND action = {code}", rule) for code, rule in coded.items()]


def _only(condition: str, rule: Rule) -> Rule:
    """The rule where the condition holds; elsewhere it holds and is not evaluated."""
    return Rule(
        rule.name,
        f"if({condition}, {rule.holds}, true)",
        f"if({condition}, {rule.fails}, false)",
        rule.reason,
        rule.location,
    )


def _doubts(checked: Sequence[Rule], rules: Rulebook) -> Column:
    codes = ", ".join(map(str, [INITIAL, *rules.actions]))
    structural = strings(
        [
            "CASE WHEN before IS NULL OR after IS NULL THEN "
            f"{literal(UNKNOWN_STATE)} WHEN NOT ready THEN {literal(UNOBSERVED)} END",
            f"CASE WHEN NOT coalesce(action IN ({codes}), false) "
            f"THEN {literal(UNKNOWN_ACTION)} END",
        ]
    )
    return F.concat(structural, doubts(checked))


def suspects(judged: DataFrame, states: DataFrame) -> DataFrame:
    """The visits that are not in order, numbered from 1: the visit's own verdict and that on
    the state that it leads to. Columns as of `judged`, with suspect and failed."""
    target = states.where("size(violations) > 0 OR size(doubts) > 0").select(
        F.col(FINGERPRINT).alias("after"),
        F.col("violations").alias("state_violations"),
        F.col("doubts").alias("state_doubts"),
    )
    joined = judged.join(target, F.col("target") == F.col("after"), "left")
    merged = joined.select(
        "source",
        "action",
        "target",
        "visits",
        _merged("violations").alias("violations"),
        _merged("doubts").alias("doubts"),
    ).where("size(violations) > 0 OR size(doubts) > 0")
    order = Window.orderBy("source", "action", "target")
    return merged.withColumn("suspect", F.row_number().over(order)).withColumn(
        "failed", F.expr("size(violations) > 0")
    )


def _merged(name: str) -> Column:
    return F.expr(f"concat({name}, coalesce(state_{name}, CAST(array() AS array<string>)))")


def transition_table(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The model's transitions as source, action (codes of the store) and target."""
    return spark.createDataFrame(rows)
