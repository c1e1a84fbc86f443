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
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import TypeAlias

import msgspec

from conformance.bugs.reach import reached_statements
from conformance.bugs.subject import Raiser, SearchSubject, raised_in
from conformance.config import Settings
from conformance.events import ComparedModel, Event, Finding, Reason, StageFinished
from conformance.garbage import collect_seldom
from conformance.modelcheck.manifest import Model, reference
from conformance.modelcheck.pictures import picture_of
from conformance.replay.engine import Divergence, Driver, close, run_path
from conformance.replay.interruptions import interrupt_steps
from conformance.replay.minimise import minimise
from conformance.replay.nearest import nearest_failure
from conformance.replay.oracle import Oracle
from conformance.replay.profile import Profile
from conformance.replay.saved import save
from conformance.replay.shorten import shortest_failure
from conformance.replay.telling import finding
from conformance.replay.turns import can_take_turns, take_turns
from conformance.stages.context import (
    Context,
    Workbench,
    announce_benches,
    one_model,
    workbench,
)
from conformance.stages.explore import explore, search_of
from conformance.stages.held import compared_model
from conformance.stages.interleave import interruptible
from conformance.stages.reasons import reasons
from conformance.stages.replay import locator, sourced
from conformance.story.kind import BehaviourKind
from conformance.systems.bundled import import_name
from conformance.tla import Action, State
from conformance.traces.store import TraceStore
from conformance.verdict import Verdict

_NEAREST_STEPS = 20_000
"""How far to look for a shorter counterexample than the one found."""
SUITE, INTERRUPTED, TURNS = "transition suite", "interrupted steps", "turns of the threads"
HYPOTHESIS, BULK = "Hypothesis", "bulk traces"
ORACLES = (SUITE, TURNS, INTERRUPTED, HYPOTHESIS)
"""Those that look at one model at a time."""
MEETINGS = 20
"""States in which each pair of actions is interleaved."""
_LENGTH = 30
"""Steps of a random walk in which the threads' own loops run."""
_EXAMPLES_PER_SECOND = 10
"""Of the processor; an example has some 30 steps."""


class SearchAttempt(msgspec.Struct, frozen=True):
    """One oracle on one model: what is repeated on the clean tree before a kill counts."""

    oracle: str
    model: str
    size: int = 0
    """The test's number, or how many walks, meetings or examples; the seed is the job's."""


class BugJob(msgspec.Struct, frozen=True):
    """What to run against the implementation that this process imports."""

    models: tuple[str, ...]
    system: str
    """What drives it; empty: what each model names."""
    seed: int
    traces: int
    """Recorded and audited if nothing found it before; 0: not at all."""
    examples: int
    package: str = "impl"
    folder: str = ""
    """The package must be imported from this folder, or the faulty copy is not what is run."""
    noted: bool = False
    """Whether the copy notes when it comes by changed statements."""
    interleave_first: bool = False
    """For a fault of which it is known that threads have to meet."""
    shorten: bool = True
    """Whether the way to a divergence of the suite is shortened, and a nearer one looked for."""
    budget: float = 0.0
    """Seconds of the processor after which nothing is begun; 0: no limit."""
    save_to: str = ""
    """Where to keep the divergence as an ITF file, if anywhere."""
    only: SearchAttempt | None = None
    """Nothing but this."""
    without: tuple[SearchAttempt, ...] = ()
    """Oracles that find something in the clean tree, with their models: they kill nothing."""


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
    noted: bool = False
    """Whether the copy noted when it came by a change."""
    reached: tuple[str, ...] = ()
    """The models that were seen to come by a change; all that were begun if nothing was noted."""
    attempt: SearchAttempt | None = None
    """What killed it."""
    by_adapter: bool = False
    """The adapter raised, not the implementation: it may be that the adapter does not fit."""
    parts: int = 0
    """How many oracles there were to ask, each of each model."""
    clean_failures: tuple[str, ...] = ()
    """What the same oracles find in the clean tree: it is no kill, but has to be looked at."""


class BudgetSpent(Exception):
    """There is no time left; raised in the midst of an oracle, where it looks at the time."""


