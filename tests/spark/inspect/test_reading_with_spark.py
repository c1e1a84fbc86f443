"""Spark's workers leave the same tables as one process, and a part that failed is read again."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from conformance.inspect import page, slices
from conformance.inspect.evidence import TABLES
from conformance.inspect.history import controller
from conformance.inspect.inspection import inspect
from conformance.inspect.reading import plan
from conformance.inspect.reading.inputs import Inputs, brokers_of
from conformance.inspect.reading.reader import read
from conformance.inspect.tables import SCHEMAS
from conformance.inspect.workers import OnDemand
from tests.segment_files import partition_folder, run_of, write_checkpoint, write_segment

pytestmark = pytest.mark.spark
PLACES = ("here", "there")


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inputs:
    """Three replicas of four partitions, one of them cut off, in parts of a few files."""
    monkeypatch.setattr(plan, "_PART_FILES", 5)
    for broker in ("b1", "b2", "b3"):
        for number in range(4):
            folder = partition_folder(tmp_path / broker, "t", number)
            written = write_segment(folder, run_of(80, epoch=number))
            if (broker, number) == ("b2", 1):
                written.path.write_bytes(written.path.read_bytes()[:-3])
        write_checkpoint(tmp_path / broker / "replication-offset-checkpoint", "t 0 80", "t 1 80")
    return Inputs(brokers_of([f"{name}={tmp_path / name}" for name in ("b1", "b2", "b3")]))


def test_the_same_tables_and_the_parts_that_were_missing(
    spark: SparkSession, inputs: Inputs, tmp_path: Path
) -> None:
    alone = read(inputs, tmp_path / "alone", ())
    told: list[tuple[int, int]] = []
    out = tmp_path / "together"
    together = read(
        inputs, out, (), workers=OnDemand(wanted=True), tell=lambda *seen: told.append(seen)
    )
    for table in TABLES:
        assert together.table(table).equals(alone.table(table)), table
    assert told[-1] == (alone.manifest["bytes"],) * 2
    assert alone.table("damage").num_rows > 0

    # As a kill leaves it: no end, and two parts of which one has rows that do not count.
    (out / "evidence.json").unlink()
    (out / "files" / "part-000001.parquet").unlink()
    for table in ("files", "batches"):
        (out / table / "part-000003.parquet").unlink()
    (out / "files" / "part-000008.parquet").unlink(missing_ok=True)
    again = read(inputs, out, (), workers=OnDemand(wanted=True))
    for table in TABLES:
        assert again.table(table).equals(alone.table(table)), table


def test_the_tables_are_there_for_queries_of_ones_own(
    spark: SparkSession, inputs: Inputs, tmp_path: Path
) -> None:
    read(inputs, tmp_path / "out", ())
    batches = spark.read.parquet(str(tmp_path / "out" / "batches"))
    counts = batches.groupBy("broker").count().orderBy("broker").collect()
    assert [(row["broker"], row["count"]) for row in counts] == [
        ("b1", 320),
        ("b2", 319),
        ("b3", 320),
    ]


def test_slices_are_judged_alike_here_and_by_workers(
    spark: SparkSession, inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "_WEIGHT", 1)
    evidence = read(inputs, tmp_path / "evidence", ())
    assert len(slices.slices(evidence, controller(evidence))) > 2
    here = inspect(evidence, tmp_path / "here")
    there = inspect(evidence, tmp_path / "there", workers=OnDemand(wanted=True))
    assert here.partition_count == 4
    assert [one.key for one in there.discoveries] == [one.key for one in here.discoveries] != []
    assert (there.truths, there.unjudged) == (here.truths, here.unjudged)
    assert list(there.partitions) == list(here.partitions)
    for name in SCHEMAS:
        one, other = (pq.read_table(tmp_path / side / f"{name}.parquet") for side in PLACES)
        assert one.equals(other), name
    assert page.dumps(there) == page.dumps(here)
