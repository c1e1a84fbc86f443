"""Writes docs/findings.md: every departure of every subject that a table or a card knows.

The tables of deviations give Kafka's classes, its brokers and its Java client; the score cards in
docs/cards give the others. The text of each finding stands alone, so that it can be pasted into a
tracker.
Run: python -m experiments.findings
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.brokers import ROOT
from conformance.deviations.table import Deviation, DeviationSeverity, load_deviations
from conformance.errors import UserError
from conformance.files import written_aside
from conformance.kafka.jars import RELEASES, release_of
from conformance.printable import counted
from conformance.report import card as cards
from conformance.report.card import Departure
from conformance.stages.story import StoryFile, read_story
from conformance.story.behaviour import end_lines
from conformance.systems.kafka.junit import OLDEST, scene_of

PAGE = ROOT / "docs" / "findings.md"
CARDS = ROOT / "docs" / "cards"
_SYSTEMS = ROOT / "conformance" / "systems"
_WIDTH = 116
_COST = {
    DeviationSeverity.DATA_LOSS: "An acknowledged record or a committed offset can be lost.",
    DeviationSeverity.HARMLESS: "No data is lost; no promise to users is broken.",
}
_INTRODUCTION = """\
# Findings

`python -m experiments.findings` writes this page from the tables of deviations and
the [score cards](cards/README.md).
It has every departure from the specifications that is known of a subject.
The text of each finding can be pasted into a tracker: it needs no other page.
Findings that can lose data and that nobody has reported come first.

*Since when* names the releases that were run. A release that is not named was not run.
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """Whose table it is, and what its paths are replayed on."""

    name: str
    folder: Path
    system: str
    """`{}` stands for a release."""
    classes: bool


SUBJECTS = (
    Subject("Kafka's classes", _SYSTEMS / "kafka", "kafka-{}", classes=True),
    Subject("Kafka's brokers", _SYSTEMS / "wire" / "consumer", "wire:HOST:PORT", classes=False),
)


def page() -> str:
    """The whole page."""
    known = [
        (subject, deviation)
        for subject in SUBJECTS
        for deviation in load_deviations(subject.folder / "deviations.toml")
    ]
    known.sort(key=lambda pair: _rank(pair[1]))
    met = list(_met())
    sections = [_finding(subject, deviation) for subject, deviation in known]
    contents = [_row(subject, deviation) for subject, deviation in known]
    return "\n".join(
        [
            _INTRODUCTION,
            f"{counted(len(known), 'finding')} on Apache Kafka:",
            "",
            "| finding | subject | cost | reported |",
            "|---|---|---|---|",
            *contents,
            "",
            *("\n".join([*section, ""]) for section in sections),
            "## Other brokers and clients",
            "",
            *(met or ["The cards know of no departure that nobody has declared."]),
            "",
        ]
    )


def _rank(deviation: Deviation) -> tuple[bool, bool]:
    return deviation.severity is DeviationSeverity.HARMLESS, _is_reported(deviation)


def _is_reported(deviation: Deviation) -> bool:
    return not deviation.report.startswith("no report known")


def _row(subject: Subject, deviation: Deviation) -> str:
    reported = deviation.report if _is_reported(deviation) else "no"
    link = f"[{deviation.title}](#{deviation.id.lower()})"
    return f"| {link} | {_subject(subject, deviation)} | {deviation.severity} | {reported} |"


def _subject(subject: Subject, deviation: Deviation) -> str:
    return "Kafka's Java client" if deviation.part == "client" else subject.name


def _finding(subject: Subject, deviation: Deviation) -> list[str]:
    title = deviation.title[:1].upper() + deviation.title[1:]
    story = read_story(subject.folder / "paths" / deviation.path)
    return [
        f"## {deviation.id}",
        "",
        f"**{title}.**",
        "",
        *_wrapped(deviation.description),
        "",
        *_bullet(f"Subject: {_subject(subject, deviation)}."),
        *_bullet(f"Cost: {_COST[deviation.severity]}{_broken(deviation)}"),
        *_bullet(f"Since when: {_releases(deviation)}"),
        *_bullet(f"Reported: {_report(deviation)}"),
        "",
        "To see it, in a clone of kconform:",
        "",
        *_commands(subject, deviation, story),
        "",
        f"The path ({story.title.partition(':')[0]}):",
        "",
        "```",
        *_steps(story),
        *end_lines(story.behaviour),
        "```",
        *_junit(subject, deviation, story),
    ]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), _WIDTH, break_on_hyphens=False)


