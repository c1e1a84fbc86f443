"""docs/audit.md, walked as a newcomer does: its files written, its commands run in their order."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from conformance.cli.main import load

pytestmark = pytest.mark.tlc

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "audit.md").read_text(encoding="utf-8")
CODES = {
    "run.ndjson": [1],
    "events.ndjson": [3, 1],
    "view.ndjson": [1, 1],
    "states.ndjson": [1],
    "logs.ndjson": [0, 1],
    "names.ndjson": [1],
    "STORE": [1],
    "--store": [1],
}
"""How the page says that its commands end, by what they are given first."""


def files() -> dict[str, str]:
    """What the page shows of each file that it names before a block."""
    named = re.compile(r"`([\w-]+\.(?:ndjson|toml))`[^\n]*\n(?:[^`\n]+\n)*\n```\w+\n(.*?)```", re.S)
    return {found[1]: found[2] for found in named.finditer(PAGE)}


def commands() -> list[list[str]]:
    """The commands that need no Kafka."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.S)
    lines = [line.split() for block in blocks for line in block.splitlines()]
    return [line[1:] for line in lines if line[0] == "kconform" and "recording" not in str(line)
            and not line[2].startswith("traces/")]  # fmt: skip


def test_every_command_ends_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(DOCS / "tutorial" / "models", tmp_path / "models")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KCONFORM_CACHE", str(tmp_path / "cache"))
    shown = files()
    assert len(shown) == 11
    for name, text in shown.items():
        Path(name).write_text(text, encoding="utf-8")
    ended: dict[str, list[int]] = {}
    for command, *arguments in commands():
        with pytest.raises(SystemExit) as end:
            load(command)(arguments, prog_name=f"kconform {command}")
        ended.setdefault(arguments[0], []).append(int(end.value.code or 0))
    assert ended == CODES
