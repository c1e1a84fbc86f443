"""One fault's run, in a process of its own whose PYTHONPATH begins with the faulty copy.

Reads a job (JSON) from standard input, writes to standard output a line (JSON) for each part that
is begun, a `PartStarted`, and at last the outcome, a `FaultSearchResult`.
"""

from __future__ import annotations

import importlib.util
import math
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import TypeAlias

import msgspec

from conformance.config import Settings
from conformance.events import ComparedModel, Event, Finding, Reason, StageFinished
from conformance.garbage import collect_seldom
from conformance.modelcheck.pictures import picture_of
from conformance.replay.engine import Divergence, Driver, close, run_path
from conformance.replay.interruptions import interrupt_steps
from conformance.replay.minimise import minimise
from conformance.replay.nearest import nearest_failure
from conformance.replay.oracle import GraphOracle, Oracle
from conformance.replay.profile import Profile
from conformance.replay.saved import save
from conformance.replay.shorten import shortest_failure
from conformance.replay.telling import finding
from conformance.replay.turns import can_take_turns, take_turns
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.stages.explore import explore, search_of
from conformance.stages.held import compared_model
from conformance.stages.interleave import interruptible
from conformance.stages.reasons import reasons
from conformance.stages.replay import locator, sourced
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Test
from conformance.systems.bundled import import_name
from conformance.tla import Action, State
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict

_NEAREST_STEPS = 20_000
"""How far to look for a shorter counterexample than the one found."""
SUITE, INTERRUPTED, TURNS = "transition suite", "interrupted steps", "turns of the threads"
_WALKS, _LENGTH = 200, 30
"""Random walks in which the threads' own loops run."""
MEETINGS = 20
"""States in which each pair of actions is interleaved."""


class BugJob(msgspec.Struct, frozen=True):
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
    shorten: bool = True
    """Whether the way to a divergence of the suite is shortened, and a nearer one looked for."""
    budget: float = 0.0
    """Seconds after which no further model is begun; 0: no limit."""
    save_to: str = ""
    """Where to keep the divergence as an ITF file, if anywhere."""


class PartStarted(msgspec.Struct, frozen=True, tag=True):
    """An oracle begins with a model. `done` of `total` such parts are over."""

    part: str
    done: int
    total: int


class FaultSearchResult(msgspec.Struct, frozen=True, tag=True):
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
    """Each oracle and model that came to its end, or found the fault."""
    shown: Finding | None = None
    """What killed it, with the way there as a drawing; its file, if the job keeps one."""
    comparison: ComparedModel | None = None
    """What was held against what when it was killed."""


class _Effort:
    """What was driven until now, and whether there is time for more."""

    def __init__(self, job: BugJob, tell: Callable[[PartStarted], None]) -> None:
        self.traces = self.steps = 0
        self.started = time.monotonic()
        self._until = self.started + job.budget if job.budget else math.inf
        self._tell = tell
        self._total = (len(_DRIVES) + 1) * len(job.models) + bool(job.traces)
        self._parts: dict[str, str] = {}

    def may_begin(self, part: str) -> bool:
        """Whether there is time left for this; notes it either way."""
        if self.is_over:
            self._parts[part] = part
            return False
        self._tell(PartStarted(part, len(self._parts), self._total))
        self._parts[part] = ""
        return True

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return time.monotonic() > self._until

    def break_off(self, part: str, done: int, of: int) -> None:
        """The budget was spent within a part."""
        self._parts[part] = f"{of - done:,} of {of:,} tests of the {part}"

    @property
    def covered(self) -> list[str]:
        """Each part that came to its end."""
        return [part for part, undone in self._parts.items() if not undone]

    @property
    def undone(self) -> list[str]:
        """What there was no time for."""
        return [undone for undone in self._parts.values() if undone]

    def discovery(
        self,
        oracle_name: str,
        bench: Workbench,
        divergence: Divergence,
        oracle: Oracle,
        because: Sequence[Reason],
    ) -> FaultSearchResult:
        """A kill by step equality, its counterexample told."""
        evidence = finding(
            oracle,
            divergence,
            locate=locator(bench),
            reasons=because,
            picture=picture_of(bench.model),
            drawn=True,
        )
        return self.killed(oracle_name, bench, sourced(evidence, bench.model))

    def killed(self, oracle_name: str, bench: Workbench, evidence: Finding) -> FaultSearchResult:
        """A kill, by what is told of it."""
        return FaultSearchResult(
            killed=True,
            oracle=oracle_name,
            model=bench.model.name,
            traces=self.traces,
            steps=self.steps,
            seconds=round(time.monotonic() - self.started, 3),
            counterexample_length=evidence.step,
            title=evidence.title,
            story=_story(evidence),
            shown=evidence,
            comparison=compared_model(bench.prepared, bench.factory),
        )


