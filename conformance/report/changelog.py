"""What behaves otherwise in one system than in another: as data, Markdown and a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape

import msgspec

from conformance.events import JsonValue
from conformance.printable import counted, printable
from conformance.verdict import Verdict

CHANGELOG_SCHEMA = 1


class RuleChange(msgspec.Struct, frozen=True):
    """A rule of the specification of which one of the two systems departs, and the other not."""

    rules: tuple[str, ...]
    """The operators, or the action, that read otherwise; each with its place in the text."""
    title: str
    specification: str
    departs: str
    """The system that departs from the rule."""
    follows: str
    """The one that follows it."""
    in_new: bool
    """Whether it is the new one that departs."""
    known: str = ""
    """The id in a table of deviations; empty for a change that no table knows."""
    report: str = ""
    """JIRA or KIP, where the table knows one."""
    cost: str = ""
    """What the departure costs a user, as the table says it."""
    formulas: tuple[str, ...] = ()
    """The formulas that no longer hold with the departure."""
    violated: str = ""
    """The one to whose violation the departing system was driven."""
    model: str = ""
    path: tuple[str, ...] = ()
    """The actions that tell the two apart; the last one differs. No step can be left out."""
    differs: tuple[str, ...] = ()
    """What the two show after the last one."""


class ComparedSuite(msgspec.Struct, frozen=True):
    """One model's suite, driven on both systems."""

    model: str
    old: str
    new: str
    old_tests: int = 0
    new_tests: int = 0
    old_steps: int = 0
    new_steps: int = 0
    undecided: str = ""
    """Why the suite says nothing of a change; empty if it does."""


class ComparedPath(msgspec.Struct, frozen=True):
    """A saved path of a table, replayed on both systems."""

    id: str
    old: str
    new: str


class Changelog(msgspec.Struct, frozen=True):
    """The whole comparison; nothing in it depends on the clock."""

    schema: int
    old: str
    new: str
    version: str
    """Of kconform."""
    seed: int
    changes: tuple[RuleChange, ...]
    suites: tuple[ComparedSuite, ...]
    paths: tuple[ComparedPath, ...]
    not_compared: tuple[str, ...] = ()
    """What was left out, and why."""

    @property
    def unknown(self) -> tuple[RuleChange, ...]:
        """The changes that no table knows."""
        return tuple(change for change in self.changes if not change.known)

    @property
    def verdict(self) -> Verdict:
        """FAIL for a change that no table knows; INCONCLUSIVE if not all was decided."""
        if self.unknown:
            return Verdict.FAIL
        decided = [suite for suite in self.suites if not suite.undecided]
        whole = len(decided) == len(self.suites)
        return Verdict.PASS if whole and (decided or self.changes) else Verdict.INCONCLUSIVE

    @property
    def summary(self) -> str:
        """In one line."""
        changes = counted(len(self.changes), "changed rule") if self.changes else "nothing changed"
        unknown = f", {len(self.unknown)} of them in no table" if self.unknown else ""
        return f"{changes}{unknown}; {self.covered}"

    @property
    def covered(self) -> str:
        """What was driven on both, in one line."""
        steps = sum(suite.old_steps + suite.new_steps for suite in self.suites)
        return (
            f"{counted(len(self.suites), 'suite')} driven on both ({steps:,} steps), "
            f"{counted(len(self.paths), 'saved path')} replayed on both"
        )


def as_object(changelog: Changelog) -> dict[str, JsonValue]:
    """As JSON has it, with its verdict and its summary in words."""
    body: dict[str, JsonValue] = msgspec.to_builtins(changelog)
    return {**body, "summary": changelog.summary, "verdict": str(changelog.verdict)}


def dumps(changelog: Changelog) -> str:
    """As JSON, indented."""
    return json.dumps(as_object(changelog), indent=2) + "\n"


def markdown(changelog: Changelog) -> str:
    """For a release's notes, or a CI job's summary."""
    lines = [
        f"# What behaves otherwise in {_plain(changelog.new)} than in {_plain(changelog.old)}",
        "",
        f"{changelog.summary[0].upper()}{changelog.summary[1:]}.",
        f"Seed {changelog.seed}, kconform {changelog.version}.",
    ]
    for change in changelog.changes:
        lines += ["", f"### {_plain(change.title)}", "", *_facts(change)]
        lines += ["", *(f"{number}. `{step}`" for number, step in enumerate(change.path, 1))]
        lines += ["", *(f"    {_plain(text)}" for text in change.differs)] if change.differs else []
    lines += ["", "### What was covered", "", *_suite_table(changelog)]
    lines += ["", *_path_table(changelog)] if changelog.paths else []
    if changelog.not_compared:
        lines += ["", "### Not compared", "", "| what was left out, and why |", "|---|"]
        lines += [f"| {_plain(text)} |" for text in changelog.not_compared]
    return "\n".join(lines) + "\n"


