"""Formulas on the rows of a DataFrame: all together, as a chain of projections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformance.tla.spark.api import SparkFormula
from conformance.tla.spark.sql import name
from conformance.tla.spark.writer import staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_verdicts(
    rows: DataFrame, formulas: Sequence[SparkFormula], *, keep: Sequence[str] = ()
) -> DataFrame:
    """The columns `keep`, and a boolean column of each formula's name: its value on the row.

    NULL is a formula without a value; `SparkFormula.reason` says why. What formulas have in
    common is evaluated once for all of them, so give those of one scan together.
    """
    kept = [name(column) for column in keep]
    plan = staged([formula.node for formula in formulas])
    for stage in plan.stages:
        added = [f"{text} AS {column}" for column, text in stage.added]
        rows = rows.selectExpr(*kept, *stage.columns, *added)
    values = zip(formulas, plan.results, strict=True)
    return rows.selectExpr(*kept, *(f"{text} AS {name(f.name)}" for f, text in values))
