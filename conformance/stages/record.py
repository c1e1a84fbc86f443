"""Stages `record` and `audit`: what the implementation did, and whether the spec allows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.audit.behaviour import behaviour_of, reasons_of
from conformance.audit.coverage import ModelTable
from conformance.audit.explain import EvaluatedSpec
from conformance.audit.findings import Reporter, diverged, name_of, number_of
from conformance.audit.local import audit_here
from conformance.audit.referee import STAGE as REFEREE
from conformance.audit.referee import RefereeResult
from conformance.audit.referee import referee as run_referee
from conformance.audit.result import AuditResult
from conformance.audit.rules import Rulebook, compile_rules
from conformance.audit.verdicts import Options
from conformance.audit.workers import Evaluator
from conformance.errors import DataError, UserError
from conformance.events import Emit, Event, Finding, Progress, StageFinished, StageStarted, Work
from conformance.modelcheck.check import graph_and_spec
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.labels import is_safety_property
from conformance.modelcheck.manifest import Model, find_models
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.places import place, place_of, with_texts
from conformance.modelcheck.prepare import PreparedModel, prepare
from conformance.printable import counted
from conformance.replay.parallel import begun
from conformance.replay.record import STAGE, Plan, Recorded, RecordJob, RecordResult, recording
from conformance.replay.record import record as run_record
from conformance.stages.context import (
    Context,
    Outcome,
    Workbench,
    emit_finished,
    stage,
    with_constants,
)
from conformance.stages.held import held
from conformance.stages.identity import FOREIGN, identity, spec_hash
from conformance.stages.keeping import kept
from conformance.story.behaviour import last_steps, lines
from conformance.story.exhibit import exhibit
from conformance.tla import Action, find_tools
from conformance.traces.manifest import Identity
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def record(
    context: Context,
    bench: Workbench,
    spark: SparkSession,
    path: Path,
    *,
    traces: int,
    length: int,
    overwrite: bool = False,
) -> RecordResult:
    """Record random walks of the system into a new store."""
    plan = plan_of(context, bench, traces=traces, length=length)
    with stage(context, STAGE, bench.model.name, traces) as outcome:
        result = run_record(
            spark,
            plan,
            bench.prepared.spec,
            _identity(bench, plan),
            path,
            graph=bench.graph,
            emit=context.emit,
            replace=overwrite,
        )
        _tell(result, outcome)
    return result


def record_here(
    context: Context,
    bench: Workbench,
    path: Path,
    *,
    traces: int,
    length: int,
    overwrite: bool = False,
) -> None:
    """As `record`, in processes of this machine."""
    context.emit(StageStarted(STAGE, bench.model.name, traces))
    plan, processes = plan_of(context, bench, traces=traces, length=length), context.check.jobs
    with ExitStack() as stack:
        store = Underway(context, bench, path, plan, stack, overwrite=overwrite)
        with begun(store.jobs(processes * _ROUNDS), processes) as running:
            for one in running.rest():
                store.add(one.result, one.work)
                context.emit(Progress(STAGE, store.done, traces))


_ROUNDS = 8
"""Parts for each process, to show progress between them."""


class Underway:
    """A store of a bench that other processes record: Spark is worth its start for many steps only.

    If the stack is left by an exception, whoever's it was, there will be no store.
    """

    def __init__(
        self,
        context: Context,
        bench: Workbench,
        path: Path,
        plan: Plan,
        stack: ExitStack,
        *,
        overwrite: bool,
    ) -> None:
        self.bench, self.path = bench, path
        self._context = context
        # Within the other stack, since a store is whole before all of them are.
        self._stack = stack.enter_context(ExitStack())
        self._recording = self._stack.enter_context(
            recording(
                plan,
                bench.prepared.spec,
                _identity(bench, plan),
                path,
                graph=bench.graph,
                replace=overwrite,
            )
        )
        self._work: list[Work] = []
        self._left = len(self._recording.files)
        self.done = 0
        """Traces that were recorded."""

    @property
    def folder(self) -> str:
        """What its parts name it by."""
        return self._recording.folder

    def jobs(self, count: int) -> list[RecordJob]:
        """All that is to be recorded, in at most so many parts."""
        return self._recording.jobs(count)

    def add(self, part: Recorded, work: Work) -> bool:
        """A part that was recorded, and by whom; with the last one the store is reported."""
        self._recording.add(part.chunks)
        self._work.append(work)
        self._left -= len(part.chunks)
        self.done += sum(chunk.entry.rows for chunk in part.chunks)
        if self._left:
            return False
        result = self._recording.finish()
        self._stack.close()
        outcome = Outcome()
        _tell(result, outcome)
        seconds = time.monotonic() - min(work.start for work in self._work)
        name, all_work = self.bench.model.name, tuple(self._work)
        emit_finished(self._context, STAGE, name, outcome, seconds, work=all_work)
        return True


def plan_of(context: Context, bench: Workbench, *, traces: int, length: int) -> Plan:
    """So many walks of the bench's system, of so many steps at most, by the context's seed."""
    return Plan(bench.factory, bench.constants, traces, length, context.seed)


def _identity(bench: Workbench, plan: Plan) -> Identity:
    origin = {"seed": str(plan.seed), "length": str(plan.length)}
    return identity(bench.prepared, bench.factory, origin)


def _tell(result: RecordResult, outcome: Outcome) -> None:
    """What was recorded is judged by the audit; but what a walk could not follow is known."""
    counts = result.manifest.counts
    outcome.verdict = Verdict.PASS if counts.traces else Verdict.INCONCLUSIVE
    outcome.figures = {"store": str(result.path), **result.figures()}
    outcome.summary = (
        f"{counted(counts.traces, 'trace')}, {counted(counts.steps, 'step')}, "
        f"{counts.states:,} distinct states"
    )
    outcome.add_compared(result.manifest.compared)
    if result.diverged:
        outcome.verdict = Verdict.FAIL
        outcome.summary += f"; {result.diverged:,} left what the spec allows: audit them"


def report_diverged(context: Context, bench: Workbench, path: Path) -> None:
    """The walks of a store that the specification could not follow to their end, as findings."""
    subject = Subject(TraceStore.open(path), bench.prepared, bench.graph)
    rules = _rules(subject, native=False)
    where, name = partial(place, bench.model), partial(name_of, subject.store)
    view = EvaluatedSpec(bench.prepared.spec)
    reporter = Reporter(subject.store, rules, view, _replay_of(subject.store), where, name)
    for finding in reporter.findings(diverged(subject.store)):
        context.emit(_told(context, subject, replace(finding, stage=STAGE)))


@dataclass(frozen=True, slots=True)
class Subject:
    """A store and the model that it is to be audited against."""

    store: TraceStore
    prepared: PreparedModel
    graph: StateGraph | None


def open_subject(context: Context, path: Path, model_name: str | None = None) -> Subject:
    """Open a store and find its model. DataError if the spec's text is another one now."""
    store = TraceStore.open(path)
    model, of = _model_of(store, model_name), store.manifest.identity
    if of.system == FOREIGN:  # its dictionary lists what occurs
        prepared = prepare(model, context.check.tools or find_tools(), context.check.parser)
        context.emit(held(prepared, FOREIGN))
        return Subject(store, prepared, None)
    graph: StateGraph | None = None
    if model.feeds_suite or model.expect is None:
        graph, prepared = graph_and_spec(model, context.check, context.emit)
    else:
        prepared = prepare(model, context.check.tools or find_tools(), context.check.parser)
    context.emit(held(prepared, of.system, of.system_version))
    return Subject(store, prepared, graph)


