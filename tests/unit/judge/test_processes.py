"""Several processes judge as one does; what goes wrong in one of them is told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.errors import UserError
from conformance.judge import processes
from conformance.judge.events import Recording
from conformance.judge.judge import Judge
from conformance.judge.processes import judge_here
from conformance.judge.reading import locate
from conformance.judge.verdict import Judgement
from conformance.tla import Spec
from conformance.verdict import Verdict
from tests.unit.judge.locks import HIDDEN, locks, mapping, write

pytestmark = pytest.mark.tlc

INVARIANTS, PROPERTIES = ("HolderWasGranted", "FewGrants"), ("GrantsNeverFall",)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return locks(tmp_path_factory.mktemp("locks"))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first trace is judged by one process, the others by several, few at a time."""
    monkeypatch.setattr(processes, "ALONE", 0.0)
    monkeypatch.setattr(processes, "_FIRST_TURN", 4)


def judge(spec: Spec, folder: Path) -> Judge:
    return Judge(spec, mapping(folder, HIDDEN), INVARIANTS, PROPERTIES)


def children() -> list[int]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    return [int(one) for one in listed.split()]


@pytest.mark.parametrize("count", [2, 3])
def test_the_judgements_are_those_of_one_process(spec: Spec, tmp_path: Path, count: int) -> None:
    path = write(tmp_path / "runs.ndjson", 40)
    alone = list(judge_here(judge(spec, tmp_path), locate([path])))
    several = list(judge_here(judge(spec, tmp_path), locate([path]), processes=count))
    assert [located.name for located, _ in several] == [located.name for located, _ in alone]
    assert [one for _, one in several] == [one for _, one in alone]
    assert {one.verdict for _, one in several} == {Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE}
    brief = judge_here(judge(spec, tmp_path), locate([path]), processes=count, brief=True)
    assert [one for _, one in brief] == [one.brief() for _, one in alone]


def test_whoever_stops_ends_the_processes(spec: Spec, tmp_path: Path) -> None:
    path = write(tmp_path / "runs.ndjson", 40)
    before = children()
    judged = judge_here(judge(spec, tmp_path), locate([path]), processes=2)
    next(judged), next(judged)
    assert len(children()) == len(before) + 2
    judged.close()
    assert children() == before


class Odd(Judge):
    """A judge whose process ends, or who raises, at one trace."""

    def __init__(self, spec: Spec, folder: Path, *, killed: bool) -> None:
        super().__init__(spec, mapping(folder, HIDDEN))
        self.killed = killed

    def judge(self, recording: Recording, *, brief: bool = False) -> Judgement:
        if recording.name == "run-7" and self.killed:
            os.kill(os.getpid(), signal.SIGKILL)
        if recording.name == "run-7":
            raise AssertionError("a bug")
        return super().judge(recording, brief=brief)


def test_a_process_that_is_killed_is_told(spec: Spec, tmp_path: Path) -> None:
    before = children()
    with pytest.raises(UserError, match=r"to run-\d+ was ended by SIGKILL.*jobs = 1"):
        everything(Odd(spec, tmp_path, killed=True), tmp_path)
    assert children() == before


def test_a_bug_in_a_process_shows_where_it_was(spec: Spec, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="a bug") as caught:
        everything(Odd(spec, tmp_path, killed=False), tmp_path)
    assert "in judge" in caught.value.__notes__[0]


def everything(judge: Judge, folder: Path) -> Iterator[object]:
    path = write(folder / "runs.ndjson", 12)
    return iter(list(judge_here(judge, locate([path]), processes=2)))
