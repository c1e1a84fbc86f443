"""GitHub Actions: error annotations and the step summary."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from conformance.events import Finding
from conformance.report.collect import Report
from conformance.report.text import finding_lines


def inside_actions(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process runs in a GitHub Actions job."""
    return environ.get("GITHUB_ACTIONS") == "true"


def annotate(report: Report, out: TextIO, environ: Mapping[str, str] = os.environ) -> None:
    """One `::error` workflow command per finding, at its file and line in the repository."""
    root = Path(environ.get("GITHUB_WORKSPACE") or Path.cwd())
    for finding in report.findings:
        out.write(_command(finding, root) + "\n")
    out.flush()


def _command(finding: Finding, root: Path) -> str:
    properties = [*_place(finding.location, root), f"title={_property(finding.title)}"]
    return f"::error {','.join(properties)}::{_data(chr(10).join(finding_lines(finding)))}"


def _place(location: str, root: Path) -> list[str]:
    """File and line in GitHub's form, from the repository's root; empty outside of the repository.

    A spec of an installed kconform lies outside the repository.
    """
    name, _, rest = location.partition(":")
    file = Path(name).resolve()
    if not file.is_file() or not file.is_relative_to(root.resolve()):
        return []
    line = rest.partition(":")[0]
    result = [f"file={_property(file.relative_to(root.resolve()).as_posix())}"]
    return [*result, f"line={line}"] if line.isdigit() else result


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def write_summary(report: Report, environ: Mapping[str, str] = os.environ) -> None:
    """Append a Markdown table of the stages to the job's summary, if the job has one."""
    target = environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    rows = [
        f"| {stage.stage} | {stage.subject} | {stage.verdict} | {stage.seconds:.1f} s "
        f"| {stage.summary.replace('|', chr(92) + '|')} |"
        for stage in report.stages
    ]
    text = [
        f"### kconform {report.command}: {report.verdict}",
        "",
        "| stage | subject | verdict | time | |",
        "|---|---|---|---|---|",
        *rows,
        "",
        *(
            f"<details><summary>{html.escape(f.title)}</summary>\n\n```\n"
            + "\n".join(finding_lines(f))
            + "\n```\n</details>\n"
            for f in report.findings
        ),
    ]
    with Path(target).open("a", encoding="utf-8") as out:
        out.write("\n".join(text) + "\n")
