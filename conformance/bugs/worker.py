"""One fault's run, in a process of its own whose PYTHONPATH begins with the faulty copy.

Reads a job (JSON) from standard input, writes the outcome (JSON) to standard output.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import msgspec

from conformance.events import Event, Finding, StageFinished
from conformance.replay.engine import Divergence, Driver, close, run_path
from conformance.replay.interruptions import interrupt_steps
from conformance.replay.minimise import minimise
from conformance.replay.nearest import nearest_failure
from conformance.replay.oracle import GraphOracle, Oracle
from conformance.replay.profile import Profile
from conformance.replay.saved import save
from conformance.replay.shorten import shortest_failure
from conformance.replay.telling import finding
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.stages.explore import explore
from conformance.stages.interleave import interruptible
from conformance.stages.reasons import reasons
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Test
from conformance.tla import Action, State
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict

_NEAREST_STEPS = 20_000
"""How far to look for a shorter counterexample than the one found."""
INTERRUPTED = "interrupted steps"
_MEETINGS = 20
"""States in which each pair of actions is interleaved."""


class Job(msgspec.Struct, frozen=True):
    """What to run against the implementation that this process imports."""

    models: tuple[str, ...]
    system: str
    seed: int
    traces: int
    """Recorded and audited if nothing found it before; 0: not at all."""
    examples: int
    package: str = "impl"
    folder: str = ""
    """The package must be imported from this folder, or the faulty copy is not what is run."""
    interleave_first: bool = False
    """For a fault of which it is known that threads have to meet."""
    budget: float = 0.0
    """Seconds after which no further model is begun; 0: no limit."""
    save_to: str = ""
    """Where to keep the divergence as an ITF file, if anywhere."""


class Found(msgspec.Struct, frozen=True):
    """Whether and how the fault was found. `steps` and `traces`: those driven until then."""

    killed: bool
    judged: bool = True
    """Whether the oracles came to their end, or to a kill; else `note` says why not."""
    oracle: str = ""
    model: str = ""
    traces: int = 0
    steps: int = 0
    seconds: float = 0.0
    counterexample_length: int | None = None
    title: str = ""
    story: tuple[str, ...] = ()
    note: str = ""
    covered: tuple[str, ...] = ()
    """Each oracle and model that came to its end."""


class _Effort:
    """What was driven until now."""

    def __init__(self) -> None:
        self.traces = self.steps = 0
        self.started = time.monotonic()
        self.covered: list[str] = []
        self.undone: list[str] = []

    def may_begin(self, part: str, budget: float) -> bool:
        """Whether there is time left for this; notes it either way."""
        if budget and time.monotonic() - self.started > budget:
            self.undone.append(part)
            return False
        self.covered.append(part)
        return True

    def found(
        self, oracle_name: str, bench: Workbench, divergence: Divergence, oracle: Oracle
    ) -> Found:
        """A kill by step equality, its counterexample told."""
        told = finding(oracle, divergence, reasons=reasons(bench.prepared.spec, divergence))
        return Found(
            killed=True,
            oracle=oracle_name,
            model=bench.model.name,
            traces=self.traces,
            steps=self.steps,
            seconds=round(time.monotonic() - self.started, 3),
            counterexample_length=divergence.step,
            title=told.title,
            story=_story(told),
        )


def _story(told: Finding) -> tuple[str, ...]:
    """The finding's steps, and what differs after the last."""
    differing = [
        f"       {part.variable}: expected {part.expected}, actual {part.actual}"
        for part in told.differences
    ]
    return (*told.story, *differing)


def run(job: Job) -> Found:
    """The gate's oracles in turn, the quick ones first, until one finds the fault."""
    _ensure_copy(job)
    context = Context(seed=job.seed)
    effort = _Effort()

    @cache  # made ready one by one: most faults fall in the first
    def bench_of(model: str) -> Workbench:
        return workbench(context, one_model(model), job.system)

    drives = [("transition suite", _replay), (INTERRUPTED, _interleave)]
    if job.interleave_first:
        drives.reverse()
    for name, drive in drives:
        for model in job.models:
            if not effort.may_begin(f"{name} of {model}", job.budget):
                continue
            bench = bench_of(model)
            divergence = drive(bench, job, effort)
            if divergence is not None:
                return _kill(name, bench, divergence, job, effort)
    if effort.undone:
        return _survived(effort)
    benches = [bench_of(model) for model in job.models]
    for bench in benches:
        if not effort.may_begin(f"Hypothesis on {bench.model.name}", job.budget):
            continue
        killed = _explore(context, bench, job, effort)
        if killed is not None:
            return killed
    if job.traces and effort.may_begin("bulk traces", job.budget):
        return _bulk(context, benches, job, effort)
    return _survived(effort)


def _survived(effort: _Effort, note: str = "") -> Found:
    """Nothing found it; what there was no time for is said in the note."""
    undone = f"no time for {', '.join(effort.undone)}" if effort.undone else ""
    return Found(
        killed=False,
        traces=effort.traces,
        steps=effort.steps,
        seconds=round(time.monotonic() - effort.started, 3),
        note="; ".join(part for part in (note, undone) if part),
        covered=tuple(effort.covered),
    )


def _kill(name: str, bench: Workbench, divergence: Divergence, job: Job, effort: _Effort) -> Found:
    """A kill whose path was driven; kept where the job says."""
    oracle = GraphOracle(bench.graph)
    if job.save_to:
        path = Path(job.save_to)
        save(path, oracle, divergence, model=bench.model.name, system=bench.factory)
    return effort.found(name, bench, divergence, oracle)


