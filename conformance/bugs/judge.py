"""Judges mutants by the gate's oracles, in a process that forks one child for each.

State graphs, suites and specs are made ready once. Which tests of a suite come by which statement
is found once too, and kept by the digest of what was run. Reads a `JudgeJob` (JSON) from standard
input. Writes one message (JSON) a line: a `PreparedSuite` for each suite, one `MutantSample`, then
a `MutantJudgement` for each mutant.
"""

from __future__ import annotations

import gc
import signal
import sys
import tempfile
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from types import FrameType
from typing import TypeAlias

import msgspec

from conformance.bugs.covered import CoveredStatements
from conformance.bugs.forks import ForkTask, TaskOutcome, forks, rewrite
from conformance.bugs.mutants import LOCK, Draw, Mutant, draw, named
from conformance.bugs.reach import (
    ReachOfEachTest,
    Statement,
    StatementReach,
    note_reached,
    statements_of,
)
from conformance.bugs.worker import INTERRUPTED, SUITE, TURNS
from conformance.errors import ExitCode
from conformance.garbage import collect_seldom
from conformance.modelcheck.cache import Cache, cache_dir, cache_key
from conformance.modelcheck.manifest import Model
from conformance.replay.engine import Driver, run_path
from conformance.replay.interruptions import interrupt_steps
from conformance.replay.oracle import GraphOracle
from conformance.replay.turns import can_take_turns, take_turns
from conformance.stages.context import (
    Context,
    Workbench,
    announce_benches,
    one_model,
    workbench,
)
from conformance.stages.interleave import interruptible
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite

_ROUNDS = (1, 8, 64, None)
"""How many of the tests that reach a mutant are driven of each model, before the next round."""
_FOLLOWING = 3
"""How many statements behind the changed one tell tests apart: what it decides shows in them."""
_MEETINGS = 2
"""States in which each pair of actions is interleaved."""
_WALKS, _LENGTH = 60, 30
"""Random walks in which the threads' own loops run."""
_NOTED_STEPS = 3_000
"""So many steps of a suite are noted, its longest tests. A statement that these do not come by
counts as not reached."""
_NOTING_SECONDS = 1_800.0
"""Of the processor, for one model's suite."""
_GRACE = 2.0
"""A child is given so many times what a mutant is, as one oracle is not stopped in its middle."""


class JudgeJob(msgspec.Struct, frozen=True):
    """What to judge: `number` mutants, drawn by `seed` from the files that the models cover."""

    models: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    """By model: the files of the implementation that its system imports."""
    root: str
    """The clean implementation's folder."""
    adapters: Mapping[str, tuple[str, ...]]
    """By model: the files of the adapter, whose change makes notes worthless."""
    number: int
    seed: int
    seconds: float
    """Of the processor, for one mutant."""
    jobs: int = 1
    only: tuple[str, ...] = ()
    """Files; none: all."""
    judged: tuple[str, ...] = ()
    """Ids of those that were judged before."""
    named: tuple[str, ...] = ()
    """Ids; where there are any, these mutants are judged and none is drawn."""
    package: str = "impl"


class PreparedSuite(msgspec.Struct, frozen=True, tag=True):
    """A model's suite is ready, and what it reaches known."""

    model: str
    done: int
    total: int


class MutantSample(msgspec.Struct, frozen=True, tag=True):
    """What is judged. `aside`: how many were not drawn from, by reason."""

    mutants: tuple[Mutant, ...]
    population: int
    aside: Mapping[str, int]


class MutantJudgement(msgspec.Struct, frozen=True, tag=True):
    """What the oracles made of one mutant."""

    mutant: str
    killed: bool
    oracle: str = ""
    model: str = ""
    steps: int = 0
    seconds: float = 0.0
    title: str = ""
    reached: int = 0
    """By how many models."""
    undone: str = ""
    """What there was no time for."""


Message: TypeAlias = PreparedSuite | MutantSample | MutantJudgement


@dataclass(frozen=True)
class _MutantBench:
    """A model made ready. `statements`: those of its system's files, numbered as in `reach`."""

    name: str
    bench: Workbench
    suite: Suite
    oracle: GraphOracle
    statements: Mapping[Statement, int]
    reach: StatementReach = field(default_factory=StatementReach.of_nothing)

    @cached_property
    def order(self) -> list[int]:
        """The suite's tests, longest first: they find a deep change sooner."""
        tests = self.suite.tests
        return sorted(range(len(tests)), key=lambda number: -len(tests[number]))

    @cached_property
    def noted(self) -> list[int]:
        """The tests that the rows of `reach` are of."""
        steps = list(accumulate(len(self.suite.tests[number]) for number in self.order))
        return self.order[: bisect_left(steps, _NOTED_STEPS) + 1]

    def rows(self, statement: Statement) -> list[int]:
        """The noted tests that run the statement, longest first."""
        number = self.statements.get(statement)
        return [] if number is None else self.reach.tests(number)

    def tests(self, rows: Iterable[int]) -> list[int]:
        """These of the noted tests, then those of which nothing is known."""
        noted = self.noted
        return [*(noted[row] for row in rows), *self.order[len(noted) :]]


