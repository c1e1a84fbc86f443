"""Records of releases: a file each, and the table that is made of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from conformance.errors import DataError
from conformance.report.releases import (
    PAGE,
    RECORD_SCHEMA,
    ReleaseRecord,
    SuiteRecord,
    file_of,
    load,
    markdown,
    records,
    save,
)

KEPT = Path(__file__).resolve().parents[3] / "docs" / "releases"
SUITE = SuiteRecord("agrees", "k", tests=3, steps=9)


def record(system: str, **suites: SuiteRecord) -> ReleaseRecord:
    return ReleaseRecord(RECORD_SCHEMA, system, {"X": "seen"}, suites)


def test_a_record_comes_back_and_the_table_is_of_all_files(tmp_path: Path) -> None:
    for system in ("kafka-4.10.0", "kafka-4.2.0", "broker-4.2.0"):
        save(tmp_path, record(system, fine=SUITE))
    assert load(file_of(tmp_path, "kafka-4.2.0")) == record("kafka-4.2.0", fine=SUITE)
    assert [found.system for found in records(tmp_path)] == [
        "broker-4.2.0",
        "kafka-4.2.0",
        "kafka-4.10.0",
    ]
    text = (tmp_path / PAGE).read_text(encoding="utf-8")
    assert "| suite | 4.2.0 | 4.10.0 |\n|---|---|---|\n| fine | agrees, 3 tests | agrees" in text


def test_what_was_not_run_is_said() -> None:
    text = markdown([record("kafka-4.2.0", fine=SUITE), record("kafka-4.3.0")])
    assert "| fine | agrees, 3 tests | not run |" in text


def test_suites_that_no_release_was_driven_along_are_named() -> None:
    asked = ("fine", "log/a", "log/b", "own")
    text = markdown(
        [
            record("kafka-4.2.0", fine=SUITE),
            msgspec.structs.replace(record("kafka-4.3.0"), asked=asked),
        ]
    )
    assert "| fine | agrees, 3 tests | not run |" in text
    assert "Driven on no release yet (3 suites):\n\n- log: a, b\n- a file of its own: own" in text


def test_the_table_of_logs_has_the_releases_that_loaded_some() -> None:
    """Of the units of a log that was loaded none is missing: `L all` is where the load failed."""
    loads = [
        msgspec.structs.replace(record("kafka-4.0.0"), logs={"L all": "fails", "M": "loads"}),
        msgspec.structs.replace(record("kafka-4.1.0"), logs={"L one": "loads"}),
    ]
    text = markdown([record("kafka-3.9.0"), *loads])
    assert "| log | 4.0.0 | 4.1.0 |" in text
    assert "| L all | fails | - |\n| L one | - | loads |\n| M | loads | not run |" in text


@pytest.mark.parametrize("text", ["{}", '{"schema": 2, "schema": 1}', "[" * 100_000])
def test_a_file_that_is_no_record_is_a_mistake(tmp_path: Path, text: str) -> None:
    (tmp_path / "kafka-4.2.0.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"kafka-4\.2\.0\.json is no record of a release"):
        records(tmp_path)


def test_the_table_in_the_documents_is_made_of_the_files_beside_it() -> None:
    found = records(KEPT)
    assert found
    assert (KEPT / PAGE).read_text(encoding="utf-8") == markdown(found)
