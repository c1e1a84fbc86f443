"""A score card: the areas of protocols against suites, as data, Markdown, a page and a badge."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from html import escape
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import replace

from conformance.conversion import convert
from conformance.printable import counted, printable
from conformance.report.badge import badge
from conformance.tla import load_json
from conformance.verdict import Verdict

CARD_SCHEMA = 1


Count = Annotated[int, msgspec.Meta(ge=0)]


class Standing(StrEnum):
    """What a run says of a suite or of an area; the worst of an area's suites is listed first."""

    DEPARTS = "departs"
    UNDECIDED = "undecided"
    DECLARED = "departs as declared"
    AGREES = "agrees"
    NOT_DRIVEN = "not driven"
    NOT_OFFERED = "not offered"


class Departure(msgspec.Struct, frozen=True):
    """What a system does otherwise."""

    title: str
    count: Count = 0
    """How often it was met; 0: that was not counted."""
    consequence: str = ""
    story: str = ""
    """The file that holds the behaviour, or the command that shows it."""
    declared: bool = False


class ScoreSuite(msgspec.Struct, frozen=True):
    """One model's suite."""

    name: str
    standing: Standing
    tests: Count = 0
    passed: Count = 0
    failed: Count = 0
    steps: Count = 0
    reason: str = ""
    departures: tuple[Departure, ...] = ()


class ScoreArea(msgspec.Struct, frozen=True):
    """A part of the protocols; `suites` are never empty."""

    id: str
    title: str
    kips: tuple[str, ...]
    requests: tuple[str, ...]
    suites: tuple[ScoreSuite, ...]

    @property
    def worst(self) -> str:
        """What the worst departure of its suites costs; empty if nothing is known of that."""
        departures = [item for suite in self.suites for item in suite.departures]
        return min(departures, key=_rank).consequence if departures else ""

    @property
    def standing(self) -> Standing:
        """The worst of its suites."""
        standings = {suite.standing for suite in self.suites}
        return next(standing for standing in Standing if standing in standings)

    def count(self, standing: Standing) -> int:
        """How many of its suites stand so."""
        return sum(suite.standing is standing for suite in self.suites)


class ScoreCard(msgspec.Struct, frozen=True):
    """What one run says of one system; nothing in it depends on the clock."""

    schema: int
    system: str
    version: str
    """Of kconform."""
    tier: str
    seed: int
    incomplete: bool
    areas: tuple[ScoreArea, ...]

    @property
    def driven(self) -> tuple[ScoreArea, ...]:
        """The areas of which a suite was driven."""
        quiet = (Standing.NOT_DRIVEN, Standing.NOT_OFFERED)
        return tuple(area for area in self.areas if area.standing not in quiet)

    @property
    def agreeing(self) -> tuple[ScoreArea, ...]:
        """The driven areas that agree, or depart only as declared."""
        good = (Standing.AGREES, Standing.DECLARED)
        return tuple(area for area in self.driven if area.standing in good)

    @property
    def verdict(self) -> Verdict:
        """FAIL with a departure that nobody declared; INCONCLUSIVE if nothing was decided."""
        standings = {area.standing for area in self.areas}
        if Standing.DEPARTS in standings:
            return Verdict.FAIL
        undecided = Standing.UNDECIDED in standings or self.incomplete or not self.driven
        return Verdict.INCONCLUSIVE if undecided else Verdict.PASS

    @property
    def score(self) -> str:
        """In one line."""
        declared = sum(area.standing is Standing.DECLARED for area in self.driven)
        text = f"{len(self.agreeing)} of {counted(len(self.driven), 'area')}"
        return f"{text}, {declared} with declared departures" if declared else text


def dumps(card: ScoreCard) -> str:
    """The card as JSON, indented, with its standing in words."""
    body = msgspec.to_builtins(card)
    for area, shown in zip(card.areas, body["areas"], strict=True):
        shown["standing"] = str(area.standing)
    body["score"], body["verdict"] = card.score, str(card.verdict)
    return json.dumps(body, indent=2) + "\n"