class _Effort:
    """What was driven until now, and whether there is time for more.

    A part is an oracle on a model. It is covered when the oracle has come to its end, however
    often it was asked for some of its tests before.
    """

    def __init__(
        self, job: BugJob, models: Sequence[Model], tell: Callable[[PartStarted], None]
    ) -> None:
        self.traces = self.steps = 0
        self.started = time.process_time()
        self._until = self.started + job.budget if job.budget else math.inf
        self._tell = tell
        names = [f"{oracle} of {model.name}" for oracle in ORACLES for model in models]
        self._left = dict.fromkeys([*names, *([BULK] if job.traces else [])], "")
        self.parts = len(self._left)
        self._covered: list[str] = []

    def may_begin(self, part: str) -> bool:
        """Whether this is still to be done, and there is time left for it."""
        if self.is_over or part not in self._left:
            return False
        self._tell(PartStarted(part, len(self._covered), self.parts))
        return True

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return time.process_time() > self._until

    def examples_in_time(self) -> float:
        """About so many examples of Hypothesis fit into what is left of the budget."""
        return max(1.0, _EXAMPLES_PER_SECOND * (self._until - time.process_time()))

    @property
    def seconds(self) -> float:
        """Of the processor, since the beginning."""
        return round(time.process_time() - self.started, 3)

    def look_at_the_time(self, _event: Event) -> None:
        """Raise BudgetSpent if there is none; for an oracle that tells how it proceeds."""
        if self.is_over:
            raise BudgetSpent

    def finish(self, part: str) -> None:
        """A part has come to its end."""
        if part in self._left:
            del self._left[part]
            self._covered.append(part)

    def leave(self, part: str, undone: str) -> None:
        """A part was begun; this is left of it."""
        if part in self._left:
            self._left[part] = undone

    @property
    def covered(self) -> list[str]:
        """Each part that came to its end."""
        return self._covered

    @property
    def undone(self) -> list[str]:
        """What is left to be done."""
        return [undone or part for part, undone in self._left.items()]

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
            seconds=self.seconds,
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
    """The gate's oracles in rounds, small ones first, until one finds the fault."""
    _ensure_copy(job)
    models = sorted(map(one_model, job.models), key=_size)
    effort = _Effort(job, models, tell)
    # Stages keep files and stores for themselves: what is to stay is copied to where the job says.
    with tempfile.TemporaryDirectory(prefix="kconform-bugs-") as folder:
        settings = msgspec.structs.replace(Settings(), output=folder)
        search = _Search(Context(settings, seed=job.seed), job, models, effort)
        try:
            result = search.run()
        finally:
            search.close()
    return msgspec.structs.replace(
        result,
        covered=tuple(effort.covered),
        reached=search.reached,
        parts=effort.parts,
    )


@dataclass(frozen=True, slots=True)
class _Hit:
    """A divergence, the oracle that knows its steps, and what of the gate's was asked."""

    divergence: Divergence
    oracle: Oracle
    attempt: SearchAttempt


@dataclass(frozen=True, slots=True)
class _SearchRound:
    """An oracle asked for a part of its work: tests until so many steps, walks, meetings."""

    oracle: str
    size: float
    last: bool = False
    """Whether nothing is left of this oracle afterwards."""


_Rounds: TypeAlias = tuple[_SearchRound, ...]
_PROBE: _Rounds = (_SearchRound(SUITE, 300),)
"""Of every model, the smallest first: it shows which of them come by the change."""
_MEETING: _Rounds = (_SearchRound(INTERRUPTED, 2), _SearchRound(INTERRUPTED, MEETINGS))
"""Before all others, for a change that shows where threads meet."""
_QUICK: _Rounds = (
    _SearchRound(SUITE, 2_000),
    _SearchRound(TURNS, 60),
    _SearchRound(INTERRUPTED, 2),
    _SearchRound(SUITE, 6_000),
    _SearchRound(SUITE, 15_000),
    _SearchRound(HYPOTHESIS, 20),
)
"""First of the models that come by the change, then of the others."""
_COMPLETE: _Rounds = (
    _SearchRound(SUITE, math.inf, last=True),
    _SearchRound(TURNS, 200, last=True),
    _SearchRound(INTERRUPTED, MEETINGS, last=True),
    _SearchRound(HYPOTHESIS, math.inf, last=True),
)
"""What is left, in the same order of models."""


