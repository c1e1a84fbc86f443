"""Adapters that show nothing pass no command: the tutorial's store, with its bug, behind them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.errors import ExitCode

pytestmark = pytest.mark.tlc

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial"
BLIND = """
from store import Adapter

class Blind(Adapter):
    {declares}
    def observe(self):
        return {shows}

def create(constants):
    return Blind(constants)
"""
NONE = "dict.fromkeys(self.variables)"
LACKING = "sometimes = frozenset(Adapter.variables)"
COMMANDS: dict[str, list[str]] = {
    "replay": ["replay", "models/store.toml"],
    "explore": ["explore", "models/store.toml", "--profile", "dev"],
    "record": ["record", "models/store.toml", "-o", "stores/one", "--traces", "20"],
    "gate": ["gate"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "kconform-out", ".hypothesis")
    folder = tmp_path / "project"
    shutil.copytree(TUTORIAL, folder, ignore=ignored)
    return folder


def run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli", *words],
        capture_output=True, text=True, check=False, cwd=project,
    )  # fmt: skip


def mend(project: Path) -> None:
    store, bug = project / "store.py", "del self.entries[key]"
    assert bug in store.read_text()
    mended = "self.entries[key] = (None, self.version(key) + 1)"
    store.write_text(store.read_text().replace(bug, mended))


def blind(project: Path, declares: str, shows: str) -> None:
    (project / "blind.py").write_text(BLIND.format(declares=declares, shows=shows))
    configuration = project / "kconform.toml"
    text = configuration.read_text()
    assert "store:create" in text
    configuration.write_text(text.replace("store:create", "blind:create"))


@pytest.mark.parametrize("command", COMMANDS)
def test_none_in_the_place_of_values_is_the_adapters_mistake(project: Path, command: str) -> None:
    blind(project, "pass", NONE)
    ended = run(project, *COMMANDS[command])
    assert ended.returncode == ExitCode.USAGE, ended.stdout + ended.stderr
    told = " ".join(ended.stderr.split())
    assert "The adapter's observe (blind.py:6) shows None in `value`" in told


@pytest.mark.parametrize("command", COMMANDS)
def test_what_was_never_shown_is_inconclusive(project: Path, command: str) -> None:
    blind(project, LACKING, "{}")
    ended = run(project, *COMMANDS[command])
    assert ended.returncode == ExitCode.INCONCLUSIVE, ended.stdout + ended.stderr
    assert "no variable was compared in any state" in ended.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_variable_that_was_never_shown_is_inconclusive(project: Path, command: str) -> None:
    mend(project)  # the bug shows in the answer, too
    seen = "{'answer': self.answer}"
    blind(project, "sometimes = frozenset({'value', 'version'})", seen)
    ended = run(project, *COMMANDS[command])
    assert ended.returncode == ExitCode.INCONCLUSIVE, ended.stdout + ended.stderr
    assert "the adapter declares value, version and never showed it" in ended.stdout


ENDING = """
import asyncio, os, sys
from store import Adapter

class Ending(Adapter):
    def apply(self, action):
        {apply}

def create(constants):
    {create}
    return Ending(constants)
