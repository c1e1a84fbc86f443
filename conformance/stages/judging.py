"""Stage `judge`: what a real system left behind, against the specification; into a store if asked.

`kconform import` and `kconform judge` are this stage; it needs no state graph, and Spark only for
many traces.
"""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from conformance.compared import ComparedStates
from conformance.deviations.declared import table_of
from conformance.deviations.table import Deviation, overriding
from conformance.errors import UserError
from conformance.events import Finding, JsonValue, Progress
from conformance.inputs import read_text
from conformance.judge.behaviour import behaviour_of
from conformance.judge.budget import JudgeLimits
from conformance.judge.judge import Judge
from conformance.judge.mapping import Mapping
from conformance.judge.processes import judge_here
from conformance.judge.reading import RecordingLocation, bytes_of, locate, read_recordings
from conformance.judge.spread import Rules, judge_by
from conformance.judge.stored import stored_trace
from conformance.judge.translate import derived_constants, translated
from conformance.judge.verdict import FormulaVerdict, Judgement
from conformance.modelcheck.labels import is_safety_property
from conformance.modelcheck.manifest import Model, reference
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.places import place_of, with_texts
from conformance.modelcheck.prepare import PreparedModel, bound
from conformance.printable import counted, path_text
from conformance.stages.context import Context, Outcome, stage, with_constants
from conformance.stages.findings import finding_of
from conformance.stages.held import compared_model
from conformance.stages.identity import FOREIGN, identity
from conformance.stages.keeping import kept
from conformance.stages.overridden import with_deviations
from conformance.tla import ActionPattern, find_tools
from conformance.traces.manifest import Identity
from conformance.traces.states import infer_columns
from conformance.traces.writer import TraceCollector, open_writer
from conformance.verdict import Verdict, merge
from conformance.workers import Workers


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """What is to be judged, and by what."""

    files: tuple[Path, ...]
    model: Model
    mapping: Mapping
    mapping_path: Path | None = None
    only: str | None = None
    """The name of the one trace to judge."""
    deviations: str | None = None
    """Whose known deviations are taken for what the traces may show: a table FILE.toml, or a
    system that has a table."""
    invariants_only: bool = False


@dataclass(slots=True)
class InconclusiveReason:
    """A reason for which traces are inconclusive, with the first of them."""

    reason: str
    trace: str
    source: str
    decide: tuple[str, ...]
    traces: int = 0

    def to_json(self) -> JsonValue:
        """For the JSON report."""
        return {
            "reason": self.reason,
            "traces": self.traces,
            "trace": self.trace,
            "source": self.source,
            "decide": list(self.decide),
        }


@dataclass(slots=True)
class JudgementTally:
    """The judgements, counted; of those that do not pass, one for each cause."""

    counts: Counter[Verdict] = field(default_factory=Counter)
    events: int = 0
    steps: int = 0
    silent: int = 0
    most_candidates: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    formulas: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    examples: dict[str, Judgement] = field(default_factory=dict)
    """By the finding's key the judgement that it shows."""
    unclear: dict[str, InconclusiveReason] = field(default_factory=dict)
    last: Judgement | None = None

    def add(self, judgement: Judgement, finding: Finding | None) -> None:
        """Count one judgement, with its finding if it fails."""
        self.counts[judgement.verdict] += 1
        self.events += judgement.events
        self.actions.update(judgement.actions)
        self.compared.update(judgement.compared)
        self.formulas.update({formula.name: formula.judged for formula in judgement.formulas})
        self.most_candidates = max(self.most_candidates, judgement.most_candidates)
        self.steps += sum(judgement.actions.values())
        self.silent += judgement.silent
        if finding is not None:
            known = self.findings.get(finding.key)
            merged = finding if known is None else _merged(known, finding)
            self.findings[finding.key] = merged
            if merged.trace == finding.trace:
                self.examples[finding.key] = judgement
        elif judgement.verdict is not Verdict.PASS:
            reason = _cause(judgement)
            new = InconclusiveReason(
                judgement.reason, judgement.name, judgement.source, judgement.decide
            )
            self.unclear.setdefault(reason, new).traces += 1
        self.last = judgement

    @property
    def traces(self) -> int:
        """How many there were."""
        return self.counts.total()

    @property
    def verdict(self) -> Verdict:
        """The worst of all; of no trace, inconclusive."""
        return merge(self.counts)


