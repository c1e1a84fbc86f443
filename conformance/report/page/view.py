"""The page's content, computed from a report; the template only lays it out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from conformance.events import Exhibit, JsonValue, Reason, StageFinished
from conformance.printable import counted, plural, were
from conformance.report.causes import Cause, causes
from conformance.report.collect import Report
from conformance.report.counts import SpecCounts, counts
from conformance.report.page.shapes import Shape, shapes
from conformance.report.page.sources import Sources, sources
from conformance.report.page.timeline import TimeLine, time_line
from conformance.report.trend import ResolvedFinding, Trend
from conformance.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Fact:
    """A figure that a reader looks for first."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class ExplanationLine:
    """A line of an explanation; `culprit` is a false part without a false part of its own."""

    reason: Reason
    false: bool
    culprit: bool


@dataclass(frozen=True, slots=True)
class BehaviourView:
    """A behaviour on the page: its drawing, its steps, and the states as differences."""

    anchor: str
    exhibit: Exhibit
    reasons: tuple[ExplanationLine, ...]

    @property
    def data(self) -> dict[str, object]:
        """What the script needs: by step the variables with another value than before.

        Values come again and again: they stand in `texts` once, and are named by their numbers.
        """
        texts: dict[str, int] = {}
        steps = [
            {name: texts.setdefault(value, len(texts)) for name, value in step.values.items()}
            for step in self.exhibit.steps
        ]
        return {"texts": [*texts], "steps": steps, "observed": dict(self.exhibit.observed)}

    @property
    def has_states(self) -> bool:
        """Whether its steps have states: operations of a history have none."""
        return any(step.values for step in self.exhibit.steps)

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        length = sum(len(text) for step in self.exhibit.steps for text in step.changes)
        return len(self.exhibit.svg) + len(str(self.data)) + length


@dataclass(frozen=True, slots=True)
class FindingView:
    """A cause on the page."""

    anchor: str
    cause: Cause
    news: str
    shown: BehaviourView | None


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model on the page, with its counterexample if there is one."""

    anchor: str
    figures: dict[str, JsonValue]
    has_exhibit: bool
    shown: BehaviourView | None
    good: bool


@dataclass(frozen=True, slots=True)
class StageRow:
    """A stage on the page, with the behaviour that it was expected to show, if there is one."""

    anchor: str
    stage: StageFinished
    shown: BehaviourView | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that this run says nothing about, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ReportPage:
    """The page's content."""

    report: Report
    sentence: str
    protocols: tuple[str, ...]
    subjects: tuple[str, ...]
    made: tuple[str, ...]
    """What stages have made, where nothing was held against a model."""
    judged: tuple[str, ...]
    """What stages have judged, where that was no system under a model: a history, a folder."""
    facts: tuple[Fact, ...]
    findings: tuple[FindingView, ...]
    gaps: tuple[Gap, ...]
    models: tuple[ModelRow, ...]
    stages: tuple[StageRow, ...]
    """All stages but single models, which have a separate table."""
    specs: tuple[SpecCounts, ...]
    sources: Sources
    shapes: tuple[Shape, ...]
    time_line: TimeLine | None
    trend: Trend | None

    @property
    def of_specifications(self) -> bool:
        """Whether the run looked at specifications alone."""
        names = {stage.stage for stage in self.report.stages}
        return bool(names) and not self.subjects and names <= _OF_SPECIFICATIONS

    @property
    def undrawn(self) -> int:
        """Behaviours that were expected, and were left out of the page."""
        models = sum(row.shown is None and row.has_exhibit for row in self.models)
        stages = sum(row.shown is None and row.stage.exhibit is not None for row in self.stages)
        return models + stages

    def with_fewer_drawn(self, excess: int) -> ReportPage:
        """Without the longest of the expected behaviours, as many as have about so many bytes; the
        same view where none is left."""
        models = (row.shown for row in self.models if row.good)
        drawn = [
            model for model in (*models, *(row.shown for row in self.stages)) if model is not None
        ]
        left_out: set[str] = set()
        for view in sorted(drawn, key=lambda view: view.size, reverse=True):
            if excess <= 0:
                break
            excess -= view.size
            left_out.add(view.anchor)
        if not left_out:
            return self
        return replace(
            self,
            models=tuple(
                replace(row, shown=None) if row.anchor in left_out else row for row in self.models
            ),
            stages=tuple(
                replace(row, shown=None) if row.anchor in left_out else row for row in self.stages
            ),
        )

    @property
    def gone(self) -> tuple[ResolvedFinding, ...]:
        """Findings of an earlier report that are not there any more."""
        return self.trend.gone if self.trend else ()


def view_of(report: Report, trend: Trend | None = None) -> ReportPage:
    """Everything that the template needs."""
    result = causes(report.findings)
    models, stages, specs = tuple(_models(report)), tuple(_stages(report)), counts(report)
    views = tuple(_finding(cause, trend) for cause in result)
    drawn = [row.shown for rows in (views, stages, models) for row in rows]
    exhibits = [view.exhibit for view in drawn if view is not None]
    return ReportPage(
        report,
        _sentence(report, len(result)),
        _protocols(report),
        _subjects(report),
        tuple(_evidence(report, makes=True)),
        tuple(_evidence(report, makes=False)),
        tuple(_facts(report)),
        _new_first(views),
        tuple(_gaps(report)),
        models,
        stages,
        specs,
        sources(specs, exhibits, [finding.location for finding in report.findings]),
        shapes(report),
        time_line(report),
        trend,
    )


