"""Judges a trace store with Spark: refinement, invariants, properties, accounting, coverage."""
