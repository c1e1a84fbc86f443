"""Where the page has the specification's text, so that a reason leads to its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.events import Exhibit, ModuleText
from conformance.report.counts import SpecCounts

_PLACE = re.compile(r"(?:.*[/\\])?([^/\\:]+?)(?:\.tla)?:(\d+)(?::\d+)?$")


def line_of(location: str) -> tuple[str, int] | None:
    """Module and line of `module:line:column` or `folder/module.tla:line:column`."""
    match = _PLACE.match(location)
    return None if match is None else (match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class Sources:
    """The lines of specifications to which something on the page leads.

    A module may stand under several specifications: links lead to the first.
    """

    homes: Mapping[str, str]
    """By module's name the specification under which its text stands; empty: under none."""
    lines: frozenset[tuple[str, int]]
    texts: tuple[ModuleText, ...]
    """Modules that belong to no specification on the page, because nothing in them was counted."""

    def link(self, location: str) -> str:
        """The anchor of a place; empty if the page does not have its text."""
        line = line_of(location)
        return _anchor(*line) if line is not None and line[0] in self.homes else ""

    def anchor(self, spec: str, module: str, number: int) -> str:
        """The anchor of a line that something leads to; empty for the others."""
        here = (module, number) in self.lines and self.homes.get(module) == spec
        return _anchor(module, number) if here else ""


def sources(
    specs: Sequence[SpecCounts], exhibits: Iterable[Exhibit], locations: Iterable[str]
) -> Sources:
    """The texts that the page has anyway, and those that its behaviours bring."""
    shown = tuple(exhibits)
    counted = [(module.name, spec.spec) for spec in specs for module in spec.modules]
    homes = dict(reversed(counted))
    texts = {
        text.name: text for exhibit in shown for text in exhibit.texts if text.name not in homes
    }
    homes |= dict.fromkeys(texts, "")
    places = [
        *locations,
        *(reason.location for exhibit in shown for reason in exhibit.reasons),
        *(step.location for exhibit in shown for step in exhibit.steps),
    ]
    lines = frozenset(line for place in places if (line := line_of(place)) is not None)
    return Sources(homes, lines, tuple(texts.values()))


def _anchor(module: str, number: int) -> str:
    return f"text-{module}-{number}"