def anchor(prefix: str, text: str) -> str:
    """A name for a link that stays the same from run to run."""
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _sentence(report: Report, result: int) -> str:
    symptoms = len(report.findings)
    if report.header.get("incomplete") and not symptoms:
        return "The run did not come to its end: this report tells what was done until then."
    own = [stage.summary for stage in report.stages if stage.stage == report.command == "bugs"]
    if own and report.verdict is Verdict.PASS:
        return f"{own[0][:1].upper()}{own[0][1:]}."
    if report.verdict is Verdict.PASS and _makes_only(report):
        return "It was made as planned. Nothing was judged."
    if report.verdict is Verdict.PASS:
        return "Nothing was found that the specification does not allow."
    if result:
        return f"{counted(symptoms, 'finding')}, {result} likely {plural(result, 'cause')}."
    if report.verdict is Verdict.FAIL:
        return "A stage failed: its line below says why."
    return "Nothing was found, but not everything was looked at: see what is not covered."


def _protocols(report: Report) -> tuple[str, ...]:
    protocols: dict[str, dict[str, None]] = {}
    for compared_model in report.comparisons:
        name = (
            f"{compared_model.spec}: {compared_model.protocol}"
            if compared_model.protocol
            else compared_model.spec
        )
        protocols.setdefault(name, {})[compared_model.variant] = None
    lines = []
    for name, variants in protocols.items():
        named = ", ".join(filter(None, variants))
        lines.append(f"{name} ({named})" if named else name)
    checked = dict.fromkeys(_text(s, "spec") for s in report.stages if s.stage == "check")
    driven = {compared_model.spec for compared_model in report.comparisons}
    only = (name for name in checked if name and name not in driven)
    return (*lines, *(f"{name}: model checked only" if lines else name for name in only))


_OF_SPECIFICATIONS = frozenset({"check", "diff"})
_MAKERS = frozenset({"cluster", "incident", "record", "traces", "workload"})
"""Stages that make something to be judged, and judge nothing."""


def _makes_only(report: Report) -> bool:
    """Whether the run made something, and nothing was held against a specification."""
    return not report.comparisons and {stage.stage for stage in report.stages} <= _MAKERS


def _evidence(report: Report, *, makes: bool) -> Iterator[str]:
    """The stages that made something, or judged something, without a model."""
    if report.comparisons:
        return
    for stage in report.stages:
        if stage.stage not in _OF_SPECIFICATIONS and (stage.stage in _MAKERS) is makes:
            yield f"{stage.stage} of {stage.subject}: {stage.summary}"


def _subjects(report: Report) -> tuple[str, ...]:
    """The tested systems with their versions."""
    systems: dict[tuple[str, str], dict[str, None]] = {}
    for compared_model in report.comparisons:
        if compared_model.system:
            systems.setdefault((compared_model.system, compared_model.version), {})[
                compared_model.spec
            ] = None
    return tuple(
        f"{system}{f', version {version}' if version else ''}, against {', '.join(specs)}"
        for (system, version), specs in systems.items()
    )


def _facts(report: Report) -> Iterator[Fact]:
    models = [stage for stage in report.stages if stage.stage == "check"]
    if models:
        good = sum(stage.verdict is Verdict.PASS for stage in models)
        yield Fact("models as expected", f"{good} of {len(models)}")
    for label, stage, key in (
        ("steps replayed", "replay", "steps"),
        ("steps explored", "explore", "steps"),
        ("steps judged in traces", "audit", "steps"),
        ("distinct transitions judged", "audit", "distinct_transitions"),
    ):
        total = sum(_number(finished, key) for finished in report.stages if finished.stage == stage)
        if total:
            yield Fact(label, f"{total:,}")
    result = len(report.findings)
    yield Fact(plural(result, "finding"), str(result))


def _number(stage: StageFinished, key: str) -> int:
    value = stage.figures.get(key)
    return value if isinstance(value, int) else 0


def _text(stage: StageFinished, key: str) -> str:
    value = stage.figures.get(key)
    return value if isinstance(value, str) else ""


def _names(stage: StageFinished, key: str) -> list[str]:
    value = stage.figures.get(key)
    return [str(value) for value in value] if isinstance(value, list) else []


def _finding(cause: Cause, trend: Trend | None) -> FindingView:
    name = anchor("finding", cause.first.key)
    exhibit = next((symptom.exhibit for symptom in cause.symptoms if symptom.exhibit), None)
    news = ""
    if trend is not None:
        news = "new" if any(symptom.key in trend.new for symptom in cause.symptoms) else "as before"
    return FindingView(name, cause, news, _shown(name, exhibit))


def _new_first(finding_views: tuple[FindingView, ...]) -> tuple[FindingView, ...]:
    return tuple(sorted(finding_views, key=lambda view: view.news == "as before"))


