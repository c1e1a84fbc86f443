"""The findings that are new and those that are resolved since an earlier report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformance.errors import DataError
from conformance.inputs import read_text
from conformance.report.collect import SCHEMA_VERSION, Report


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


def load_earlier(path: Path) -> EarlierReport:
    """Read a report.json; DataError if it is none, or of another schema."""
    try:
        body = json.loads(read_text(path))
        if body["schema_version"] != SCHEMA_VERSION:
            raise DataError(
                f"{path} has the schema version {body['schema_version']}, this kconform writes "
                f"{SCHEMA_VERSION}: compare with a report of the same version."
            )
        titles = {str(row["key"]): str(row["title"]) for row in body["findings"]}
        command, verdict, seconds = body["command"], body["verdict"], float(body["seconds"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path} is no report to compare with ({error}). Give --compare the report.json that "
            "an earlier run wrote."
        ) from error
    return EarlierReport(str(path), str(command), str(verdict), seconds, titles)


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
