"""Recorded traces: their model, the Parquet store, import and export. Knows no protocol."""