def _model_of(store: TraceStore, name: str | None) -> Model:
    """The model of that name, or the store's own; it must be of the text that the store is of."""
    path, of = store.path, store.manifest.identity
    found = find_models([name or of.model])
    if len(found) != 1:
        raise DataError(
            f"{path} names the model {name or of.model}, which is not one model. Give --model."
        )
    model = found[0]
    if of.spec != model.spec:
        raise DataError(
            f"{path} holds traces of {of.spec}, and {model.name} is a model of {model.spec}. "
            f"Name a model of {of.spec} with --model."
        )
    if of.spec_hash != spec_hash(model):
        raise DataError(
            f"{path} was recorded against another text of {of.spec}: the spec or the model "
            f"{model.name} changed since. Record the traces again, or check out the version that "
            "they were recorded with."
        )
    if of.system == FOREIGN and name is None:  # a mapping may have made the constants of the events
        own = of.constants
        return with_constants(model, {name: own[name] for name in model.constants if name in own})
    return model


def audit(
    context: Context,
    subject: Subject,
    spark: SparkSession | None,
    *,
    listing: Path | None = None,
    native: bool = False,
    every_action: bool = True,
) -> AuditResult:
    """Judge every trace of the store by the spec's own text.

    Without `spark` it is done in this process, by the same evaluator: for few traces.
    `every_action`: an action of the model that no trace takes makes a pass vacuous. Not so where
    the traces were cut short for time, and a suite takes the actions.
    `native` judges the invariants by Spark columns: several times as fast for millions of
    distinct states; below some hundred thousand the JVM's warm-up takes longer than Python.
    """
    store, prepared, graph = subject.store, subject.prepared, subject.graph
    check, spec = prepared.model.check, prepared.spec
    rules = _rules(subject, native=native)
    table = None if graph is None else ModelTable.of_graph(graph, store.actions)
    options = Options(
        optional_actions=_optional(subject, every_action=every_action),
        compared=store.manifest.compared,
        listing=listing,
        reproduce=_replay_of(store),
        place=partial(place, prepared.model),
    )
    invariants = () if native else check.invariants
    evaluator = Evaluator.of(spec, store, invariants, safety_properties(prepared))
    return _auditor(spark)(
        store,
        rules,
        evaluator,
        model=table,
        spec=EvaluatedSpec(spec),
        options=options,
        emit=_telling(context, subject),
    )