class _Search:
    """One copy's search. Models are made ready when they are first asked."""

    def __init__(
        self, context: Context, job: BugJob, models: Sequence[Model], effort: _Effort
    ) -> None:
        self._context, self._job, self._order, self._effort = context, job, models, effort
        self._subjects: dict[str, SearchSubject] = {}
        self._asked = ""
        self._without = {(attempt.oracle, attempt.model) for attempt in job.without}
        announce_benches(context, models, job.system or None)

    def close(self) -> None:
        """End the systems that were made."""
        for subject in self._subjects.values():
            subject.close()

    @property
    def reached(self) -> tuple[str, ...]:
        """The models that were seen to come by a change."""
        return tuple(name for name, subject in self._subjects.items() if subject.reaches)

    def run(self) -> FaultSearchResult:
        """The rounds in their order, until one finds something or the time is over."""
        try:
            for subject, part in self._schedule():
                result = self._ask(subject, part)
                if result is not None:
                    return result
            if self._job.traces and self._effort.may_begin(BULK):
                return self._bulk()
        except BudgetSpent:
            pass
        except Exception as error:
            result = _does_not_start(error, self._asked, self._job, self._effort)
            if result is None:
                raise
            return result
        return _survived(self._effort)

    def _bulk(self) -> FaultSearchResult:
        wanted = [model for model in self._order if self._job.only in (None, self._bulk_of(model))]
        benches = [self._subject(model).bench for model in wanted]
        result = _bulk(self._context, benches, self._job, self._effort)
        self._effort.finish(BULK)
        return result

    def _bulk_of(self, model: Model) -> SearchAttempt:
        return SearchAttempt(BULK, reference(model), self._job.traces)

    def _schedule(self) -> Iterator[tuple[SearchSubject, _SearchRound]]:
        only = self._job.only
        if only is not None:
            if only.oracle != BULK:
                yield self._subject(one_model(only.model)), _SearchRound(only.oracle, only.size)
            return
        for part in _PROBE:
            yield from ((self._subject(model), part) for model in self._order)
        rounds: _Rounds
        first = (_MEETING,) if self._job.interleave_first else ()
        for rounds in (*first, _QUICK, _COMPLETE):
            for reaching in (True, False):
                group = [s for s in self._subjects.values() if s.reaches is reaching]
                yield from ((subject, part) for part in rounds for subject in group)

    def _subject(self, model: Model) -> SearchSubject:
        self._asked = reference(model)
        if model.name not in self._subjects:
            if self._effort.is_over:
                raise BudgetSpent
            bench = workbench(self._context, model, self._job.system or None)
            notes = reached_statements(self._job.package) if self._job.noted else None
            self._subjects[model.name] = SearchSubject(bench, notes)
        return self._subjects[model.name]

    def _ask(self, subject: SearchSubject, part: _SearchRound) -> FaultSearchResult | None:
        self._asked = reference(subject.bench.model)
        name = f"{part.oracle} of {subject.name}"
        if (part.oracle, self._asked) in self._without or not self._effort.may_begin(name):
            return None
        if part.oracle == HYPOTHESIS:
            killed = self._explore(subject, part)
        else:
            hit = _DRIVES[part.oracle](subject, part, self._job, self._effort)
            killed = None if hit is None else _kill(subject.bench, hit, self._job, self._effort)
        subject.look_at_notes()
        if killed is not None or part.last:
            self._effort.finish(name)
        return killed

    def _explore(self, subject: SearchSubject, part: _SearchRound) -> FaultSearchResult | None:
        examples = int(min(part.size, self._job.examples, self._effort.examples_in_time()))
        return _explore(self._context, subject.bench, self._job, self._effort, examples)


def _size(model: Model) -> tuple[int, str]:
    """Small models first; one of which nothing is known comes last."""
    states = model.expect.distinct_states if model.expect is not None else None
    return (states if states is not None else sys.maxsize, model.name)


def _survived(effort: _Effort, note: str = "") -> FaultSearchResult:
    """Nothing found it; what there was no time for is said in the note."""
    undone = f"no time for {', '.join(effort.undone)}" if effort.undone else ""
    return FaultSearchResult(
        killed=False,
        traces=effort.traces,
        steps=effort.steps,
        seconds=effort.seconds,
        note="; ".join(part for part in (note, undone) if part),
    )


def _kill(bench: Workbench, hit: _Hit, job: BugJob, effort: _Effort) -> FaultSearchResult:
    """A kill whose path was driven; kept where the job says."""
    if job.shorten and hit.attempt.oracle == SUITE and not effort.is_over:
        hit = replace(hit, divergence=_shortened(bench, hit.oracle, hit.divergence))
    divergence, oracle, attempt = hit.divergence, hit.oracle, hit.attempt
    because = _because(attempt.oracle, bench, divergence)
    result = effort.discovery(attempt.oracle, bench, divergence, oracle, because)
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
    adapter = divergence.kind is BehaviourKind.RAISED and (
        raised_in(divergence.detail, Path(job.folder)) is Raiser.ADAPTER
    )
    return msgspec.structs.replace(result, attempt=attempt, by_adapter=adapter)