def _cause(judgement: Judgement) -> str:
    """What inconclusive traces have in common: not the number of an event, nor its place."""
    failure = judgement.failure
    if failure is None:
        return judgement.reason.partition("\n")[0]
    return f"{failure.action.partition('(')[0]}: {', '.join(judgement.decide)}"


def _merged(finding: Finding, other: Finding) -> Finding:
    """The finding of the shorter trace, counting both."""
    shorter = min(finding, other, key=lambda finding: finding.step or 0)
    return replace(shorter, count=finding.count + other.count)


def judge_files(
    context: Context,
    request: JudgeRequest,
    store: Path | None = None,
    *,
    name: str = "judge",
    replace_store: bool = False,
    workers: Workers | None = None,
) -> JudgementTally:
    """Judge every trace of the files; with `store`, the behaviours that explain them are kept.

    Without `workers` it is done on this machine, by the same judge in as many processes as the
    settings say.
    """
    subject = ", ".join(map(path_text, request.files))
    with stage(context, name, subject) as outcome:
        bench = _JudgeBench.of(context, request)
        context.emit(compared_model(bench.prepared, FOREIGN))
        tally = JudgementTally()
        judgements = bench.judgements(workers, context.settings.jobs, brief=store is None)
        judged = bench.counted(judgements, context, name, tally)
        if store is None:
            for _ in judged:
                pass
        else:
            _store(bench, judged, tally, store, replace_store=replace_store)
        if request.only is not None and not tally.traces:
            raise UserError(
                f"The files hold no trace {request.only}. Name one as its events do, under `trace`."
            )
        for finding in sorted(tally.findings.values(), key=lambda finding: -finding.count):
            shown = tally.examples[finding.key]
            finding = replace(finding, message=bench.premise(shown) + finding.message)
            context.emit(bench.kept(context, finding, shown))
        _tell(outcome, request, bench, tally, store)
    return tally


