"""`kconform bugs --patch`: what the gate would have said of a change, and of how much of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from conformance.bugs.fault import load_catalogue
from conformance.resources import resource_root

pytestmark = pytest.mark.tlc

SMALL = "replication/bench/kip320-fine-2b"


def diff_of(fault_id: str, target: Path) -> Path:
    """The catalogue's fault as a diff of impl/."""
    catalogue = load_catalogue(resource_root() / "conformance/systems/replication/faults.toml")
    (fault,) = (fault for fault in catalogue.faults if fault.id == fault_id)
    lines: list[str] = []
    for patch in fault.patches:
        name = f"impl/{patch.file}"
        text = (resource_root() / name).read_text(encoding="utf-8")
        changed = text.replace(patch.old, patch.new)
        before, after = text.splitlines(keepends=True), changed.splitlines(keepends=True)
        lines += unified_diff(before, after, f"a/{name}", f"b/{name}")
    target.write_text("".join(lines), encoding="utf-8")
    return target


def judged(*options: str) -> tuple[int, Mapping[str, Any], str]:
    """Exit code, the JSON object, standard error."""
    command = [sys.executable, "-m", "conformance.cli", "bugs", *options, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.stdout, run.stderr
    return run.returncode, json.loads(run.stdout), run.stderr


def test_what_a_patch_breaks_is_a_finding_with_its_story(tmp_path: Path) -> None:
    patch = diff_of("A41", tmp_path / "lag.diff")
    # Four systems run the changed file; the model that was named belongs to one of them.
    code, told, progress = judged("--patch", str(patch), "--model", SMALL)
    (finding,) = told["findings"]
    assert code == 1
    assert "other steps on offer" in finding["title"]
    assert f"--model {SMALL}" in finding["reproduce"]
    assert any("ShrinkIsr" in line for line in finding["story"])
    assert told["covered"] == [f"transition suite of {SMALL}"]
    assert f"transition suite of {SMALL} (0 of 5 done)" in progress
    assert told["reached"] == [SMALL]


def test_the_loops_order_shows_in_its_turns(tmp_path: Path) -> None:
    patch = diff_of("W1", tmp_path / "order.diff")
    code, told, _ = judged(
        "--patch", str(patch), "--model", SMALL, "--system", "replication", "--traces", "0"
    )
    (finding,) = told["findings"]
    assert code == 1
    assert finding["title"].startswith("DoWork")


def test_a_spent_budget_is_no_pass_and_says_what_was_left_out(tmp_path: Path) -> None:
    patch = diff_of("A41", tmp_path / "lag.diff")
    code, told, _ = judged("--patch", str(patch), "--budget", "0.001")
    assert code == 3
    assert told["covered"] == []
    # partition.py is run by seven systems; the models with crashes are among theirs.
    assert told["systems"] == [
        "acknowledgement",
        "controller",
        "directories",
        "fetchers",
        "reassignment",
        "replication",
        "storage",
    ]
    for part in (
        "transition suite of replication/kip320-crash-fine-2b",
        "interrupted steps of acknowledgement/crash-isr-2b",
        f"turns of the threads of {SMALL}",
    ):
        assert part in told["not_covered"]


def renamed(target: Path) -> Path:
    """A diff that renames what the adapter of the purgatory uses, as the implementation allows."""
    name = "impl/purgatory/delayed_operation_purgatory.py"
    before = (resource_root() / name).read_text(encoding="utf-8")
    after = before.replace("def watchers(", "def all_watchers(")
    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    target.write_text("".join(unified_diff(*lines, f"a/{name}", f"b/{name}")), encoding="utf-8")
    return target


def test_an_exception_of_the_adapter_is_told_as_the_adapters(tmp_path: Path) -> None:
    patch = renamed(tmp_path / "renamed.diff")
    code, told, _ = judged("--patch", str(patch), "--model", "delayed/cancelled-key")
    (finding,) = told["findings"]
    assert (code, told["by_adapter"]) == (1, True)
    assert "The adapter raised, not the implementation" in finding["message"]


def test_a_list_of_described_bugs_gets_a_row_for_each(tmp_path: Path) -> None:
    diff_of("A41", tmp_path / "lag.diff")
    source = "impl/fetch_session.py"
    text = (resource_root() / source).read_text(encoding="utf-8")
    before = text.splitlines(keepends=True)
    note = [*before, "# nothing that runs\n"]
    diff = "".join(unified_diff(before, note, f"a/{source}", f"b/{source}"))
    (tmp_path / "note.diff").write_text(diff, encoding="utf-8")
    (tmp_path / "bugs.toml").write_text(
        "".join(
            f'[[bug]]\nname = "{name}"\ndescription = "d"\npatch = "{name}.diff"\n'
            for name in ("lag", "note")
        )
    )
    named = ("--history", str(tmp_path / "bugs.toml"), "--model", SMALL)
    code, body, _ = judged(*named, "--budget", "15")
    killed, survived = body["stages"]["history"]["bugs"]
    assert code != 0
    assert (killed["name"], killed["fate"], killed["model"]) == ("lag", "killed", SMALL)
    assert (survived["name"], survived["fate"] in ("survived", "open")) == ("note", True)
    (finding,) = body["findings"]
    assert str(tmp_path / "note.diff") in finding["reproduce"]
