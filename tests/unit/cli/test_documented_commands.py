"""Each kconform command in the guides can be typed: its name, options, models and files exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from conformance.cli.main import COMMANDS, load
from tests.bundled import MODELS

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(ROOT.glob("docs/*.md"))
OURS = ("docs/", "conformance/", "spec/")
"""Folders of the repository; a path elsewhere is a user's own."""


def commands(page: Path) -> Iterator[str]:
    """The commands of a page's blocks and sentences, without what is said beside them."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = re.findall(r"^(?: {4}|\$ )?(?:\$ )?kconform (\S.*)$", block_lines(text), re.MULTILINE)
    inline = re.findall(r"`kconform ([^`\n]+)`", text)
    for line in (*lines, *inline):
        yield re.split(r"\s#\s|(?<=\S) {3,}(?=\S)", line)[0].strip()


def block_lines(text: str) -> str:
    """The lines of a page's blocks of code."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^ {4}\S.*$", text, re.MULTILINE)
    return "\n".join((*fenced, *indented)) + "\n"


@cache
def loaded(name: str) -> Any:
    """A command, or a family of commands."""
    return typer.main.get_command(load(name))


@pytest.fixture(scope="module")
def models() -> set[str]:
    return {model.name for model in MODELS}


def leaf(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the first words name, and the words after it."""
    command = loaded(words[0])
    rest = words[1:]
    while rest and rest[0] in (family := getattr(command, "commands", {})):
        command, rest = family[rest[0]], rest[1:]
    return command, rest


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_documented_command_can_be_typed(page: Path, models: set[str]) -> None:
    families = {name.partition("/")[0] for name in models}
    for line in commands(page):
        words = [word for word in shlex.split(line) if word not in ("...", "…", ">", "|")]
        if not words or not words[0].islower() or words[0].startswith("-"):
            continue  # kconform -h, kconform COMMAND
        assert words[0] in COMMANDS, line
        command, rest = leaf(words)
        options = {name for parameter in command.params for name in parameter.opts}
        options |= {name for parameter in command.params for name in parameter.secondary_opts}
        for word in rest:
            if re.match(r"--?[a-z]", word):
                assert word.partition("=")[0] in options | {"-h", "--help"}, line
            elif re.fullmatch(r"[a-z]+/[a-z0-9/-]+", word) and word.partition("/")[0] in families:
                assert word in models or any(m.startswith(f"{word}/") for m in models), line
            elif word.startswith(OURS):
                assert (ROOT / word).exists(), line


def test_the_guides_have_commands() -> None:
    assert sum(len(list(commands(page))) for page in PAGES) > 150


def sections() -> dict[str, str]:
    """The section of each command in docs/cli.md."""
    text = (ROOT / "docs/cli.md").read_text(encoding="utf-8").partition("\n## Options of many")[0]
    _, *parts = re.split(r"^### ", text, flags=re.MULTILINE)
    return {name: body for name, _, body in (part.partition("\n") for part in parts)}


def test_every_command_has_a_section_and_a_purpose() -> None:
    table = (ROOT / "docs/cli.md").read_text(encoding="utf-8").partition("\n### ")[0]
    assert set(re.findall(r"\]\(#([a-z-]+)\)", table)) == set(sections()) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_of_a_section_are_those_of_its_command(name: str) -> None:
    command = loaded(name)
    members = [command, *getattr(command, "commands", {}).values()]
    options = {
        option
        for member in members
        for parameter in member.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    named = {
        word.partition("=")[0]
        for code in re.findall(r"`([^`]+)`", sections()[name])
        if "gate --system" not in code  # an option of the gate
        for word in code.split()
        if re.match(r"-{1,2}[a-z]", word)
    }
    assert named <= options