"""


def ending(project: Path, *, apply: str = "pass", create: str = "pass", head: str = "") -> None:
    (project / "ending.py").write_text(head + ENDING.format(apply=apply, create=create))
    configuration = project / "kconform.toml"
    configuration.write_text(configuration.read_text().replace("store:create", "ending:create"))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("raises", "told"),
    [
        ("sys.exit(0)", "SystemExit: 0"),
        ("raise asyncio.CancelledError", "CancelledError"),
        ("import pytest; pytest.skip('no broker')", "Skipped: no broker"),
    ],
)
def test_a_system_that_would_end_the_run_diverges(
    project: Path, raises: str, told: str, command: str
) -> None:
    """The exit code of a run is its verdict, never what the code of the system asks for."""
    ending(project, apply=raises)
    ended = run(project, *COMMANDS[command])
    assert ended.returncode == ExitCode.FAIL, ended.stdout + ended.stderr
    assert told in ended.stdout


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "place", [{"head": "import sys\nsys.exit(0)\n"}, {"create": "sys.exit(0)"}], ids=str
)
def test_no_module_and_no_factory_ends_the_run(
    project: Path, place: dict[str, str], command: str
) -> None:
    ending(project, **place)
    ended = run(project, *COMMANDS[command])
    assert ended.returncode == ExitCode.USAGE, ended.stdout + ended.stderr
    assert "SystemExit: 0" in ended.stderr


@pytest.mark.parametrize(
    "raises", ["raise ValueError('held')", "import pytest; pytest.skip('held')"]
)
def test_an_adapter_that_cannot_close_is_to_be_mended(project: Path, raises: str) -> None:
    mend(project)
    ending(project, apply=f"super().apply(action)\n    def close(self): {raises}")
    ended = run(project, "replay", "models/store.toml")
    assert ended.returncode == ExitCode.USAGE, ended.stdout + ended.stderr
    assert "The adapter's close (ending.py:" in ended.stderr
    assert "held" in ended.stderr


def test_what_an_adapter_prints_stands_beside_no_object(project: Path) -> None:
    mend(project)
    ending(project, apply="print('noise'); os.system('echo more'); super().apply(action)")
    ended = run(project, "replay", "models/store.toml", "--json")
    assert json.loads(ended.stdout)["verdict"] == "pass"
    assert {"noise", "more"} <= {*ended.stderr.split()}


def test_a_process_that_a_system_ends_is_no_fault_of_kconform(project: Path) -> None:
    ending(project, apply="os._exit(0)")
    ended = run(project, "gate", "--jobs", "2")
    assert ended.returncode == ExitCode.USAGE, ended.stdout + ended.stderr
    assert "ended without an answer" in ended.stderr


def test_half_of_a_character_is_no_value(project: Path) -> None:
    blind(project, "pass", "{**super().observe(), 'answer': chr(0xd800)}")
    ended = run(project, *COMMANDS["replay"])
    assert ended.returncode == ExitCode.USAGE, ended.stdout + ended.stderr
    assert "answer holds \\ud800, which is half of a surrogate pair" in ended.stderr


def test_a_store_of_a_blind_recording_passes_no_audit(project: Path) -> None:
    blind(project, LACKING, "{}")
    recorded = run(project, *COMMANDS["record"])
    assert recorded.returncode == ExitCode.INCONCLUSIVE
    ended = run(project, "audit", "stores/one", "--json")
    assert ended.returncode == ExitCode.INCONCLUSIVE, ended.stdout + ended.stderr
    vacuous = json.loads(ended.stdout)["vacuous"]
    assert "when it was recorded, no variable was compared in any state" in vacuous


def test_pytest_fails_on_it_too(project: Path) -> None:
    blind(project, LACKING, "{}")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "conformance.plugin"],
        capture_output=True, text=True, check=False, cwd=project,
    )  # fmt: skip
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert "no variable was compared in any state" in ended.stdout


def test_a_passing_replay_says_what_it_compared(project: Path) -> None:
    mend(project)
    ended = run(project, *COMMANDS["replay"], "--json")
    assert ended.returncode == ExitCode.PASS, ended.stdout + ended.stderr
    report = json.loads(ended.stdout)
    assert "3 of 4 variables compared in" in ended.stderr
    assert report["compared"]["unobserved"] == ["writes"]
    assert set(report["compared"]["states"]) == {"value", "version", "answer"}


def test_random_walks_of_a_named_model_need_not_take_what_its_suite_takes(tmp_path: Path) -> None:
    """One walk takes few actions: in a gate the suite takes them all, for an audit nothing does."""
    model = "delayed/both-keys"

    gated = run(tmp_path, "gate", model, "--traces", "1", "--no-canary", "-o", "out")
    audited = run(tmp_path, "audit", "out/stores/delayed-both-keys")

    assert gated.returncode == ExitCode.PASS, gated.stdout
    assert audited.returncode == ExitCode.INCONCLUSIVE, audited.stdout
    assert "never fired" in audited.stdout


@pytest.mark.parametrize("command", ["replay", "explore", "record"])
def test_a_system_that_ends_its_process_diverges_where_there_is_one_process(
    project: Path, command: str
) -> None:
    ending(project, apply="os._exit(0)")
    ended = run(project, *COMMANDS[command])
    assert ended.returncode == ExitCode.FAIL, ended.stdout + ended.stderr
    assert "SystemExit: 0" in ended.stdout


def test_a_thread_that_ends_the_process_gives_no_verdict(project: Path) -> None:
    thread = (
        "import threading; t = threading.Thread(target=os._exit, args=(0,)); t.start(); t.join()"
    )
    ending(project, apply=thread)
    ended = run(project, *COMMANDS["replay"])
    assert ended.returncode == ExitCode.USAGE, ended.stdout + ended.stderr
    assert "A thread of the system ended the process (os._exit: 0)" in ended.stderr
