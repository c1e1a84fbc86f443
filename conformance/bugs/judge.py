"""Judges mutants by the gate's oracles, in a process that forks one child for each.

State graphs, suites and specs are made ready once; a child forgets the clean implementation,
imports the mutated copy, and is driven until something diverges. Reads a `JudgeJob` (JSON) from
standard input, writes one line (JSON) for each mutant: a `Verdicts`.
"""

from __future__ import annotations

import importlib
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import msgspec

from conformance.bugs.fault import copied
from conformance.bugs.mutants import Mutant
from conformance.bugs.reach import MODULE, note_reached
from conformance.replay.engine import Driver, close, run_path
from conformance.replay.interruptions import interrupt_steps
from conformance.replay.oracle import GraphOracle
from conformance.stages.context import Context, Workbench, one_model, workbench
from conformance.stages.interleave import interruptible
from conformance.suites.postman import transition_cover
from conformance.suites.suite import Suite

_KEPT = ("conformance.systems.protocol", "conformance.systems.registry")
"""Modules of the adapters' package that import nothing of the implementation."""
_HARD_LIMIT = 90.0
"""Seconds beyond its own limit after which a child is taken for endless."""
_RAISED = b"raised "
"""What a child says whose work ended with an exception that no oracle expected."""
_MEETINGS = 2
"""States in which each pair of actions is interleaved."""


class JudgeJob(msgspec.Struct, frozen=True):
    """What to judge. `models` by name, with the number of the mutants' files that each drives."""

    mutants: tuple[Mutant, ...]
    models: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    """By model: the files of the implementation that its system imports."""
    seed: int
    seconds: float
    """For one mutant."""
    judged: tuple[str, ...] = ()
    """Ids of those that were judged before."""
    package: str = "impl"


class Judgement(msgspec.Struct, frozen=True):
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


@dataclass(frozen=True, slots=True)
class _Bench:
    name: str
    bench: Workbench
    suite: Suite
    oracle: GraphOracle


def judge(job: JudgeJob) -> Iterator[Judgement]:
    """One judgement after the other, in the order of the mutants."""
    left = [mutant for mutant in job.mutants if mutant.id not in job.judged]
    if not left:
        return
    benches = sorted(
        (_ready(name, Context(seed=job.seed)) for name in job.models),
        key=lambda one: one.suite.steps,
    )
    reached = {one.name: _reached(one, left, job) for one in benches}
    for number, mutant in enumerate(left):
        fitting = [one for one in benches if number in reached[one.name]]
        yield _judge(mutant, fitting, job)


def _ready(name: str, context: Context) -> _Bench:
    bench = workbench(context, one_model(name))
    return _Bench(name, bench, transition_cover(bench.graph), GraphOracle(bench.graph))


def _reached(one: _Bench, mutants: Sequence[Mutant], job: JudgeJob) -> frozenset[int]:
    """The numbers of the mutants whose statements the model's suite runs."""
    if not any(mutant.file in job.files[one.name] for mutant in mutants):
        return frozenset()

    def drive() -> bytes:
        step = _replay(one, None)
        if step.killed:
            raise RuntimeError(f"the clean implementation fails {one.name}: {step.title}")
        notes = importlib.import_module(f"{job.package}.{MODULE}")
        return msgspec.json.encode(sorted(notes.REACHED))

    with copied(job.package) as folder:
        note_reached(folder / job.package, mutants)
        answer = _in_child(drive, folder, job.package, None)
    if answer is None or answer.startswith(_RAISED):
        told = "" if answer is None else answer.decode(errors="replace")
        raise RuntimeError(f"the clean implementation cannot be driven along {one.name}: {told}")
    return frozenset(msgspec.json.decode(answer, type=list[int]))


def _judge(mutant: Mutant, benches: Sequence[_Bench], job: JudgeJob) -> Judgement:
    if not benches:
        return Judgement(mutant.id, killed=False)
    started = time.monotonic()

    def drive() -> bytes:
        return msgspec.json.encode(_drive(mutant, benches, job, started + job.seconds))

    with _mutated(mutant, job.package) as folder:
        answer = _in_child(drive, folder, job.package, job.seconds + _HARD_LIMIT)
    seconds = round(time.monotonic() - started, 3)
    if answer is None or answer.startswith(_RAISED):
        oracle = "time limit" if answer is None else "exception"
        title = "" if answer is None else answer.removeprefix(_RAISED).decode(errors="replace")
        return Judgement(
            mutant.id,
            killed=True,
            oracle=oracle,
            title=title,
            seconds=seconds,
            reached=len(benches),
        )
    found = msgspec.json.decode(answer, type=Judgement)
    return msgspec.structs.replace(found, seconds=seconds, reached=len(benches))


@contextmanager
def _mutated(mutant: Mutant, package: str) -> Iterator[Path]:
    with copied(package) as folder:
        path = folder / package / mutant.file
        path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
        yield folder


