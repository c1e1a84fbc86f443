"""The JSON report: one object per command, its schema versioned (docs/json.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace

from conformance.events import Finding, JsonValue, StageFinished
from conformance.report.collect import SCHEMA_VERSION, Report
from conformance.report.exercised import exercised_json
from conformance.verdict import merge


def to_json(report: Report) -> dict[str, JsonValue]:
    """The report as one JSON object.

    The stage of a command's name has its figures at the top level; the others, and all of the
    gate's, stand under `stages`, where a stage that ran for several models is a list.
    """
    own = [stage for stage in report.stages if stage.stage == report.command]
    others = [stage for stage in report.stages if stage.stage != report.command]
    body: dict[str, JsonValue] = {
        "schema_version": SCHEMA_VERSION,
        "command": report.command,
        "verdict": str(report.verdict),
        "seconds": round(report.seconds, 3),
        **report.header,
    }
    if report.command == "check":
        body["models"] = [dict(stage.figures) for stage in own]
    else:
        for stage in own:
            body |= {key: value for key, value in stage.figures.items() if key != "seconds"}
    if others or report.command == "gate":
        body["stages"] = _by_stage(others)
    if exercised := exercised_json(report):
        body["exercised"] = exercised
    body["time_line"] = [
        {
            "stage": span.stage,
            "subject": span.subject,
            "start": round(span.start, 3),
            "end": round(span.end, 3),
            "worker": span.worker,
        }
        for span in report.spans
    ]
    body["findings"] = [finding_json(finding) for finding in report.findings]
    return body


def finding_json(finding: Finding) -> dict[str, JsonValue]:
    """A finding with all its fields; differences as objects."""
    fields: dict[str, JsonValue] = asdict(replace(finding, exhibit=None))
    del fields["exhibit"]  # its steps are told by `story`, its drawing is the page's
    fields["differences"] = [asdict(difference) for difference in finding.differences]
    fields["story"] = list(finding.story)
    return fields


def _by_stage(finished: Iterable[StageFinished]) -> dict[str, JsonValue]:
    stages: dict[str, list[StageFinished]] = {}
    for stage in finished:
        stages.setdefault(stage.stage, []).append(stage)
    return {name: _stage_json(name, entries) for name, entries in stages.items()}


def _stage_json(name: str, entries: list[StageFinished]) -> JsonValue:
    """One object per stage; where it ran for several models, their objects under `models`."""
    body: dict[str, JsonValue] = {
        "verdict": str(merge(entry.verdict for entry in entries)),
        "seconds": round(sum(entry.seconds for entry in entries), 3),
    }
    if name == "check" or len(entries) > 1:
        body["models"] = [
            {"subject": e.subject, "verdict": str(e.verdict), "summary": e.summary, **e.figures}
            for e in entries
        ]
    else:
        entry = entries[0]
        body = {**entry.figures, "subject": entry.subject, "summary": entry.summary, **body}
    return body


def dumps(report: Report) -> str:
    """The JSON text, indented, with a final newline."""
    return json.dumps(to_json(report), indent=2) + "\n"
