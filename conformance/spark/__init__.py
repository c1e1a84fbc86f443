"""Spark: its session (`session`), and its workers (`workers`). Nothing here is imported unasked."""
