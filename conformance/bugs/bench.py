"""Runs faults one by one, each in its own process, and tables what found them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Timer
from types import MappingProxyType
from typing import IO

import msgspec

from conformance.bugs.changes import changed_statements, changes_a_lock
from conformance.bugs.fault import (
    BlindSpot,
    Catalogue,
    Fault,
    PatchMismatch,
    clean_package,
    copied,
    relocated,
)
from conformance.bugs.reach import note_reached
from conformance.bugs.scope import changed_files, driving, systems_of
from conformance.bugs.time_limit import ENDED
from conformance.bugs.worker import BugJob, FaultSearchResult, PartStarted, SearchAttempt
from conformance.children import end_with_us
from conformance.events import Emit, Finding, JsonValue, Progress, StageFinished, StageStarted
from conformance.modelcheck.manifest import reference
from conformance.printable import counted
from conformance.registry import BUILT_IN
from conformance.resources import resource_root
from conformance.systems.bundled import COPY
from conformance.verdict import Verdict, merge

STAGE = "bugs"
FAULT = "fault"


@dataclass(frozen=True, slots=True)
class BugEffort:
    """How hard to look before a fault counts as survived."""

    seed: int = 1
    traces: int = 5_000
    examples: int = 200
    timeout: float = 900.0
    """Seconds for one fault."""
    shorten: bool = True
    """Whether to look for the shortest way to what was found."""
    confirm: bool = True
    """Whether what kills is tried on the clean tree too."""
    budget: float = 0.0
    """Seconds of the processor for one fault; 0: no limit."""


@dataclass(frozen=True, slots=True)
class BugResult:
    """One row of the table."""

    fault: Fault
    search: FaultSearchResult
    unseen: bool
    """Killed by an ordinary test only, for the reason that the catalogue gives."""

    @property
    def verdict(self) -> Verdict:
        """PASS if it was killed, INCONCLUSIVE if nothing could judge it."""
        if not self.search.judged:
            return Verdict.INCONCLUSIVE
        return Verdict.PASS if self.search.killed else Verdict.FAIL

    @property
    def reason(self) -> str:
        """Why the spec does not see it; empty for a fault that it sees."""
        return self.fault.unseen.reason if self.unseen and self.fault.unseen else self.search.note

    def summary(self) -> str:
        """One line: what found it, or that nothing did."""
        result = self.search
        if not result.killed:
            return f"{self.fault.title}: {'NOT found' if result.judged else result.note}"
        length = result.counterexample_length
        after = "" if length is None else f" in {counted(length, 'step')}"
        return f"{self.fault.title}: found by the {result.oracle}{after}"

    def to_json(self) -> dict[str, JsonValue]:
        """The row in the JSON report."""
        result = self.search
        return {
            "bug": self.fault.id,
            "jira": self.fault.jira,
            "title": self.fault.title,
            "tags": list(self.fault.tags),
            "killed": result.killed,
            "oracle": result.oracle or None,
            "model": result.model or None,
            "traces": result.traces,
            "steps": result.steps,
            "seconds": result.seconds,
            "counterexample_length": result.counterexample_length,
            "reason": self.reason,
            "artifact": "" if result.shown is None else result.shown.artifact,
        }


def run_bench(
    catalogues: Sequence[Catalogue], effort: BugEffort, emit: Emit, keep: Path | None = None
) -> list[BugResult]:
    """Run each fault until an oracle finds it; a finding per survivor, one event for the table.

    `keep` is a folder for what killed them, as ITF files.
    """
    started = time.monotonic()
    every = [(catalogue, fault) for catalogue in catalogues for fault in catalogue.faults]
    subject = ", ".join(catalogue.system for catalogue in catalogues)
    emit(StageStarted(STAGE, subject, len(every)))
    results = []
    for number, (catalogue, fault) in enumerate(every):
        emit(Progress(STAGE, number, len(every), f"{fault.id} {fault.title}"))
        file = None if keep is None else keep / f"bug-{fault.id}.itf.json"
        result = run_fault(catalogue, fault, effort, file)
        results.append(result)
        if not result.search.killed:
            emit(survivor(fault, result.search))
        _report(result, emit)
    emit(_finished(subject, catalogues, results, time.monotonic() - started))
    return results


def _report(result: BugResult, emit: Emit) -> None:
    """A fault's end as a stage of its own, with the way to what killed it."""
    fault_search_result, fault = result.search, result.fault
    if fault_search_result.comparison is not None:
        emit(
            replace(
                fault_search_result.comparison,
                system=f"{fault_search_result.comparison.system}, one fault at a time",
            )
        )
    emit(
        StageFinished(
            FAULT,
            f"{fault.id} {fault.jira}",
            result.verdict,
            fault_search_result.seconds,
            result.summary(),
            result.to_json(),
            exhibit=None
            if fault_search_result.shown is None
            else fault_search_result.shown.exhibit,
        )
    )


