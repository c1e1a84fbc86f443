"""Compiles TLA+ formulas to native Spark SQL, with three-valued verdicts."""
