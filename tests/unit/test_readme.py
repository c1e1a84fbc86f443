"""Commands that the documents show have their options; installations name their packages."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from conformance.cli.main import COMMANDS, load
from tests.unit.badges import FOLDER, badges

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = (README, *(ROOT / "docs" / name for name in ("gate.md", "own-system.md")))
GUIDES = sorted((ROOT / "docs").glob("*.md"))
IN_A_CLONE = re.compile(r"in a clone", re.IGNORECASE)


def commands() -> Iterator[tuple[str, str]]:
    """Each command that a page shows, with what stands before it: its cell, or its paragraph."""
    before = ""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("    kconform "):
            yield line.strip(), before
        elif line.startswith("|"):
            for shown in re.finditer(r"`(kconform [^`]*)`", line):
                yield shown[1], line[: shown.start()].rpartition("|")[2]
        elif line.strip():
            before = line


def lines_of_commands() -> Iterator[str]:
    """Each line of a guide that is a command: indented, or within a fence."""
    for page in GUIDES:
        fenced = False
        for line in page.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
            if line.startswith("```"):
                fenced = not fenced
            elif line.startswith("    kconform " if not fenced else "kconform "):
                yield line.strip()


def typed(command: str) -> list[str]:
    return shlex.split(command, comments=True)


SHOWN = dict.fromkeys([*(command for command, _ in commands()), *lines_of_commands()])


@pytest.mark.parametrize("command", SHOWN)
def test_every_command_has_the_options_that_it_is_shown_with(command: str) -> None:
    name, *arguments = typed(command)[1:]
    assert name in COMMANDS
    called = typer.main.get_command(load(name))
    if name == "cluster":
        called = called.commands[arguments.pop(0)]  # type: ignore[attr-defined]
    assert called.make_context(f"kconform {name}", arguments).params


@pytest.mark.parametrize(("command", "before"), list(commands()))
def test_a_command_that_needs_a_file_of_the_repository_says_so(command: str, before: str) -> None:
    files = [word for word in typed(command) if "/" in word and (ROOT / word).is_file()]
    assert not files or IN_A_CLONE.search(before), files


def test_an_installation_without_spark_names_every_other_dependency() -> None:
    page = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^    pip install ('.*)$", page.replace("\\\n", " "), re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_spark = {one for one in project["dependencies"] if re.match(r"(pyspark|pandas)\b", one)}
    assert len(of_spark) == 2
    assert set(shlex.split(line)) == {*project["dependencies"]} - of_spark


def test_readme_is_read_in_a_minute_or_two() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize(("name", "text"), badges().items())
def test_a_badge_says_what_the_project_says(name: str, text: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == text, "run python -m tests.unit.badges"