def _story(evidence: Finding) -> tuple[str, ...]:
    """The finding's steps, and what differs after the last."""
    differing = [
        f"       {part.variable}: expected {part.expected}, actual {part.actual}"
        for part in evidence.differences
    ]
    return (*evidence.story, *differing)


def run(job: BugJob, tell: Callable[[PartStarted], None]) -> FaultSearchResult:
    """The gate's oracles in turn, the quick ones first, until one finds the fault."""
    _ensure_copy(job)
    effort = _Effort(job, tell)
    # Stages keep files and stores for themselves: what is to stay is copied to where the job says.
    with tempfile.TemporaryDirectory(prefix="kconform-bugs-") as folder:
        settings = msgspec.structs.replace(Settings(), output=folder)
        result = _search(Context(settings, seed=job.seed), job, effort)
    return msgspec.structs.replace(result, covered=tuple(effort.covered))


def _search(context: Context, job: BugJob, effort: _Effort) -> FaultSearchResult:
    @cache  # made ready one by one: most faults fall in the first
    def bench_of(model: str) -> Workbench:
        return workbench(context, one_model(model), job.system)

    order = (INTERRUPTED, SUITE, TURNS) if job.interleave_first else tuple(_DRIVES)
    for name in order:
        for model in job.models:
            if not effort.may_begin(f"{name} of {model}"):
                continue
            bench = bench_of(model)
            hit = _DRIVES[name](bench, job, effort)
            if hit is not None:
                return _kill(name, bench, *hit, job, effort)
    if effort.undone:
        return _survived(effort)
    benches = [bench_of(model) for model in job.models]
    for bench in benches:
        if not effort.may_begin(f"Hypothesis on {bench.model.name}"):
            continue
        killed = _explore(context, bench, job, effort)
        if killed is not None:
            return killed
    if job.traces and effort.may_begin("bulk traces"):
        return _bulk(context, benches, job, effort)
    return _survived(effort)


def _survived(effort: _Effort, note: str = "") -> FaultSearchResult:
    """Nothing found it; what there was no time for is said in the note."""
    undone = f"no time for {', '.join(effort.undone)}" if effort.undone else ""
    return FaultSearchResult(
        killed=False,
        traces=effort.traces,
        steps=effort.steps,
        seconds=round(time.monotonic() - effort.started, 3),
        note="; ".join(part for part in (note, undone) if part),
    )


def _kill(
    name: str,
    bench: Workbench,
    divergence: Divergence,
    oracle: Oracle,
    job: BugJob,
    effort: _Effort,
) -> FaultSearchResult:
    """A kill whose path was driven; kept where the job says."""
    because = _because(name, bench, divergence)
    result = effort.discovery(name, bench, divergence, oracle, because)
    if job.save_to:
        path = Path(job.save_to)
        save(
            path,
            oracle,
            divergence,
            model=bench.model.name,
            system=bench.factory,
            reasons=because,
        )
        result = _in_file(result, job.save_to)
    return result


def _because(oracle_name: str, bench: Workbench, divergence: Divergence) -> tuple[Reason, ...]:
    """A turn is several steps: no one formula says why it should have come out otherwise."""
    return () if oracle_name == TURNS else reasons(bench.prepared.spec, divergence)


def _in_file(result: FaultSearchResult, path: str) -> FaultSearchResult:
    """The kill, which names the file that holds its behaviour."""
    if result.shown is None:
        return result
    return msgspec.structs.replace(result, shown=replace(result.shown, artifact=path))


def _kept(result: FaultSearchResult, job: BugJob) -> FaultSearchResult:
    """The kill by a stage that kept a file for itself; kept on where the job says."""
    kept = "" if result.shown is None else result.shown.artifact
    if not kept:
        return result
    if not job.save_to:
        return _in_file(result, "")
    path = Path(job.save_to)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(kept, path)
    return _in_file(result, job.save_to)


def _ensure_copy(job: BugJob) -> None:
    """Guards the bench itself: with the clean package every fault would survive."""
    spec = importlib.util.find_spec(import_name(job.package))
    origin = "" if spec is None else str(spec.origin)
    if job.folder and not Path(origin).is_relative_to(job.folder):
        raise RuntimeError(f"{job.package} comes from {origin}, not from {job.folder}")


Hit: TypeAlias = tuple[Divergence, Oracle]
"""A divergence, and the oracle that knows its steps."""


