"""A file of the store that is damaged under the audit is named, whoever reads it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from conformance.audit.engine import audit
from conformance.errors import DataError
from conformance.spark.workers import OnSpark
from conformance.traces.store import TraceStore
from conformance.workers import ForkedProcesses, Here
from tests.spark.audit import lock
from tests.spark.audit.lock import INITIAL, of_states, save

pytestmark = pytest.mark.tlc


@pytest.mark.parametrize("where", ["here", "processes", "spark"])
@pytest.mark.parametrize("part", ["states", "traces"])
@pytest.mark.parametrize("torn", [False, True], ids=["flipped", "torn"])
def test_the_damaged_file_is_named(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    torn: bool,
    where: str,
) -> None:
    store = save(tmp_path / "s", [of_states(0, INITIAL, (0, ("a", 1, ("a",))))])
    workers = {"here": Here(), "processes": ForkedProcesses(2), "spark": OnSpark(spark)}[where]
    # The driver's own look at the states comes first, and would notice.
    monkeypatch.setattr(TraceStore, "check_fingerprints", lambda _: 0)
    damage(store.files(part)[0], torn=torn)
    with pytest.raises(DataError, match=rf"{part}/part-00000\.parquet"):
        audit(workers, store, lock.rules(), lock.evaluator(store))


def damage(path: Path, *, torn: bool) -> None:
    """Cut a file off, or flip a byte in a page of data."""
    data = bytearray(path.read_bytes())
    if torn:
        path.write_bytes(data[: len(data) // 2])
        return
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 0xFF
    path.write_bytes(data)
