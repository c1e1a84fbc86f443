"""Stage `record`: what the implementation does on random walks, into a store."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from conformance.events import Progress, StageStarted, Work
from conformance.printable import counted
from conformance.replay.parallel import begun
from conformance.replay.record import (
    STAGE,
    RecordingPlan,
    RecordJob,
    RecordResult,
    StoreFiles,
    recording,
)
from conformance.replay.record import record as run_record
from conformance.stages.context import (
    Context,
    Outcome,
    Workbench,
    emit_finished,
    stage,
)
from conformance.stages.identity import identity
from conformance.traces.manifest import Identity
from conformance.verdict import Verdict
from conformance.workers import Workers


def record(
    context: Context,
    bench: Workbench,
    workers: Workers,
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
            workers,
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
        store = PendingStore(context, bench, path, plan, stack, overwrite=overwrite)
        with begun(store.jobs(processes * _ROUNDS), processes) as running:
            for outcome in running.rest():
                store.add(outcome.result, outcome.work)
                context.emit(Progress(STAGE, store.done, traces))


_ROUNDS = 8
"""Parts for each process, to show progress between them."""


class PendingStore:
    """A store of a bench that other processes record: Spark is worth its start for many steps only.

    If the stack is left by an exception, whoever's it was, there will be no store.
    """

    def __init__(
        self,
        context: Context,
        bench: Workbench,
        path: Path,
        plan: RecordingPlan,
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

    def add(self, part: StoreFiles, work: Work) -> bool:
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


def plan_of(context: Context, bench: Workbench, *, traces: int, length: int) -> RecordingPlan:
    """So many walks of the bench's system, of so many steps at most, by the context's seed."""
    return RecordingPlan(bench.factory, bench.constants, traces, length, context.seed)


def _identity(bench: Workbench, plan: RecordingPlan) -> Identity:
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