def _finished(
    subject: str, catalogues: Sequence[Catalogue], results: Sequence[BugResult], seconds: float
) -> StageFinished:
    killed = sum(result.search.killed for result in results)
    by_test = sum(result.search.killed and result.unseen for result in results)
    return StageFinished(
        STAGE,
        subject,
        merge(result.verdict for result in results),
        seconds,
        f"{killed} of {len(results)} faults killed, {by_test} of them by tests of the "
        "implementation alone",
        {"bugs": [result.to_json() for result in results], **_not_applicable(catalogues)},
    )


def _not_applicable(catalogues: Sequence[Catalogue]) -> dict[str, JsonValue]:
    """The bugs that cannot be put in, if there are any among these."""
    rows: list[JsonValue] = [
        {"bug": bug.id, "jira": bug.jira, "title": bug.title, "reason": bug.reason}
        for catalogue in catalogues
        for bug in catalogue.not_applicable
    ]
    return {"not_applicable": rows} if rows else {}


def run_fault(
    catalogue: Catalogue, fault: Fault, effort: BugEffort, keep: Path | None = None
) -> BugResult:
    """One fault: by the tests where the catalogue says that the spec cannot see it.

    A fault whose patch does not apply is not judged: the other faults and stages still say theirs.
    `keep` is the file for what killed it.
    """
    try:
        with relocated(fault) as folder:
            return _run_copy(catalogue, fault, folder, effort, keep)
    except PatchMismatch as error:
        note = str(error).removesuffix(".")
        return BugResult(
            fault, FaultSearchResult(killed=False, judged=False, note=note), unseen=False
        )


def _run_copy(
    catalogue: Catalogue, fault: Fault, folder: Path, effort: BugEffort, keep: Path | None
) -> BugResult:
    if fault.unseen is not None:
        return BugResult(fault, _by_tests(fault, fault.unseen, folder, effort), unseen=True)
    job = job_of(catalogue, effort, fault)
    if keep is not None:
        job = msgspec.structs.replace(job, save_to=str(keep.absolute()))
    result = nearby(search(job, folder, effort.timeout, confirm=effort.confirm), keep)
    return BugResult(fault, result, unseen=False)


def search(
    job: BugJob,
    folder: Path,
    timeout: float,
    tell: Callable[[PartStarted], None] = lambda _: None,
    *,
    confirm: bool = True,
) -> FaultSearchResult:
    """Search the faulty copy in `folder`, tests first that come by what was changed there.

    A kill counts if the same oracle, seed and samples find nothing in the clean tree; else the
    search goes on without this oracle on this model, and the result says what the clean tree
    fails. The copy is changed: it notes what it runs.
    """
    clean, copy = clean_package(job.package), folder / job.package
    statements = changed_statements(clean, copy)
    meet = job.interleave_first or changes_a_lock(clean, copy)
    note_reached(copy, statements)
    job = msgspec.structs.replace(job, noted=bool(statements), interleave_first=meet)
    failures: list[str] = []
    while True:
        result = by_oracles(job, folder, timeout, tell)
        attempt = result.attempt
        if attempt is None or not confirm:
            break
        with copied(job.package) as unchanged:
            again = by_oracles(_repeated(job, attempt), unchanged, timeout)
        if again.judged and not again.killed:
            break
        failures.append(f"{attempt.oracle} of {attempt.model}: {again.title or again.note}")
        left = job.budget and max(0.001, job.budget - result.seconds)
        without = (*job.without, attempt)
        job = msgspec.structs.replace(job, without=without, budget=left)
    return msgspec.structs.replace(result, noted=job.noted, clean_failures=tuple(failures))


