"""docs/json.md against what the commands print: every documented key is there, and no other."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.kafka_needed import VERSIONS, jars_or_skip
from tests.segment_files import partition_folder, run_of, write_segment

pytestmark = pytest.mark.tlc

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"
PAGE = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
MODEL = "models/store.toml"
ALWAYS = {"schema_version", "command", "verdict", "seconds", "findings", "time_line", "exercised"}
FINDING = set(re.findall(r"`(\w+)`", PAGE.partition("A finding has")[2])) - {
    "variable",
    "expected",
    "actual",
}


@dataclass(frozen=True)
class Documented:
    """A row of the table: keys at the top, keys in special cases, and those of a list's items."""

    top: frozenset[str]
    sometimes: frozenset[str]
    items: frozenset[str]


def documented(command: str) -> Documented:
    row = re.search(rf"^\| {command} \| (.*) \|$", PAGE, re.MULTILINE)
    assert row is not None, f"docs/json.md does not describe {command}"
    always, _, special = row[1].partition(";")
    head, of_list, items = always.partition(": a list with ")
    names = [frozenset(re.findall(r"`(\w+)`", part)) for part in (head, special, items)]
    assert of_list or not names[2]
    return Documented(*names)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tutorial's folder, bug and all."""
    folder = tmp_path_factory.mktemp("json") / "here"
    shutil.copytree(TUTORIAL, folder, ignore=shutil.ignore_patterns("__pycache__", "kconform-out"))
    event = {"trace": 1, "step": 0, "state": {"answer": "none"}}
    (folder / "run.ndjson").write_text(json.dumps(event) + "\n")
    return folder


def run(folder: Path, command: str) -> Mapping[str, object]:
    """The object that a command prints; nothing else is on standard output."""
    ended = subprocess.run(
        [sys.executable, "-m", "conformance.cli", *command.split(), "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    body: Mapping[str, object] = json.loads(ended.stdout)
    assert body["command"] == command.split()[0], ended.stderr
    codes = {"pass": 0, "fail": 1, "error": 2, "inconclusive": 3}
    assert ended.returncode == codes[str(body["verdict"])]
    # Spark's own warnings are nobody's business.
    assert not re.search(r"WARN|log4j|incubator", ended.stderr), ended.stderr
    return body


def hold(body: Mapping[str, object]) -> None:
    """Hold an object against the page."""
    told = documented(str(body["command"]))
    keys = set(body) - ALWAYS
    assert keys - (told.sometimes - told.top) - {"stages"} == set(told.top)
    for name in told.top if told.items else ():
        items = body[name]
        assert isinstance(items, list)
        assert items
        assert all(set(item) == set(told.items) for item in items)
    findings = body["findings"]
    assert isinstance(findings, list)
    for finding in findings:
        assert set(finding) == FINDING


COMMANDS = (
    f"check {MODEL}",
    f"suite {MODEL}",
    f"replay {MODEL}",
    "interleave replication/bench/truncate-on-fetch-fine-2b --samples 1",
    f"explore {MODEL} --seed 1",
    f"import run.ndjson -o imported --model {MODEL}",
    "bugs A8 --traces 0",
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.split()[0])
def test_what_is_printed_is_what_is_documented(here: Path, command: str) -> None:
    hold(run(here, command))


def test_what_data_directories_prove_is_printed_as_documented(here: Path) -> None:
    jars_or_skip(VERSIONS[-1])
    written = write_segment(partition_folder(here / "b1", "orders"), run_of(9))
    written.path.write_bytes(written.path.read_bytes()[:70] + b"damage")
    body = run(here, f"inspect b1=b1 -o inspected --kafka {VERSIONS[-1]}")
    hold(body)
    assert body["findings"] != []
    assert body["partitions"] == 1


def test_a_saved_divergence_and_a_mistake_have_what_is_said_of_them(here: Path) -> None:
    run(here, f"replay {MODEL}")
    (saved,) = (here / "kconform-out" / "divergences").glob("store-replay-*")
    again = run(here, f"replay {saved.relative_to(here)}")
    assert set(again) - ALWAYS == {"model", "system", "again"}
    assert again["again"] == "FAILED as before"
    run(here, f"import run.ndjson -o foreign --model {MODEL}")
    judged = run(here, "replay --store foreign --trace 0")
    assert set(judged) - ALWAYS == {"model", "trace"}
    assert (judged["verdict"], judged["trace"]) == ("pass", 0)
    without = run(here, f"interleave {MODEL}")
    assert "Interruptible" in str(without["error"])
    mistake = run(here, "replay nothing")
    assert set(mistake) - ALWAYS == {"error"}


def test_a_listing_is_an_object_too(here: Path) -> None:
    models = run(here, f"check {MODEL} --list")["models"]
    assert isinstance(models, list)
    assert [(model["model"], model["expected"]) for model in models] == [("store", "holds")]
    bugs = run(here, "bugs A8 --list")["bugs"]
    assert isinstance(bugs, list)
    assert [(bug["bug"], bug["jira"]) for bug in bugs] == [("A8", "KAFKA-7128")]


def test_the_seconds_are_those_of_the_whole_command(here: Path) -> None:
    body = run(here, f"replay {MODEL}")
    stages = body["stages"]
    assert isinstance(stages, dict)
    seconds = body["seconds"]
    assert isinstance(seconds, float)
    assert seconds > stages["suite"]["seconds"]


@pytest.mark.spark
def test_record_and_audit_print_what_is_documented(here: Path) -> None:
    hold(run(here, f"record {MODEL} -o store --traces 50"))
    hold(run(here, "export store -o some.ndjson --trace 3 --trace 5"))
    audited = run(here, "audit store --referee 8 --listing failing")
    hold(audited)
    stages = audited["stages"]
    assert isinstance(stages, dict)
    told = {"traces", "steps", "agreed", "undecided", "left_out", "tlc_seconds", "seconds"}
    assert set(stages["referee"]) == told | {"verdict", "subject", "summary"}
    assert told <= documented("audit").sometimes
    assert stages["referee"]["agreed"] == stages["referee"]["traces"] >= 8
    assert audited["verdict"] == "fail", "the tutorial's store has a bug"
    traces = audited["traces"]
    assert isinstance(traces, dict)
    assert traces["in"] == traces["pass"] + traces["fail"] + traces["inconclusive"] == 50
    listed = pq.read_table(here / "failing").to_pylist()
    assert len(listed) == traces["fail"] + traces["inconclusive"] > 0
    again = [sys.executable, "-m", "conformance.cli", "audit", "store", "--listing", "failing"]
    refused = subprocess.run(again, cwd=here, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "failing is there already. Name another place" in " ".join(refused.stderr.split())
    assert pq.read_table(here / "failing").to_pylist() == listed
