"""The commands of docs/findings.md: each shows its finding, and no other."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.errors import ExitCode
from tests.kafka_needed import COMMON_RELEASES, jars_or_skip

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "findings.md"
REPLAYS = re.findall(r"^    kconform (replay .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_has_such_commands() -> None:
    assert len(REPLAYS) > 20


@pytest.mark.parametrize("command", REPLAYS, ids=lambda text: Path(text.split()[1]).stem)
def test_a_replay_shows_its_finding(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in re.findall(r"\d+\.\d+\.\d+", command):
        if version not in COMMON_RELEASES and os.environ.get("KCONFORM_EVERY_RELEASE") != "1":
            pytest.skip(f"Kafka {version} runs with KCONFORM_EVERY_RELEASE=1 only")
        jars_or_skip(version)
    monkeypatch.chdir(ROOT)

    ended = CliRunner().invoke(app, shlex.split(command))

    assert "FAILED as before" in ended.output
    assert ended.exit_code == ExitCode.FAIL