def _replay(bench: Workbench, job: BugJob, effort: _Effort) -> Hit | None:
    """The minimal transition suite, longest tests first: they find a deep fault 10 times sooner."""
    oracle = GraphOracle(bench.graph)
    suite = transition_cover(bench.graph)
    system = bench.make_system()
    try:
        driver = Driver(system, oracle)
        for number, test in enumerate(sorted(suite.tests, key=len, reverse=True)):
            if effort.is_over:
                effort.break_off(f"{SUITE} of {bench.model.name}", number, len(suite))
                return None
            outcome = run_path(driver, bench.graph.states[test.initial], _actions(bench, test))
            effort.traces += 1
            effort.steps += outcome.steps
            if outcome.divergence is not None:
                divergence = outcome.divergence
                return (
                    _shortened(bench, oracle, divergence) if job.shorten else divergence
                ), oracle
    finally:
        close(system)
    return None


def _interleave(bench: Workbench, job: BugJob, effort: _Effort) -> Hit | None:
    """One thread's action stopped for another's; the state in which they meet is the nearest."""
    if not interruptible(bench):
        return None
    result = interrupt_steps(bench.graph, bench.make_system, samples=MEETINGS, seed=job.seed)
    effort.traces += result.paths
    effort.steps += result.steps
    nearest = min(result.divergences, key=lambda divergence: divergence.step, default=None)
    return None if nearest is None else (nearest, GraphOracle(bench.graph))


def _take_turns(bench: Workbench, job: BugJob, effort: _Effort) -> Hit | None:
    """The order in which a thread's own loop takes the steps, and its back-off."""
    if not can_take_turns(bench.make_system):
        return None
    oracle, result = take_turns(
        GraphOracle(bench.graph), bench.make_system, walks=_WALKS, length=_LENGTH, seed=job.seed
    )
    effort.traces += result.walks
    effort.steps += result.steps
    return None if result.divergence is None else (result.divergence, oracle)


_DRIVES: Mapping[str, Callable[[Workbench, BugJob, _Effort], Hit | None]] = MappingProxyType(
    {SUITE: _replay, TURNS: _take_turns, INTERRUPTED: _interleave}
)


def _shortened(bench: Workbench, oracle: Oracle, divergence: Divergence) -> Divergence:
    """Reached the shortest way, or replaced by a divergence that is nearer to the beginning."""

    def again(initial: State, actions: Sequence[Action]) -> Divergence | None:
        return _again(bench, oracle, initial, actions)

    short = minimise(shortest_failure(oracle, divergence, again), again)
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


def _explore(
    context: Context, bench: Workbench, job: BugJob, effort: _Effort
) -> FaultSearchResult | None:
    events: list[Event] = []
    watched = Context(context.settings, events.append, context.check, context.seed)
    search = search_of(watched, bench, profile=Profile.CI, examples=job.examples)
    result = explore(watched, bench, search)
    effort.traces += result.examples
    effort.steps += result.steps
    if result.divergence is None:
        return None
    evidence = next(event for event in events if isinstance(event, Finding))
    name = "Hypothesis" if not result.invariant else f"invariant {result.invariant}"
    return _kept(effort.killed(name, bench, evidence), job)


_BULK_LENGTH = 30
"""Steps of a recorded trace."""


def _bulk(
    context: Context, benches: list[Workbench], job: BugJob, effort: _Effort
) -> FaultSearchResult:
    """Random traces, recorded and audited on Spark."""
    # Spark costs a second at import, and few faults live that long.
    from conformance.spark.session import spark_session
    from conformance.spark.workers import OnSpark
    from conformance.stages.audit import audit
    from conformance.stages.record import record
    from conformance.stages.subject import AuditedStore

    events: list[Event] = []
    watched = Context(context.settings, events.append, context.check, context.seed)
    steps = len(benches) * job.traces * _BULK_LENGTH
    with spark_session(steps=steps) as session:
        workers = OnSpark(session)
        for number, bench in enumerate(benches):
            store = Path(context.settings.output) / f"store-{number}"
            record(watched, bench, workers, store, traces=job.traces, length=_BULK_LENGTH)
            result = audit(
                watched, AuditedStore(TraceStore.open(store), bench.prepared, bench.graph), workers
            )
            effort.traces += result.accounting.traces
            effort.steps += result.steps
            if result.verdict is Verdict.FAIL:
                evidence = next(event for event in events if isinstance(event, Finding))
                fault_search_result = effort.killed(
                    f"bulk traces: {evidence.formula}", bench, evidence
                )
                return _kept(fault_search_result, job)
    failed = [e.summary for e in events if isinstance(e, StageFinished) and e.verdict != "pass"]
    return _survived(effort, "; ".join(failed))


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End as after Ctrl-C, so that every JVM is ended too."""
    raise KeyboardInterrupt


def main() -> None:
    """Standard input to standard output; a fault of the harness itself is an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    collect_seldom()
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=BugJob)
    output, sys.stdout = sys.stdout, sys.stderr  # whatever prints must not spoil the answer

    def tell(message: PartStarted | FaultSearchResult) -> None:
        output.write(msgspec.json.encode(message).decode() + "\n")
        output.flush()

    tell(run(job, tell))


if __name__ == "__main__":
    main()
