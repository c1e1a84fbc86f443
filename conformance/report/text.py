"""A finding in plain lines, the same in the terminal, JUnit and GitHub's annotations."""

from __future__ import annotations

from conformance.events import Finding
from conformance.printable import printable

__all__ = ["finding_lines", "printable"]


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