def judge(job: JudgeJob) -> Iterator[Message]:
    """One judgement after the other, in the order in which they are made."""
    ready = _ready(job)
    benches: list[_MutantBench] = []
    for bench in _with_reach(ready, job):
        benches.append(bench)
        yield PreparedSuite(bench.name, len(benches), len(ready))
    benches.sort(key=lambda bench: bench.suite.steps)
    drawn = _drawn(job, benches)
    yield MutantSample(drawn.mutants, drawn.population, drawn.aside)
    left = [mutant for mutant in drawn.mutants if mutant.id not in job.judged]
    # What is here now is shared with all children as long as nobody counts references to it.
    gc.collect()
    gc.freeze()
    yield from _judgements(left, benches, job)


def _drawn(job: JudgeJob, benches: Sequence[_MutantBench]) -> Draw:
    root = Path(job.root)
    if job.named:
        return Draw(named(root, job.named), len(job.named), {})
    covered = CoveredStatements.of(root, _reached(benches))
    wanted = [file for file in covered.modules if not job.only or file in job.only]
    return draw(root, wanted, job.number, job.seed, covered.set_aside)


def _ready(job: JudgeJob) -> list[_MutantBench]:
    """Parsed together: that costs one JVM, not one for each model."""
    context = Context(seed=job.seed)
    models = [one_model(name) for name in job.models]
    announce_benches(context, models, None)
    return [_bench(context, model, job) for model in models]


def _bench(context: Context, model: Model, job: JudgeJob) -> _MutantBench:
    bench = workbench(context, model)
    suite = transition_cover(bench.graph)
    numbers = _numbers(job.root, job.files[model.name])
    return _MutantBench(model.name, bench, suite, GraphOracle(bench.graph), numbers)


@cache  # the models of a system have the same
def _numbers(root: str, files: tuple[str, ...]) -> Mapping[Statement, int]:
    return {statement: number for number, statement in enumerate(statements_of(Path(root), files))}


# ---- what reaches which statement ----------------------------------------------------------


def _with_reach(benches: Sequence[_MutantBench], job: JudgeJob) -> Iterator[_MutantBench]:
    """Each with what its suite reaches: as noted before, or noted now."""
    cache = Cache(cache_dir())
    keys = {bench.name: _reach_key(bench, job) for bench in benches}
    unknown: list[_MutantBench] = []
    for bench in benches:
        content = cache.load("reach", keys[bench.name])
        if content is None:
            unknown.append(bench)
        else:
            yield _reaching(bench, content)
    by_name = {bench.name: bench for bench in unknown}
    with forks(job.package, job.jobs) as children:
        for answer in children.run(_noting_task(bench, job) for bench in unknown):
            if not answer.content:
                reason = answer.raised or "it did not end"
                raise RuntimeError(f"{answer.key} cannot be driven along a clean copy: {reason}")
            cache.store("reach", keys[answer.key], answer.content)
            yield _reaching(by_name[answer.key], answer.content)


def _reach_key(bench: _MutantBench, job: JudgeJob) -> str:
    files = [Path(job.root) / file for file in job.files[bench.name]]
    adapter = [Path(file) for file in job.adapters[bench.name]]
    parts = ["reach", bench.name, bench.suite.graph_digest, str(_NOTED_STEPS)]
    return cache_key(parts, [*files, *adapter])


def _reaching(bench: _MutantBench, content: bytes) -> _MutantBench:
    reach = StatementReach.from_bytes(content, len(bench.statements))
    return _MutantBench(bench.name, bench.bench, bench.suite, bench.oracle, bench.statements, reach)


def _noting_task(bench: _MutantBench, job: JudgeJob) -> ForkTask:
    def drive() -> bytes:
        driven = _SuiteDriver(bench)
        noting = ReachOfEachTest(job.package, len(bench.statements))
        for number in bench.noted:
            noting.begin()
            title = driven.test(number)
            if title:
                raise RuntimeError(f"the clean implementation fails: {title}")
            noting.end()
        return noting.reach().to_bytes()

    def change(package: Path) -> None:
        note_reached(package, tuple(bench.statements))

    return ForkTask(bench.name, drive, change, _NOTING_SECONDS)