@dataclass(frozen=True, slots=True)
class _JudgeBench:
    """A model made ready to judge by."""

    request: JudgeRequest
    prepared: PreparedModel
    rules: Rules
    judge: Judge
    """By these rules, in this process."""
    known: tuple[Deviation, ...]
    """The deviations that override the model."""

    @staticmethod
    def of(context: Context, request: JudgeRequest) -> _JudgeBench:
        known = _known(request)
        hidden = request.mapping.hidden.union(*(deviation.hidden for deviation in known))
        mapping = replace(request.mapping, hidden=hidden)
        model = with_deviations(request.model, known)
        if mapping.constants:
            seen = (translated(recording, mapping) for recording in read_recordings(request.files))
            model = with_constants(model, derived_constants(seen, mapping))
        tools = context.check.tools or find_tools()
        prepared = bound(model, tools, context.check.parser)
        names = [n for n in model.check.properties if is_safety_property(prepared.module, n)]
        rules = Rules.of(
            prepared.spec,
            mapping,
            model.check.invariants,
            names,
            invariants_only=request.invariants_only,
        )
        unknown = [name for name in mapping.coverage.taken if name not in prepared.spec.kinds]
        if unknown:
            raise UserError(
                f"{request.mapping_path}: `coverage.taken` names {unknown[0]}, which is no action "
                f"of the model's specification: they are {', '.join(prepared.spec.kinds)}."
            )
        # Made in any case: an error of the mapping is the user's, and no worker's.
        return _JudgeBench(request, prepared, rules, rules.judge(prepared.spec), known)

    def judgements(
        self, workers: Workers | None, jobs: int, *, brief: bool
    ) -> Iterator[tuple[RecordingLocation, Judgement]]:
        """Every trace that is wanted with its judgement, made by workers or on this machine."""
        if workers is not None:
            return judge_by(workers, self.rules, self._wanted(), brief=brief)
        return judge_here(self.judge, self._wanted(), processes=jobs, brief=brief)

    def _wanted(self) -> Iterator[RecordingLocation]:
        only = self.request.only
        return (
            location for location in locate(self.request.files) if only in (None, location.name)
        )

    def counted(
        self,
        judgements: Iterable[tuple[RecordingLocation, Judgement]],
        context: Context,
        name: str,
        tally: JudgementTally,
    ) -> Iterator[Judgement]:
        """The judgements, counted as they come; progress in bytes that were judged."""
        last_report, done, total = 0.0, 0, bytes_of(self.request.files)

        def tell(events: int) -> None:
            nonlocal last_report
            if time.monotonic() - last_report > _TELL_EVERY:
                last_report = time.monotonic()
                message = f"{counted(events, 'event')} of a long trace explained, in bytes"
                context.emit(Progress(name, done, total, message))

        self.judge.tell = tell
        for located, judgement in judgements:
            done = min(total, done + located.size)  # of a compressed file, more comes out
            finding = self._finding(judgement) if judgement.verdict is Verdict.FAIL else None
            tally.add(judgement, finding)
            if time.monotonic() - last_report > _TELL_EVERY:
                last_report = time.monotonic()
                context.emit(
                    Progress(name, done, total, f"{counted(tally.traces, 'trace')}, in bytes")
                )
            yield judgement

    def premise(self, shown: Judgement) -> str:
        """What a failure rests on if nobody has said that every step is an event; else nothing.

        A logger numbers what it writes, whatever the system did between.
        """
        mapping = self.request.mapping
        if mapping.complete or mapping.silent or self.request.invariants_only:
            return ""
        mapping = replace(mapping, silent=self._any_action(), limits=_WITH_GAPS)
        rules = replace(self.rules, mapping=mapping)
        recording = next(
            recording
            for recording in read_recordings(self.request.files)
            if recording.name == shown.name
        )
        again = rules.judge(self.prepared.spec).judge(recording)
        if again.verdict is not Verdict.PASS:
            return ""
        return (
            "This verdict rests on every step of the system being an event, which nothing but "
            f"{'the mapping' if mapping.declared else 'the numbers of the steps'} says: with "
            f"{counted(again.silent, 'step')} that nobody saw, the trace would be explained. If "
            "steps were left out, say in a mapping which actions may happen unseen "
            "(`silent.actions` and `silent.steps`); if none was, say `complete = true` "
            "(docs/mapping.md). "
        )

    def _any_action(self) -> tuple[ActionPattern, ...]:
        return tuple(map(ActionPattern, self.prepared.spec.kinds))

    def _finding(self, judgement: Judgement) -> Finding:
        return finding_of(
            judgement,
            self.prepared.spec,
            picture=picture_of(self.request.model),
            locate=partial(place_of, self.prepared),
            reproduce=self._command(judgement.name),
        )

    def kept(self, context: Context, finding: Finding, shown: Judgement) -> Finding:
        """The finding with the file that holds its behaviour, if anything explains it that far."""
        behaviour = behaviour_of(shown, self.prepared.spec)
        if behaviour is None:
            return finding
        if finding.exhibit is not None:
            sourced = with_texts(finding.exhibit, self.request.model, finding.location)
            finding = replace(finding, exhibit=sourced)
        return kept(context, finding, behaviour, model=self.request.model)

    def _command(self, trace: str) -> str:
        request = self.request
        words = ["kconform", "judge", *map(str, request.files)]
        words += ["--model", reference(request.model)]
        words += ["--mapping", str(request.mapping_path)] if request.mapping_path else []
        words += ["--deviations", request.deviations] if request.deviations else []
        words += ["--invariants-only"] if request.invariants_only else []
        return shlex.join([*words, "--trace", trace])


