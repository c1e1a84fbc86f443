"""Every Markdown page has one sentence a line, and no line of prose over 120 characters.

So a change of a sentence is one line of a diff, on every screen. Tables, fences and what a program
writes between marks (`benchmarks.record`) are free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = {*ROOT.glob("docs/cards/*/card.md"), *ROOT.glob("docs/releases/kafka-*.md")}
"""What `kconform score` and `kconform changelog` write."""
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")} - WRITTEN)
WIDTH = 120
_FENCE = re.compile(r"\s*(?:```|~~~)")
_RECORDED = re.compile(r"<!-- recorded: .*?<!-- end: [^>]*-->", re.DOTALL)
_ATOMS = re.compile(r"``.+?``|`[^`]*`|\]\([^)]*\)|\b(?:e\.g|i\.e|etc|vs|cf)\.")
_TARGET = re.compile(r"\]\([^)]*\)")
"""Of a link: it cannot be broken."""
_END = re.compile(r"[.!?][)*_\"']* +(?=[A-Z\[`*(\"])")
_NUMBER = re.compile(r"^\s*\d+\. ")


def lines_of_prose(text: str) -> Iterator[tuple[int, str]]:
    """Each line outside tables, fences, indented code and recorded blocks, with its number."""
    text = _RECORDED.sub(lambda block: "\n" * block[0].count("\n"), text)
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith("|"):
            yield number, line


def broken(text: str) -> list[str]:
    """What a page's lines do wrong, each with its number."""
    wrong = []
    for number, line in lines_of_prose(text):
        if len(_TARGET.sub("]()", line)) > WIDTH:
            wrong.append(f"line {number} has {len(line)} characters: {line[:60]}")
        prose = _ATOMS.sub("`x`", _NUMBER.sub("", line))
        if not line.startswith(("    ", "#")) and _END.search(prose):
            wrong.append(f"line {number} has more than one sentence: {line[:60]}")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_one_sentence_a_line_and_no_long_line(page: Path) -> None:
    assert broken(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One sentence.\nAnd another one.\n", 0),
        ("One sentence. And another one.\n", 1),
        ("It ends in `code`. `code` begins the next one.\n", 1),
        ("1. An item, e.g. This.\n", 0),
        ("It needs Java 17. It writes a page.\n", 1),
        ("word " * 30 + "\n", 1),
        ("    kconform " + "option " * 20 + "\n", 1),
        ("| " + "cell. Cell " * 20 + "|\n", 0),
        ("```\n" + "output. Output " * 20 + "\n```\n", 0),
        ("<!-- recorded: x -->\n" + "figure " * 30 + "\n<!-- end: x -->\n", 0),
    ],
)
def test_the_rule(text: str, count: int) -> None:
    assert len(broken(text)) == count