def shown(name: str, exhibit: Exhibit) -> BehaviourView:
    """A behaviour ready for the template; `name` is the anchor of what it stands in."""
    return BehaviourView(name, exhibit, tuple(_explanation(exhibit.reasons)))


def _shown(name: str, exhibit: Exhibit | None) -> BehaviourView | None:
    return None if exhibit is None else shown(name, exhibit)


def _explanation(reasons: tuple[Reason, ...]) -> Iterator[ExplanationLine]:
    for number, reason in enumerate(reasons):
        false = reason.outcome == "is FALSE"
        below = False
        for later in reasons[number + 1 :]:
            if later.depth <= reason.depth:
                break
            below = below or later.outcome == "is FALSE"
        yield ExplanationLine(reason, false, false and not below)


_BLANK: dict[str, JsonValue] = {
    "model": "", "variant": "", "expected": "", "result": "", "violated": "",
    "distinct_states": 0, "counterexample_length": 0, "seconds": 0.0, "problems": [],
}  # fmt: skip


def _models(report: Report) -> Iterator[ModelRow]:
    for stage in report.stages:
        if stage.stage == "check":
            name = anchor("model", stage.subject)
            figures = _BLANK | dict(stage.figures)
            good = stage.verdict is Verdict.PASS
            drawn = _shown(name, stage.exhibit)
            yield ModelRow(name, figures, drawn is not None, drawn, good)


def _stages(report: Report) -> Iterator[StageRow]:
    for number, stage in enumerate(report.stages):
        if stage.stage != "check":
            name = anchor("stage", f"{number} {stage.stage} {stage.subject}")
            yield StageRow(name, stage, _shown(name, stage.exhibit))


def _gaps(report: Report) -> Iterator[Gap]:
    """The parts that the run did not test although a reader might think so, each once."""
    stopped = sum(_number_in(stage, "tests", "not_run") for stage in report.stages)
    if stopped:
        yield Gap(
            f"{were(stopped, 'test')} not run",
            "the replay of their suite stopped at a divergence: a consequence, no finding",
        )
    for stage in report.stages:
        if stage.stage == "coverage":
            yield from _share_gaps(stage)
        else:
            yield from _stage_gaps(stage)
    for spec in counts(report):
        if spec.never:
            why = "no stage took these actions in this run"
            if stopped:
                why += ", which stopped at a divergence"
            yield Gap(f"{spec.spec}: {', '.join(spec.never)}", why)
        if spec.never_taken:
            yield Gap(
                f"{spec.spec}: {spec.never_taken} of {spec.disjuncts} disjuncts of its actions",
                "no step took them: they are marked in the text under Coverage",
            )
    if report.header.get("incomplete"):
        yield Gap("the later stages", "the run was interrupted, or ended with an error")


def _share_gaps(stage: StageFinished) -> Iterator[Gap]:
    """What recorded traces left out; actions that nothing took are told of all stages together."""
    shares = [
        f"{covered:,} of {whole:,} {what}"
        for what in ("states", "transitions")
        if (whole := _number(stage, f"all_{what}")) > (covered := _number(stage, f"covered_{what}"))
    ]
    if shares:
        yield Gap(f"recorded traces of {stage.subject}", f"they met {' and '.join(shares)}")


def _stage_gaps(stage: StageFinished) -> Iterator[Gap]:
    where = f"{stage.stage} {stage.subject}".strip()
    yield from _entries_left_out(stage, where)
    for reason in _names(stage, "vacuous"):
        yield Gap(where, reason)
    unjudged = stage.figures.get("unjudged")
    for value in unjudged if isinstance(unjudged, list) else []:
        if isinstance(value, dict):
            traces = value.get("traces")
            text = counted(traces if isinstance(traces, int) else 0, "trace")
            yield Gap(where, f"{text} could not be judged: {value.get('reason')}")
    for name in _names(stage, "missed"):
        yield Gap(where, name)
    inconclusive = sum(_number_in(stage, "tests", value) for value in ("inconclusive", "spoiled"))
    if inconclusive:
        yield Gap(where, f"{counted(inconclusive, 'test')} could not be judged: {stage.summary}")
    elif stage.verdict is Verdict.INCONCLUSIVE and not _told_already(stage):
        yield Gap(where, stage.summary)


def _entries_left_out(stage: StageFinished, where: str) -> Iterator[Gap]:
    """Entries of a .cfg that the engine did not follow."""
    entries = stage.figures.get("left_out")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict):
            yield Gap(f"{where}, {entry.get('entry')}", str(entry.get("why")))


def _told_already(stage: StageFinished) -> bool:
    """Whether other gaps say all of why the stage is inconclusive."""
    if _names(stage, "vacuous"):
        return True
    holds = _text(stage, "result") == "holds" and not _names(stage, "unchecked")
    return holds and bool(stage.figures.get("left_out"))


def _number_in(stage: StageFinished, key: str, inner: str) -> int:
    value = stage.figures.get(key)
    count = value.get(inner) if isinstance(value, dict) else None
    return count if isinstance(count, int) else 0
