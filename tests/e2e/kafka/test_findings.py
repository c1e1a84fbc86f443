"""The commands of docs/findings.md: each shows its finding, and no other."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.errors import ExitCode
from tests.breadth import mostly_at_night
from tests.kafka_needed import COMMON_RELEASES, jars_or_skip

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "findings.md"
REPLAYS = re.findall(r"^    kconform (replay .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def protocol(command: str) -> tuple[str, str]:
    """The folder of the path's model, and what kind of system it is taken on."""
    _, path, _, system = command.split()[:4]
    head = json.loads((ROOT / path).read_text(encoding="utf-8"))["#meta"]["kconform"]
    return head["model"].partition("/")[0], system.partition("-")[0]


def releases(command: str) -> set[str]:
    return set(re.findall(r"\d+\.\d+\.\d+", command))


SHARED = [command for command in REPLAYS if releases(command) <= COMMON_RELEASES]
FIRST = [*{protocol(command): command for command in reversed(SHARED)}.values()]
"""Of each protocol one: the tests of its table replay every path."""


def test_the_page_has_such_commands() -> None:
    assert len(REPLAYS) > 20


@pytest.mark.parametrize(
    "command",
    mostly_at_night(REPLAYS, each_time=FIRST.__contains__),
    ids=lambda text: Path(text.split()[1]).stem,
)
def test_a_replay_shows_its_finding(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in releases(command):
        jars_or_skip(version)
    monkeypatch.chdir(ROOT)

    ended = CliRunner().invoke(app, shlex.split(command))

    assert "FAILED as before" in ended.output
    assert ended.exit_code == ExitCode.FAIL
