"""Runs an audit: distinct visits, formulas on what is distinct, verdict on every trace."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from conformance.audit import judge
from conformance.audit.coverage import ModelTable, covered_states, fired, vacuous
from conformance.audit.decide import (
    CAUSES,
    SUSPECTS,
    Decider,
    Decision,
    Suspect,
    merged_causes,
    suspect_of,
)
from conformance.audit.evaluator import Evaluator, StateRows
from conformance.audit.findings import FailureCause, Reporter, SpecView, divergence, lookup, name_of
from conformance.audit.judge import StateJudge, Verdicts, VisitJudge
from conformance.audit.result import STAGE, Accounting, AuditResult, TraceCoverage, UnjudgedTraces
from conformance.audit.rules import Rulebook
from conformance.audit.verdicts import (
    Options,
    check_counts,
    different_answers,
    dispute,
    finished,
    more_causes,
    verdict_of,
)
from conformance.audit.visited import INITIAL, KEY, Visited, distinct_visits, merged
from conformance.events import Emit, Finding, Progress, StageStarted, ignore
from conformance.files import space_for
from conformance.tla import collision_probability
from conformance.traces.model import PartialState
from conformance.traces.store import TraceStore
from conformance.workers import Workers

if TYPE_CHECKING:
    from conformance.audit.sql import SqlJudge

__all__ = ["Options", "audit"]

ALL_ASKED = 20_000
"""Distinct visits up to which every action is asked also about the steps that the model lists."""

Share = TypeVar("Share")


@dataclass(slots=True)
class _Clock:
    """Seconds by phase."""

    started: float = field(default_factory=time.monotonic)
    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.monotonic() - begun

    def total(self) -> float:
        return time.monotonic() - self.started


def audit(
    workers: Workers,
    store: TraceStore,
    rules: Rulebook,
    evaluator: Evaluator,
    *,
    model: ModelTable | None = None,
    spec: SpecView | None = None,
    options: Options | None = None,
    emit: Emit = ignore,
) -> AuditResult:
    """Judge every trace of a store whose files were verified.

    `model` is the fast path and the cross-check, `spec` explains findings. Raises DataError that
    names the file if one cannot be read after all. On Spark's workers Spark SQL judges what it
    was measured to judge faster.
    """
    options = options or Options()
    emit(StageStarted(STAGE, str(store.path)))
    store.check_fingerprints()
    sql = _sql(workers, store, rules, evaluator, options)
    result = _Audit(workers, store, rules, evaluator, model, spec, options, emit, sql).run()
    finished(store, result, emit, compared=options.compared, where=f", {workers.place}")
    return result


def _sql(
    workers: Workers, store: TraceStore, rules: Rulebook, evaluator: Evaluator, options: Options
) -> SqlJudge | None:
    """Spark SQL, if the workers are Spark's."""
    if not workers.speaks_sql:
        return None
    from conformance.audit.sql import SqlJudge  # Spark takes a second to load

    invariants, properties = (
        tuple(rule.name for rule in of) for of in (rules.invariants, rules.properties)
    )
    return SqlJudge(workers, store, evaluator, invariants, properties, options.sql)


