"""`kconform bugs --mutants` from its draw to its table, and the tests that judge survivors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.bugs.mutants import mutants_of
from conformance.bugs.ordinary import OrdinaryTests

MODULE = (
    "LIMIT = 3\n\n\ndef within(a):\n    return a < LIMIT\n\n\ndef never(a):\n    return a + 1\n"
)
TESTS = "from ordinary import a\n\n\ndef test_within():\n    assert not a.within(3)\n"


def judged(folder: Path, *which: str) -> Mapping[str, Any]:
    """The figures of a run that keeps what it judges in this folder."""
    options = ["--model", "delayed/shared-key", "--only", "purgatory/watchers.py", "--no-tests"]
    command = [sys.executable, "-m", "conformance.cli", "bugs", "--system", "delayed", *options]
    run = subprocess.run(
        [*command, *which, "--seed", "7", "--seconds", "2", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    figures: Mapping[str, Any] = json.loads(run.stdout)["stages"]["mutants"]
    return figures


@pytest.mark.tlc
def test_a_second_run_judges_only_what_the_first_did_not(tmp_path: Path) -> None:
    first, second = judged(tmp_path, "--mutants", "3"), judged(tmp_path, "--mutants", "4")
    (kept,) = (tmp_path / "kconform-out" / "mutants").glob("7-*.jsonl")
    assert second["mutants"][:3] == first["mutants"]
    assert len(kept.read_text().splitlines()) == 4
    assert sum(second["fates"].values()) == 4
    assert second["fates"]["specification"] >= 2
    assert {mutant["file"] for mutant in second["mutants"]} == {"purgatory/watchers.py"}
    assert second["drawn_from"] > 4
    (again,) = judged(tmp_path, "--mutant", first["mutants"][0]["mutant"])["mutants"]
    assert [again[key] for key in ("mutant", "fate", "oracle", "model")] == [
        first["mutants"][0][key] for key in ("mutant", "fate", "oracle", "model")
    ]


def test_tests_judge_only_what_they_come_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, tests = tmp_path / "ordinary", tmp_path / "tests" / "unit" / "impl"
    package.mkdir()
    tests.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text(MODULE)
    (tests / "test_a.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("KCONFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ordinary = OrdinaryTests(tmp_path, "ordinary")
    kills = {f"{one.line} {one.kind}": ordinary.kill(one) for one in mutants_of("a.py", MODULE)}
    assert kills == {
        "1 constant": (True, 1),
        "5 comparison": (True, 1),
        "5 condition negated": (True, 1),
        "9 constant": (False, 0),
        "9 operator": (False, 0),
    }
