"""Stages `replay`, `interleave`, `explore` of all models, as many at a time as there are jobs."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.events import Progress, StageStarted
from conformance.replay.interruptions import InterruptionResult
from conformance.replay.parallel import InterleaveJob, Job, ReplayJob, side_by_side
from conformance.replay.suite import ReplayResult
from conformance.stages import explore, interleave
from conformance.stages.context import Context, Outcome, Workbench, emit_finished
from conformance.stages.explore import Explored, ExploreJob, Search, report_explore
from conformance.stages.interleave import interruptible, report_interleave
from conformance.stages.replay import report_replay
from conformance.suites.suite import Suite


def drive_all(
    context: Context,
    benches: Sequence[Workbench],
    suites: Sequence[Suite],
    *,
    samples: int,
    searches: Sequence[tuple[Workbench, Search]],
) -> list[ReplayResult]:
    """Replay each bench's suite, interrupt its steps in so many states where that can be, and
    explore the benches of `searches`.

    The results of the suites, in the order of the benches.
    """
    meeting = [bench for bench in benches if interruptible(bench)]
    jobs: list[Job[ReplayResult | InterruptionResult | Explored]] = [
        ReplayJob(bench.graph, suite, bench.factory, bench.constants)
        for bench, suite in zip(benches, suites, strict=True)
    ]
    jobs += [
        InterleaveJob(bench.graph, bench.factory, bench.constants, samples, context.seed)
        for bench in meeting
    ]
    jobs += [ExploreJob.of(bench, search) for bench, search in searches]
    owners = [*benches, *meeting, *(bench for bench, _ in searches)]
    results: dict[int, ReplayResult] = {}
    total, left = sum(suite.steps for suite in suites), len(jobs)
    context.emit(StageStarted("replay", _left(left), total))
    for number, result in side_by_side(jobs, context.check.jobs):
        bench, outcome = owners[number], Outcome()
        if isinstance(result, ReplayResult):
            results[number] = result
            report_replay(context, bench, suites[number], result, outcome)
            emit_finished(context, "replay", bench.model.name, outcome, result.seconds)
        elif isinstance(result, InterruptionResult):
            report_interleave(context, bench, result, outcome)
            emit_finished(context, interleave.STAGE, bench.model.name, outcome, result.seconds)
        else:
            report_explore(context, bench, result, outcome)
            emit_finished(context, explore.STAGE, bench.model.name, outcome, result.result.seconds)
        left -= 1
        if left:
            context.emit(StageStarted("replay", _left(left), total))
            context.emit(Progress("replay", sum(r.steps for r in results.values()), total))
    return [results[number] for number in range(len(benches))]


def _left(jobs: int) -> str:
    return f"{jobs} suites, interleavings and explorations"