def _drive(mutant: Mutant, benches: Sequence[_Bench], job: JudgeJob, deadline: float) -> Judgement:
    """The suites of the models that reach it, small ones first; then interrupted steps."""
    steps, undone = 0, []
    for oracle, run in (("transition suite", _replay), ("interrupted steps", _interrupt)):
        for one in benches:
            if time.monotonic() > deadline:
                undone.append(f"{oracle} of {one.name}")
                continue
            found = run(one, deadline, job.seed)
            steps += found.steps
            if found.undone:
                undone.append(found.undone)
            if found.killed:
                return msgspec.structs.replace(found, mutant=mutant.id, oracle=oracle, steps=steps)
    return Judgement(mutant.id, killed=False, steps=steps, undone="; ".join(undone))


def _replay(one: _Bench, deadline: float | None, _seed: int = 0) -> Judgement:
    """The whole suite, longest tests first. That no system can be made is a kill too."""
    steps = 0
    try:
        system = one.bench.make_system()
    except Exception as error:  # noqa: BLE001 - whatever a mutant raises
        return Judgement("", killed=True, model=one.name, title=f"does not start: {error!r}"[:300])
    try:
        driver = Driver(system, one.oracle)
        graph = one.bench.graph
        for test in sorted(one.suite.tests, key=len, reverse=True):
            actions = (graph.actions[code] for code in graph.action[test.edges].tolist())
            outcome = run_path(driver, graph.states[test.initial], actions)
            steps += outcome.steps
            if outcome.divergence is not None:
                found = outcome.divergence
                title = f"{found.action}: {found.kind}"[:300]
                return Judgement("", killed=True, model=one.name, steps=steps, title=title)
            if deadline is not None and time.monotonic() > deadline:
                undone = f"the rest of {one.name}"
                return Judgement("", killed=False, steps=steps, undone=undone)
    finally:
        close(system)
    return Judgement("", killed=False, steps=steps)


def _interrupt(one: _Bench, _deadline: float | None, seed: int) -> Judgement:
    if not interruptible(one.bench):
        return Judgement("", killed=False)
    result = interrupt_steps(one.bench.graph, one.bench.make_system, samples=_MEETINGS, seed=seed)
    title = f"{result.divergences[0].action}"[:300] if result.divergences else ""
    return Judgement(
        "",
        killed=bool(result.divergences),
        model=one.name,
        steps=result.steps,
        title=title,
    )


# ---- children ------------------------------------------------------------------------------


def _in_child(
    work: Callable[[], bytes], folder: Path, package: str, timeout: float | None
) -> bytes | None:
    """What `work` gives in a fork that imports the package from `folder`; None if it never ends."""
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work_and_leave(work, folder, package, writing)
    os.close(writing)
    try:
        return _answer(reading, timeout)
    finally:
        os.close(reading)
        _end(child)


def _work_and_leave(work: Callable[[], bytes], folder: Path, package: str, writing: int) -> None:
    """In the child: never returns, and runs nothing of its parent's clean-up."""
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _import_from(folder, package)
        with os.fdopen(writing, "wb") as pipe:
            try:
                pipe.write(work())
            except BaseException as error:  # noqa: BLE001 - a mutant may raise what it likes
                pipe.write(_RAISED + repr(error).encode()[:300])
        code = 0
    finally:
        os._exit(code)


def _import_from(folder: Path, package: str) -> None:
    """Forget the clean implementation, and the adapters that hold on to it."""
    for name in list(sys.modules):
        adapter = name.startswith("conformance.systems.") and name not in _KEPT
        if name == package or name.startswith(f"{package}.") or adapter:
            del sys.modules[name]
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    origin = importlib.import_module(package).__file__
    if origin is None or not Path(origin).is_relative_to(folder):
        raise RuntimeError(f"{package} comes from {origin}, not from {folder}")


def _answer(reading: int, timeout: float | None) -> bytes | None:
    """All that the child writes, None if that takes too long or it ends without a word."""
    deadline = None if timeout is None else time.monotonic() + timeout
    parts: list[bytes] = []
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([reading], [], [], left)
        if not ready:
            return None
        part = os.read(reading, 65_536)
        if not part:
            return b"".join(parts) or None
        parts.append(part)


def _end(child: int) -> None:
    """Kill it if it is still there, and take note of its end."""
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.waitpid(child, 0)


def _interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Standard input to standard output."""
    signal.signal(signal.SIGTERM, _interrupted)
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=JudgeJob)
    output, sys.stdout = sys.stdout, sys.stderr
    scratch = tempfile.mkdtemp(prefix="kconform-mutants-")
    tempfile.tempdir = scratch
    try:
        for judgement in judge(job):
            output.write(msgspec.json.encode(judgement).decode() + "\n")
            output.flush()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
