"""The findings that are new and those that are resolved since an earlier report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from conformance.conversion import convert
from conformance.errors import DataError
from conformance.inputs import read_text
from conformance.report.collect import SCHEMA_VERSION, Report
from conformance.tla import load_json


@dataclass(frozen=True, slots=True)
class ResolvedFinding:
    """A finding that the earlier report has and this one does not."""

    key: str
    title: str


@dataclass(frozen=True, slots=True)
class EarlierReport:
    """The content of an earlier report."""

    path: str
    command: str
    verdict: str
    seconds: float
    titles: Mapping[str, str]
    """Its findings: titles by key."""


@dataclass(frozen=True, slots=True)
class Trend:
    """This report compared with an earlier one, finding by finding."""

    earlier: EarlierReport
    new: frozenset[str]
    """Keys of findings that were not there."""
    gone: tuple[ResolvedFinding, ...]
    known: int

    def line(self) -> str:
        """One line for the terminal."""
        return f"since {self.summary()}"

    def summary(self) -> str:
        """Which report it was, and what changed; for where a label says `since` already."""
        return (
            f"{self.earlier.path} ({self.earlier.verdict}): {len(self.new)} new, "
            f"{len(self.gone)} gone, {self.known} as before"
        )


class _Versioned(msgspec.Struct):
    schema_version: int | str


class _ReportFile(msgspec.Struct):
    """What a report.json says that is compared."""

    command: str
    verdict: str
    seconds: float
    findings: tuple[ResolvedFinding, ...]


def load_earlier(path: Path) -> EarlierReport:
    """Read a report.json; DataError if it is none, or of another schema."""
    try:
        body = load_json(read_text(path))
        version = convert(body, _Versioned).schema_version
        if version == SCHEMA_VERSION:
            content = convert(body, _ReportFile)
    except (msgspec.ValidationError, DataError) as error:
        raise DataError(
            f"{path} is no report to compare with ({error}). Give --compare the report.json that "
            "an earlier run wrote."
        ) from error
    if version != SCHEMA_VERSION:
        raise DataError(
            f"{path} has the schema version {version}, this kconform writes {SCHEMA_VERSION}: "
            "compare with a report of the same version."
        )
    titles = {finding.key: finding.title for finding in content.findings}
    return EarlierReport(str(path), content.command, content.verdict, content.seconds, titles)


def trend(report: Report, earlier: EarlierReport) -> Trend:
    """New and gone findings, by their keys."""
    keys = {finding.key for finding in report.findings}
    gone = tuple(
        ResolvedFinding(key, title) for key, title in earlier.titles.items() if key not in keys
    )
    return Trend(
        earlier,
        frozenset(keys - set(earlier.titles)),
        gone,
        len(keys) - len(keys - set(earlier.titles)),
    )
