"""Runs an audit: scan, formulas on what is distinct, verdict on every trace."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from conformance.audit import judge, paths, scan
from conformance.audit.coverage import ModelTable, covered_states, fired, vacuous
from conformance.audit.findings import Cause, Reporter, SpecView, divergence, lookup, name_of
from conformance.audit.judged import Figures, Judged, JudgedHere, JudgedOnSpark
from conformance.audit.local import judge_distinct
from conformance.audit.result import STAGE, Accounting, AuditResult, TraceCoverage, Unjudged
from conformance.audit.rules import Rulebook
from conformance.audit.verdicts import (
    Options,
    check_counts,
    dispute,
    finished,
    more_causes,
    verdict_of,
)
from conformance.audit.workers import Evaluator
from conformance.errors import DataError
from conformance.events import Emit, Finding, Progress, StageStarted, ignore
from conformance.tla import collision_probability
from conformance.traces.store import TraceStore

__all__ = ["Options", "audit"]

FEW, FEW_STATES = 20_000, 500_000
"""Distinct visits, and states, up to which the driver judges the visits by itself, as it does those
of a small store: Spark would compile a dozen queries, and move the model's transitions, for them.
"""


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
    spark: SparkSession,
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

    `model` is the fast path and the cross-check, `spec` explains findings. Raises DataError
    that names the file if Spark cannot read one after all.
    """
    options = options or Options()
    emit(StageStarted(STAGE, str(store.path)))
    with _readable(store):
        store.check_fingerprints()
        result = _Audit(spark, store, rules, evaluator, model, spec, options, emit).run()
    finished(store, result, emit, compared=options.compared)
    return result


