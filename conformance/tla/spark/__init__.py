"""Compiles TLA+ formulas to native Spark SQL, with three-valued verdicts."""

from __future__ import annotations

from conformance.tla.spark.api import (
    SparkFormula,
    compile_action_formulas,
    compile_next_by_action,
    compile_state_formulas,
    prefixed,
    within,
)

__all__ = [
    "SparkFormula",
    "compile_action_formulas",
    "compile_next_by_action",
    "compile_state_formulas",
    "prefixed",
    "within",
]