def _ensure_copy(job: Job) -> None:
    """Guards the bench itself: with the clean package every fault would survive."""
    found = importlib.util.find_spec(job.package)
    origin = "" if found is None else str(found.origin)
    if job.folder and not Path(origin).is_relative_to(job.folder):
        raise RuntimeError(f"{job.package} comes from {origin}, not from {job.folder}")


def _replay(bench: Workbench, _job: Job, effort: _Effort) -> Divergence | None:
    """The minimal transition suite, longest tests first: they find a deep fault 10 times sooner."""
    oracle = GraphOracle(bench.graph)
    suite = transition_cover(bench.graph)
    system = bench.make_system()
    try:
        driver = Driver(system, oracle)
        for test in sorted(suite.tests, key=len, reverse=True):
            outcome = run_path(driver, bench.graph.states[test.initial], _actions(bench, test))
            effort.traces += 1
            effort.steps += outcome.steps
            if outcome.divergence is not None:
                return _shortened(bench, oracle, outcome.divergence)
    finally:
        close(system)
    return None


def _interleave(bench: Workbench, job: Job, effort: _Effort) -> Divergence | None:
    """One thread's action stopped for another's; the state in which they meet is the nearest."""
    if not interruptible(bench):
        return None
    result = interrupt_steps(bench.graph, bench.make_system, samples=_MEETINGS, seed=job.seed)
    effort.traces += result.paths
    effort.steps += result.steps
    return min(result.divergences, key=lambda found: found.step, default=None)


def _shortened(bench: Workbench, oracle: Oracle, found: Divergence) -> Divergence:
    """Reached the shortest way, or replaced by a divergence that is nearer to the beginning."""

    def again(initial: State, actions: Sequence[Action]) -> Divergence | None:
        return _again(bench, oracle, initial, actions)

    short = minimise(shortest_failure(oracle, found, again), again)
    system = bench.make_system()
    try:
        return nearest_failure(Driver(system, oracle), oracle, short, _NEAREST_STEPS)
    finally:
        close(system)


def _actions(bench: Workbench, test: Test) -> Iterator[Action]:
    graph = bench.graph
    return (graph.actions[code] for code in graph.action[test.edges].tolist())


def _again(
    bench: Workbench, oracle: Oracle, initial: State, actions: Sequence[Action]
) -> Divergence | None:
    system = bench.make_system()
    try:
        return run_path(Driver(system, oracle), initial, actions).divergence
    finally:
        close(system)


def _explore(context: Context, bench: Workbench, job: Job, effort: _Effort) -> Found | None:
    events: list[Event] = []
    watched = Context(context.settings, events.append, context.check, context.seed)
    with _output_folder(watched) as inside:
        result = explore(inside, bench, profile=Profile.CI, examples=job.examples)
    effort.traces += result.examples
    effort.steps += result.steps
    if result.divergence is None:
        return None
    told = next(event for event in events if isinstance(event, Finding))
    return Found(
        killed=True,
        oracle="Hypothesis" if not result.invariant else f"invariant {result.invariant}",
        model=bench.model.name,
        traces=effort.traces,
        steps=effort.steps,
        seconds=round(time.monotonic() - effort.started, 3),
        counterexample_length=result.divergence.step,
        title=told.title,
        story=_story(told),
    )


@contextmanager
def _output_folder(context: Context) -> Iterator[Context]:
    """The same context, its output in a folder that is removed."""
    with tempfile.TemporaryDirectory(prefix="kconform-bugs-") as folder:
        settings = msgspec.structs.replace(context.settings, output=folder)
        yield Context(settings, context.emit, context.check, context.seed)


def _bulk(context: Context, benches: list[Workbench], job: Job, effort: _Effort) -> Found:
    """Random traces, recorded and audited on Spark."""
    # Spark costs a second at import, and few faults live that long.
    from conformance.audit.session import spark_session
    from conformance.stages.record import Subject, audit, record

    events: list[Event] = []
    watched = Context(context.settings, events.append, context.check, context.seed)
    with tempfile.TemporaryDirectory(prefix="kconform-bugs-") as folder, spark_session() as spark:
        for number, bench in enumerate(benches):
            store = Path(folder) / str(number)
            record(watched, bench, spark, store, traces=job.traces, length=30)
            result = audit(
                watched, Subject(TraceStore.open(store), bench.prepared, bench.graph), spark
            )
            effort.traces += result.accounting.traces
            effort.steps += result.steps
            if result.verdict is Verdict.FAIL:
                told = next(event for event in events if isinstance(event, Finding))
                return Found(
                    killed=True,
                    oracle=f"bulk traces: {told.formula}",
                    model=bench.model.name,
                    traces=effort.traces,
                    steps=effort.steps,
                    seconds=round(time.monotonic() - effort.started, 3),
                    counterexample_length=told.step,
                    title=told.title,
                    story=_story(told),
                )
    failed = [e.summary for e in events if isinstance(e, StageFinished) and e.verdict != "pass"]
    return _survived(effort, "; ".join(failed))


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End as after Ctrl-C, so that every JVM is ended too."""
    raise KeyboardInterrupt


def main() -> None:
    """Standard input to standard output; a fault of the harness itself is an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    output, sys.stdout = sys.stdout, sys.stderr  # whatever prints must not spoil the answer
    found = run(job)
    output.write(msgspec.json.encode(found).decode() + "\n")
    output.flush()


if __name__ == "__main__":
    main()
