"""Stage `replay`: a suite against the system, with step equality after every action."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from conformance.errors import UserError
from conformance.events import Finding, JsonValue, Reason
from conformance.modelcheck.branches import BranchCounts
from conformance.modelcheck.check import edge_branches
from conformance.modelcheck.manifest import Model, reference
from conformance.modelcheck.pictures import picture_of
from conformance.modelcheck.places import place_of, with_texts
from conformance.printable import counted, were
from conformance.registry import is_of_somebody_else
from conformance.replay.engine import Divergence
from conformance.replay.interleave import parts
from conformance.replay.oracle import GraphOracle, Oracle, oracle_of
from conformance.replay.recorded import judge
from conformance.replay.saved import ReplayOutcome, SavedDivergence, judge_of, replay_again, save
from conformance.replay.suite import ReplayResult, replay_suite
from conformance.replay.telling import finding
from conformance.stages.context import Context, Outcome, Workbench, stage
from conformance.stages.keeping import divergence_file
from conformance.stages.reasons import reasons
from conformance.stages.shape import shape, unvisited
from conformance.story.behaviour import Behaviour, Locate, Step, last_steps, lines
from conformance.suites.suite import Suite
from conformance.tla import Action
from conformance.traces.model import Trace, TraceEnd
from conformance.verdict import Verdict


def replay(
    context: Context, bench: Workbench, suite: Suite, *, stop_after: int = 1, part: bool = False
) -> ReplayResult:
    """Drive the suite; every divergence is shortened and reported once per cause.

    `part`: the suite is part of one, so that what it never shows may be shown by the rest.
    """
    with stage(context, "replay", bench.model.name, len(suite)) as outcome:
        oracle = GraphOracle(bench.graph)
        result = replay_suite(
            bench.graph,
            suite,
            bench.make_system,
            oracle=oracle,
            emit=context.emit,
            stop_after=stop_after,
            going_on=is_of_somebody_else(bench.factory),
        )
        result = replace(result, compared=replace(result.compared, part=part))
        report_replay(context, bench, suite, result, outcome)
    return result


def not_driven_lines(result: ReplayResult) -> list[str]:
    """What the system could not be driven along, and why, the most frequent reason first."""
    reasons = sorted(result.not_driven.items(), key=lambda pair: -pair[1])
    return [f"{counted(count, 'test')} not driven: {reason}" for reason, count in reasons]


def report_replay(
    context: Context, bench: Workbench, suite: Suite, result: ReplayResult, outcome: Outcome
) -> None:
    """Report every divergence, and what was driven."""
    if result.divergences:
        oracle = GraphOracle(bench.graph)
        for divergence in result.divergences:
            tell(context, bench, oracle, divergence, "replay")
    outcome.verdict = result.verdict
    outcome.summary = "; ".join([*_summary(result), *_choices(bench)])
    outcome.figures = {
        "model": bench.model.name,
        "system": bench.factory,
        **({"deviations": list(bench.deviations)} if bench.deviations else {}),
        "choices": list(bench.choices),
        "suite": suite.kind,
        "tests": _tests(suite, result),
        "steps": result.steps,
        "taken": result.steps_taken,
        "seconds": round(result.seconds, 3),
        "actions": dict(result.actions),
        "not_driven": dict(result.not_driven),
        "set_aside": list(result.set_aside),
        "notes": [*not_driven_lines(result), *result.notes],
        "shape": shape(bench.graph, bench.prepared, context.seed),
        "unvisited": unvisited(bench.graph, result.visits > 0),
        "branches": _branches(context, bench, result),
    }
    outcome.add_compared(result.compared)


def _choices(bench: Workbench) -> list[str]:
    """By what the system is judged where the specification leaves it a choice."""
    return [f"it chooses {', '.join(bench.choices)}"] if bench.choices else []


def _summary(result: ReplayResult) -> Iterator[str]:
    yield (
        f"{counted(result.passed, 'test')} passed, {result.failed} failed, {result.inconclusive} "
        "inconclusive"
    )
    rate = result.steps_taken / max(result.seconds, 1e-9)
    restored = (
        f", {result.steps_taken:,} of them taken" if result.steps_taken < result.steps else ""
    )
    yield f"{counted(result.steps, 'step')}{restored}, {rate:,.0f}/s"
    if result.spoiled:
        yield f"{were(result.spoiled, 'test')} spoiled by a slow machine"
    if result.again:
        yield f"{counted(result.again, 'test')} agreed when driven again"
    if result.not_driven:
        yield f"{counted(sum(result.not_driven.values()), 'test')} cannot be driven"
    if result.set_aside:
        yield f"went on where {'; '.join(result.set_aside)}"
    if result.not_run:
        yield f"stopped at the divergence, {were(result.not_run, 'test')} not run"


def _tests(suite: Suite, result: ReplayResult) -> JsonValue:
    """How many tests came to which end."""
    return {
        "in": len(suite),
        "pass": result.passed,
        "fail": result.failed,
        "inconclusive": result.inconclusive,
        "spoiled": result.spoiled,
        "again": result.again,
        "not_run": result.not_run,
        "not_driven": sum(result.not_driven.values()),
    }


def _branches(context: Context, bench: Workbench, result: ReplayResult) -> JsonValue:
    """Steps by the disjuncts that they took."""
    counts = BranchCounts(bench.prepared.spec)
    of_edges = edge_branches(bench.prepared, bench.graph, result.visits > 0, context.check)
    of_edges.count(counts, bench.graph, result.visits)
    return {**counts.by_place()}


def locator(bench: Workbench) -> Locate:
    """Finds the place of an action's definition, as `file:line:column`."""

    def locate(action: Action) -> str:
        both = parts(action)
        return place_of(bench.prepared, both[0].name if both else action.name)

    return locate


