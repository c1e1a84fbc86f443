"""Lists of described bugs: what a list says, and what is said of a bug that nothing killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance.bugs.history import (
    ADAPTER,
    KILLED,
    OPEN,
    SURVIVED,
    BugHistoryResult,
    DescribedBug,
    _unkilled,
    _verdict,
    load_history,
    scores,
)
from conformance.bugs.worker import FaultSearchResult
from conformance.errors import UserError
from conformance.resources import resource_root
from conformance.verdict import Verdict

BUG = '[[bug]]\nname = "X1"\ndescription = "d"\npatch = "x.diff"\n'
SEARCHED = FaultSearchResult(killed=False, parts=2, covered=("suite of a", "suite of b"))


def test_our_own_list_has_a_patch_for_each_bug() -> None:
    path = resource_root() / "tests" / "history" / "blind.toml"
    bugs = load_history(path)
    assert sorted(bug.patch for bug in bugs) == sorted(f.name for f in path.parent.glob("*.diff"))


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("bug = []", "lists no bug"),
        (BUG + BUG, "the bug X1 stands twice"),
        (BUG + "color = 1", "color"),
        ("[[bug]]\nname = 1", "name"),
        ("bug = [", "blind"),
    ],
    ids=["empty", "twice", "unknown key", "no text", "no TOML"],
)
def test_a_list_that_is_none_is_a_mistake(tmp_path: Path, text: str, mistake: str) -> None:
    path = tmp_path / "blind.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=mistake):
        load_history(path)


@pytest.mark.parametrize(
    ("result", "fate", "why"),
    [
        (FaultSearchResult(killed=True, by_adapter=True), ADAPTER, "the adapter raised"),
        (FaultSearchResult(killed=False, judged=False, note="no Java"), OPEN, "no Java"),
        (SEARCHED, SURVIVED, "not reached by any suite"),
        (
            FaultSearchResult(killed=False, parts=3, covered=("suite of a",)),
            OPEN,
            "not reached by any suite; no time for 2 of 3 parts",
        ),
        (
            FaultSearchResult(killed=False, parts=1, covered=("a",), reached=("group/x",)),
            SURVIVED,
            "reached by 1 model, but nothing that is observed differs",
        ),
    ],
)
def test_why_nothing_killed_it(result: FaultSearchResult, fate: str, why: str) -> None:
    assert _unkilled(result)[0] == fate
    assert _unkilled(result)[1].startswith(why)


def test_a_score_counts_fates_by_component() -> None:
    bugs = [DescribedBug(str(n), "d", "p", component=c) for n, c in enumerate(["log", "log", ""])]
    fates = (KILLED, SURVIVED, OPEN)
    rows = [BugHistoryResult(b, f, SEARCHED) for b, f in zip(bugs, fates, strict=True)]
    assert scores(rows) == {"?": {OPEN: 1}, "log": {KILLED: 1, SURVIVED: 1}}


@pytest.mark.parametrize(
    ("fates", "verdict"),
    [
        ({KILLED: 2}, Verdict.PASS),
        ({KILLED: 1, SURVIVED: 1, OPEN: 1}, Verdict.FAIL),
        ({KILLED: 1, OPEN: 1}, Verdict.INCONCLUSIVE),
        ({KILLED: 1, ADAPTER: 1}, Verdict.INCONCLUSIVE),
    ],
)
def test_a_bug_that_nothing_killed_is_no_pass(fates: dict[str, int], verdict: Verdict) -> None:
    assert _verdict(Counter(fates)) is verdict
