"""README's commands have their options and files; its installations name what they install."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from conformance.cli.main import COMMANDS, load

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
IN_A_CLONE = re.compile(r"in a clone", re.IGNORECASE)


def commands() -> Iterator[tuple[str, str]]:
    """Each command that README shows, with what stands before it: its cell, or its paragraph."""
    before = ""
    for line in README.replace("\\\n", " ").splitlines():
        if line.startswith("    kconform "):
            yield line.strip(), before
        elif line.startswith("|"):
            for shown in re.finditer(r"`(kconform [^`]*)`", line):
                yield shown[1], line[: shown.start()].rpartition("|")[2]
        elif line.strip():
            before = line


def typed(command: str) -> list[str]:
    return shlex.split(command, comments=True)


@pytest.mark.parametrize("command", dict.fromkeys(command for command, _ in commands()))
def test_every_command_has_the_options_that_it_is_shown_with(command: str) -> None:
    name, *arguments = typed(command)[1:]
    assert name in COMMANDS
    called = typer.main.get_command(load(name))
    if name == "cluster":
        called = called.commands[arguments.pop(0)]  # type: ignore[attr-defined]
    assert called.make_context(f"kconform {name}", arguments).params


@pytest.mark.parametrize(("command", "before"), commands())
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
