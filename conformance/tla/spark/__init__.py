"""Compiles TLA+ formulas to native Spark SQL, with three-valued verdicts."""

from __future__ import annotations

from conformance.tla.spark.api import (
    SparkFormula,
    compile_action,
    compile_action_formulas,
    compile_state_formulas,
)
from conformance.tla.spark.frames import with_verdicts

__all__ = [
    "SparkFormula",
    "compile_action",
    "compile_action_formulas",
    "compile_state_formulas",
    "with_verdicts",
]
