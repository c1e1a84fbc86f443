"""Writes docs/findings.md: every departure of every subject that a table or a card knows.

The table of deviations gives Kafka's brokers and its Java client; the score cards in docs/cards
give the others. The text of each finding stands alone, so that it can be pasted into a
tracker.
Run: python -m experiments.findings
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from benchmarks.brokers import ROOT
from conformance.deviations.table import Deviation, DeviationSeverity, load_deviations
from conformance.errors import UserError
from conformance.files import written_aside
from conformance.kafka.jars import RELEASES, release_of
from conformance.printable import counted
from conformance.report import card as cards
from conformance.report.card import Departure
from conformance.stages.story import StoryFile, read_story, script_of
from conformance.story.behaviour import end_lines
from conformance.systems.kafka.junit import scene_of, signature

PAGE = ROOT / "docs" / "findings.md"
CARDS = ROOT / "docs" / "cards"
_AT_PORT = "DataPathAtPort"
"""The specification that a release is driven by at its port, and not by its classes."""
_COORDINATOR = {"GroupMembership": "3.8.1", "ConsumerGroup": "4.0.0"}
"""For a finding on the client, a release whose coordinator departs nowhere on the way to it."""
TABLE = ROOT / "conformance" / "systems" / "kafka" / "deviations.toml"
_WIDTH = 116
_END = re.compile(r"(?<=[.!?]) +(?=[A-Z`*(\[])")
_OF_CLIENTS = ("ConsumerCommits", "ConsumerPositions", "ConsumerTopics", "TransactionManager")
"""Specifications of clients alone: their versions are the release's."""
_COST = {
    DeviationSeverity.DATA_LOSS: "An acknowledged record or a committed offset can be lost.",
    DeviationSeverity.DUPLICATES: "Records can be handed out twice.",
    DeviationSeverity.WRONG_READ: "No data is lost. "
    "A consumer can get records that it must not get, as told above.",
    DeviationSeverity.STUCK: "No data is lost. "
    "A client or a partition gets no further, as told above, until something from outside helps.",
    DeviationSeverity.HARMLESS: "No data is lost; no promise to users is broken.",
}
_INTRODUCTION = """\
# Findings

`python -m experiments.findings` writes this page from the table of deviations and
the [score cards](cards/README.md).
It has every departure from the specifications that is known of a subject.
The text of each finding can be pasted into a tracker: it needs no other page.
Findings that can lose data and that nobody has reported come first.

*Since when* names the releases that were run.
A release that is not named was not run.
"""


def page() -> str:
    """The whole page."""
    known = sorted(load_deviations(TABLE), key=_rank)
    met = list(_met())
    sections, contents = list(map(_finding, known)), list(map(_row, known))
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


def _row(deviation: Deviation) -> str:
    reported = deviation.report if _is_reported(deviation) else "no"
    link = f"[{deviation.title}](#{deviation.id.lower()})"
    return f"| {link} | {_subject(deviation)} | {deviation.severity} | {reported} |"


def _subject(deviation: Deviation) -> str:
    of_client = deviation.part == "client" or deviation.specification in _OF_CLIENTS
    return "Kafka's Java client" if of_client else "Kafka's brokers"


def _finding(deviation: Deviation) -> list[str]:
    title = deviation.title[:1].upper() + deviation.title[1:]
    story = read_story(TABLE.parent / "paths" / deviation.path)
    return [
        f"## {deviation.id}",
        "",
        f"**{title}.**",
        "",
        *_wrapped(deviation.description),
        "",
        *_bullet(f"Subject: {_subject(deviation)}."),
        *_bullet(f"Cost: {_COST[deviation.severity]}{_broken(deviation)}"),
        *_bullet(f"Since when: {_releases(deviation)}"),
        *_bullet(f"Reported: {_report(deviation)}"),
        "",
        "To see it, in a clone of kconform:",
        "",
        *_commands(deviation, story),
        "",
        f"The path ({story.title.partition(':')[0]}):",
        "",
        "```",
        *_steps(story),
        *end_lines(story.behaviour),
        "```",
        *_junit(deviation, story),
    ]


def _wrapped(text: str) -> list[str]:
    """A paragraph, each sentence on lines of its own."""
    return [line for sentence in _sentences(text) for line in _lines(sentence)]


def _bullet(text: str) -> list[str]:
    first, *others = _wrapped(text)
    return [f"- {first}", *(f"  {line}" for line in others)]


def _sentences(text: str) -> list[str]:
    return _END.split(" ".join(text.split()))


def _lines(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, _WIDTH, break_on_hyphens=False, break_long_words=False)


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


def kind_of(deviation: Deviation) -> str:
    """The kind of system that shows a deviation of Kafka's broker."""
    return "broker" if deviation.specification == _AT_PORT else "kafka"


_SCRIPTED = frozenset({_AT_PORT, "ConsumerGroup"})
"""Of these findings each script was run at a broker: tests/e2e/systems/test_script.py."""


def _commands(deviation: Deviation, story: StoryFile) -> Iterator[str]:
    release = _newest(deviation)
    path = (TABLE.parent / "paths" / deviation.path).relative_to(ROOT)
    if deviation.part == "client":
        system = f"kafka-{_COORDINATOR[deviation.specification]}+client-{release}"
    else:
        system = f"{kind_of(deviation)}-{release}"
    yield f"    kconform replay {path} --system {system}"
    if _method(story, release):
        yield f"    kconform story {path} --junit --kafka {release}"
    if deviation.specification in _SCRIPTED and _is_scripted(story):
        yield f"    kconform story {path} --script -o finding.py"


def _is_scripted(story: StoryFile) -> bool:
    try:
        script_of(story)
    except UserError:
        return False
    return True


def _steps(story: StoryFile) -> Iterator[str]:
    actions = (step.action for step in story.behaviour.steps[1:])
    return (f"{number}. {action}" for number, action in enumerate(actions, 1))


def _method(story: StoryFile, release: str) -> str:
    """The method of the JUnit test for a release; empty if none can be written."""
    try:
        scene = scene_of(story.behaviour, story.constants)
        body = textwrap.dedent(scene.test())
    except UserError:
        return ""
    if release_of(release) < scene.oldest:
        return ""
    indented = textwrap.indent(body, "    ", lambda line: bool(line.strip()))
    return f"@Test\n{signature(scene)}\n{indented}\n}}"


def _junit(deviation: Deviation, story: StoryFile) -> Iterator[str]:
    method = _method(story, _newest(deviation))
    if not method:
        return
    yield from ["", "The JUnit test (`--junit` writes the whole class, with what it calls):", ""]
    yield from ["```java", method, "```"]


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
