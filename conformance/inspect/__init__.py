"""Reads copies of brokers' data directories and logs into tables, and judges the tables.

    folders, logs --plan--> units --read--> Parquet --> Evidence --> findings, page, tables, traces

The judgement reads tables and never files. docs/inspect.md is the user's page,
docs/design/judging.md describes how the evidence is read and judged.
"""