def _repeated(job: BugJob, attempt: SearchAttempt) -> BugJob:
    return msgspec.structs.replace(
        job,
        models=(attempt.model,),
        only=attempt,
        noted=False,
        shorten=False,
        budget=0.0,
        save_to="",
    )


def nearby(result: FaultSearchResult, keep: Path | None) -> FaultSearchResult:
    """The worker has another current folder; the file is called as we were told."""
    if result.shown is None or not result.shown.artifact or keep is None:
        return result
    return msgspec.structs.replace(result, shown=replace(result.shown, artifact=str(keep)))


def job_of(catalogue: Catalogue, effort: BugEffort, fault: Fault | None = None) -> BugJob:
    """What to run against a fault's copy, or against any copy: all of the catalogue's models."""
    models = catalogue.models if fault is None else fault.models or catalogue.models
    package = "impl" if fault is None else fault.package
    return BugJob(
        models,
        catalogue.system,
        effort.seed,
        effort.traces,
        effort.examples,
        package=package,
        shorten=effort.shorten,
        budget=effort.budget,
        interleave_first=fault is not None and "conc" in fault.tags,
    )


def touched(catalogues: Sequence[Catalogue], folder: Path) -> list[Catalogue]:
    """Those whose system runs a file of the copy in `folder` that differs from the clean one.

    A system of a user's own counts as touched: its files are not known.
    """
    clean = clean_package("impl")
    changed = changed_files(folder / "impl", clean)
    systems = systems_of(changed, clean, [catalogue.system for catalogue in catalogues])
    return [
        catalogue
        for catalogue in catalogues
        if catalogue.system in systems or catalogue.system not in BUILT_IN
    ]


def nearest_job(
    catalogues: Sequence[Catalogue], effort: BugEffort, names: Sequence[str] = ()
) -> BugJob:
    """What to run against a change of which no catalogue says a model: these models, or all.

    All are those of tier ci that feed a suite of a built-in system, and the catalogue's own.
    """
    built_in = [catalogue.system for catalogue in catalogues if catalogue.system in BUILT_IN]
    if not built_in:
        (catalogue,) = catalogues
        job = job_of(catalogue, effort)
        return msgspec.structs.replace(job, models=tuple(names) or job.models)
    models = tuple(reference(model) for model in driving(built_in, names))
    return BugJob(
        models,
        "",
        effort.seed,
        effort.traces,
        effort.examples,
        shorten=effort.shorten,
        budget=effort.budget,
    )


_WORKER = ("-m", "conformance.bugs.worker")


def by_oracles(
    job: BugJob, folder: Path, timeout: float, tell: Callable[[PartStarted], None] = lambda _: None
) -> FaultSearchResult:
    """Run the oracles against the implementation in `folder`; `tell` hears of each that begins."""
    command = [sys.executable, *_WORKER]
    job = msgspec.structs.replace(job, folder=str(folder))
    with TemporaryFile() as random, running(command, folder, cwd=folder, errors=random) as process:
        expired = Event()

        def give_up() -> None:
            expired.set()
            process.terminate()

        timer = Timer(timeout, give_up)
        timer.daemon = True  # an interrupt may come while it starts: nothing may wait for it then
        try:
            timer.start()
            result = _until_found(process, msgspec.json.encode(job), tell)
            code = process.wait()
        finally:
            timer.cancel()
        if result is not None and code == 0:
            return result
        if expired.is_set():
            note = f"gave up after {timeout:.0f} s"
            return FaultSearchResult(killed=False, judged=False, seconds=timeout, note=note)
        random.seek(0)
        last = random.read().decode(errors="replace").strip()[-2000:]
        raise RuntimeError(f"the bench's worker ended with {code}:\n{last}")


