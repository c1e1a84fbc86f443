"""Gathers a run's events into one immutable report, the source of every written format."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from conformance.errors import ExitCode
from conformance.events import (
    OWN_PROCESS,
    ComparedModel,
    Emit,
    Event,
    Finding,
    JsonValue,
    StageFinished,
    Work,
)
from conformance.verdict import Verdict, merge

SCHEMA_VERSION = 3


@dataclass(frozen=True, slots=True)
class Span:
    """When a worker was at a stage, in seconds since the run began."""

    stage: str
    subject: str
    start: float
    end: float
    worker: str = OWN_PROCESS


@dataclass(frozen=True, slots=True)
class Report:
    """A command's results. `stages` are in the order of their events."""

    command: str
    verdict: Verdict
    stages: tuple[StageFinished, ...]
    findings: tuple[Finding, ...]
    seconds: float
    header: dict[str, JsonValue]
    comparisons: tuple[ComparedModel, ...] = ()
    """The pairs of a system and a model that were compared, in the order of their events."""
    spans: tuple[Span, ...] = ()
    """By stage, in the same order; of a stage that several workers were at, one for each time."""

    @property
    def exit_code(self) -> ExitCode:
        """The verdict's exit code, or 4 if kconform contradicted itself."""
        faulty = any(stage.fault for stage in self.stages)
        return ExitCode.INTERNAL if faulty else self.verdict.exit_code


class Collector:
    """An `Emit` that keeps what a report needs and passes every event on.

    `clock` gives seconds, as `Work` has them; what it says now is when the run begins.
    """

    def __init__(self, *consumers: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumers = consumers
        self._clock, self._began = clock, clock()
        self._spans: list[Span] = []
        self.stages: list[StageFinished] = []
        self._findings: dict[tuple[str, str, str], Finding] = {}
        self._comparisons: dict[tuple[str, str], ComparedModel] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, StageFinished):
            self.stages.append(event)
            self._spans += self._spans_of(event)
        elif isinstance(event, Finding):
            self._merge(event)
        elif isinstance(event, ComparedModel):
            self._comparisons.setdefault((event.model, event.system), event)
        for consumer in self._consumers:
            consumer(event)

    def _spans_of(self, event: StageFinished) -> Iterator[Span]:
        """Who was at the stage, and when."""
        now = self._clock()
        for work in event.work or (Work(OWN_PROCESS, now - event.seconds, now),):
            start, end = max(0.0, work.start - self._began), work.end - self._began
            yield Span(event.stage, event.subject, start, end, work.worker)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """One finding per stage and key, in the order in which they were met."""
        return tuple(self._findings.values())

    def report(
        self, command: str, seconds: float, header: dict[str, JsonValue], *extra: Verdict
    ) -> Report:
        """Close the run: the verdict is the worst of all checks' (and of `extra`)."""
        checked = [stage.verdict for stage in self.stages if stage.checks]
        verdict = merge([*checked, *extra])
        return Report(
            command,
            verdict,
            tuple(self.stages),
            self.findings,
            seconds,
            header,
            tuple(self._comparisons.values()),
            tuple(self._spans),
        )

    def _merge(self, finding: Finding) -> None:
        place = (finding.stage, finding.about, finding.key)
        known = self._findings.get(place)
        if known is None:
            self._findings[place] = finding
            return
        shorter = min(known, finding, key=lambda f: f.step if f.step is not None else 1 << 30)
        self._findings[place] = replace(shorter, count=known.count + finding.count)