def _reached(benches: Sequence[_MutantBench]) -> Mapping[str, frozenset[int]]:
    """By file that a system imports: the offsets of the statements that a suite reaches."""
    result: dict[str, set[int]] = {}
    for bench in benches:
        numbers = bench.reach.statements
        for statement, number in bench.statements.items():
            result.setdefault(statement.file, set()).update(
                [statement.start] if number in numbers else []
            )
    return {file: frozenset(offsets) for file, offsets in result.items()}


# ---- one mutant ----------------------------------------------------------------------------


def _judgements(
    mutants: Sequence[Mutant], benches: Sequence[_MutantBench], job: JudgeJob
) -> Iterator[MutantJudgement]:
    reaching: dict[str, int] = {}
    by_file: dict[str, set[int]] = defaultdict(set)
    for bench in benches:
        for statement in bench.statements:
            by_file[statement.file].add(statement.start)
    starts = {file: sorted(offsets) for file, offsets in by_file.items()}

    def tasks() -> Iterator[ForkTask]:
        for mutant in mutants:
            fitting = _rarest_first(mutant, benches, starts.get(mutant.file, ()))
            reaching[mutant.id] = len(fitting)
            if fitting:
                yield _judging_task(mutant, fitting, job)

    with forks(job.package, job.jobs) as children:
        for answer in children.run(tasks()):
            yield _judgement(answer, reaching[answer.key])
    yield from (
        MutantJudgement(mutant.id, killed=False) for mutant in mutants if not reaching[mutant.id]
    )


def _rarest_first(
    mutant: Mutant, benches: Sequence[_MutantBench], starts: Sequence[int]
) -> list[tuple[_MutantBench, list[int]]]:
    """The models that come by the mutant's statement, with the tests that do.

    Of all tests those go first that run the rarest of the statements that follow: a condition is
    mostly the same, and a change of it shows where it is not. `starts` are the file's statements.
    """
    here = bisect_left(starts, mutant.statement)
    near = [Statement(mutant.file, at) for at in starts[here : here + 1 + _FOLLOWING]]
    rows = {bench.name: {at: frozenset(bench.rows(at)) for at in near} for bench in benches}
    counts = {at: sum(len(of_bench[at]) for of_bench in rows.values()) for at in near}
    ranked = []
    for bench in benches:
        running = rows[bench.name]
        rarity = {
            row: min(counts[at] for at in near if row in running[at])
            for row in bench.rows(Statement(mutant.file, mutant.statement))
        }
        if rarity:
            tests = bench.tests(sorted(rarity, key=rarity.__getitem__))
            ranked.append((min(rarity.values()), bench, tests))
    return [(bench, tests) for _, bench, tests in sorted(ranked, key=itemgetter(0))]


def _judging_task(
    mutant: Mutant, fitting: Sequence[tuple[_MutantBench, list[int]]], job: JudgeJob
) -> ForkTask:
    """`fitting`: models and those of their tests that may show the mutant, in this order."""

    def drive() -> bytes:
        return msgspec.json.encode(_Trial(mutant, fitting, job).run())

    def change(package: Path) -> None:
        path = package / mutant.file
        rewrite(path, mutant.apply(path.read_text(encoding="utf-8")))

    return ForkTask(mutant.id, drive, change, _GRACE * job.seconds + 60)


def _judgement(answer: TaskOutcome, reached: int) -> MutantJudgement:
    if answer.content:
        judgement = msgspec.json.decode(answer.content, type=MutantJudgement)
    elif answer.ended:
        judgement = MutantJudgement(
            answer.key, killed=True, oracle="exception", title=answer.raised
        )
    else:
        judgement = MutantJudgement(answer.key, killed=True, oracle="time limit")
    return msgspec.structs.replace(judgement, seconds=round(answer.seconds, 3), reached=reached)


class _SuiteDriver:
    """A model's system in this process, driven along tests of its suite."""

    def __init__(self, bench: _MutantBench) -> None:
        self._bench = bench
        self._driver = Driver(bench.bench.make_system(), bench.oracle)
        self.steps = 0

    def test(self, number: int) -> str:
        """Drive one; how it diverges, if it does."""
        graph, test = self._bench.bench.graph, self._bench.suite.tests[number]
        actions = (graph.actions[code] for code in graph.action[test.edges].tolist())
        outcome = run_path(self._driver, self._bench.oracle.state(test.initial), actions)
        self.steps += outcome.steps
        divergence = outcome.divergence
        return "" if divergence is None else f"{divergence.action}: {divergence.kind}"[:300]


