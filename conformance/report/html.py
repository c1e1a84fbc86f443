"""The HTML report: one self-contained file, made from the same report as the JSON."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TypedDict

from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.events import JsonValue, StageFinished
from conformance.report.collect import Report


class _Card(TypedDict):
    label: str
    value: str


class _ActionRow(TypedDict):
    name: str
    count: int
    percent: float


def dumps(report: Report, *, now: float | None = None) -> str:
    """The page's text. `now` is the time of the run in seconds since the epoch."""
    moment = time.gmtime(time.time() if now is None else now)
    environment = Environment(
        loader=PackageLoader("conformance.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        report=report,
        when=time.strftime("%Y-%m-%d %H:%M UTC", moment),
        cards=list(_cards(report)),
        models=list(_models(report)),
        actions=_actions(report),
    )


def _cards(report: Report) -> Iterator[_Card]:
    """The figures that a reader looks for first."""
    models = list(_models(report))
    if models:
        good = sum(model.get("verdict") == "pass" for model in models)
        yield {"label": "models as expected", "value": f"{good} of {len(models)}"}
    replayed = _total(report, "replay", "steps")
    if replayed:
        yield {"label": "steps replayed", "value": f"{replayed:,}"}
    audited = sum(_traces_in(stage) for stage in report.stages if stage.stage == "audit")
    if audited:
        yield {"label": "traces audited", "value": f"{audited:,}"}
    transitions = _total(report, "audit", "distinct_transitions")
    if transitions:
        yield {"label": "distinct transitions judged", "value": f"{transitions:,}"}
    yield {"label": "findings", "value": str(len(report.findings))}


def _traces_in(stage: StageFinished) -> int:
    traces = stage.figures.get("traces")
    count = traces.get("in") if isinstance(traces, dict) else None
    return count if isinstance(count, int) else 0


def _total(report: Report, stage: str, key: str) -> int:
    values = (entry.figures.get(key) for entry in report.stages if entry.stage == stage)
    return sum(value for value in values if isinstance(value, int))


def _models(report: Report) -> Iterator[dict[str, JsonValue]]:
    blank: dict[str, JsonValue] = {
        "model": "", "variant": "", "brokers": None, "expected": "", "result": "",
        "violated": "", "distinct_states": 0, "counterexample_length": 0, "seconds": 0.0,
        "verdict": "", "story": [],
    }  # fmt: skip
    for stage in report.stages:
        if stage.stage == "check":
            yield blank | dict(stage.figures)


def _actions(report: Report) -> list[_ActionRow]:
    counts: dict[str, int] = {}
    for stage in report.stages:
        for name, count in _fired(stage):
            counts[name] = counts.get(name, 0) + count
    most = max(counts.values(), default=0) or 1
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return [
        {"name": name, "count": count, "percent": round(100 * count / most, 1)}
        for name, count in ordered
    ]


def _fired(stage: StageFinished) -> Iterator[tuple[str, int]]:
    fired = stage.figures.get("actions")
    if stage.stage in ("replay", "explore") and isinstance(fired, dict):
        for name, count in fired.items():
            if isinstance(count, int):
                yield name, count