def _bullet(text: str) -> list[str]:
    return textwrap.wrap(
        f"- {text}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )


def _broken(deviation: Deviation) -> str:
    names = ", ".join(f"`{name}`" for name in deviation.breaks)
    return f" With it these formulas are false of some model: {names}." if names else ""


def _releases(deviation: Deviation) -> str:
    seen, gone = (_named(names) for names in (deviation.seen, deviation.gone))
    return f"seen in {seen}; " + (f"not in {gone}." if gone else "no release without it is known.")


def _named(names: Sequence[str]) -> str:
    return ", ".join(sorted(names, key=release_of))


def _report(deviation: Deviation) -> str:
    words = deviation.report + ("" if deviation.report.endswith(".") else ".")
    return f"{words} Searched: {deviation.searched}" if deviation.searched else words


def _newest(deviation: Deviation) -> str:
    return max((name for name in deviation.seen if name in RELEASES), key=release_of)


def _commands(subject: Subject, deviation: Deviation, story: StoryFile) -> Iterator[str]:
    release = _newest(deviation)
    path = (subject.folder / "paths" / deviation.path).relative_to(ROOT)
    system = subject.system.format(release)
    if deviation.part == "client":
        system += "+client"
    yield f"    kconform replay {path} --system {system}"
    if subject.classes and _body(story) and release_of(release) >= OLDEST:
        yield f"    kconform story {path} --junit --kafka {release}"


def _steps(story: StoryFile) -> Iterator[str]:
    actions = (step.action for step in story.behaviour.steps[1:])
    return (f"{number}. {action}" for number, action in enumerate(actions, 1))


def _body(story: StoryFile) -> str:
    """What the JUnit test does; empty if none can be written."""
    try:
        scene, _ = scene_of(story.behaviour, story.constants)
        return scene.test()
    except UserError:
        return ""


def _junit(subject: Subject, deviation: Deviation, story: StoryFile) -> Iterator[str]:
    body = _body(story) if subject.classes else ""
    if not body or release_of(_newest(deviation)) < OLDEST:
        return
    yield from ["", "The JUnit test (`--junit` writes the whole class, with what it calls):", ""]
    yield from ["```java", "@Test", "void doesNotDepart() {"]
    yield textwrap.indent(textwrap.dedent(body), "    ", lambda line: bool(line.strip()))
    yield from ["}", "```"]


def _met() -> Iterator[str]:
    """Of each card, the departures that nobody has declared."""
    for file in sorted(CARDS.glob("*/card.json")):
        card = cards.load(file.read_text(encoding="utf-8"))
        found: dict[Departure, list[str]] = {}
        for area in card.areas:
            for suite in area.suites:
                for departure in suite.departures:
                    if not departure.declared:
                        found.setdefault(departure, []).append(suite.name)
        if not found:
            continue
        yield from [f"### {card.system}", ""]
        yield f"`python -m experiments.score_cards {file.parent.name}` shows them."
        yield "No report of these was looked for; since when they are there was not tried."
        yield ""
        for entry in found.items():
            yield from _bullet(_met_line(file.parent.name, entry))
        yield ""


def _met_line(folder: str, entry: tuple[Departure, Iterable[str]]) -> str:
    departure, suites = entry
    story = departure.story
    link = f" ([story](cards/{folder}/{story}))" if story.endswith(".json") else ""
    cost = f": {departure.consequence}" if departure.consequence else ""
    return f"{departure.title}{cost}, in {', '.join(sorted(set(suites)))}{link}"


def main() -> None:
    with written_aside(PAGE) as aside:
        aside.write_text(page(), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