def _until_found(
    process: subprocess.Popen[bytes], job: bytes, tell: Callable[[PartStarted], None]
) -> FaultSearchResult | None:
    """What the worker says in the end; None if it ends without a word."""
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the bench's worker has no pipes")
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(job)
    for line in process.stdout:
        if not line.endswith(b"\n"):
            return None  # it was ended amid a line: its exit code and its errors say why
        message = msgspec.json.decode(line, type=PartStarted | FaultSearchResult)
        if isinstance(message, FaultSearchResult):
            return message
        tell(message)
    return None


def _by_tests(
    fault: Fault, unseen: BlindSpot, folder: Path, effort: BugEffort
) -> FaultSearchResult:
    """Killed if one of the tests, which pass against the clean package, fails."""
    started = time.monotonic()
    tests = unseen.tests
    root = resource_root() if fault.package == "impl" else Path.cwd()
    # pytest's own `pythonpath` comes before PYTHONPATH.
    first = f"pythonpath={shlex.quote(str(folder))} {shlex.quote(str(root))}"
    plugins = ["-p", "no:cacheprovider", "-p", "conformance.bugs.time_limit"]
    options = ["-q", "-x", *plugins, "-o", first]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    if not all((root / test.partition("::")[0]).exists() for test in tests):
        note = "its tests are not here: they belong to a checkout"
        return FaultSearchResult(killed=False, judged=False, note=note)
    with running(command, folder, cwd=root) as process:
        try:
            out, _ = process.communicate(timeout=effort.timeout)
        except subprocess.TimeoutExpired:
            return FaultSearchResult(killed=False, judged=False, note="the tests did not end")
    killed = process.returncode in (1, ENDED)
    note = "" if killed else out.decode(errors="replace").strip()[-500:]
    seconds = round(time.monotonic() - started, 3)
    return FaultSearchResult(
        killed=killed, oracle="tests of impl" if killed else "", seconds=seconds, note=note
    )


@contextmanager
def running(
    command: Sequence[str],
    folder: Path | None,
    cwd: Path,
    errors: int | IO[bytes] | None = subprocess.PIPE,
    extra: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[subprocess.Popen[bytes]]:
    """A child that imports the copy in `folder` first; ended, with its own, if we are interrupted.

    Without a folder it imports the clean package. `errors`: None lets it write to our own stderr.
    `extra`: more of its environment.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**environment(folder), **extra},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
    )
    end_with_us(process)
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, so that it ends its own JVMs; make it if it does not."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(10.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def environment(folder: Path | None) -> Mapping[str, str]:
    """For a child that imports the copy in `folder`; Spark's workers inherit it.

    PYTHONSAFEPATH keeps `python -m` from putting the current folder, which in a checkout holds
    the clean package, before it.
    """
    own = str(Path(__file__).resolve().parents[2])
    inherited = os.environ.get("PYTHONPATH", "")
    first = [] if folder is None else [str(folder)]
    paths = [*first, own, str(Path.cwd()), *([inherited] if inherited else [])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        **({} if folder is None else {COPY: str(folder)}),
        "PYTHONSAFEPATH": "1",
        "PYTHONHASHSEED": "0",
    }


def survivor(fault: Fault, result: FaultSearchResult) -> Finding:
    """A fault that nothing found: the spec is too abstract or the suite too weak."""
    if result.judged:
        fate = "survived"
        driven = f"{counted(result.traces, 'trace')} and {counted(result.steps, 'step')}"
        message = f"No oracle found this fault in {driven}. {result.note}".rstrip()
    else:
        fate, message = "was not judged", f"Whether it is found is open: {result.note}."
    return Finding(
        key=f"{STAGE}:{fault.id}",
        title=f"{fault.id} ({fault.jira}) {fate}: {fault.title}",
        stage=STAGE,
        message=message,
        reproduce=f"kconform bugs {fault.id}",
    )
