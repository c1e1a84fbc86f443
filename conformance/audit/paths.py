"""Names files and folders to Spark.

Hadoop's Path takes names as they are: one with the escapes of a URI (`%20`) would be another
file's.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, DataFrameReader


def named(path: Path) -> str:
    """A file or folder on a disk that the driver and its workers share."""
    return f"file:{path.resolve()}"


def parquet(reader: DataFrameReader, files: Iterable[Path]) -> DataFrame:
    """These files, and not those that match their names read as patterns (`[1]`, `{a,b}`)."""
    return reader.option("__globPaths__", "false").parquet(*(named(path) for path in files))
