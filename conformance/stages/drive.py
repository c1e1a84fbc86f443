"""Stages `replay`, `interleave`, `explore` of all models, as many at a time as there are jobs.

The recording of small stores is among them, first of all, since audits wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from conformance.events import Progress, StageStarted, Work
from conformance.replay.interruptions import InterruptionResult
from conformance.replay.parallel import (
    Crew,
    InterleaveJob,
    Job,
    JobOutcome,
    ReplayJob,
    Running,
    begun,
)
from conformance.replay.record import StoreFiles
from conformance.replay.suite import ReplayResult
from conformance.stages import explore, interleave
from conformance.stages.context import Context, Outcome, Workbench, emit_finished
from conformance.stages.explore import ExploreJob, ExploreOutcome, Search, report_explore
from conformance.stages.interleave import interruptible, report_interleave
from conformance.stages.record import PendingStore
from conformance.stages.replay import report_replay
from conformance.suites.suite import Suite

Driven = ReplayResult | InterruptionResult | ExploreOutcome | StoreFiles


@contextmanager
def driving(
    context: Context,
    benches: Sequence[Workbench],
    suites: Sequence[Suite],
    *,
    samples: int,
    searches: Sequence[tuple[Workbench, Search]],
    stores: Sequence[PendingStore] = (),
    crew: Crew | None = None,
) -> Iterator[RunningDrives]:
    """Begin to record `stores`, to replay each bench's suite, to interrupt its steps in so many
    states where that can be, and to explore the benches of `searches`; the caller goes on with
    other work.
    """
    meeting = [bench for bench in benches if interruptible(bench)]
    jobs: list[Job[Driven]] = [
        ReplayJob(bench.graph, suite, bench.factory, bench.constants)
        for bench, suite in zip(benches, suites, strict=True)
    ]
    jobs += [
        InterleaveJob(bench.graph, bench.factory, bench.constants, samples, context.seed)
        for bench in meeting
    ]
    jobs += [ExploreJob.of(bench, search) for bench, search in searches]
    owners = [*benches, *meeting, *(bench for bench, _ in searches)]
    recordings = [(store, job) for store in stores for job in store.jobs(context.check.jobs)]
    jobs += [job for _, job in recordings]
    owners += [store.bench for store, _ in recordings]
    with begun(jobs, context.check.jobs, crew) as running:
        yield RunningDrives(context, running, owners, suites, stores)


@contextmanager
def replaying(
    context: Context,
    benches: Sequence[Workbench],
    suites: Sequence[Suite],
    *,
    crew: Crew | None = None,
) -> Iterator[RunningDrives]:
    """Begin to replay the suites of systems that several processes may drive (`shared_name`)."""
    jobs = [
        ReplayJob(bench.graph, suite, bench.shared_name, bench.constants)
        for bench, suite in zip(benches, suites, strict=True)
    ]
    with begun(jobs, context.check.jobs, crew) as running:
        yield RunningDrives(context, running, benches, suites)


class RunningDrives:
    """Suites, interleavings and explorations under way, and what came of those that ended."""

    def __init__(
        self,
        context: Context,
        running: Running[Driven],
        owners: Sequence[Workbench],
        suites: Sequence[Suite],
        stores: Sequence[PendingStore] = (),
    ) -> None:
        self._context, self._running = context, running
        self._stores = {store.folder: store for store in stores}
        self._owners, self._suites = owners, suites
        self._results: dict[int, ReplayResult] = {}
        self._left = len(owners)
        self._total = sum(suite.steps for suite in suites)
        self._tell_what_is_left()

    def report_ended(self) -> None:
        """Report what ended since the last look; does not wait."""
        for outcome in self._running.ended():
            self._report(outcome)

    def recorded(self) -> Iterator[PendingStore]:
        """Each store when it is whole; reports what else ends until then."""
        if not self._stores:
            return
        for outcome in self._running.rest():
            if store := self._report(outcome):
                yield store
            if not self._stores:
                return

    def finish(self) -> list[ReplayResult]:
        """Wait for all of it; the results of the suites, in the order of their benches."""
        for outcome in self._running.rest():
            self._report(outcome)
        return [self._results[number] for number in range(len(self._suites))]

    def _report(self, outcome: JobOutcome[Driven]) -> PendingStore | None:
        """Report a result; the store, if it was the last of a store's parts."""
        self._left -= 1
        if isinstance(outcome.result, StoreFiles):
            return self._add(outcome.result, outcome.work)
        self._report_driven(outcome, outcome.result)
        self._tell_what_is_left()
        return None

    def _add(self, part: StoreFiles, work: Work) -> PendingStore | None:
        store = self._stores[part.folder]
        if not store.add(part, work):
            return None
        del self._stores[part.folder]
        return store

    def _report_driven(
        self,
        job_outcome: JobOutcome[Driven],
        result: ReplayResult | InterruptionResult | ExploreOutcome,
    ) -> None:
        context, bench, outcome = self._context, self._owners[job_outcome.number], Outcome()
        if isinstance(result, ReplayResult):
            self._results[job_outcome.number] = result
            report_replay(context, bench, self._suites[job_outcome.number], result, outcome)
            name, seconds = "replay", result.seconds
        elif isinstance(result, InterruptionResult):
            report_interleave(context, bench, result, outcome)
            name, seconds = interleave.STAGE, result.seconds
        else:
            report_explore(context, bench, result, outcome)
            name, seconds = explore.STAGE, result.result.seconds
        emit_finished(context, name, bench.model.name, outcome, seconds, work=(job_outcome.work,))

    def _tell_what_is_left(self) -> None:
        if self._left:
            left = f"{self._left} suites, interleavings, explorations and recordings"
            done = sum(result.steps for result in self._results.values())
            self._context.emit(StageStarted("replay", left, self._total))
            self._context.emit(Progress("replay", done, self._total))