@contextmanager
def _readable(store: TraceStore) -> Iterator[None]:
    """Turn Spark's failure to read a file of the store into an error that names the file."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        named = re.search(r"(?:states|traces)/part-\d+\.parquet", text)
        if named is None:
            raise
        raise DataError(
            f"{store.path / named.group()} cannot be read: it is damaged, or was changed while it "
            "was audited. Restore the store from a copy, or record it again."
        ) from error


class _Audit:
    """One run; the frames that its phases share."""

    def __init__(
        self,
        spark: SparkSession,
        store: TraceStore,
        rules: Rulebook,
        evaluator: Evaluator,
        model: ModelTable | None,
        spec: SpecView | None,
        options: Options,
        emit: Emit,
    ) -> None:
        self._evaluator = evaluator
        self._spark = spark
        self._store = store
        self._rules = rules
        self._model = model
        self._spec = spec
        self._options = options
        self._emit = emit
        self._clock = _Clock()
        self._kept: list[DataFrame] = []

    def run(self) -> AuditResult:
        try:
            return self._run()
        finally:
            for frame in self._kept:
                frame.unpersist()

    def _run(self) -> AuditResult:
        found = self._scan()
        steps, traces = found.steps, found.traces
        check_counts(self._store.manifest, traces, sum(steps.values()))
        self._progress("judging distinct states and transitions")
        with self._clock.phase("formulas"):
            judged = self._judge(found)
            figures = judged.figures(self._rules)
            branches = self._branches(judged)
        covered = self._coverage(steps, figures, branches)
        outcome = {True: 0, False: 0}
        causes: list[Cause] = []
        unjudged: tuple[Unjudged, ...] = ()
        if found.flagged or figures.bad:
            suspects = self._keep(judged.suspects())
            outcome |= self._decide(suspects)
            causes, unjudged = self._causes(suspects)
        accounting = Accounting(traces, traces - sum(outcome.values()), *outcome.values())
        findings = self._findings(causes, figures.disputed, accounting.failed)
        reasons = vacuous(traces, covered, self._options.optional_actions, self._options.compared)
        counts = self._store.manifest.counts
        return AuditResult(
            verdict=verdict_of(accounting, figures.disputed, reasons),
            accounting=accounting,
            steps=sum(steps.values()),
            distinct_states=counts.states,
            distinct_transitions=found.distinct,
            table_transitions=figures.listed,
            cross_checked=figures.cross_checked,
            disputed=figures.disputed,
            coverage=covered,
            findings=findings,
            unjudged=unjudged,
            vacuous=reasons,
            collision_probability=collision_probability(counts.states),
            seconds=self._clock.total(),
            scan_seconds=self._clock.phases.get("scan", 0.0),
            formula_seconds=self._clock.phases.get("formulas", 0.0),
        )

    def _keep(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    @contextmanager
    def _interpreted(self) -> Iterator[None]:
        """Formulas outgrow the JVM's methods: whole-stage code would be made in vain."""
        key = "spark.sql.codegen.wholeStage"
        before = self._spark.conf.get(key, "true")
        self._spark.conf.set(key, "false")
        try:
            yield
        finally:
            self._spark.conf.set(key, str(before))

    def _progress(self, message: str) -> None:
        self._emit(Progress(STAGE, 0, None, message))

    def _scan(self) -> scan.Visited:
        self._progress("scanning the traces")
        with self._clock.phase("scan"):
            few = FEW if self._store.manifest.counts.states <= FEW_STATES else 0
            found = scan.visited(self._spark, self._store.files("traces"), few)
        if isinstance(found.visits, DataFrame):
            self._kept.append(found.visits)
        return found

    def _judge(self, found: scan.Visited) -> Judged:
        """The verdicts on distinct states and on distinct visits."""
        model = self._model or ModelTable.empty()
        listed, anywhere = model.rows(self._rules.initial), self._rules.anywhere
        files = self._store.files("states")
        if not isinstance(found.visits, DataFrame):
            states = judge.states_as_table(
                self._spark, files, self._store.columns, self._rules, self._evaluator
            )
            visits = judge_distinct(found.visits, self._evaluator, listed, anywhere=anywhere)
            return JudgedHere(self._spark, states, visits)
        of_states = judge.judge_states(
            self._spark, files, self._store.columns, self._rules, self._evaluator
        )
        of_visits = judge.judge_visits(
            found.visits,
            self._evaluator,
            self._spark.createDataFrame(listed),
            max(1, found.distinct // self._options.cross_check),
            anywhere=anywhere,
        )
        return JudgedOnSpark(self._keep(of_states), self._keep(of_visits), self._interpreted)

    def _coverage(
        self,
        steps: Mapping[int | None, int],
        figures: Figures,
        branches: Mapping[str, int],
    ) -> TraceCoverage:
        known = {code: count for code, count in steps.items() if code is not None}
        model = self._model
        return TraceCoverage(
            fired=fired(self._store.actions, known),
            judged=figures.valued,
            model_states=None if model is None else len(model.states),
            covered_states=None if model is None else covered_states(self._store, model),
            model_transitions=None if model is None else len(model.source),
            covered_transitions=None if model is None else figures.listed,
            branches=branches,
        )

    def _branches(self, judged: Judged) -> Mapping[str, int]:
        if self._spec is None:
            return {}
        taken: Counter[tuple[str, int]] = Counter()
        for (code, together), steps in judged.taken().items():
            taken[self._store.actions[code].name, together] += steps
        return self._spec.branches(taken)

    def _decide(self, suspects: DataFrame) -> dict[bool, int]:
        """How many traces fail (True) and are inconclusive (False): the second scan."""
        self._progress("finding the first bad step of every trace that does not pass")
        with self._clock.phase("verdicts"):
            traces = scan.read_traces(self._spark, self._store.files("traces"))
            self._outcome = self._keep(scan.outcomes(traces, suspects))
            rows = self._outcome.groupBy("failed").count().collect()
            if self._options.listing is not None:
                self._outcome.join(suspects.drop("failed"), "suspect", "left").write.parquet(
                    paths.named(self._options.listing), mode="errorifexists"
                )
        return {row["failed"]: row["count"] for row in rows}

    def _causes(self, suspects: DataFrame) -> tuple[list[Cause], tuple[Unjudged, ...]]:
        with self._clock.phase("findings"):
            detailed = scan.causes(self._outcome).join(suspects.drop("failed"), "suspect", "left")
            ranked = detailed.withColumn(
                "rank",
                F.row_number().over(
                    Window.partitionBy("failed").orderBy(F.desc("traces"), "suspect", "cause")
                ),
            )
            rows = ranked.where(F.col("rank") <= self._options.max_causes).collect()
        failed = [row for row in rows if row["failed"]]
        return self._explain(failed), _unjudged([row for row in rows if not row["failed"]])

    def _explain(self, rows: Sequence[Row]) -> list[Cause]:
        prints = [row[name] for row in rows if row["suspect"] for name in ("source", "target")]
        states = lookup(self._store, [value for value in prints if value is not None])
        causes = []
        for row in rows:
            step, trace_id = row["example"]
            if not row["suspect"]:
                causes.append(divergence(self._store.trace(trace_id), row["traces"]))
                continue
            code = row["action"]
            coded = code is not None and 0 <= code < len(self._store.actions)
            causes.append(
                Cause(
                    traces=row["traces"],
                    trace_id=trace_id,
                    step=step,
                    violations=tuple(row["violations"]),
                    action=self._store.actions[code] if coded else None,
                    source=states.get(row["source"]) if step else None,
                    target=states[row["target"]],
                )
            )
        return causes

    def _findings(self, causes: Sequence[Cause], disputed: int, failed: int) -> tuple[Finding, ...]:
        options = self._options
        reporter = Reporter(
            self._store,
            self._rules,
            self._spec,
            options.reproduce,
            options.place,
            partial(name_of, self._store),
        )
        findings = list(reporter.findings(causes))
        if rest := failed - sum(finding.count for finding in findings):
            findings.append(more_causes(rest, self._options.max_causes))
        return (*([dispute(disputed)] if disputed else []), *findings)


def _unjudged(rows: Sequence[Row]) -> tuple[Unjudged, ...]:
    merged: dict[str, Unjudged] = {}
    for row in rows:
        step, trace_id = row["example"]
        reason = row["doubts"][0] if row["suspect"] else row["cause"]
        known = merged.get(reason)
        traces = row["traces"] + (known.traces if known else 0)
        if known is None or known.step is None or step < known.step:
            merged[reason] = Unjudged(reason, traces, str(trace_id), step)
        else:
            merged[reason] = Unjudged(reason, traces, known.trace, known.step)
    return tuple(sorted(merged.values(), key=lambda one: (-one.traces, one.reason)))
