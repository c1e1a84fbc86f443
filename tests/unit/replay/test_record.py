"""Recording without Spark: a double runs the tasks in this process, as a worker would."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Generic, TypeVar, cast

import pytest
from pyspark.sql import SparkSession

from conformance.replay.record import Plan, record
from conformance.traces.store import TraceStore
from tests.spark.audit import lock

pytestmark = pytest.mark.tlc

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A SparkContext, as far as recording asks it, whose workers run in `folder`."""

    folder: Path
    defaultParallelism: int = 2  # noqa: N815  Spark's name

    def parallelize(self, numbers: Sequence[int], _slices: int) -> Tasks:
        return Tasks(self.folder, numbers)


@dataclass(frozen=True, slots=True)
class Tasks:
    folder: Path
    numbers: Sequence[int]

    def mapPartitions(self, task: Callable[[Iterator[int]], Iterator[T]]) -> Collected[T]:  # noqa: N802
        with contextlib.chdir(self.folder):
            return Collected([one for number in self.numbers for one in task(iter([number]))])


@dataclass(frozen=True, slots=True)
class Collected(Generic[T]):
    found: list[T]

    def collect(self) -> list[T]:
        return self.found


def test_workers_with_another_current_folder_find_a_store_named_relatively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    spark = cast("SparkSession", SimpleNamespace(sparkContext=Cluster(elsewhere)))
    plan = Plan("tests.spark.audit.lock_system:honest", {"Limit": 3}, traces=5, length=4, seed=1)

    monkeypatch.chdir(here)
    result = record(spark, plan, lock.spec(), lock.IDENTITY, Path("store"))

    assert result.manifest.counts.traces == 5
    assert len(list(TraceStore.open(here / "store").traces())) == 5
    assert list(elsewhere.iterdir()) == []