def load(text: str) -> ScoreCard:
    """A card that `dumps` has written; msgspec.ValidationError or DataError if it is none."""
    return convert(load_json(text), ScoreCard)


def badge_of(card: ScoreCard) -> str:
    """The badge of a README."""
    colours = {Verdict.PASS: "#2e7d32", Verdict.FAIL: "#c62828"}
    return badge("kconform", card.score, colours.get(card.verdict, "#757575"))


_COLUMNS = (Standing.AGREES, Standing.DECLARED, Standing.DEPARTS, Standing.UNDECIDED)
_QUIET = (Standing.NOT_DRIVEN, Standing.NOT_OFFERED)


def markdown(card: ScoreCard) -> str:
    """For a CI job's summary."""
    lines = [
        f"## {_cell(card.system)}: {card.score}",
        "",
        f"Seed {card.seed}{f', tier {card.tier}' if card.tier else ''}, kconform {card.version}."
        + (" The run is incomplete." if card.incomplete else ""),
        "",
        "| area | KIPs | requests | standing | worst | "
        + " | ".join(map(str, (*_COLUMNS, *_QUIET)))
        + " | tests |",
        "|---|---|---|---|---|" + "--:|" * (len(Standing) + 1),
    ]
    lines += [_row(area) for area in card.areas]
    departures = [f"- {_cell(text)}{_link(story)}" for text, story in _departures(card)]
    reasons = [f"- {_cell(text)}" for text in _reasons(card)]
    for title, entries in (("Departures", departures), ("Not driven", reasons)):
        if entries:
            lines += ["", f"### {title}", "", *entries]
    return "\n".join(lines) + "\n"


def _row(area: ScoreArea) -> str:
    counts = [str(area.count(standing) or "") for standing in (*_COLUMNS, *_QUIET)]
    tests = sum(suite.passed + suite.failed for suite in area.suites)
    cells = [area.title, ", ".join(area.kips), ", ".join(area.requests)]
    cells += [str(area.standing), area.worst]
    return "| " + " | ".join([*map(_cell, cells), *counts, f"{tests:,}"]) + " |"


