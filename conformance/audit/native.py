"""Judges a store's states by Spark's own columns: invariants as SQL, compiled from the spec."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from conformance.audit.judge import Verdicts
from conformance.audit.rules import AuditRule, Rulebook, literal, quoted
from conformance.audit.verdicts import has_value
from conformance.errors import DataError
from conformance.spark.workers import OnSpark
from conformance.tla.spark import with_verdicts
from conformance.traces.states import FINGERPRINT
from conformance.traces.store import TraceStore
from conformance.workers import Workers


def judge_natively(workers: Workers, store: TraceStore, rules: Rulebook) -> Verdicts:
    """The invariants' verdicts on every state that is whole, in one scan, by Spark's workers."""
    assert isinstance(workers, OnSpark)
    rows = _values(_read_states(workers.session, store).where("whole"), rules).select(
        FINGERPRINT, _violations(rules.invariants), _doubts(rules.invariants)
    )
    with _readable(store):
        whole = rows.persist()
        try:
            bad = whole.where("size(violations) > 0 OR size(doubts) > 0").toArrow().to_pylist()
            states = whole.count()
        finally:
            whole.unpersist()
    valued = {
        ("value", rule.name): states - sum(not has_value(rule.name, row["doubts"]) for row in bad)
        for rule in rules.invariants
    }
    verdicts = [(row[FINGERPRINT], row["violations"], row["doubts"]) for row in bad]
    return Verdicts(verdicts, Counter(valued), Counter())


@contextmanager
def _readable(store: TraceStore) -> Iterator[None]:
    """Turn Spark's failure to read a file of the store into an error that names the file."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        named = re.search(r"states/part-\d+\.parquet", str(error))
        if named is None:
            raise
        raise DataError(
            f"{store.path / named.group()} cannot be read: it is damaged, or was changed while it "
            "was audited. Restore the store from a copy, or record it again."
        ) from error


def _read_states(spark: SparkSession, store: TraceStore) -> DataFrame:
    """The states of a store with `whole`: whether all variables were observed."""
    # Given the schema, Spark starts no job to find it. A name is no pattern (`[1]`, `{a,b}`).
    reader = spark.read.schema(from_arrow_schema(store.columns.arrow))
    files = map(_named, store.files("states"))
    states = reader.option("__globPaths__", "false").parquet(*files)
    variables = store.columns.schema.names()
    whole = " AND ".join(f"{quoted(name)} IS NOT NULL" for name in variables) or "true"
    return states.withColumn("whole", F.expr(whole))


def _named(path: Path) -> str:
    """A file that the driver and its workers share. Hadoop's Path takes names as they are: one
    with the escapes of a URI (`%20`) would be another file's."""
    return f"file:{path.resolve()}"


def _values(states: DataFrame, rules: Rulebook) -> DataFrame:
    """The fingerprint, and a column with the value of each invariant: a formula stands in a plan
    once, however often its value is looked at."""
    if not rules.compiled:
        values = [F.expr(rule.value).alias(_value_of(rule)) for rule in rules.invariants]
        return states.select(FINGERPRINT, *values)
    rows = with_verdicts(states, rules.compiled, keep=[FINGERPRINT])
    return rows.withColumnsRenamed({rule.name: _value_of(rule) for rule in rules.invariants})


def _value_of(rule: AuditRule) -> str:
    """The column of a rule's value."""
    return f"value:{rule.name}"


def _violations(rules: Sequence[AuditRule]) -> Column:
    """The names of the rules that fail, by their values' columns."""
    parts = [
        f"CASE WHEN NOT {quoted(_value_of(rule))} THEN {literal(rule.name)} END" for rule in rules
    ]
    return _strings(parts).alias("violations")


def _doubts(rules: Sequence[AuditRule]) -> Column:
    """Name and reason of the rules that have no value."""
    parts = [
        f"CASE WHEN {quoted(_value_of(rule))} IS NULL THEN concat("
        f"{literal(rule.name)}, ': ', coalesce({rule.reason}, 'undefined')) END"
        for rule in rules
    ]
    return _strings(parts).alias("doubts")


def _strings(parts: Sequence[str]) -> Column:
    """An array of the SQL strings that are not NULL."""
    if not parts:
        return F.expr("CAST(array() AS array<string>)")
    return F.expr(f"array_compact(array({', '.join(parts)}))")