@dataclass(slots=True)
class _Audit:
    """One run."""

    workers: Workers
    store: TraceStore
    rules: Rulebook
    evaluator: Evaluator
    model: ModelTable | None
    spec: SpecView | None
    options: Options
    emit: Emit
    sql: SqlJudge | None
    """Asked first about the many, where the workers are Spark's."""
    clock: _Clock = field(default_factory=_Clock)

    def run(self) -> AuditResult:
        with self._phase("scan", "scanning the traces"):
            visited = self._visited()
        visits = visited.visits
        steps, traces = _totals(visits)
        check_counts(self.store.manifest, traces, sum(steps.values()))
        with self._phase("formulas", "judging distinct states and transitions"):
            of_states, of_visits = self._states(), self._visits(visits)
        counts = of_states.counts + of_visits.counts
        suspects = _suspects(visits, of_states, of_visits)
        causes = CAUSES.empty_table()
        if len(suspects) or visited.flagged:
            causes = self._causes(suspects)
        covered = self._coverage(steps, counts, of_visits.taken)
        accounting = _accounting(traces, causes)
        listed, answers = counts[judge.DISPUTED], () if self.sql is None else self.sql.disputes
        disputed = listed + len(answers)
        most = self.options.max_causes
        reasons = vacuous(traces, covered, self.options.optional_actions, self.options.compared)
        states = self.store.manifest.counts.states
        return AuditResult(
            verdict=verdict_of(accounting, disputed, reasons),
            accounting=accounting,
            steps=sum(steps.values()),
            distinct_states=states,
            distinct_transitions=len(visits) - _initial(visits),
            table_transitions=counts[judge.LISTED],
            cross_checked=counts[judge.CROSS_CHECKED],
            disputed=disputed,
            coverage=covered,
            findings=(
                *([dispute(listed)] if listed else []),
                *([different_answers(answers)] if answers else []),
                *self._findings(causes, suspects, accounting.failed),
            ),
            unjudged=_unjudged(_most(causes, failed=False, most=most), suspects),
            vacuous=reasons,
            collision_probability=collision_probability(states),
            seconds=self.clock.total(),
            scan_seconds=self.clock.phases["scan"],
            formula_seconds=self.clock.phases["formulas"],
            choices=() if self.sql is None else tuple(self.sql.choices),
        )

    @contextmanager
    def _phase(self, name: str, message: str) -> Iterator[None]:
        self.emit(Progress(STAGE, 0, None, message))
        with self.clock.phase(name):
            yield

    def _shares(self, items: Sequence[Share]) -> list[Sequence[Share]]:
        """The items dealt out, one share for each task."""
        tasks = min(len(items), self.workers.tasks)
        return [items[first::tasks] for first in range(tasks)]

    def _files(self, part: str) -> list[Path]:
        return [path.resolve() for path in self.store.files(part)]

    def _visited(self) -> Visited:
        shares = self._shares(self._files("traces"))
        return self.workers.reduce(distinct_visits, shares, merged, Visited.nothing())

    # --- formulas -----------------------------------------------------------------------------

    def _states(self) -> Verdicts:
        names = tuple(rule.name for rule in self.rules.invariants)
        entries = [entry for entry in self.store.manifest.files if entry.path.startswith("states/")]
        rows = [StateRows((self.store.path / e.path).resolve(), 0, e.rows) for e in entries]
        fine = 0
        if self.sql is not None:
            rows, fine = self.sql.states(rows)
        parts = judge.state_rows(rows, self.workers.tasks)
        start = Verdicts((), Counter({("value", name): fine for name in names}), Counter())
        judged = StateJudge(self.evaluator, names)
        verdicts = self.workers.reduce(judged, parts, judge.merged, start)
        if self.sql is not None:
            self.sql.confirm(verdicts.bad, "the state")
        return verdicts

    def _visits(self, visits: pa.Table) -> Verdicts:
        properties = tuple(rule.name for rule in self.rules.properties)
        judged = VisitJudge(self.evaluator, properties, self.rules.anywhere)
        listed = (self.model or ModelTable.empty()).rows(self.rules.initial)
        few = len(visits) <= ALL_ASKED
        sample = 1 if few else max(1, len(visits) // self.options.cross_check)
        asked, start = judge.asked(visits, listed, sample), Verdicts.nothing()
        if self.sql is not None:
            asked, fine = self.sql.steps(asked)
            start = Verdicts((), judge.in_order(fine, properties), Counter())
        slices = judge.slices(asked, self.workers.tasks)
        verdicts = self.workers.reduce(judged, slices, judge.merged, start)
        if self.sql is not None:
            self.sql.confirm(verdicts.bad, "the transition")
        return verdicts

    # --- what is said -------------------------------------------------------------------------

    def _coverage(
        self, steps: Mapping[int | None, int], counts: Mapping[judge.Key, int], step: judge.Taken
    ) -> TraceCoverage:
        model = self.model
        rules = (*self.rules.invariants, *self.rules.properties)
        return TraceCoverage(
            fired=fired(self.store.actions, {c: n for c, n in steps.items() if c is not None}),
            judged={rule.name: counts.get(("value", rule.name), 0) for rule in rules},
            model_states=None if model is None else len(model.states),
            covered_states=None if model is None else covered_states(self.store, model),
            model_transitions=None if model is None else len(model.source),
            covered_transitions=None if model is None else counts[judge.LISTED],
            branches=self._branches(step),
        )

    def _branches(self, step: judge.Taken) -> Mapping[str, int]:
        if self.spec is None:
            return {}
        named: Counter[tuple[str, int]] = Counter()
        for (code, together), steps in step.items():
            named[self.store.actions[code].name, together] += steps
        return self.spec.branches(named)

    def _causes(self, suspects: pa.Table) -> pa.Table:
        """What decided the traces that do not pass; they are listed if that is wanted."""
        listing = self.options.listing
        if listing is not None:
            with space_for(listing):
                listing.mkdir(parents=True)
        files = list(enumerate(self._files("traces")))
        decider = Decider(suspects, None if listing is None else listing.resolve())
        message = "finding the first bad step of every trace that does not pass"
        with self._phase("verdicts", message):
            shares = self._shares(files)
            return self.workers.reduce(decider, shares, merged_causes, CAUSES.empty_table())

    def _findings(self, causes: pa.Table, suspects: pa.Table, failed: int) -> list[Finding]:
        options = self.options
        reporter = Reporter(
            self.store,
            self.rules,
            self.spec,
            options.reproduce,
            options.place,
            partial(name_of, self.store),
        )
        findings = list(reporter.findings(self._explained(causes, suspects)))
        if rest := failed - sum(finding.count for finding in findings):
            findings.append(more_causes(rest, options.max_causes))
        return findings

    def _explained(self, causes: pa.Table, suspects: pa.Table) -> list[FailureCause]:
        decisions = _most(causes, failed=True, most=self.options.max_causes)
        of = {
            decision.suspect: suspect_of(suspects, decision)
            for decision in decisions
            if decision.suspect
        }
        prints = [value for item in of.values() for value in (item.source, item.target)]
        states = lookup(self.store, [value for value in prints if value is not None])
        return [
            self._cause(decision, of[decision.suspect], states)
            if decision.suspect
            else divergence(self.store.trace(decision.trace_id), decision.traces)
            for decision in decisions
        ]

    def _cause(
        self, decision: Decision, suspect: Suspect, states: Mapping[int, PartialState]
    ) -> FailureCause:
        code, source = suspect.action, suspect.source
        coded = code is not None and 0 <= code < len(self.store.actions)
        return FailureCause(
            traces=decision.traces,
            trace_id=decision.trace_id,
            step=decision.step,
            violations=tuple(suspect.violations),
            action=self.store.actions[code] if coded and code is not None else None,
            source=states[source] if decision.step and source is not None else None,
            target=states[suspect.target],
        )


def _totals(visits: pa.Table) -> tuple[dict[int | None, int], int]:
    """The steps by their action's code, and the traces."""
    rows = visits.group_by("action", use_threads=False).aggregate([("visits", "sum")]).to_pylist()
    totals = {row["action"]: row["visits_sum"] for row in rows}
    traces = totals.pop(INITIAL, 0)
    return totals, traces


def _initial(visits: pa.Table) -> int:
    """The distinct visits of initial states."""
    return pc.sum(pc.equal(visits.column("action"), INITIAL)).as_py() or 0


def _suspects(visits: pa.Table, of_states: Verdicts, of_visits: Verdicts) -> pa.Table:
    """The visits that are not in order: the visit's own verdict, and that on the state that it
    leads to. In the order of their keys."""
    states = {value: (false, doubts) for value, false, doubts in of_states.bad}
    own = {row: (false, doubts) for row, false, doubts in of_visits.bad}
    led = pc.is_in(visits.column("target"), value_set=pa.array(list(states), pa.int64()))
    rows = sorted({*own, *pc.indices_nonzero(led).to_pylist()})
    chosen = visits.take(pa.array(rows, pa.int64()))
    both = [
        (own.get(row, _SILENT), states.get(target, _SILENT))
        for row, target in zip(rows, chosen.column("target").to_pylist(), strict=True)
    ]
    for place, name in enumerate(("violations", "doubts")):
        texts = [[*visit[place], *state[place]] for visit, state in both]
        chosen = chosen.append_column(name, pa.array(texts, SUSPECTS.field(name).type))
    return chosen.cast(SUSPECTS).sort_by([(name, "ascending") for name in KEY])


_SILENT: tuple[Sequence[str], Sequence[str]] = ((), ())


def _accounting(traces: int, causes: pa.Table) -> Accounting:
    failed = pc.sum(causes.filter(causes.column("failed")).column("traces")).as_py() or 0
    decided = pc.sum(causes.column("traces")).as_py() or 0
    return Accounting(traces, traces - decided, failed, decided - failed)


def _most(causes: pa.Table, *, failed: bool, most: int) -> list[Decision]:
    """The causes of most traces."""
    chosen = causes.filter(pc.equal(causes.column("failed"), failed))
    order = [("traces", "descending"), ("suspect", "ascending"), ("cause", "ascending")]
    return [Decision(**row) for row in chosen.sort_by(order).slice(0, most).to_pylist()]


def _unjudged(decisions: Sequence[Decision], suspects: pa.Table) -> tuple[UnjudgedTraces, ...]:
    """By the reason: how many traces are inconclusive, with the shortest of them."""
    merged: dict[str, UnjudgedTraces] = {}
    for decision in sorted(decisions, key=lambda decision: (decision.step, decision.trace_id)):
        reason = (
            suspect_of(suspects, decision).doubts[0] if decision.suspect else decision.cause or ""
        )
        first = merged.get(reason, UnjudgedTraces(reason, 0, str(decision.trace_id), decision.step))
        merged[reason] = replace(first, traces=first.traces + decision.traces)
    return tuple(sorted(merged.values(), key=lambda traces: (-traces.traces, traces.reason)))
