"""Stage `audit`: whether the spec allows what a store has, and what of it is a finding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from conformance.audit.behaviour import behaviour_of, reasons_of
from conformance.audit.coverage import ModelTable
from conformance.audit.engine import Options
from conformance.audit.engine import audit as run_audit
from conformance.audit.evaluator import Evaluator
from conformance.audit.explain import EvaluatedSpec
from conformance.audit.findings import Reporter, diverged, name_of, number_of
from conformance.audit.result import AuditResult
from conformance.audit.rules import Rulebook, compile_rules
from conformance.events import Emit, Event, Finding, StageFinished, StageStarted
from conformance.modelcheck.graph import StateGraph
from conformance.modelcheck.labels import is_safety_property
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.places import place, place_of, with_texts
from conformance.modelcheck.prepare import PreparedModel
from conformance.printable import counted
from conformance.replay.record import STAGE
from conformance.stages.context import (
    Context,
    Workbench,
)
from conformance.stages.identity import FOREIGN
from conformance.stages.keeping import kept
from conformance.stages.subject import AuditedStore
from conformance.story.behaviour import last_steps, lines
from conformance.story.exhibit import exhibit
from conformance.tla import Action
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict
from conformance.workers import Workers


def audit(
    context: Context,
    subject: AuditedStore,
    workers: Workers,
    *,
    listing: Path | None = None,
    sql: bool | None = None,
    every_action: bool = True,
) -> AuditResult:
    """Judge every trace of the store by the spec's own text.

    `every_action`: an action of the model that no trace takes makes a pass vacuous. Not so where
    a suite takes the actions of the models that were chosen.
    `sql` says whether Spark SQL judges on Spark's workers; None: where it was measured to be
    faster.
    """
    store, prepared, graph = subject.store, subject.prepared, subject.graph
    check, spec = prepared.model.check, prepared.spec
    rules = _rules(subject)
    table = None if graph is None else ModelTable.of_graph(graph, store.actions)
    options = Options(
        optional_actions=_optional(subject, every_action=every_action),
        compared=store.manifest.compared,
        listing=listing,
        sql=sql,
        reproduce=_replay_of(store),
        place=partial(place, prepared.model),
    )
    evaluator = Evaluator.of(spec, store, check.invariants, safety_properties(prepared))
    return run_audit(
        workers,
        store,
        rules,
        evaluator,
        model=table,
        spec=EvaluatedSpec(spec),
        options=options,
        emit=_telling(context, subject),
    )


def _rules(subject: AuditedStore) -> Rulebook:
    """What the store is judged by."""
    store, prepared = subject.store, subject.prepared
    return compile_rules(
        prepared.spec,
        store.actions,
        prepared.model.check.invariants,
        safety_properties(prepared),
        anywhere=store.manifest.identity.begins_anywhere,
    )


def _replay_of(store: TraceStore) -> Callable[[int], str]:
    """The command that shows a trace of the store again, by the trace's number."""
    return lambda trace: f"kconform replay --store {store.path} --trace {trace}"


def _telling(context: Context, subject: AuditedStore) -> Emit:
    """The audit knows formulas and stores; of which model, and the way there, is added here.

    The stage is named by the model, as others are: a store's path is another one in each run.
    """
    model = subject.prepared.model

    def tell(event: Event) -> None:
        if isinstance(event, StageStarted):
            event = replace(event, subject=model.name)
        elif isinstance(event, StageFinished):
            figures = {"model": model.name, "store": str(subject.store.path), **event.figures}
            summary = event.summary + "".join(f"; {reason}" for reason in _vacuous(event))
            event = replace(event, subject=model.name, figures=figures, summary=summary)
        elif isinstance(event, Finding):
            event = _with_story(context, subject, event)
        context.emit(event)

    return tell


def _vacuous(event: StageFinished) -> list[str]:
    """Why the audit is no pass although no trace failed: the first reasons, and how many more."""
    reasons = event.figures.get("vacuous", ())
    if event.verdict is not Verdict.INCONCLUSIVE or not isinstance(reasons, list):
        return []
    shown = [str(reason) for reason in reasons[:_REASONS]]
    rest = len(reasons) - len(shown)
    return [*shown, counted(rest, "more reason")] if rest else shown


_REASONS = 3


def _with_story(context: Context, subject: AuditedStore, finding: Finding) -> Finding:
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


def report_diverged(context: Context, bench: Workbench, path: Path) -> None:
    """The walks of a store that the specification could not follow to their end, as findings."""
    subject = AuditedStore(TraceStore.open(path), bench.prepared, bench.graph)
    rules = _rules(subject)
    where, name = partial(place, bench.model), partial(name_of, subject.store)
    view = EvaluatedSpec(bench.prepared.spec)
    reporter = Reporter(subject.store, rules, view, _replay_of(subject.store), where, name)
    for finding in reporter.findings(diverged(subject.store)):
        context.emit(_with_story(context, subject, replace(finding, stage=STAGE)))


def safety_properties(prepared: PreparedModel) -> tuple[str, ...]:
    """The properties of the form [][A]_v; the others are liveness, which no finite trace has."""
    return tuple(
        name
        for name in prepared.model.check.properties
        if is_safety_property(prepared.module, name)
    )


def _optional(subject: AuditedStore, *, every_action: bool) -> tuple[str, ...]:
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