def _known(request: JudgeRequest) -> tuple[Deviation, ...]:
    """The deviations of the request's table that concern its model's specification.

    UserError if there is none, or if one shows values that the specification has not: a mapping
    says which value stands for which.
    """
    table = table_of(request.deviations or "")
    if table is None:
        return ()
    root = request.model.spec
    known = tuple(
        deviation
        for deviation in overriding(table.deviations(), root)
        if deviation.stands_for(table.version_of(deviation.part))
    )
    if not known:
        raise UserError(
            f"{request.deviations} knows no deviation from {root}, the specification of "
            f"{reference(request.model)}. Leave --deviations out."
        )
    shown = next((deviation for deviation in known if deviation.shown), None)
    if shown is not None:
        raise UserError(
            f"The deviation {shown.id} of {request.deviations} shows values in place of the "
            "specification's, which only a system that is driven can be judged by. Say in a "
            "mapping which value stands for which (docs/mapping.md), and leave --deviations out."
        )
    return known


_TELL_EVERY = 0.2
_WITH_GAPS = JudgeLimits(silent=3, candidates=2_000, seconds=10.0, states=50_000)
"""How far the steps are looked for that a recording may lack: three in a row."""


# --- the store ------------------------------------------------------------------------------------


def _store(
    bench: _JudgeBench,
    judged: Iterable[Judgement],
    tally: JudgementTally,
    path: Path,
    *,
    replace_store: bool,
) -> None:
    """The explanations, written as they come; memory holds the distinct states only."""
    spec, variables = bench.prepared.spec, bench.prepared.spec.variables
    initial = list(spec.initial_states())
    with open_writer(
        path, _identity(bench), infer_columns(variables, initial), replace=replace_store
    ) as writer:
        collector = TraceCollector(writer, open_dictionary=True)
        for number, judgement in enumerate(judged):
            collector.add(stored_trace(number, judgement, variables))
        writer.columns = infer_columns(variables, collector.states(), initial)
        writer.compared = {name: tally.compared[name] for name in variables if tally.compared[name]}
        collector.finish()


def _identity(bench: _JudgeBench) -> Identity:
    """Of a store whose dictionary lists the actions that occur."""
    request = bench.request
    parameters = {"files": ", ".join(path_text(path.name) for path in request.files)}
    if request.mapping.start.at == "any":
        parameters["start"] = "any"
    if request.mapping_path is not None:
        parameters["mapping"] = read_text(request.mapping_path)
    if bench.known:
        parameters["deviations"] = ", ".join(deviation.id for deviation in bench.known)
    return identity(bench.prepared, FOREIGN, parameters, actions=())


# --- what is told ---------------------------------------------------------------------------------


