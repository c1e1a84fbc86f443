"""`kconform history`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from conformance.cli.history import Acks, history_command
from conformance.errors import ExitCode
from conformance.history.lines import LoggedOperation
from conformance.resources import resource_root

DOCS = resource_root() / "docs" / "history"


def run(*files: str, output: Path, **options: object) -> int:
    with pytest.raises(SystemExit) as ended:
        history_command(list(files), output, **options)  # type: ignore[arg-type]
    code = ended.value.code
    assert isinstance(code, int)
    return code


def test_the_example_of_the_page_finds_its_lie(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(DOCS / "orders.ndjson"), output=tmp_path / "out") == ExitCode.FAIL
    text = capsys.readouterr().out
    assert "the rule is AcknowledgedIsKept" in text
    assert "orders.ndjson:4: process checkout: sent value order-3 to orders-0 at offset 3" in text
    assert "orders.ndjson:10: process billing: read value order-4" in text
    found = json.loads((tmp_path / "out" / "findings.json").read_text("utf-8"))
    assert (found["verdict"], found["rules"]["AcknowledgedIsKept"]["broken"]) == ("fail", 1)
    assert "order-3" in (tmp_path / "out" / "AcknowledgedIsKept.svg").read_text("utf-8")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "findings.json",
        "AcknowledgedIsKept.svg",
    }


def test_what_is_allowed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(str(DOCS / "*.ndjson"), output=tmp_path, acks=Acks.ONE)
    assert code == ExitCode.PASS
    assert "allowed here: 1 time an acknowledged record is lost" in capsys.readouterr().out


def test_a_pattern_without_a_file_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(tmp_path / "*.ndjson"), output=tmp_path / "out") == ExitCode.USAGE
    assert "No file has the name or the pattern" in capsys.readouterr().err


def test_the_schema_is_that_of_the_reader() -> None:
    schema = json.loads((DOCS / "operation.schema.json").read_text("utf-8"))
    own = msgspec.json.schema(LoggedOperation)
    assert {name: schema[name] for name in own} == own
