"""A history has the same findings and counts in this process, in processes and on Spark."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from conformance.events import Finding
from conformance.history import across, reading, stories, windows
from conformance.history.judgement import HistoryJudgement, judge_history
from conformance.history.reading import history_files
from conformance.history.rules import RULES, Answer, DeclaredConfiguration
from conformance.spark.workers import OnSpark
from conformance.verdict import Verdict
from conformance.workers import ForkedProcesses, Here, Workers
from tests.property.history.test_brute_force import drawn
from tests.unit.history.histories import Operation, formulas_of
from tests.unit.history.planted import apart
from tests.unit.history.test_rules import LIES

pytestmark = pytest.mark.spark


def circle(length: int) -> list[Operation]:
    """Each transaction reads what the next one sends, and the last one what the first does."""
    return [
        {"process": f"p{n}", "type": "ok", "f": "txn",
         "sent": [{"key": f"k{n}", "value": n, "offset": 0}],
         "polled": [{"key": f"k{(n + 1) % length}", "value": (n + 1) % length, "offset": 0}]}
        for n in range(length)
    ]  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every lie, drawn histories, and circles within and beyond the bound: two files of many
    blocks and many buckets, in which operations begin in a block and end in the next."""
    monkeypatch.setattr(reading, "BLOCK", 4000)
    monkeypatch.setattr(reading, "_BUCKET", 8000)
    monkeypatch.setattr(windows, "WINDOW", 100)
    histories: list[Sequence[Operation]] = [case.lie for case in LIES]
    histories += [drawn(random.Random(seed)) for seed in range(80)]
    histories += [circle(across.MOST_IN_CIRCLE), circle(across.MOST_IN_CIRCLE + 1)]
    for name, chosen in (("a", histories[::2]), ("b", histories[1::2])):
        with (tmp_path / f"{name}.ndjson").open("w", encoding="utf-8") as file:
            for number, history in enumerate(chosen):
                for operation in history:
                    line = apart(operation, f"{name}{number}")
                    begun = {"process": line["process"], "type": "invoke", "f": line["f"]}
                    file.write("".join(json.dumps(each) + "\n" for each in (begun, line)))
            file.write("{\n")
    return sorted(tmp_path.glob("*.ndjson"))


def judged(
    files: list[Path], folder: Path, workers: Workers
) -> tuple[HistoryJudgement, dict[str, Any], list[Finding]]:
    """The judgement, its figures and its findings."""
    folder.mkdir()
    formulas = formulas_of(DeclaredConfiguration())
    judgement = judge_history(history_files(files), formulas, folder, workers)
    return judgement, stories.as_json(judgement), list(stories.findings(judgement, folder, "-"))


def test_findings_and_counts_are_the_same_wherever_they_are_judged(
    spark: SparkSession, files: list[Path], tmp_path: Path
) -> None:
    judgement, figures, findings = judged(files, tmp_path / "out", Here())
    assert {tally.rule.name for tally in judgement.broken()} == {r.name for r in RULES if r.decides}
    assert judgement.history.buckets > 4
    assert len(judgement.history.parts) > 10
    assert judgement.long_circles == 1
    assert judgement.tallies["ReadTransactionsEndedBefore"].answers[Answer.BROKEN] > 1
    for workers in (ForkedProcesses(2), OnSpark(spark)):
        for path in (tmp_path / "out").iterdir():
            path.unlink()
        (tmp_path / "out").rmdir()
        other, other_figures, other_findings = judged(files, tmp_path / "out", workers)
        assert other.verdict is judgement.verdict is Verdict.FAIL
        assert other_figures == figures, workers.place
        assert other_findings == findings, workers.place
