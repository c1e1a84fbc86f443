"""`kconform bugs --clean` and `--patch`: what counts as a kill, and what was not done."""

from __future__ import annotations

import json
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

import pytest

from conformance.bugs import bench
from conformance.bugs.fault import copied
from conformance.bugs.worker import BugJob, FaultSearchResult, PartStarted, SearchAttempt
from conformance.cli import bugs as command
from conformance.errors import ExitCode
from conformance.resources import resource_root

CLOCK = (resource_root() / "impl/clock.py").read_text()


ATTEMPT = SearchAttempt("Hypothesis", "group/dynamic-2m", 20)


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
            FaultSearchResult(killed=False, judged=False, note="gave up after 900 s"),
            ExitCode.INCONCLUSIVE,
            "but gave up",
            id="not done",
        ),
        pytest.param(
            FaultSearchResult(killed=False, parts=3, covered=("a", "b"), note="no time for c"),
            ExitCode.INCONCLUSIVE,
            "no time for 1 of 3 parts",
            id="no time",
        ),
        pytest.param(
            FaultSearchResult(killed=True, oracle="Hypothesis", title="Fetch", by_adapter=True),
            ExitCode.FAIL,
            "the adapter raised, not the implementation",
            id="the adapter",
        ),
        pytest.param(
            FaultSearchResult(killed=False, clean_failures=("Hypothesis of a: Fetch",)),
            ExitCode.FAIL,
            "the clean tree fails too: Hypothesis of a: Fetch",
            id="the clean tree",
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
    monkeypatch.setattr(command, "search", lambda *_: found)
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


def test_all_systems_are_searched_together_within_the_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[BugJob] = []

    def judged(
        job: BugJob, _folder: Path, _timeout: float, tell: Callable[[PartStarted], None]
    ) -> FaultSearchResult:
        asked.append(job)
        tell(PartStarted(f"transition suite of {job.models[0]}", 0, 4))
        return FaultSearchResult(killed=False)

    monkeypatch.setattr(bench, "by_oracles", judged)
    with pytest.raises(SystemExit):
        command.bugs(clean=True, as_json=True, budget=7.0)
    told, shown = capsys.readouterr()
    (job,) = asked
    areas = {model.partition("/")[0] for model in job.models}
    assert areas == set(json.loads(told)["systems"])
    assert (job.budget, job.system) == (7.0, "")
    assert f"transition suite of {job.models[0]} (0 of 4 done)" in shown


def test_only_the_models_that_were_named_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[BugJob] = []

    def judged(job: BugJob, *_: object) -> FaultSearchResult:
        asked.append(job)
        return FaultSearchResult(killed=False)

    monkeypatch.setattr(bench, "by_oracles", judged)
    with pytest.raises(SystemExit):
        command.bugs(clean=True, model=["group/delete-2m", "runtime/large-1b"])
    assert [sorted(job.models) for job in asked] == [["group/delete-2m", "runtime/large-1b"]]


def a_patch(folder: Path) -> Path:
    """A change of a function that the group coordinator's adapter runs."""
    path = folder / "my.diff"
    file = resource_root() / "impl/group/offset_handler.py"
    before = file.read_text().splitlines(keepends=True)
    after = [line.replace("is_in(EMPTY)", "is_in(DEAD)") for line in before]
    path.write_text("".join(unified_diff(before, after, "a/impl/group/offset_handler.py")))
    text = path.read_text().replace("+++ ", "+++ b/impl/group/offset_handler.py")
    path.write_text(text)
    return path


def test_what_nothing_comes_by_is_no_pass_and_a_patch_has_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    budgets: list[float] = []

    def judged(job: BugJob, *_: object) -> FaultSearchResult:
        budgets.append(job.budget)
        return FaultSearchResult(killed=False, parts=1, covered=("a",))

    monkeypatch.setattr(bench, "by_oracles", judged)
    with pytest.raises(SystemExit) as ended:
        command.bugs(patch=a_patch(tmp_path))
    assert (ended.value.code, budgets) == (ExitCode.INCONCLUSIVE, [60.0])
    assert "nothing that was driven came by the change" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("on_clean", "killed", "failures"),
    [
        pytest.param(False, True, (), id="a kill"),
        pytest.param(True, False, ("Hypothesis of group/dynamic-2m: Fetch",), id="no kill"),
    ],
)
def test_what_kills_is_repeated_on_the_clean_tree(
    on_clean: bool, killed: bool, failures: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[BugJob] = []

    def judged(job: BugJob, folder: Path, *_: object) -> FaultSearchResult:
        jobs.append(job)
        clean = (folder / "impl/clock.py").read_text() == CLOCK
        assert clean == (job.only is not None)
        found = on_clean if clean else ATTEMPT not in job.without
        return FaultSearchResult(found, title="Fetch", attempt=ATTEMPT if found else None)

    monkeypatch.setattr(bench, "by_oracles", judged)
    with copied() as folder:
        (folder / "impl/clock.py").write_text("# faulty\n" + CLOCK)
        job = BugJob(("group/dynamic-2m", "group/delete-2m"), "", 5, 0, 20)
        result = bench.search(job, folder, 60.0)
    assert (result.killed, result.clean_failures) == (killed, failures)
    assert (jobs[1].only, jobs[1].seed, jobs[1].models) == (ATTEMPT, 5, (ATTEMPT.model,))
