"""`kconform bugs --clean`: what the oracles said, and what they did not get done, as a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.bugs.worker import BugJob, FaultSearchResult, PartStarted
from conformance.cli import bugs as command
from conformance.errors import ExitCode


@pytest.mark.parametrize(
    ("found", "code", "told"),
    [
        pytest.param(
            FaultSearchResult(killed=False, steps=7), ExitCode.PASS, "and 7 steps", id="nothing"
        ),
        pytest.param(
            FaultSearchResult(killed=True, oracle="Hypothesis", title="Fetch"),
            ExitCode.FAIL,
            "by the",
            id="found",
        ),
        pytest.param(
            FaultSearchResult(killed=False, note="gave up after 900 s"),
            ExitCode.INCONCLUSIVE,
            "not all was done: gave up",
            id="not done",
        ),
    ],
)
def test_the_verdict_on_a_clean_copy(
    found: FaultSearchResult,
    code: ExitCode,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "by_oracles", lambda *_: found)
    with pytest.raises(SystemExit) as ended:
        command.bugs(clean=True, system="group")
    assert ended.value.code == code
    assert told in capsys.readouterr().out


def test_the_list_says_what_the_spec_does_not_see(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.bugs(list_faults=True, system="group")
    lines = {line.split()[0]: line.rstrip() for line in capsys.readouterr().out.splitlines()}
    assert lines["E11"].endswith("keeps the join that is over")
    assert lines["E28"].endswith("(by tests of impl)")
    assert lines["D32"].endswith("(not applicable)")


def test_all_systems_are_asked_and_each_finding_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[BugJob] = []

    def judged(
        job: BugJob, _folder: Path, _timeout: float, tell: Callable[[PartStarted], None]
    ) -> FaultSearchResult:
        asked.append(job)
        tell(PartStarted(f"transition suite of {job.models[0]}", 0, 4))
        title = f"{job.system} differs"
        return FaultSearchResult(
            killed=job.system != "group", oracle="Hypothesis", title=title, note=""
        )

    monkeypatch.setattr(command, "by_oracles", judged)
    with pytest.raises(SystemExit) as ended:
        command.bugs(clean=True, as_json=True)
    told, shown = capsys.readouterr()
    report = json.loads(told)
    assert ended.value.code == ExitCode.FAIL
    assert [job.system for job in asked] == report["systems"]
    others = [system for system in report["systems"] if system != "group"]
    assert [one["title"] for one in report["findings"]] == [f"{one} differs" for one in others]
    assert "delayed: 1 of 4: transition suite of delayed/" in shown


def test_a_spent_budget_leaves_each_later_system_hardly_any(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    budgets: list[float] = []

    def judged(job: BugJob, *_: object) -> FaultSearchResult:
        budgets.append(job.budget)
        return FaultSearchResult(killed=False, note=f"no time for {job.system}")

    monkeypatch.setattr(command, "by_oracles", judged)
    with pytest.raises(SystemExit) as ended:
        command.bugs(clean=True, budget=1e-9)
    assert ended.value.code == ExitCode.INCONCLUSIVE
    assert set(budgets) == {0.001}
    assert "no time for group" in capsys.readouterr().out