def _tell(
    outcome: Outcome,
    request: JudgeRequest,
    bench: _JudgeBench,
    tally: JudgementTally,
    store: Path | None,
) -> None:
    covered = None if request.invariants_only else _ActionCoverage.of(bench, tally)
    counts = tally.counts
    compared = ComparedStates(dict(tally.compared), bench.prepared.spec.variables)
    outcome.verdict = tally.verdict
    parts = [
        f"{counted(tally.traces, 'trace')}, {counted(tally.events, 'event')}",
        f"{counts[Verdict.PASS]:,} pass, {counts[Verdict.FAIL]:,} fail, "
        f"{counts[Verdict.INCONCLUSIVE]:,} inconclusive",
    ]
    parts.append(compared.summary("event"))
    if bench.known:
        parts.append(
            f"with the known {counted(len(bench.known), 'deviation')} of {request.deviations}"
        )
    if tally.silent:
        parts.append(f"{tally.silent:,} of {tally.steps:,} steps were not seen")
    if covered is not None:
        parts.append(covered.summary)
        if covered.short and tally.verdict is Verdict.PASS:
            outcome.verdict = Verdict.INCONCLUSIVE
    outcome.summary = "; ".join(parts)
    outcome.figures = {
        "store": None if store is None else str(store),
        "model": reference(request.model),
        "constants": dict(bench.prepared.model.constants),
        "deviations": [deviation.id for deviation in bench.known],
        "traces": {
            "in": tally.traces,
            "pass": counts[Verdict.PASS],
            "fail": counts[Verdict.FAIL],
            "inconclusive": counts[Verdict.INCONCLUSIVE],
        },
        "events": tally.events,
        "steps": tally.steps,
        "silent_steps": tally.silent,
        "most_candidates": tally.most_candidates,
        "actions": dict(tally.actions.most_common()),
        **({} if covered is None else {"never_taken": list(covered.never)}),
        "compared": compared.figures(),
        "formulas_judged": dict(tally.formulas),
        "unjudged": [reason.to_json() for reason in list(tally.unclear.values())[:100]],
    }
    if tally.traces == 1 and tally.last is not None:
        outcome.figures["judgement"] = _judgement_json(tally.last)


@dataclass(frozen=True, slots=True)
class _ActionCoverage:
    """Which kinds of action the explanations take, beside what the mapping asks for."""

    kinds: tuple[str, ...]
    never: tuple[str, ...]
    short: bool

    @staticmethod
    def of(bench: _JudgeBench, tally: JudgementTally) -> _ActionCoverage:
        kinds, wanted = bench.prepared.spec.kinds, bench.request.mapping.coverage
        never = tuple(name for name in kinds if not tally.actions[name])
        share = (len(kinds) - len(never)) / len(kinds) if kinds else 1.0
        return _ActionCoverage(
            kinds, never, share < wanted.actions or bool({*wanted.taken} & {*never})
        )

    @property
    def summary(self) -> str:
        """How many, and those that are missed."""
        text = f"{len(self.kinds) - len(self.never)} of {len(self.kinds)} kinds of action taken"
        if not self.short:
            return text
        return f"{text}, less than the mapping asks for: never {', '.join(self.never)}"


def _judgement_json(judgement: Judgement) -> JsonValue:
    """A single trace in full."""
    return {
        "trace": judgement.name,
        "source": judgement.source,
        "reason": judgement.reason,
        "events": judgement.events,
        "explained": judgement.explained,
        "start": judgement.start,
        "formulas": {formula.name: _formula(formula) for formula in judgement.formulas},
    }


def _formula(verdict: FormulaVerdict) -> JsonValue:
    return {
        "verdict": str(verdict.verdict),
        "judged": verdict.judged,
        "violated_at": verdict.violated_at,
        "undecided_at": verdict.undecided_at,
        "undefined": verdict.undefined,
    }


def unclear_lines(tally: JudgementTally) -> Iterator[str]:
    """Why traces are inconclusive, for the terminal: at most ten reasons, most traces first."""
    listed = sorted(tally.unclear.values(), key=lambda reason: -reason.traces)
    for reason in listed[:_REASONS]:
        count = counted(reason.traces, "trace") if reason.traces > 1 else f"trace {reason.trace}"
        yield f"  ? {count} inconclusive: {reason.reason.replace(chr(10), ' ')}"
        if reason.traces > 1:
            yield f"      the first is {reason.trace} ({reason.source})"
        yield from (f"      what would decide it: {hint}" for hint in reason.decide)
    if len(listed) > _REASONS:
        yield f"  ? and {len(listed) - _REASONS} other reasons; --json lists them"


_REASONS = 10


__all__ = ["JudgeRequest", "JudgementTally", "judge_files", "unclear_lines"]