class _MutantKilled(Exception):
    """An oracle has found the mutant."""

    def __init__(self, oracle: str, model: str, title: str) -> None:
        super().__init__(title)
        self.oracle, self.model, self.title = oracle, model, title


class _Trial:
    """One mutant, in the process that has imported it: quick and likely oracles first."""

    def __init__(
        self,
        mutant: Mutant,
        fitting: Sequence[tuple[_MutantBench, list[int]]],
        job: JudgeJob,
    ) -> None:
        self._mutant, self._job = mutant, job
        self._fitting = [bench for bench, _ in fitting]
        self._tests = {bench.name: tests for bench, tests in fitting}
        self._driven: dict[str, _SuiteDriver] = {}
        self._undone: dict[str, None] = {}
        self._steps = 0

    def run(self) -> MutantJudgement:
        """Until an oracle finds it, or all have looked, or there is no time left."""
        try:
            for oracle, drive in self._oracles():
                for bench in self._fitting:
                    if time.process_time() > self._job.seconds:
                        self._undone[f"{oracle} of {bench.name}"] = None
                    else:
                        drive(bench)
        except _MutantKilled as killed:
            return MutantJudgement(
                self._mutant.id,
                killed=True,
                oracle=killed.oracle,
                model=killed.model,
                steps=self._total,
                title=killed.title,
            )
        undone = "; ".join(self._undone)
        return MutantJudgement(self._mutant.id, killed=False, steps=self._total, undone=undone)

    @property
    def _total(self) -> int:
        return self._steps + sum(driven.steps for driven in self._driven.values())

    def _oracles(self) -> Iterator[tuple[str, Callable[[_MutantBench], None]]]:
        """Threads have to meet for a lock's absence to show: such a mutant meets them first.

        Turns take a fraction of the time that interruptions take, so they come before them.
        """
        rounds = [(SUITE, self._round(*part)) for part in zip((0, *_ROUNDS), _ROUNDS, strict=False)]
        turns, threads = (TURNS, self._take_turns), (INTERRUPTED, self._interrupt)
        if self._mutant.kind == LOCK:
            return iter([threads, turns, *rounds])
        return iter([*rounds[:2], turns, threads, *rounds[2:]])

    def _round(self, first: int | None, last: int | None) -> Callable[[_MutantBench], None]:
        def drive(bench: _MutantBench) -> None:
            for number in self._tests[bench.name][first:last]:
                self._test(bench, number)
                if time.process_time() > self._job.seconds:
                    self._undone[f"the rest of the {SUITE} of {bench.name}"] = None
                    return

        return drive

    def _test(self, bench: _MutantBench, number: int) -> None:
        if bench.name not in self._driven:
            try:
                self._driven[bench.name] = _SuiteDriver(bench)
            except Exception as error:
                raise _MutantKilled(
                    SUITE, bench.name, f"does not start: {error!r}"[:300]
                ) from error
        title = self._driven[bench.name].test(number)
        if title:
            raise _MutantKilled(SUITE, bench.name, title)

    def _interrupt(self, bench: _MutantBench) -> None:
        if not interruptible(bench.bench):
            return
        result = interrupt_steps(
            bench.bench.graph, bench.bench.make_system, samples=_MEETINGS, seed=self._job.seed
        )
        self._steps += result.steps
        for divergence in result.divergences:
            raise _MutantKilled(INTERRUPTED, bench.name, str(divergence.action)[:300])

    def _take_turns(self, bench: _MutantBench) -> None:
        if not can_take_turns(bench.bench.make_system):
            return
        _, result = take_turns(
            bench.oracle, bench.bench.make_system, walks=_WALKS, length=_LENGTH, seed=self._job.seed
        )
        self._steps += result.steps
        if result.divergence is not None:
            raise _MutantKilled(
                TURNS, bench.name, f"{result.divergence.action}: {result.divergence.kind}"
            )


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Standard input to standard output."""
    signal.signal(signal.SIGTERM, _interrupted)
    collect_seldom()
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=JudgeJob)
    output, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory(prefix="kconform-mutants-") as scratch:
        tempfile.tempdir = scratch
        try:
            for message in judge(job):
                output.write(msgspec.json.encode(message).decode() + "\n")
                output.flush()
        except KeyboardInterrupt:  # whoever started this tells of it
            raise SystemExit(ExitCode.INTERRUPTED) from None


if __name__ == "__main__":
    main()
