"""Asks the formulas about each distinct state and each distinct visit, once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from conformance.audit.rules import (
    INIT,
    Rule,
    Rulebook,
    doubts,
    following,
    literal,
    quoted,
    strings,
    valued,
    violations,
)
from conformance.audit.scan import INITIAL, KEY
from conformance.audit.workers import Evaluator
from conformance.traces.states import FINGERPRINT, StateColumns

UNKNOWN_STATE = "the store lacks a state that the trace refers to"
UNKNOWN_ACTION = "the trace has an action that the store's dictionary lacks"
UNOBSERVED = "a state has variables that were not observed"


def read_states(spark: SparkSession, files: Iterable[Path], columns: StateColumns) -> DataFrame:
    """The states of a store with `whole`: whether all variables were observed."""
    # Given the schema, Spark starts no job to find it.
    reader = spark.read.schema(from_arrow_schema(columns.arrow))
    states = reader.parquet(*(path.resolve().as_uri() for path in files))
    variables = columns.schema.names()
    whole = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in variables) or "true"
    return states.withColumn("whole", F.expr(whole))


def judge_states(states: DataFrame, rules: Rulebook, evaluator: Evaluator) -> DataFrame:
    """The verdict on every state that is whole: fingerprint, violations, doubts.

    Native invariants stand in one select, hence in one scan.
    """
    whole = states.where("whole")
    if not rules.native:
        return evaluator.judged_states(whole)
    rows = whole.select(FINGERPRINT, *valued(rules.invariants))
    return rows.select(
        FINGERPRINT,
        violations(rules.invariants).alias("violations"),
        doubts(rules.invariants).alias("doubts"),
    )


def judge_visits(
    visits: DataFrame,
    states: DataFrame,
    rules: Rulebook,
    evaluator: Evaluator,
    table: DataFrame,
    sample: int,
) -> DataFrame:
    """The verdict on every distinct visit.

    `table` lists the visits that are known to be legal: all initial states, and the model's
    transitions if there is a model. The formula of the action is asked about the other
    transitions, and about one listed transition in `sample`: where it says no, the visit is
    disputed. Columns: source, action, target, visits, listed, asked, ready (both states are
    known whole), disputed, violations, doubts.
    """
    joined = visits.join(table.withColumn("in_table", F.lit(True)), list(KEY), "left")
    marked = joined.withColumn("listed", F.col("in_table").isNotNull()).withColumn(
        "asked", F.expr(f"NOT listed OR pmod(xxhash64(source, action, target), {sample}) = 0")
    )
    rows = _with_states(marked, states, rules.variables)
    step = f"ready AND action <> {INITIAL}"
    known = f"action BETWEEN 0 AND {rules.actions - 1}"
    native = [_only(step, rule) for rule in rules.properties] if rules.native else []
    looked_at = rows.select(
        *(*KEY, "visits", "listed", "asked", "ready"),
        F.expr(f"coalesce(action = {INITIAL}, false)").alias("starts"),
        _gaps(known).alias("gaps"),
        *valued(native),
    )
    steps = evaluator.judged_steps(rows.where(f"{step} AND {known}"))
    judged = looked_at.join(steps, list(KEY), "left").select(
        *(*KEY, "visits", "listed", "asked", "ready"),
        F.concat(_not_initial(), _or_none("illegal")).alias("illegal"),
        F.concat(_or_none("violations"), violations(native)).alias("violations"),
        F.concat("gaps", _or_none("doubts"), doubts(native)).alias("doubts"),
    )
    return judged.select(
        *(*KEY, "visits", "listed", "asked", "ready", "doubts"),
        F.expr("listed AND size(illegal) > 0").alias("disputed"),
        F.expr("if(listed, violations, concat(illegal, violations))").alias("violations"),
    )


def _not_initial() -> Column:
    """An initial state that Init does not allow."""
    return strings([f"CASE WHEN starts AND ready AND NOT listed THEN {literal(INIT)} END"])


def _or_none(name: str) -> Column:
    return F.expr(f"coalesce({name}, CAST(array() AS array<string>))")


def _with_states(visits: DataFrame, states: DataFrame, variables: Sequence[str]) -> DataFrame:
    """The visits with the variables' values before and after.

    For an initial state, before and after are the same state.
    """
    before = states.select(
        F.col(FINGERPRINT).alias("of_before"),
        F.col("whole").alias("whole_before"),
        *(F.col(quoted(name)) for name in variables),
    )
    after = states.select(
        F.col(FINGERPRINT).alias("of_after"),
        F.col("whole").alias("whole_after"),
        *(F.col(quoted(name)).alias(following(name)) for name in variables),
    )
    start = F.expr(f"if(action = {INITIAL}, target, source) = of_before")
    joined = visits.join(before, start, "left").join(
        after, F.col("target") == F.col("of_after"), "left"
    )
    return joined.withColumn("ready", F.expr("coalesce(whole_before AND whole_after, false)"))


def _only(condition: str, rule: Rule) -> Rule:
    """The rule where the condition holds; elsewhere true, and not evaluated."""
    value = f"if(coalesce({condition}, false), {rule.value}, true)"
    return Rule(rule.name, value, rule.reason, rule.location)


def _gaps(known: str) -> Column:
    """What the visit itself lacks."""
    return strings(
        [
            "CASE WHEN of_before IS NULL OR of_after IS NULL THEN "
            f"{literal(UNKNOWN_STATE)} WHEN NOT ready THEN {literal(UNOBSERVED)} END",
            f"CASE WHEN NOT coalesce(action = {INITIAL} OR {known}, false) "
            f"THEN {literal(UNKNOWN_ACTION)} END",
        ]
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