def _does_not_start(
    error: Exception, model: str, job: BugJob, effort: _Effort
) -> FaultSearchResult | None:
    """A system that cannot be made, by its own exception; None if the harness raised it."""
    detail = traceback.format_exc(limit=-12)
    raiser = raised_in(detail, Path(job.folder))
    if raiser is Raiser.HARNESS:
        return None
    return FaultSearchResult(
        killed=True,
        oracle=SUITE,
        model=model,
        traces=effort.traces,
        steps=effort.steps,
        seconds=effort.seconds,
        title=f"the system does not start: {type(error).__name__}: {error}"[:300],
        story=tuple(detail.splitlines()),
        attempt=SearchAttempt(SUITE, model),
        by_adapter=raiser is Raiser.ADAPTER,
    )


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


def _replay(
    subject: SearchSubject, part: _SearchRound, job: BugJob, effort: _Effort
) -> _Hit | None:
    """Tests of the minimal transition suite, until so many steps were driven in all."""
    name = f"{SUITE} of {subject.name}"
    if job.only is not None:
        return _test(subject, job.only.size, effort)
    while subject.left and subject.steps < part.size:
        effort.leave(name, f"{len(subject.left):,} of {len(subject.suite):,} tests of the {name}")
        if effort.is_over:
            raise BudgetSpent
        hit = _test(subject, subject.next_test(), effort)
        if hit is not None:
            return hit
    if not subject.left:
        effort.finish(name)
    return None


def _test(subject: SearchSubject, number: int, effort: _Effort) -> _Hit | None:
    before = subject.steps
    divergence = subject.drive(number)
    effort.traces += 1
    effort.steps += subject.steps - before
    if divergence is None:
        return None
    return _Hit(divergence, subject.oracle, SearchAttempt(SUITE, subject.reference, number))


def _interleave(
    subject: SearchSubject, part: _SearchRound, job: BugJob, effort: _Effort
) -> _Hit | None:
    """One thread's action stopped for another's; the state in which they meet is the nearest."""
    bench = subject.bench
    if not interruptible(bench):
        effort.finish(f"{INTERRUPTED} of {subject.name}")
        return None
    result = interrupt_steps(
        bench.graph,
        bench.make_system,
        samples=int(part.size),
        seed=job.seed,
        emit=effort.look_at_the_time,
    )
    effort.traces += result.paths
    effort.steps += result.steps
    nearest = min(result.divergences, key=lambda divergence: divergence.step, default=None)
    if nearest is None:
        return None
    return _Hit(
        nearest, subject.oracle, SearchAttempt(INTERRUPTED, subject.reference, int(part.size))
    )


def _take_turns(
    subject: SearchSubject, part: _SearchRound, job: BugJob, effort: _Effort
) -> _Hit | None:
    """The order in which a thread's own loop takes the steps, and its back-off."""
    bench = subject.bench
    if not can_take_turns(bench.make_system):
        effort.finish(f"{TURNS} of {subject.name}")
        return None
    oracle, result = take_turns(
        subject.oracle,
        bench.make_system,
        walks=int(part.size),
        length=_LENGTH,
        seed=job.seed,
        emit=effort.look_at_the_time,
    )
    effort.traces += result.walks
    effort.steps += result.steps
    if result.divergence is None:
        return None
    return _Hit(result.divergence, oracle, SearchAttempt(TURNS, subject.reference, int(part.size)))


_DRIVES: Mapping[str, Callable[[SearchSubject, _SearchRound, BugJob, _Effort], _Hit | None]] = (
    MappingProxyType({SUITE: _replay, TURNS: _take_turns, INTERRUPTED: _interleave})
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


def _again(
    bench: Workbench, oracle: Oracle, initial: State, actions: Sequence[Action]
) -> Divergence | None:
    system = bench.make_system()
    try:
        return run_path(Driver(system, oracle), initial, actions).divergence
    finally:
        close(system)


def _explore(
    context: Context, bench: Workbench, job: BugJob, effort: _Effort, examples: int
) -> FaultSearchResult | None:
    events: list[Event] = []
    watched = Context(context.settings, events.append, context.check, context.seed)
    search = search_of(watched, bench, profile=Profile.CI, examples=examples)
    result = explore(watched, bench, search)
    effort.traces += result.examples
    effort.steps += result.steps
    if result.divergence is None:
        return None
    evidence = next(event for event in events if isinstance(event, Finding))
    name = HYPOTHESIS if not result.invariant else f"invariant {result.invariant}"
    killed = effort.killed(name, bench, evidence)
    attempt = SearchAttempt(HYPOTHESIS, reference(bench.model), examples)
    return _kept(msgspec.structs.replace(killed, attempt=attempt), job)


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
                attempt = SearchAttempt(BULK, reference(bench.model), job.traces)
                return _kept(msgspec.structs.replace(fault_search_result, attempt=attempt), job)
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
