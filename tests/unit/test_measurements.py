"""The documents say what the last runs of the measurements printed."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import record

KNOWN = record.measurements()


@pytest.mark.parametrize("path", [*record.documents(KNOWN)], ids=lambda path: path.name)
def test_a_document_is_what_would_be_written(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    name = str(path.relative_to(record.ROOT))
    assert record.written(name, text, KNOWN) == text, "python -m benchmarks.record"


def test_every_run_that_is_kept_is_of_a_measurement() -> None:
    kept = {path.stem for path in (record.HERE / "recorded").iterdir()}
    assert kept
    assert kept <= {one.name for one in KNOWN}


@pytest.mark.parametrize("measurement", KNOWN, ids=lambda one: one.name)
def test_a_run_is_of_the_command_that_the_catalogue_names(measurement: record.Measurement) -> None:
    run = record.kept(measurement)
    assert run is None or run.command == measurement.shown


def test_what_a_run_printed_and_where_gets_into_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "HERE", tmp_path)
    (tmp_path / "recorded").mkdir()
    one = record.Measurement("two", ("{python}", "-c", "print(1 + 1)"), "docs/x.md")
    done = record.run(one)
    record.keep(one, done)
    assert json.loads(one.kept.read_text())["output"] == "2"
    begin, end = record.marks("two")
    page = record.written("docs/x.md", f"before\n{begin}\nold\n{end}\nafter\n", [one])
    assert page.startswith(f"before\n{begin}\n`python -c 'print(1 + 1)'` (")
    assert page.endswith(f"\n```\n2\n```\n{end}\nafter\n")
    assert record.machine() in page
    assert record.written("docs/other.md", "as it was", [one]) == "as it was"


def test_a_failure_is_no_measurement_unless_its_exit_code_is_known() -> None:
    one = record.Measurement("four", ("{python}", "-c", "print(3); exit(3)"), "docs/x.md")
    with pytest.raises(subprocess.CalledProcessError):
        record.run(one)
    assert record.run(replace(one, codes=(0, 3))).output == "3"


def test_a_measurement_without_a_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "HERE", tmp_path)
    one = record.Measurement("three", ("{python}", "-m", "benchmarks.three"), "docs/x.md")
    begin, end = record.marks("three")
    page = record.written("docs/x.md", f"{begin}\nold\n{end}\n", [one])
    assert page == f"{begin}\n`python -m benchmarks.three`: no run is kept.\n{end}\n"


def test_the_goal_is_above_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "HERE", tmp_path)
    one = record.Measurement("three", ("three",), "docs/x.md", goal="to be quick.")
    begin, end = record.marks("three")
    page = record.written("docs/x.md", f"{begin}\n{end}\n", [one])
    assert page == f"{begin}\nGoal: to be quick.\n\n`three`: no run is kept.\n{end}\n"


def test_prose_beside_the_tables_has_no_figures() -> None:
    text = (record.ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    for one in KNOWN:
        begin, end = record.marks(one.name)
        before, _, rest = text.partition(begin)
        text = before + rest.partition(end)[2]
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)  # commands and addresses

    assert re.findall(r"(?<![\w-])\d[\d.,]*", prose) == []


def test_a_document_without_its_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="no place for differential-ci"):
        record.written("docs/tla-differential.md", "no marks", KNOWN)


def test_what_was_measured_before_a_failure_is_kept_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "HERE", tmp_path)
    monkeypatch.setattr(record, "ROOT", tmp_path)
    (tmp_path / "recorded").mkdir()
    monkeypatch.setattr(record, "_commit", lambda: "abc")
    first = record.Measurement("five", ("{python}", "-c", "print(5)"), "x.md")
    second = record.Measurement("six", ("{python}", "-c", "print(6); exit(1)"), "x.md")
    page = tmp_path / "x.md"
    page.write_text("".join("{}\n{}\n".format(*record.marks(one.name)) for one in (first, second)))
    monkeypatch.setattr(record, "measurements", lambda: (first, second))
    monkeypatch.setattr("sys.argv", ["record", "five", "six"])
    with pytest.raises(subprocess.CalledProcessError):
        record.main()
    assert "```\n5\n```" in page.read_text()
    assert "-c 'print(6); exit(1)'`: no run is kept." in page.read_text()
