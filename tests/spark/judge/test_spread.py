"""Many recordings are judged on Spark as one judge in this process judges them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from conformance.judge import spread
from conformance.judge.reading import locate, read_recordings
from conformance.judge.spread import Rules, deal, judge_by
from conformance.spark.workers import OnSpark
from conformance.tla import Spec
from conformance.verdict import Verdict
from tests.unit.judge.locks import HIDDEN, locks, mapping, write

pytestmark = pytest.mark.tlc

INVARIANTS, PROPERTIES = ("HolderWasGranted", "FewGrants"), ("GrantsNeverFall",)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return locks(tmp_path_factory.mktemp("locks"))


@pytest.mark.parametrize("wave", [20_000, 7], ids=["one wave", "waves of seven"])
def test_the_judgements_are_those_of_one_judge(
    spark: SparkSession, spec: Spec, tmp_path: Path, wave: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread, "WAVE", wave)
    path = write(tmp_path / "runs.ndjson", 40)
    rules = Rules.of(spec, mapping(tmp_path, HIDDEN), INVARIANTS, PROPERTIES)
    judge = rules.judge()
    here = [judge.judge(one) for one in read_recordings([path])]
    there = [one for _, one in judge_by(OnSpark(spark), rules, locate([path]), brief=False)]
    assert there == here
    assert {one.verdict for one in there} == {Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE}
    brief = [one for _, one in judge_by(OnSpark(spark), rules, locate([path]), brief=True)]
    assert brief == [one.brief() for one in here]


def test_a_judgement_does_not_depend_on_those_before(spec: Spec, tmp_path: Path) -> None:
    path = write(tmp_path / "runs.ndjson", 40)
    rules = Rules.of(spec, mapping(tmp_path, HIDDEN), INVARIANTS, PROPERTIES)
    recordings = list(read_recordings([path]))
    judge, alone = rules.judge(spec), [rules.judge(spec).judge(one) for one in recordings]
    backwards = [judge.judge(one) for one in reversed(recordings)]
    assert backwards[::-1] == alone


def test_a_file_that_workers_cannot_read_makes_its_traces_inconclusive(
    spark: SparkSession, spec: Spec, tmp_path: Path
) -> None:
    path = write(tmp_path / "runs.ndjson", 3)
    located = list(locate([path]))
    path.unlink()
    rules = Rules.of(spec, mapping(tmp_path, HIDDEN), INVARIANTS, PROPERTIES)
    found = [one for _, one in judge_by(OnSpark(spark), rules, located, brief=False)]
    assert [one.verdict for one in found] == [Verdict.INCONCLUSIVE] * 4
    assert "every worker of the cluster can read" in found[0].reason


def test_a_long_trace_begins_first_and_shares_its_task_with_few() -> None:
    hands = deal([5, 90, 5, 5, 5, 90, 5, 5], 3)
    assert hands[0] == [1] or hands[0] == [5]
    assert sorted(map(len, hands)) == [1, 1, 6]
    assert sorted(number for hand in hands for number in hand) == list(range(8))
    assert deal([1, 2], 9) == [[1], [0]]