def _finding(
    bench: Workbench, oracle: Oracle, divergence: Divergence, name: str = "replay"
) -> Finding:
    why = reasons(bench.prepared.spec, divergence)
    report = finding(
        oracle,
        divergence,
        stage=name,
        locate=locator(bench),
        reasons=why,
        picture=picture_of(bench.model),
        drawn=True,
    )
    return sourced(report, bench.model)


def sourced(evidence: Finding, model: Model) -> Finding:
    """The finding with the texts to which its reasons lead."""
    if evidence.exhibit is None:
        return evidence
    return replace(evidence, exhibit=with_texts(evidence.exhibit, model, evidence.location))


def tell(
    context: Context, bench: Workbench, oracle: Oracle, divergence: Divergence, name: str
) -> None:
    """Keep the divergence as an ITF file and report it with the command that replays that."""
    why = reasons(bench.prepared.spec, divergence)
    keep(context, bench, oracle, divergence, _finding(bench, oracle, divergence, name), why)


def keep(
    context: Context,
    bench: Workbench,
    oracle: Oracle,
    divergence: Divergence,
    evidence: Finding,
    why: Sequence[Reason],
) -> None:
    """Write the divergence to an ITF file, and report what was found of it with that file."""
    path = divergence_file(context, bench.model.name, evidence)
    save(
        path,
        oracle,
        divergence,
        model=reference(bench.model),
        system=bench.factory,
        constants=bench.model.constants,
        deviations=bench.deviations,
        reasons=why,
    )
    context.emit(replace(evidence, reproduce=f"kconform replay {path}", artifact=str(path)))


def replay_saved(
    context: Context, bench: Workbench, saved: SavedDivergence, file: Path | None = None
) -> tuple[ReplayOutcome, Divergence | None]:
    """Replay one saved path: as before, differently, or fixed.

    `file` holds it; without one, as of a recorded trace, a divergence is kept.
    """
    with stage(context, "replay", bench.model.name) as outcome:
        oracle = judge_of(saved, spec_oracle(bench), bench.make_system)
        again, divergence = replay_again(saved, oracle, bench.make_system)
        if divergence is not None and file is None:
            tell(context, bench, oracle, divergence, "replay")
        elif divergence is not None:
            evidence = _finding(bench, oracle, divergence)
            command = shlex.join(["kconform", "replay", str(file), *_system_option(bench, saved)])
            context.emit(replace(evidence, reproduce=command, artifact=str(file)))
        outcome.verdict = _AGAIN.get(again, Verdict.FAIL)
        outcome.summary = f"{again} ({counted(len(saved.actions), 'step')})"
        if saved.system not in ("", bench.factory):
            outcome.summary = f"{again} by {bench.factory} ({counted(len(saved.actions), 'step')})"
            outcome.summary += f"; saved of {saved.system}"
        outcome.figures = {
            "model": bench.model.name,
            "system": bench.factory,
            "again": str(again),
        }
    return again, divergence


def _system_option(bench: Workbench, saved: SavedDivergence) -> tuple[str, ...]:
    """Of a path that was saved of another system."""
    return () if bench.factory == saved.system else ("--system", bench.factory)


_AGAIN = {ReplayOutcome.FIXED: Verdict.PASS, ReplayOutcome.ELSEWHERE: Verdict.INCONCLUSIVE}


def replay_recorded(
    context: Context, bench: Workbench, trace: Trace, *, anywhere: bool = False
) -> tuple[str, ...]:
    """Step along what was seen of an implementation that is not here, to where it leaves the spec.

    `anywhere`: it may begin in any state. What is still to be told of it comes back: its steps,
    where no finding has told them.
    UserError for a trace that could not be read whole when it was imported.
    """
    if trace.problem is not None and trace.end is not TraceEnd.DIVERGED:
        raise UserError(f"Trace {trace.trace_id} cannot be judged: {trace.problem}.")
    with stage(context, "replay", bench.model.name) as outcome:
        oracle = spec_oracle(bench)
        divergence = judge(oracle, trace, anywhere=anywhere)
        outcome.summary = (
            f"trace {trace.trace_id}, {counted(len(trace.steps), 'step')}: the spec allows them"
        )
        outcome.verdict = Verdict.PASS
        if divergence is not None:
            evidence = _finding(bench, oracle, divergence)
            context.emit(replace(evidence, trace=str(trace.trace_id)))
            outcome.summary = f"trace {trace.trace_id} leaves the spec at step {divergence.step}"
            outcome.verdict = Verdict.FAIL
        elif trace.end is TraceEnd.DIVERGED:
            # What was seen when it was imported was more than a store keeps: entries, many clocks.
            outcome.summary = f"trace {trace.trace_id} left the spec: {trace.problem}"
            outcome.verdict = Verdict.FAIL
        outcome.figures = {"model": bench.model.name, "trace": trace.trace_id}
    return () if divergence is not None else _story(bench, trace)


def _story(bench: Workbench, trace: Trace) -> tuple[str, ...]:
    """The trace's last steps."""
    steps = (Step(None, trace.initial), *(Step(step.action, step.state) for step in trace.steps))
    variables, ending = bench.prepared.spec.variables, trace.problem or ""
    return lines(last_steps(Behaviour(variables, steps, ending=ending)))


def spec_oracle(bench: Workbench) -> Oracle:
    """The bench's specification as an oracle."""
    return oracle_of(bench.prepared.spec)
