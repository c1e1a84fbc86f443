"""Recording by workers whose current folder is another one, as those of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from conformance.replay.record import RecordingPlan, record
from conformance.traces.store import TraceStore
from conformance.workers import Here
from tests.spark.audit import lock

pytestmark = pytest.mark.tlc

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Elsewhere(Here):
    folder: Path

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        with contextlib.chdir(self.folder):
            return iter([function(item) for item in items])


def test_workers_with_another_current_folder_find_a_store_named_relatively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    plan = RecordingPlan(
        "tests.spark.audit.lock_system:honest", {"Limit": 3}, traces=5, length=4, seed=1
    )

    monkeypatch.chdir(here)
    result = record(Elsewhere(elsewhere), plan, lock.spec(), lock.IDENTITY, Path("store"))

    assert result.manifest.counts.traces == 5
    assert len(list(TraceStore.open(here / "store").traces())) == 5
    assert list(elsewhere.iterdir()) == []