def _auditor(spark: SparkSession | None) -> Callable[..., AuditResult]:
    if spark is None:
        return audit_here
    from conformance.audit.engine import audit as audit_on_spark  # few audits need Spark

    return partial(audit_on_spark, spark)


def _rules(subject: Subject, *, native: bool) -> Rulebook:
    """What the store is judged by."""
    store, prepared = subject.store, subject.prepared
    return compile_rules(
        prepared.spec,
        store.columns.schema,
        store.actions,
        prepared.model.check.invariants,
        safety_properties(prepared),
        anywhere=store.manifest.identity.begins_anywhere,
        native=native,
    )


def _replay_of(store: TraceStore) -> Callable[[int], str]:
    """The command that shows a trace of the store again, by the trace's number."""
    return lambda trace: f"kconform replay --store {store.path} --trace {trace}"


def _telling(context: Context, subject: Subject) -> Emit:
    """The audit knows formulas and stores; of which model, and the way there, is added here.

    The stage is named by the model, as others are: a store's path is another one in each run.
    """
    model = subject.prepared.model

    def tell(event: Event) -> None:
        if isinstance(event, StageStarted):
            event = replace(event, subject=model.name)
        elif isinstance(event, StageFinished):
            figures = {"model": model.name, "store": str(subject.store.path), **event.figures}
            event = replace(event, subject=model.name, figures=figures)
        elif isinstance(event, Finding):
            event = _told(context, subject, event)
        context.emit(event)

    return tell


def _told(context: Context, subject: Subject, finding: Finding) -> Finding:
    """The finding with the way to it, as text, drawing and file, and why it is one."""
    number = number_of(finding.trace)
    if number is None or finding.step is None:
        return finding
    model, spec = subject.prepared.model, subject.prepared.spec
    trace = subject.store.trace(number)
    seen = behaviour_of(spec.variables, trace, finding.step, EvaluatedSpec(spec))
    why = reasons_of(spec, trace, finding.step, finding.key, seen.steps[-1].state)
    behaviour = replace(seen, reasons=why)
    of = subject.store.manifest.identity.system
    system = "" if of == FOREIGN else of

    def locate(action: Action) -> str:
        return place_of(subject.prepared, action.name)

    shown = exhibit(behaviour, picture_of(model), finding.title, locate)
    return replace(
        kept(context, finding, behaviour, model=model, system=system),
        story=lines(last_steps(behaviour)),
        exhibit=with_texts(shown, model, finding.location),
    )


def referee(context: Context, subject: Subject, listing: Path, *, traces: int) -> RefereeResult:
    """Have TLC judge a sample of the store, and compare; `listing` is what the audit wrote.

    UserError of a store whose traces may begin anywhere: TLC holds each against Init.
    """
    if subject.store.manifest.identity.begins_anywhere:
        raise UserError(
            f"The traces of {subject.store.path} may begin in any state, and the referee holds "
            "each trace against the initial states. Audit the store without --referee."
        )
    with stage(context, REFEREE, subject.prepared.model.name, traces) as outcome:
        result = run_referee(
            subject.store,
            subject.prepared,
            listing,
            count=traces,
            seed=context.seed,
            tools=context.check.tools or find_tools(),
            options=context.check.tlc,
        )
        for finding in result.disagreements:
            context.emit(finding)
        outcome.verdict, outcome.summary = result.verdict, result.summary()
        outcome.figures, outcome.fault = result.figures(), bool(result.disagreements)
    return result


def safety_properties(prepared: PreparedModel) -> tuple[str, ...]:
    """The properties of the form [][A]_v; the others are liveness, which no finite trace has."""
    return tuple(
        name
        for name in prepared.model.check.properties
        if is_safety_property(prepared.module, name)
    )


def _optional(subject: Subject, *, every_action: bool) -> tuple[str, ...]:
    """Actions that need not occur: of a foreign trace nobody can ask for any."""
    if not every_action or subject.store.manifest.identity.system == FOREIGN:
        return tuple(dict.fromkeys(action.name for action in subject.store.actions))
    return _disabled_in(subject.prepared, subject.graph)


def _disabled_in(prepared: PreparedModel, graph: StateGraph | None) -> tuple[str, ...]:
    """Actions that this model's constants switch off: nowhere in its complete graph."""
    if graph is None:
        return ()
    fired = {action.name for action in graph.actions}
    names = dict.fromkeys(action.name for action in prepared.spec.actions)
    return tuple(name for name in names if name not in fired)
