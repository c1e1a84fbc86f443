"""A finding in plain lines, the same in the terminal, JUnit and GitHub's annotations."""

from __future__ import annotations

from conformance.events import Finding


def printable(text: str) -> str:
    r"""The text with control characters made visible, as `\x1b`; line ends and tabs stay.

    What an implementation or a trace says must not move a terminal's cursor, or hide a line.
    Of Unicode also the signs that turn the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(ch if _harmless(ch) else _escaped(ch) for ch in text)


def _harmless(ch: str) -> bool:
    return ch in "\n\t" or not (
        ord(ch) < 0x20 or 0x7F <= ord(ch) < 0xA0 or ch in _DIRECTIONS or 0xD800 <= ord(ch) < 0xE000
    )


_DIRECTIONS = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def _escaped(ch: str) -> str:
    return ch.encode("unicode_escape").decode("ascii")


def finding_lines(finding: Finding) -> list[str]:
    """Title, place, differences side by side, story and the command that shows it again."""
    lines = [finding.title + (f"  (x{finding.count})" if finding.count > 1 else "")]
    if finding.message:
        lines.append(finding.message)
    place = _place(finding)
    if place:
        lines.append(place)
    if finding.differences:
        width = max(len(difference.variable) for difference in finding.differences)
        for difference in finding.differences:
            lines.append(f"  {difference.variable:<{width}}  expected {difference.expected}")
            lines.append(f"  {'':<{width}}  actual   {difference.actual}")
    lines.extend(f"  {line}" for line in finding.story)
    if finding.reproduce:
        lines.append(f"Reproduce: {finding.reproduce}")
    return [printable(line) for line in lines]


def _place(finding: Finding) -> str:
    parts: list[str] = []
    if finding.trace:
        parts.append(f"trace {finding.trace}")
    if finding.step is not None:
        parts.append(f"step {finding.step}")
    if finding.action:
        parts.append(f"action {finding.action}")
    if finding.formula:
        parts.append(f"formula {finding.formula}")
    if finding.location:
        parts.append(finding.location)
    return ", ".join(parts)
