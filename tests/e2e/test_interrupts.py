"""Ctrl-C in each phase, or a plain kill: exit code 130, one sentence, nothing half-written, no JVM
left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.processes import MARK, end_processes, needs_proc, processes

pytestmark = [pytest.mark.tlc, needs_proc]

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"
MODEL = "models/store.toml"
PATIENCE = 180.0
"""Seconds until a phase must have begun, on a busy machine."""

SLOW_STORE = """

import pathlib, time

class Slow(Adapter):
    def apply(self, action):
        pathlib.Path("begun").touch()
        time.sleep(600)

def slow(constants):
    return Slow(constants)
"""
ENDLESS = """
schema = 1
spec = "Endless"
feeds_suite = true
[check]
init = "Init"
next = "Next"
[expect]
result = "holds"
distinct_states = 1
"""
ENDLESS_SPEC = """---- MODULE Endless ----
EXTENDS Naturals
VARIABLES x, y
Init == x = 0 /\\ y = 0
Next == (x' = x + 1 /\\ y' = y) \\/ (x' = x /\\ y' = y + 1)
====
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "the phase did not begin"
        time.sleep(0.05)


@dataclass(frozen=True)
class Phase:
    """A command, and how to tell from outside that the phase has begun."""

    command: str
    begun: Callable[[Path, str], bool]
    forbidden: tuple[str, ...] = ()
    """What must not be there afterwards."""


def running(word: str) -> Callable[[Path, str], bool]:
    return lambda _folder, mark: any(word in command for _, command in processes(mark))


def touched(folder: Path, _mark: str) -> bool:
    return (folder / "begun").exists()


def reading(folder: Path, mark: str) -> bool:
    """A process has opened the recording, which takes many seconds to judge."""
    opened: list[Path] = []
    for pid, _ in processes(mark):
        with suppress(FileNotFoundError):  # it has ended since
            opened += Path(f"/proc/{pid}/fd").iterdir()
    return str(folder / "run.ndjson") in map(os.path.realpath, opened)


TRACES = 400_000
SLOW = f"{MODEL} --system store:slow"
PHASES = {
    "check": Phase("check models/endless.toml", running("tlc2.TLC")),
    "parsing": Phase(f"check {MODEL} --engine python", running("tla2sany")),
    "suite": Phase("suite models/endless.toml -o s.npz", running("tlc2.TLC"), ("s.npz",)),
    "replay": Phase(f"replay {SLOW}", touched, ("kconform-out",)),
    "explore": Phase(f"explore {SLOW}", touched, ("kconform-out",)),
    "import": Phase(f"import run.ndjson -o store --model {MODEL}", reading, ("store",)),
    "judge here": Phase(f"judge run.ndjson --model {MODEL}", reading),
    "record": Phase(f"record {SLOW} -o store --traces 10", touched, ("store",)),
    "bugs": Phase("bugs A1 --traces 0", running("conformance.bugs.worker")),
    "gate": Phase("gate models/endless.toml --no-canary", running("tlc2.TLC")),
}
ON_SPARK = {
    "Spark's start": Phase(
        f"record {SLOW} -o store --master local[2]", running("SparkSubmit"), ("store",)
    ),
    "record": Phase(f"record {SLOW} -o store --traces 10 --master local[2]", touched, ("store",)),
    "audit": Phase("audit recorded --master local[1]", running("pyspark.daemon")),
    "judge": Phase(
        f"judge begin.ndjson --model {MODEL} --master local[1] --report told",
        running("pyspark.daemon"),
    ),
}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """The tutorial's folder with a slow store and an endless model."""
    ignored = shutil.ignore_patterns("__pycache__", "kconform-out")
    folder = tmp_path / "here"
    shutil.copytree(TUTORIAL, folder, ignore=ignored)
    with (folder / "store.py").open("a") as store:
        store.write(SLOW_STORE)
    (folder / "models" / "endless.toml").write_text(ENDLESS)
    (folder / "models" / "Endless.tla").write_text(ENDLESS_SPEC)
    event = '{"trace": %d, "step": 0, "state": {"answer": "none"}}\n'
    (folder / "run.ndjson").write_text("".join(event % number for number in range(TRACES)))
    yield folder
    end_processes(str(tmp_path))


