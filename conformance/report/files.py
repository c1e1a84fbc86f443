"""Writes a report's files; whether that is possible is asked before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from conformance.files import check_folder, written_aside
from conformance.report import json_report, junit
from conformance.report.collect import Report
from conformance.report.trend import EarlierReport, Trend, load_earlier, trend


@dataclass(frozen=True, slots=True)
class Reports:
    """The folder of the reports, and the earlier report that they are compared with."""

    folder: Path
    earlier: EarlierReport | None = None

    def write(self, report: Report) -> tuple[tuple[Path, ...], Trend | None]:
        """Each file whole or absent; the files, and what changed since the earlier report."""
        from conformance.report import page  # Jinja: few commands write a page

        since = None if self.earlier is None else trend(report, self.earlier)
        texts = {
            "report.json": json_report.dumps(report),
            "report.html": page.dumps(report, trend=since),
            "junit.xml": junit.dumps(report),
        }
        for name, text in texts.items():
            with written_aside(self.folder / name) as aside:
                aside.write_text(text, encoding="utf-8", errors="backslashreplace")
        return tuple(self.folder / name for name in texts), since


def reports(folder: Path, compare: Path | None = None) -> Reports:
    """Settle where reports go. UserError if nothing can be written there.

    The earlier report is read at once: it may be the one that is about to be replaced.
    """
    check_folder(folder)
    return Reports(folder, None if compare is None else load_earlier(compare))
