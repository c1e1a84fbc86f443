"""GitHub Actions: error annotations and the step summary."""

from __future__ import annotations

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


def annotate(report: Report, out: TextIO) -> None:
    """One `::error` workflow command per finding, its place taken from the spec's line."""
    for finding in report.findings:
        out.write(_command(finding) + "\n")
    out.flush()


def _command(finding: Finding) -> str:
    file, _, line = finding.location.partition(":")
    place = [f"title={_property(finding.title)}"]
    if file:
        place.insert(0, f"file={_property(file)}")
    if line.split(":")[0].isdigit():
        place.insert(1, f"line={line.split(':')[0]}")
    return f"::error {','.join(place)}::{_data(chr(10).join(finding_lines(finding)))}"


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
            f"<details><summary>{f.title}</summary>\n\n```\n"
            + "\n".join(finding_lines(f))
            + "\n```\n</details>\n"
            for f in report.findings
        ),
    ]
    with Path(target).open("a", encoding="utf-8") as out:
        out.write("\n".join(text) + "\n")