def _facts(change: RuleChange) -> Iterator[str]:
    rules = ", ".join(f"`{rule}`" for rule in change.rules)
    yield f"- Rule: {rules} of {change.specification}."
    yield f"- {_plain(change.departs)} departs from it, {_plain(change.follows)} follows it."
    if change.known:
        yield f"- Known as `{change.known}`: {_plain(change.report)}; {change.cost}."
    else:
        yield "- No table knows it."
    broken = ", ".join(change.formulas)
    violated = f"; driven to the violation of {change.violated}" if change.violated else ""
    yield f"- Formulas that break: {broken}{violated}." if broken else (
        "- No formula for users is known to break." if change.known else
        "- Whether a formula breaks was not searched for."
    )  # fmt: skip
    yield f"- Told apart in {counted(len(change.path), 'step')} of {change.model}:"


def _suite_table(changelog: Changelog) -> Iterator[str]:
    if not changelog.suites:
        yield "No suite was driven on both."
        return
    yield f"| suite | {_plain(changelog.old)} | {_plain(changelog.new)} |"
    yield "|---|---|---|"
    for suite in changelog.suites:
        old = f"{suite.old}, {suite.old_tests:,} tests, {suite.old_steps:,} steps"
        new = f"{suite.new}, {suite.new_tests:,} tests, {suite.new_steps:,} steps"
        reason = f" ({_plain(suite.undecided)})" if suite.undecided else ""
        yield f"| {suite.model} | {_plain(old)} | {_plain(new)}{reason} |"


def _path_table(changelog: Changelog) -> Iterator[str]:
    yield f"| saved path of a deviation | {_plain(changelog.old)} | {_plain(changelog.new)} |"
    yield "|---|---|---|"
    for path in changelog.paths:
        yield f"| {path.id} | {_plain(path.old)} | {_plain(path.new)} |"


def _plain(text: str) -> str:
    return printable(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color: #222; max-width: 60rem }}
table {{ border-collapse: collapse }}
th, td {{ border: 1px solid #ccc; padding: .3rem .6rem; text-align: left; vertical-align: top }}
.unknown {{ border-left: 4px solid #c62828; padding-left: 1rem }}
.known {{ border-left: 4px solid #f9a825; padding-left: 1rem }}
</style></head><body>
<h1>{title}</h1>
<p>{summary}. Seed {seed}, kconform {version}.</p>
{changes}
<h2>What was covered</h2>
{covered}
{left_out}
</body></html>
"""


def page(changelog: Changelog) -> str:
    """One page without links to elsewhere."""
    title = f"What behaves otherwise in {changelog.new} than in {changelog.old}"
    left_out = "".join(f"<li>{_html(text)}</li>" for text in changelog.not_compared)
    suites = [
        (
            suite.model,
            f"{suite.old}, {suite.old_tests:,} tests, {suite.old_steps:,} steps",
            f"{suite.new}, {suite.new_tests:,} tests, {suite.new_steps:,} steps {suite.undecided}",
        )
        for suite in changelog.suites
    ]
    paths = [(path.id, path.old, path.new) for path in changelog.paths]
    return _PAGE.format(
        title=_html(title),
        summary=_html(changelog.summary),
        seed=changelog.seed,
        version=_html(changelog.version),
        changes="\n".join(map(_section, changelog.changes)),
        covered=_rows("suite", changelog, suites) + _rows("saved path", changelog, paths),
        left_out=f"<h2>Not compared</h2><ul>{left_out}</ul>" if left_out else "",
    )


def _section(change: RuleChange) -> str:
    texts = (fact.removeprefix("- ").replace("`", "") for fact in _facts(change))
    facts = "".join(f"<li>{_html(text)}</li>" for text in texts)
    steps = "".join(f"<li><code>{_html(step)}</code></li>" for step in change.path)
    differs = "<br>".join(map(_html, change.differs))
    kind = "known" if change.known else "unknown"
    return (
        f'<div class="{kind}"><h2>{_html(change.title)}</h2><ul>{facts}</ul><ol>{steps}</ol>'
        f"<p>{differs}</p></div>"
    )


def _rows(head: str, changelog: Changelog, rows: Sequence[tuple[str, str, str]]) -> str:
    if not rows:
        return ""
    cells = "\n".join(
        "<tr>" + "".join(f"<td>{_html(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    heads = "".join(f"<th>{_html(cell)}</th>" for cell in (head, changelog.old, changelog.new))
    return f"<table><tr>{heads}</tr>\n{cells}</table>\n"


def _html(text: str) -> str:
    return escape(printable(text))
