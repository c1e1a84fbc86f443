"""What a shell completes: names of models, formulas, actions, systems and faults, as typed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.cli.completion import formula_names, system_names

ASK = "import sys; sys.argv[0] = 'kconform'; from conformance.cli.entry import run; run()"


def completed(*words: str, folder: Path | None = None) -> list[str]:
    """What bash is told after these words, the last of which is not finished."""
    asked = {
        "_KCONFORM_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["kconform", *words]),
        "COMP_CWORD": str(len(words)),
    }
    run = subprocess.run(
        [sys.executable, "-c", ASK],
        env={**os.environ, **asked},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.split()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "Expand"], ["ExpandIsr", "ExpandsIsr"]),
        (["show", "ElectableHas"], ["ElectableHasExposed"]),
        (["show", "TypeOK", "--model", "offsets/f"], ["offsets/failures"]),
        (["replay", "--system", "ka"], ["kafka-"]),
        (["versions", "--system", "repl"], ["replication"]),
        (["bugs", "A8"], ["A8"]),
        (["bugs", "--system", "off"], ["offsets"]),
        (["bugs", "--model", "offsets/f"], ["offsets/failures"]),
        (["audit", "--model", "offsets/f"], ["offsets/failures"]),
        (["deviations", "--model", "offsets/f"], ["offsets/failures"]),
        (["story", "--model", "offsets/f"], ["offsets/failures"]),
        (["suite", "offsets/f"], ["offsets/failures"]),
    ],
    ids=" ".join,
)
def test_names_are_completed(words: list[str], told: list[str]) -> None:
    assert completed(*words) == told


def test_what_is_local_to_a_let_is_no_formula() -> None:
    names = formula_names("")
    assert "CommittedNeverLost" in names  # without arguments
    assert "BecomeLeader" in names  # with arguments
    assert "next" not in names  # GroupCoordinator: LET next == ...
    assert names == sorted(set(names))


def test_systems_of_the_settings_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kconform.toml").write_text('[systems]\nrepaired = "mine:create"\n')
    monkeypatch.chdir(tmp_path)
    assert system_names("rep") == ["repaired", "replication"]


def test_wrong_settings_do_not_trouble_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kconform.toml").write_text("systems = 3\n")
    monkeypatch.chdir(tmp_path)
    assert system_names("rep") == ["replication"]
