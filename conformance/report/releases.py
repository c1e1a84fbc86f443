"""What each release was seen to do, a file for each system, and the table that is made of them."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from conformance.conversion import convert
from conformance.errors import DataError
from conformance.files import written_aside
from conformance.inputs import read_text
from conformance.printable import counted
from conformance.tla import load_json

RECORD_SCHEMA = 1
PAGE = "matrix.md"
"""The table's file, beside those of the systems."""


class SuiteRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a system made of a model's suite."""

    answer: str
    key: str
    """Of the text of the model and its specification."""
    graph: str = ""
    """The digest of the state graph that was covered: for another one the suite is driven again."""
    deviations: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    reason: str = ""
    tests: int = 0
    steps: int = 0


class ReleaseRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that was run of one system; nothing in it depends on the clock."""

    schema: int
    system: str
    deviations: Mapping[str, str]
    """By id, what its saved path showed."""
    suites: Mapping[str, SuiteRecord]
    """By model; one that is missing was not run."""
    asked: tuple[str, ...] = ()
    """The models that any run was to drive, in the order of names."""
    logs: Mapping[str, str] = {}
    """By the name of a log and of one of its units, what a load makes of it."""


def file_of(folder: Path, system: str) -> Path:
    """Where a system's record lies."""
    return folder / f"{re.sub('[^A-Za-z0-9.+]+', '-', system).strip('-')}.json"


def load(file: Path) -> ReleaseRecord:
    """A record. DataError if the file holds none."""
    try:
        return convert(load_json(read_text(file)), ReleaseRecord)
    except (msgspec.MsgspecError, DataError) as error:
        raise DataError(
            f"{file} is no record of a release: {error}. Remove it and run `kconform versions` "
            "again."
        ) from error


def records(folder: Path) -> tuple[ReleaseRecord, ...]:
    """All of a folder, by kind of system and by version."""
    return tuple(sorted(map(load, folder.glob("*.json")), key=lambda record: _order(record.system)))


def save(folder: Path, record: ReleaseRecord) -> None:
    """Write a system's record, and the table of all that are in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(msgspec.to_builtins(record), indent=1, sort_keys=True) + "\n"
    _write(file_of(folder, record.system), text)
    _write(folder / PAGE, markdown(records(folder)))


def _write(file: Path, text: str) -> None:
    with written_aside(file) as aside:
        aside.write_text(text, encoding="utf-8")


def _order(system: str) -> tuple[str, tuple[int, ...], str]:
    kind, _, version = system.partition("-")
    return kind, tuple(map(int, re.findall(r"\d+", version))), system


_LEFT_OUT = "-"
_MARKS: Mapping[str, str] = {
    "agrees": "agrees",
    "deviates": "as known",
    "deviates in a new way": "**NEW**",
    "inconclusive": "undecided",
    "left out": _LEFT_OUT,
}
_NOT_RUN = "not run"
_WIDTH = 118
_OWN = "a file of its own"


def markdown(kept: Sequence[ReleaseRecord]) -> str:
    """A table for each kind of system: paths of deviations, then suites; a release is a row."""
    lines = [
        "# What each release does",
        "",
        "`kconform versions --all -o docs/releases` writes this page and the files beside it.",
        "It goes on where it was ended.",
        "",
        "A path shows a deviation (*seen*) or does not (*gone*).",
        "It is *not reachable* where the release lacks another deviation that leads to it,",
        "and *not to be seen* or *not driven* where this way of driving cannot tell.",
        "A suite *agrees* with the specification, or departs *as known*:",
        "it passes with the deviations that the file of the release names.",
        "The classes of a release load shipped logs, a row for each group or other unit",
        "([will this log load?](../load.md#the-same-log-and-every-release));",
        "releases before 4.0 have another coordinator, and are not in that table.",
        f"*{_LEFT_OUT}* marks a suite that the release cannot take,",
        "or a unit of which its load of the log says nothing;",
        "suites that none of them can take are not here.",
        f"*{_NOT_RUN}* says that nobody has run it, and so does a release that is missing here.",
    ]
    for kind in dict.fromkeys(_order(record.system)[0] for record in kept):
        of_kind = [record for record in kept if _order(record.system)[0] == kind]
        lines += ["", f"## {kind}"]
        lines += _table("path", of_kind, {r.system: r.deviations for r in of_kind})
        lines += _table("suite", of_kind, {r.system: _words(r) for r in of_kind})
        lines += _never_driven(of_kind)
        loading = [record for record in of_kind if record.logs]
        lines += _table("log", loading, _loads(loading))
    return "\n".join(lines) + "\n"


def _never_driven(kept: Sequence[ReleaseRecord]) -> Iterator[str]:
    """The suites that were to be driven, and were on no release yet, by their folder."""
    driven = {name for record in kept for name in record.suites}
    left: dict[str, list[str]] = {}
    for name in sorted({name for record in kept for name in record.asked} - driven):
        folder, _, model = name.rpartition("/")
        left.setdefault(folder, []).append(model)
    if not left:
        return
    yield ""
    yield f"Driven on no release yet ({counted(sum(map(len, left.values())), 'suite')}):"
    yield ""
    for folder, models in left.items():
        text = f"- {folder or _OWN}: {', '.join(models)}"
        yield from textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _words(record: ReleaseRecord) -> Mapping[str, str]:
    return {
        name: _MARKS.get(suite.answer, suite.answer)
        + (f", {suite.tests:,} tests" if suite.tests else "")
        for name, suite in record.suites.items()
    }


def _loads(kept: Sequence[ReleaseRecord]) -> Mapping[str, Mapping[str, str]]:
    """By system and unit, what a load makes of it; of a log that was loaded no unit is missing."""
    units = {unit for record in kept for unit in record.logs}
    cells: dict[str, Mapping[str, str]] = {}
    for record in kept:
        loaded = {unit.partition(" ")[0] for unit in record.logs}
        silent = {unit: _LEFT_OUT for unit in units if unit.partition(" ")[0] in loaded}
        cells[record.system] = {**silent, **record.logs}
    return cells


def _table(
    head: str, kept: Sequence[ReleaseRecord], cells: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """A row for each path or suite that a release can take, a column for each release."""
    names = sorted(
        {name for row in cells.values() for name, word in row.items() if word != _LEFT_OUT}
    )
    if not names:
        return
    systems = [record.system for record in kept]
    heads = [system.partition("-")[2] or system for system in systems]
    yield ""
    yield f"| {head} | {' | '.join(heads)} |"
    yield "|---|" + "---|" * len(heads)
    for name in names:
        row = [cells[system].get(name, _NOT_RUN) for system in systems]
        yield f"| {name} | {' | '.join(row)} |"
