"""Adapters named on the command line: what is printed, what is left, what a gate leaves out."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.adapters.conftest import PYTHON, ROOT
from tests.e2e.processes import MARK, end_processes, needs_proc, processes

pytestmark = [pytest.mark.tlc, needs_proc]

MODEL = "models/store.toml"
PATIENCE = 400.0


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """The tutorial's folder. Whatever a test leaves running is found, and ended."""
    folder = tmp_path / "here"
    ignored = shutil.ignore_patterns("__pycache__", "kconform-out")
    shutil.copytree(ROOT / "docs" / "tutorial", folder, ignore=ignored)
    yield folder
    end_processes(str(tmp_path))


def start(here: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "conformance.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=here,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "KCONFORM_CACHE": str(here.parent / "cache"),
            MARK: str(here.parent),
        },
    )


def run(here: Path, *command: str) -> tuple[int, str]:
    process = start(here, *command)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out + err


def as_json(here: Path, *command: str) -> tuple[int, dict[str, Any]]:
    process = start(here, *command, "--json")
    out, err = process.communicate(timeout=PATIENCE)
    assert out, err
    return process.returncode, json.loads(out)


def adapters(here: Path) -> list[int]:
    return [pid for pid, command in processes(str(here.parent)) if "adapters/store.py" in command]


def wait_until_gone(here: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while adapters(here):
        assert time.monotonic() < deadline, processes(str(here.parent))
        time.sleep(0.05)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_adapter_outlives_kconform(here: Path, end: signal.Signals) -> None:
    """However it ends; an adapter that has hung is killed where kconform can do so."""
    fault = "floods" if end == signal.SIGKILL else "hangs@3"
    process = start(here, "replay", MODEL, "--system", f"{PYTHON} exec={fault}")
    deadline = time.monotonic() + PATIENCE
    while not adapters(here):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(end)
    process.communicate(timeout=PATIENCE)
    wait_until_gone(here)


def test_a_divergence_is_saved_and_replayed_by_another_system(here: Path) -> None:
    code, told = run(here, "replay", MODEL, "--system", f"{PYTHON} exec=forgets")
    assert code == 1, told
    # The replay goes on behind a difference: the first one has the shortest way.
    divergences = (here / "kconform-out" / "divergences").iterdir()
    paths = [str(saved.relative_to(here)) for saved in divergences]
    assert all(f"kconform replay {path}" in told for path in paths)
    path = min(paths, key=told.index)
    code, told = run(here, "replay", path)
    assert (code, "FAILED as before (2 steps)" in told) == (1, True), told
    code, told = run(here, "replay", path, "--system", PYTHON)
    assert (code, f"FIXED by {PYTHON}" in told) == (0, True), told
    code, told = run(here, "replay", path, "--system", f"{PYTHON} exec=refuses@2")
    assert (code, "FAILED differently by" in told) == (1, True), told
    wait_until_gone(here)


def test_adapter_check_finds_its_model_and_tells_each_point(here: Path) -> None:
    code, told = run(here, "adapter-check", PYTHON)
    assert code == 0, told
    assert "adapter two conversations" in told
    _, body = as_json(here, "adapter-check", PYTHON)
    assert (body["model"], body["verdict"]) == ("store", "pass")
    assert len(body["stages"]["adapter"]["models"]) == 13


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("adapter-check", "./none"), "cannot be started in"),
        (("adapter-check", "tcp:127.0.0.1:1"), "There is no adapter at 127.0.0.1:1"),
        (("adapter-check", "tcp:here"), "is no address"),
        (("adapter-check", f"{PYTHON} exec=stillborn"), "no licence found"),
        (("replay", MODEL, "--system", "exec:"), "needs a command"),
        (("replay", MODEL, "--system", "exec:'unclosed"), "cannot be read"),
        (("replay", "replication/bench/kip320-fine-2b", "--system", PYTHON), "needs the constant"),
    ],
    ids=["no command", "no server", "no address", "no hello", "empty", "quotes", "other model"],
)
def test_a_mistake_has_exit_code_2_and_a_paragraph(
    here: Path, command: tuple[str, ...], told: str
) -> None:
    code, said = run(here, *command)
    assert (code, told in said) == (2, True), said
    assert "Traceback" not in said


@pytest.mark.spark
def test_a_gate_drives_what_the_system_can_take_and_lists_the_rest(here: Path) -> None:
    """Processes of the gate's two workers and of Spark's: none is left."""
    store = (here / "models" / "store.toml").read_text()
    small = store.replace("0..3", "0..1").replace("= 234", "= 26")
    empty = store.replace("Keys = ", "Keys = '{}' #").replace("= 234", "= 1")
    (here / "models" / "small.toml").write_text(small)
    (here / "models" / "empty.toml").write_text(empty)
    settings = here / "kconform.toml"
    settings.write_text(settings.read_text().replace("traces = 2000", "traces = 100\nexamples = 5"))
    code, body = as_json(here, "gate", "--system", PYTHON)
    assert (code, body["verdict"]) == (0, "pass"), body
    assert body["system"] == PYTHON
    assert body["left_out"] == {"empty": "it needs the constant Keys, and it is not empty"}
    stages = body["stages"]
    assert {*stages} >= {"replay", "explore", "record", "audit", "coverage"}
    assert {one["subject"] for one in stages["replay"]["models"]} == {"small", "store"}
    assert "canary" not in stages
    wait_until_gone(here)


DECLARED = """
[[deviation]]
id = "nothing-for-none"
title = "a store that was not asked answers nothing"
severity = "harmless"
shown = { answer = { '"nothing"' = '"none"' } }
"""


def test_what_is_behind_a_departure_of_an_adapter_is_found_too(here: Path) -> None:
    code, output = run(here, "replay", MODEL, "--system", f"{PYTHON} exec=departs-and-forgets")

    told = " ".join(output.split())
    assert code == 1, output
    assert 'went on where answer is "nothing" where the specification has "none"' in told
    assert "version" in output, "the second fault"


@pytest.mark.parametrize("command", ["replay", "gate"])
def test_departures_that_are_declared_of_an_adapter_are_no_findings(
    here: Path, command: str
) -> None:
    (here / "ours.toml").write_text(DECLARED)
    words = [command, MODEL, "--deviations", "ours.toml", "--system"]

    undeclared, _ = run(here, command, MODEL, "--system", f"{PYTHON} exec=departs")
    assert undeclared == 1

    departs, output = run(here, *words, f"{PYTHON} exec=departs")
    assert departs == 0, output
    assert "772 tests passed, 0 failed" in output
    if command == "replay":
        behind, output = run(here, *words, f"{PYTHON} exec=departs-and-forgets")
        assert behind == 1, output
        assert "version" in output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--deviations", "ours.toml"], "it goes with --system"),
        (["--deviations", "ours.toml", "--system", "group"], "kconform's own"),
        (["--deviations", "kafka-4.4.0", "--system", PYTHON], "a file of your own"),
        (["--deviations", "none.toml", "--system", PYTHON], "none.toml"),
    ],
)
def test_what_cannot_be_declared_is_refused(here: Path, words: list[str], told: str) -> None:
    (here / "ours.toml").write_text(DECLARED)

    code, output = run(here, "replay", MODEL, *words)

    assert code == 2, output
    assert told in " ".join(output.split())