def start(folder: Path, command: str) -> subprocess.Popen[str]:
    """As a terminal does: a process group of its own, which Ctrl-C interrupts as a whole."""
    return subprocess.Popen(
        [sys.executable, "-m", "conformance.cli", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "KCONFORM_CACHE": str(folder.parent / "cache"),
            "TMPDIR": str(scratch(folder)),
            MARK: str(folder.parent),
        },
        start_new_session=True,
        # Tests started in the background ignore interrupts, and would hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def scratch(folder: Path) -> Path:
    path = folder.parent / "tmp"
    path.mkdir(exist_ok=True)
    return path


def by_terminal(process: subprocess.Popen[str]) -> None:
    """Ctrl-C reaches all processes in the foreground."""
    os.killpg(process.pid, signal.SIGINT)


def by_kill(process: subprocess.Popen[str]) -> None:
    """`kill PID`, `timeout`, and a CI's runner that stops a job: one process is told to end."""
    process.terminate()


def interrupted(
    folder: Path, phase: Phase, end: Callable[[subprocess.Popen[str]], None] = by_terminal
) -> None:
    """Run a phase, interrupt it, and look at what it leaves."""
    before = {path.relative_to(folder) for path in folder.rglob("*")}
    process = start(folder, phase.command)
    mark = str(folder.parent)
    wait_until(lambda: process.poll() is not None or phase.begun(folder, mark))
    assert process.poll() is None, process.communicate()
    end(process)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in out + err
    assert "interrupted" in err
    for name in phase.forbidden:
        assert not (folder / name).exists()
    left = {path.relative_to(folder) for path in folder.rglob("*")} - before
    assert not [path for path in left if "partial" in path.name or "tmp" in path.name]
    wait_until(lambda: not processes(mark))


@pytest.mark.parametrize("name", PHASES)
def test_an_interrupt_leaves_nothing_behind(here: Path, name: str) -> None:
    interrupted(here, PHASES[name])
    assert not [path for path in scratch(here).iterdir() if not path.name.startswith("hsperfdata")]


def test_an_interrupted_gate_says_that_it_is_incomplete(here: Path) -> None:
    interrupted(here, PHASES["gate"])
    report = json.loads((here / "kconform-out" / "report.json").read_text())
    assert report["incomplete"] is True
    assert report["verdict"] != "pass"


@pytest.mark.spark
@pytest.mark.parametrize("name", ON_SPARK)
def test_an_interrupt_on_spark_leaves_nothing_behind(here: Path, name: str) -> None:
    prepare(here, name)
    interrupted(here, ON_SPARK[name])


@pytest.mark.spark
@pytest.mark.parametrize("name", ["audit", "judge"])
def test_a_kill_on_spark_leaves_nothing_behind(here: Path, name: str) -> None:
    prepare(here, name)
    interrupted(here, ON_SPARK[name], by_kill)
    assert not [path for path in scratch(here).iterdir() if not path.name.startswith("hsperfdata")]


@pytest.mark.parametrize("name", ["import", "judge here"])
def test_a_kill_leaves_nothing_behind(here: Path, name: str) -> None:
    interrupted(here, PHASES[name], by_kill)
    assert not [path for path in scratch(here).iterdir() if not path.name.startswith("hsperfdata")]


@pytest.mark.parametrize("end", [by_terminal, by_kill])
def test_the_processes_of_a_judge_end_with_it(
    here: Path, end: Callable[[subprocess.Popen[str]], None]
) -> None:
    """Many traces of three processes each, all orders of whose events are tried."""
    events = [{"action": "CompareAndSet", "process": one} for one in ("p", "q", "r") * 4]
    lines = [json.dumps({"trace": n, **event}) for n in range(20_000) for event in events]
    (here / "many.ndjson").write_text("\n".join(lines))
    (here / "mapping.toml").write_text('schema = 1\norder = "process"\n')
    command = f"judge many.ndjson --model {MODEL} --mapping mapping.toml"
    interrupted(here, Phase(command, lambda _folder, mark: len(processes(mark)) == 3), end)


def prepare(folder: Path, name: str) -> None:
    """What a phase on Spark needs to begin with."""
    event = {"trace": 1, "step": 0, "state": {"answer": "none"}}
    (folder / "begin.ndjson").write_text(json.dumps(event) + "\n")
    if name == "audit":
        imported = start(folder, f"import begin.ndjson -o recorded --model {MODEL}")
        out, err = imported.communicate(timeout=PATIENCE)
        assert imported.returncode == 0, (out, err)
