"""Which layout a server log has: found out from its own lines, then used for each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from conformance.inspect.reading.layouts import (
    JsonLayout,
    Layout,
    ParsedLine,
    TextLayout,
    known_layouts,
    wrappers,
)

SAMPLE = 1000
"""Lines from which a file's layout is recognised."""
_DEPTH = 4
"""Programs that may have passed a line on, one after the other."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LEVEL = re.compile(r"(?i)\b(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b")
_CONTINUES = re.compile(
    r"\s|$|Caused by: |Suppressed: |\.\.\. \d+ (?:more|common)|[)}\]]|"
    r"(?:[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\b"
)


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line of a log as its layout has it."""

    number: int
    text: str
    entry: ParsedLine | None
    """None: no layout reads the line."""
    continues: bool = False
    """Whether it goes on with the entry before: a stack trace, a message of several lines."""


@dataclass(frozen=True, slots=True)
class _StrippedLine:
    """A line without what a program put in front of it."""

    text: str
    time: str = ""
    partial: bool = False
    wrapper: TextLayout | None = None
    """What was taken off last."""


def recognised(lines: Iterable[str], layouts: Sequence[Layout]) -> tuple[Layout, ...]:
    """The layouts, those that explain most characters of these lines first.

    What a layout does not explain of a line is its message. A looser layout reads all lines of a
    stricter one, with a part of the head left in the message, so counting lines would not do.
    """
    explained = [0] * len(layouts)
    for line in lines:
        for passed in _passed_on(_StrippedLine(line)):
            heads = [len(passed.text) - len(e.message) if e else 0 for e in _all(layouts, passed)]
            if any(heads):
                explained = [sum(pair) for pair in zip(explained, heads, strict=True)]
                break
    order = sorted(range(len(layouts)), key=lambda number: (-explained[number], number))
    return tuple(layouts[number] for number in order)


def _all(layouts: Sequence[Layout], passed: _StrippedLine) -> list[ParsedLine | None]:
    return [_entry(layout, passed) for layout in layouts]


def read_lines(lines: Iterator[tuple[int, str]], layouts: Sequence[Layout]) -> Iterator[ReadLine]:
    """Each line by the layout of its file; where that does not fit, by the next best one."""
    sample = list(islice(lines, SAMPLE))
    reader = _LineReader(recognised((_plain(text) for _, text in sample), layouts))
    for number, text in chain(sample, lines):
        yield reader.read(number, _plain(text))


def _plain(text: str) -> str:
    """The line without its end and without colours."""
    text = text.rstrip("\r\n")
    return _COLOURS.sub("", text) if "\x1b" in text else text


class _LineReader:
    """Reads the lines of one file one after the other."""

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self._layouts = layouts
        self._wrapper: TextLayout | None = None
        """What the line before was wrapped in."""
        self._inside = False
        """Whether the line before was an entry, or went on with one."""
        self._partial = False

    def read(self, number: int, text: str) -> ReadLine:
        entry = None if self._inside and self._goes_on(text) else self._entry(text)
        if entry is not None:
            self._inside, self._partial = True, entry.partial
            return ReadLine(number, text, entry)
        inner = list(_passed_on(_StrippedLine(text)))
        if not self._partial:
            self._inside &= any(_CONTINUES.match(passed.text) for passed in inner)
        self._partial = any(passed.partial for passed in inner)
        return ReadLine(number, text, None, self._inside)

    def _goes_on(self, text: str) -> bool:
        """Whether the line cannot be an entry: the commonest lines that are none, told fast."""
        return self._partial or text.startswith(("\t", "    "))

    def _entry(self, text: str) -> ParsedLine | None:
        first = self._layouts[0]
        if isinstance(first, TextLayout):
            passed = (
                _unwrapped(self._wrapper, _StrippedLine(text))
                if self._wrapper
                else _StrippedLine(text)
            )
            entry = None if passed is None else _entry(first, passed)
            if entry is not None:
                return entry
        for passed in _passed_on(_StrippedLine(text)):
            for layout in self._layouts:
                entry = _entry(layout, passed)
                if entry is not None:
                    self._wrapper = passed.wrapper
                    return entry
        return None


def _entry(layout: Layout, passed: _StrippedLine) -> ParsedLine | None:
    """The line by that layout; its time is that of the program that passed it on, if it has none.

    An object of JSON without a level is no entry, but what a program has wrapped one in.
    """
    entry = layout.entry(passed.text)
    if entry is None or (isinstance(layout, JsonLayout) and not entry.level):
        return None
    if passed.partial:
        entry = replace(entry, partial=True)
    if passed.time and not _DATE.search(entry.time):
        return replace(entry, time=passed.time, time_format="", zone="")
    return entry


_DATE = re.compile(r"\d{4}")
"""In a time that has a date."""


def _passed_on(passed: _StrippedLine, depth: int = _DEPTH) -> Iterator[_StrippedLine]:
    """The line as it is, and without what each program put in front of it.

    The message of a JSON object comes before the object: it is the line, where it is one.
    """
    if passed.text.startswith("{"):
        entry = _json_layout().entry(passed.text)
        if entry is not None and depth and (not entry.level or _LEVEL.search(entry.message[:200])):
            inner = _StrippedLine(entry.message, entry.time or passed.time, entry.partial)
            yield from _passed_on(inner, depth - 1)
        yield passed
        return
    yield passed
    without = (_unwrapped(wrapper, passed) for wrapper in wrappers()) if depth else ()
    first = next((line for line in without if line is not None), None)
    if first is not None:
        yield from _passed_on(first, depth - 1)


def _unwrapped(wrapper: TextLayout, passed: _StrippedLine) -> _StrippedLine | None:
    entry = wrapper.entry(passed.text)
    if entry is None:
        return None
    partial = entry.partial or passed.partial
    return _StrippedLine(entry.message, entry.time or passed.time, partial, wrapper)


def _json_layout() -> JsonLayout:
    return next(layout for layout in known_layouts() if isinstance(layout, JsonLayout))
