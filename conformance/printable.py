"""Text for people: bounded foreign text that cannot steer a terminal or hide a line, and counts."""

from __future__ import annotations

import os
import re


def printable(text: str) -> str:
    r"""The text with control characters made visible, as `\x1b`, and bounded; line ends stay.

    What an implementation or a trace says must not move a terminal's cursor, or hide a line, or
    fill the screen. Of Unicode also the signs that turn the direction of writing.
    """
    text = bounded(text)
    if text.isprintable():
        return text
    return "".join(ch if _harmless(ch) else _escaped(ch) for ch in text)


_WORD, _TEXT = 2_000, 100_000
"""Characters of a word, and of a whole text, that are shown: a story is longer than a name."""
_LONG_WORD = re.compile(rf"\S{{{_WORD + 1},}}")


def bounded(text: str) -> str:
    """The text; of a word or a text that is too long its beginning and end, and its length."""
    if len(text) <= _WORD:
        return text
    return _cut(_LONG_WORD.sub(lambda word: _cut(word[0], _WORD), text), _TEXT)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    part = most // 4
    return f"{text[:part]}... ({len(text):,} characters) ...{text[-part:]}"


def path_text(path: str | os.PathLike[str]) -> str:
    r"""A path as text that can be written anywhere: bytes that are not UTF-8 become `\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def counted(count: int, noun: str) -> str:
    """So many of something, as `1 trace` or `1,024 traces`; nouns with a regular plural."""
    return f"{count:,} {plural(count, noun)}"


def plural(count: int, noun: str) -> str:
    """The noun alone, as it stands beside the number: for a figure with its label below."""
    if count == 1:
        return noun
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def were(count: int, noun: str) -> str:
    """So many of something, and the verb: `1 test was`, `2 tests were`."""
    return f"{counted(count, noun)} {'was' if count == 1 else 'were'}"


def _harmless(ch: str) -> bool:
    return ch in "\n\t" or not (
        ord(ch) < 0x20 or 0x7F <= ord(ch) < 0xA0 or ch in _DIRECTIONS or 0xD800 <= ord(ch) < 0xE000
    )


_DIRECTIONS = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def _escaped(ch: str) -> str:
    return ch.encode("unicode_escape").decode("ascii")
