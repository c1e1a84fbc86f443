"""One bug is one cause, whatever meets it: the same key, a file that replays, the reason."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.bugs.bench import BugEffort, run_bench
from conformance.bugs.fault import load_catalogue, select
from conformance.events import ComparedModel, Event, StageFinished
from conformance.report import page
from conformance.report.collect import Collector
from conformance.resources import resource_root

pytestmark = pytest.mark.tlc

ROOT = Path(__file__).resolve().parents[3]
KEY = "Remove:not_allowed:version"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tutorial's folder, bug and all."""
    folder = tmp_path_factory.mktemp("cause") / "here"
    tutorial = ROOT / "docs" / "tutorial"
    shutil.copytree(tutorial, folder, ignore=shutil.ignore_patterns("__pycache__", "kconform-out"))
    return folder


def kconform(folder: Path, command: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "conformance.cli", *command.split()],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    ).stdout


def finding(folder: Path, report: str) -> Mapping[str, Any]:
    body = json.loads((folder / report / "report.json").read_text(encoding="utf-8"))
    (only,) = body["findings"]
    assert isinstance(only, dict)
    return only


def test_suite_recording_and_audit_meet_one_cause_and_each_keeps_a_file(here: Path) -> None:
    kconform(here, "replay models/store.toml --report replayed")
    kconform(here, "record models/store.toml -o store --traces 50 --report recorded")
    kconform(here, "audit store --report audited")
    for report in ("replayed", "recorded", "audited"):
        found = finding(here, report)
        assert found["key"] == KEY
        assert found["artifact"].startswith(f"{report}/divergences/store-")
        assert "FAILED as before (2 steps)" in kconform(here, f"replay {found['artifact']}")
        assert "svg" in (here / report / "report.html").read_text(encoding="utf-8")


def test_of_a_recorded_trace_nothing_is_known_of_before(here: Path) -> None:
    kconform(here, "record models/store.toml -o other --traces 50 --report there")
    command = finding(here, "there")["reproduce"].removeprefix("kconform ")
    told = kconform(here, f"{command} --report again")
    assert "FAILED (2 steps)" in told
    assert finding(here, "again")["key"] == KEY


def test_a_judged_trace_keeps_what_explains_it(here: Path) -> None:
    kconform(here, "record models/store.toml -o third --traces 50")
    kconform(here, "export third -o traces.ndjson")
    kconform(here, "judge traces.ndjson --model models/store.toml --report judged")
    found = finding(here, "judged")
    assert found["key"].startswith("Remove:not_allowed:")
    story = kconform(here, f"story {found['artifact']}")
    assert "Where they differ:" in story


def test_the_bench_shows_how_each_fault_was_found(tmp_path: Path) -> None:
    catalogue = load_catalogue(resource_root() / "conformance/systems/replication/faults.toml")
    collector, events = Collector(), list[Event]()

    def emit(event: Event) -> None:
        events.append(event)
        collector(event)

    (result,) = run_bench(select([catalogue], ["A41"]), BugEffort(traces=0), emit, tmp_path)
    assert result.search.shown is not None
    assert result.search.shown.key == "ShrinkIsr:not_enabled"
    kept = tmp_path / "bug-A41.itf.json"
    assert result.to_json()["artifact"] == str(kept)
    assert "FIXED (2 steps)" in kconform(tmp_path, f"replay {kept}")
    assert [event.spec for event in events if isinstance(event, ComparedModel)] == ["Replication"]
    stages = [event for event in events if isinstance(event, StageFinished)]
    assert [stage.stage for stage in stages] == ["fault", "bugs"]
    assert stages[0].exhibit is not None
    assert stages[0].exhibit.reasons
    text = page.dumps(collector.report("bugs", 1.0, {}), now=0)
    assert "1 of 1 faults killed" in text
    assert re.search(r'href="#text-ReplicationPartition-\d+"', text)
