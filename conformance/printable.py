"""Text for people: foreign text that cannot steer a terminal or hide a line, and counted things."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with control characters made visible, as `\x1b`; line ends and tabs stay.

    What an implementation or a trace says must not move a terminal's cursor, or hide a line.
    Of Unicode also the signs that turn the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(ch if _harmless(ch) else _escaped(ch) for ch in text)


def counted(count: int, noun: str) -> str:
    """So many of something, as `1 trace` or `1,024 traces`; nouns with a regular plural."""
    return f"{count:,} {plural(count, noun)}"


def plural(count: int, noun: str) -> str:
    """The noun alone, as it stands beside the number: for a figure with its label below."""
    return noun if count == 1 else f"{noun}s"


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