def _cell(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def relative_to(card: ScoreCard, folder: Path) -> ScoreCard:
    """The card with the files of its stories as seen from the folder in which the card lies."""

    def moved(departure: Departure) -> Departure:
        story = departure.story
        if not (_is_file(story) and Path(story).is_file()):
            return departure
        return replace(departure, story=os.path.relpath(story, folder))

    areas = tuple(
        replace(
            area,
            suites=tuple(
                replace(suite, departures=tuple(map(moved, suite.departures)))
                for suite in area.suites
            ),
        )
        for area in card.areas
    )
    return replace(card, areas=areas)


def _departures(card: ScoreCard) -> Iterator[tuple[str, str]]:
    """Text and story of each departure, with all areas that met it: the worst first."""
    met: dict[Departure, list[str]] = {}
    for area in card.areas:
        for suite in area.suites:
            for departure in suite.departures:
                met.setdefault(departure, []).append(area.title)
    for departure in sorted(met, key=_rank):
        areas = met[departure]
        parts = [
            "declared" if departure.declared else "",
            departure.consequence,
            f"met {counted(departure.count, 'time')}" if departure.count else "",
            f"in {counted(len(areas), 'suite')} of {'; '.join(dict.fromkeys(areas))}",
        ]
        yield f"{departure.title}: {', '.join(filter(None, parts))}", departure.story


def _rank(departure: Departure) -> tuple[bool, bool, str]:
    """What nobody declared first, then what costs a user something."""
    harmless = departure.consequence in ("", "harmless")
    return departure.declared, harmless, departure.title


def _link(story: str) -> str:
    if _is_file(story):
        return f" ([story]({story}))"
    return f" (`{_cell(story)}`)" if story else ""


def _is_file(story: str) -> bool:
    return story.endswith(".json") and " " not in story


def _reasons(card: ScoreCard) -> Iterator[str]:
    for area in card.areas:
        why: dict[tuple[Standing, str], int] = {}
        for suite in area.suites:
            if suite.reason:
                key = (suite.standing, suite.reason)
                why[key] = why.get(key, 0) + 1
        for (standing, reason), count in why.items():
            suites = counted(count, "suite")
            partly = "" if standing in _QUIET else ", in part"
            yield f"{area.title}: {suites} {standing}{partly}: {reason}"


def changes(before: ScoreCard, after: ScoreCard) -> list[str]:
    """What stands otherwise in the second card, suite by suite; empty if nothing does."""
    old, new = _suites(before), _suites(after)
    lines: list[str] = []
    for name in sorted({*old, *new}):
        was, now = (suites.get(name) for suites in (old, new))
        first = "not in this card" if was is None else str(was.standing)
        second = "not in this card" if now is None else str(now.standing)
        titles = [{d.title for d in suite.departures} if suite else set() for suite in (was, now)]
        come, gone = sorted(titles[1] - titles[0]), sorted(titles[0] - titles[1])
        if first == second and not come and not gone:
            continue
        parts = [f"{first} -> {second}" if first != second else first]
        parts += [f"new: {title}" for title in come] + [f"gone: {title}" for title in gone]
        lines.append(f"{name}: {'; '.join(parts)}")
    return lines


def _suites(card: ScoreCard) -> dict[str, ScoreSuite]:
    return {suite.name: suite for area in card.areas for suite in area.suites}


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #222 }}
table {{ border-collapse: collapse }}
th, td {{ border: 1px solid #ccc; padding: .3rem .6rem; text-align: left; vertical-align: top }}
small {{ color: #666 }}
.departs {{ background: #ffebee }} .undecided {{ background: #eeeeee }}
.agrees {{ background: #e8f5e9 }} .declared {{ background: #fff8e1 }}
</style></head><body>
<h1>{title}</h1>
<table>
<tr><th>area</th>{heads}</tr>
{rows}
</table>
{notes}
</body></html>
"""
_CLASSES = {
    Standing.DEPARTS: "departs",
    Standing.UNDECIDED: "undecided",
    Standing.AGREES: "agrees",
    Standing.DECLARED: "declared",
}


def page(cards: Sequence[ScoreCard]) -> str:
    """One page without links to elsewhere: an area a row, a card a column."""
    areas = {area.id: area for card in cards for area in card.areas}
    heads = "".join(
        f"<th>{escape(printable(card.system))}<br><small>{escape(card.score)}; seed {card.seed}"
        "</small></th>"
        for card in cards
    )
    rows = "\n".join(
        f"<tr><td>{escape(area.title)}<br><small>{escape(', '.join((*area.kips, *area.requests)))}"
        f"</small></td>{''.join(_html_cell(card, area.id) for card in cards)}</tr>"
        for area in areas.values()
    )
    notes = "\n".join(_html_notes(card) for card in cards)
    return _PAGE.format(title="Score card", heads=heads, rows=rows, notes=notes)


def _html_cell(card: ScoreCard, name: str) -> str:
    area = next((area for area in card.areas if area.id == name), None)
    if area is None:
        return "<td><small>not in this run</small></td>"
    counts = "; ".join(
        f"{area.count(standing)} {standing}" for standing in Standing if area.count(standing)
    )
    kind, small = _CLASSES.get(area.standing, ""), "; ".join(filter(None, (counts, area.worst)))
    return f'<td class="{kind}">{area.standing}<br><small>{escape(small)}</small></td>'


def _html_notes(card: ScoreCard) -> str:
    entries = [f"{escape(printable(text))}{_html_link(story)}" for text, story in _departures(card)]
    entries += [escape(printable(text)) for text in _reasons(card)]
    items = "".join(f"<li>{entry}</li>" for entry in entries)
    return f"<h2>{escape(printable(card.system))}</h2><ul>{items}</ul>" if items else ""


def _html_link(story: str) -> str:
    if _is_file(story):
        return f' (<a href="{escape(story)}">story</a>)'
    return f" (<code>{escape(printable(story))}</code>)" if story else ""
