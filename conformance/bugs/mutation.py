"""`kconform bugs --mutants`: random mutants, judged by the specification alone, then by tests."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from conformance.bugs.bench import running
from conformance.bugs.judge import JudgeJob, Message, MutantJudgement, MutantSample, PreparedSuite
from conformance.bugs.mutants import UNSEEN, Mutant, named
from conformance.bugs.ordinary import OrdinaryTests
from conformance.bugs.scope import adapter_files, driving, files_of
from conformance.bugs.survivors import Reasons, read_survivors
from conformance.errors import UserError
from conformance.events import Emit, Finding, JsonValue, Progress, StageFinished, StageStarted
from conformance.modelcheck.manifest import Model
from conformance.printable import counted
from conformance.resources import implementation_dir, resource_root
from conformance.verdict import Verdict

STAGE = "mutants"
_SECONDS = 30.0

SPECIFICATION, LIMIT, TESTS = "specification", "time limit", "tests"
EXPLAINED, SURVIVED, OPEN = "explained", "survived", "open"
FATES = (SPECIFICATION, LIMIT, TESTS, EXPLAINED, SURVIVED, OPEN)


class MutantResult(msgspec.Struct, frozen=True):
    """One row. `fate`: who killed it, or that it survived, or that it is open."""

    mutant: Mutant
    fate: str
    oracle: str = ""
    model: str = ""
    steps: int = 0
    seconds: float = 0.0
    cause: str = ""
    """Of one that the specification did not kill: why not, as far as it is known."""
    title: str = ""
    tests: str = ""
    """The digest of the ordinary tests that looked at it; empty: none did."""

    def to_json(self) -> dict[str, JsonValue]:
        """The row in the JSON report."""
        return {
            "mutant": self.mutant.id,
            "file": self.mutant.file,
            "line": self.mutant.line,
            "kind": self.mutant.kind,
            "change": str(self.mutant),
            "fate": self.fate,
            "oracle": self.oracle or None,
            "model": self.model or None,
            "steps": self.steps,
            "seconds": self.seconds,
            "cause": self.cause,
        }


class MutationPlan(msgspec.Struct, frozen=True):
    """What to measure. `seconds` of the processor for one mutant; `budget` for all, 0: no limit."""

    number: int
    seed: int
    systems: tuple[str, ...]
    models: tuple[str, ...]
    output: Path
    seconds: float = _SECONDS
    budget: float = 0.0
    tests: bool = True
    only: tuple[str, ...] = ()
    """Patterns of files, relative to the implementation's folder; none: all that are covered."""
    named: tuple[str, ...] = ()
    """Ids of mutants; where there are any, these are judged, and `number` says nothing."""
    jobs: int = 0
    """Mutants that are judged side by side; 0: one per core."""

    def takes(self, file: str) -> bool:
        """Whether mutants of this file are wanted."""
        return not self.only or any(fnmatch(file, pattern) for pattern in self.only)


@dataclass(frozen=True, slots=True)
class MutationRun:
    """All that a run came to."""

    results: Sequence[MutantResult]
    population: int
    """Mutants that there are to draw from."""
    models: int
    aside: Mapping[str, int] = field(default_factory=dict)
    """Mutants that are not drawn from, by the reason (`conformance.bugs.covered`)."""


def run_mutants(plan: MutationPlan, emit: Emit) -> MutationRun:
    """Judge the mutants that no earlier run judged; one event for the table.

    What is judged is kept in the output folder at once: a run that is interrupted goes on.
    """
    started = time.monotonic()
    package = implementation_dir()
    models = driving(plan.systems, plan.models)
    files = {system: files_of(system, package) for system in plan.systems}
    wanted = frozenset(mutant.file for mutant in named(package, plan.named))
    every = sorted(frozenset().union(*files.values()))
    if not any(plan.takes(file) for file in every):
        raise UserError(
            f"No file that {', '.join(plan.systems)} runs fits {', '.join(plan.only)}. Patterns "
            "are relative to impl/, such as `controller/*`."
        )
    emit(StageStarted(STAGE, ", ".join(plan.systems), len(plan.named) or plan.number))
    kept = _ResultFile(plan.output / "mutants" / f"{_digest(plan, package, every, models)}.jsonl")
    desk = _Desk(plan, kept, package, emit)
    if wanted:
        models = _running(models, wanted, files)
    job = JudgeJob(
        tuple(model.name for model in models),
        {model.name: tuple(sorted(files[model.system])) for model in models},
        str(package),
        {model.name: adapter_files(model.system) for model in models},
        plan.number,
        plan.seed,
        plan.seconds,
        plan.jobs or os.cpu_count() or 1,
        tuple(file for file in every if plan.takes(file)) if plan.only else (),
        tuple(sorted(desk.known)),
        plan.named,
    )
    drawn = MutantSample((), 0, {})
    for message in _messages(job):
        match message:
            case PreparedSuite(model, done, total):
                emit(Progress(STAGE, done, total, f"what {model} reaches"))
            case MutantSample():
                drawn = message
                desk.draw(message.mutants)
            case MutantJudgement():
                desk.judged(message)
        if plan.budget and time.monotonic() - started > plan.budget:
            break
    run = MutationRun(desk.results, drawn.population, len(models), drawn.aside)
    for result in run.results:
        if result.fate == SURVIVED:
            emit(_survivor(result, plan))
    emit(_finished(plan, run, time.monotonic() - started))
    return run


def _running(
    models: Sequence[Model], wanted: Collection[str], files: Mapping[str, frozenset[str]]
) -> list[Model]:
    """Those of the models whose system runs one of these files."""
    result = [model for model in models if files[model.system].intersection(wanted)]
    if not result:
        raise UserError(
            f"No model drives {', '.join(sorted(wanted))}: leave --model and --system out, or "
            "cover this file by ordinary tests."
        )
    return result


class _Desk:
    """Where judgements become results, which are kept."""

    def __init__(self, plan: MutationPlan, kept: _ResultFile, package: Path, emit: Emit) -> None:
        self._plan, self._kept, self._package, self._emit = plan, kept, package, emit
        self._tests = OrdinaryTests(resource_root())
        self._reasons: Reasons = read_survivors()
        self._mutants: dict[str, Mutant] = {}
        # Who names a mutant wants it judged now, whatever an earlier run found.
        self.known = {} if plan.named else {result.mutant.id: result for result in kept.read()}

    def draw(self, mutants: Iterable[Mutant]) -> None:
        """What is to be judged. Those that other tests have looked at, tests look at again."""
        self._mutants = {mutant.id: mutant for mutant in mutants}
        for id_ in self._mutants:
            result = self.known.get(id_)
            if result is not None and self._plan.tests and self._is_open_to_tests(result):
                self._keep(self._by_tests(result))

    def _is_open_to_tests(self, result: MutantResult) -> bool:
        return result.fate in (SURVIVED, EXPLAINED, TESTS) and result.tests != self._tests.digest

    def judged(self, judgement: MutantJudgement) -> None:
        """Tests look at what the specification did not kill."""
        result = _of(self._mutants[judgement.mutant], judgement)
        if result.fate == SURVIVED and self._plan.tests:
            result = self._by_tests(result)
        self._keep(result)

    def _keep(self, result: MutantResult) -> None:
        self._kept.add(result)
        self.known[result.mutant.id] = result
        done = sum(id_ in self.known for id_ in self._mutants)
        line = f"{result.fate}: {result.mutant}"
        self._emit(Progress(STAGE, done, len(self._mutants), line))

    def _by_tests(self, result: MutantResult) -> MutantResult:
        started = time.monotonic()
        killed, tests = self._tests.kill(result.mutant)
        return msgspec.structs.replace(
            result,
            fate=TESTS if killed else SURVIVED,
            oracle="tests of impl" if killed else "",
            seconds=round(result.seconds + time.monotonic() - started, 3),
            tests=self._tests.digest,
            cause=f"{result.cause.partition('; tests:')[0]}; tests: {tests} come by it",
        )

    @property
    def results(self) -> list[MutantResult]:
        """A row for each mutant that was drawn."""
        return [
            self._explained(self.known[id_]) if id_ in self.known else MutantResult(mutant, OPEN)
            for id_, mutant in self._mutants.items()
        ]

    def _explained(self, result: MutantResult) -> MutantResult:
        if result.fate != SURVIVED:
            return result
        text = (self._package / result.mutant.file).read_text(encoding="utf-8")
        reason = self._reasons.of(result.mutant, text)
        if not reason:
            return result
        return msgspec.structs.replace(result, fate=EXPLAINED, cause=reason)


def _of(mutant: Mutant, judgement: MutantJudgement) -> MutantResult:
    cause = ""
    if judgement.killed:
        fate = LIMIT if judgement.oracle == "time limit" else SPECIFICATION
    elif judgement.reached:
        models = counted(judgement.reached, "model")
        fate, cause = SURVIVED, f"reached by {models}, and none of them shows it"
        if judgement.undone:
            cause += f" in {counted(judgement.steps, 'step')}"
    else:
        fate, cause = SURVIVED, "no model reaches the statement"
    return MutantResult(
        mutant,
        fate,
        judgement.oracle,
        judgement.model,
        judgement.steps,
        judgement.seconds,
        cause,
        judgement.title,
    )


class _ResultFile:
    """Results of this plan, one JSON object a line, the last of a mutant counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Iterator[MutantResult]:
        """What earlier runs have found; an unfinished last line is left out."""
        if not self._path.is_file():
            return
        for line in self._path.read_bytes().splitlines():
            try:
                yield msgspec.json.decode(line, type=MutantResult)
            except msgspec.DecodeError:
                continue

    def add(self, result: MutantResult) -> None:
        """Keep it at once."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")


def _digest(
    plan: MutationPlan, package: Path, files: Sequence[str], models: Sequence[Model]
) -> str:
    """Of the texts of implementation, adapters, specifications and models, of seed and effort.

    Not of the number: a longer run begins with what a shorter one has judged.
    """
    digest = hashlib.sha256(
        repr((plan.seed, plan.systems, plan.models, plan.seconds, plan.only)).encode()
    )
    paths = [package / file for file in files]
    paths += sorted((resource_root() / "spec").glob("*.tla")) + [model.origin for model in models]
    paths += [Path(file) for system in plan.systems for file in adapter_files(system)]
    for path in paths:
        digest.update(path.read_bytes())
    return f"{plan.seed}-{digest.hexdigest()[:16]}"


def _messages(job: JudgeJob) -> Iterator[Message]:
    """From a process of its own, which is ended with its children."""
    command = [sys.executable, "-m", "conformance.bugs.judge"]
    with running(command, None, cwd=Path.cwd(), errors=None) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the judge has no pipes")
        process.stdin.write(msgspec.json.encode(job))
        process.stdin.close()
        for line in process.stdout:
            if line.endswith(b"\n"):  # else it was ended amid a line: its exit code says so
                yield msgspec.json.decode(line, type=Message)
        if process.wait() != 0:
            raise RuntimeError(f"the judge of mutants ended with {process.returncode}")


# ---- the report ----------------------------------------------------------------------------


def _survivor(result: MutantResult, plan: MutationPlan) -> Finding:
    return Finding(
        key=f"{STAGE}:{result.mutant.id}",
        title=f"survived: {result.mutant}",
        stage=STAGE,
        message=f"Neither the specification nor a test shows this change: {result.cause}.",
        location=f"impl/{result.mutant.file}:{result.mutant.line}",
        reproduce=_command(plan, result.mutant),
    )


def _command(plan: MutationPlan, mutant: Mutant) -> str:
    """What judges this mutant once more."""
    options = [f"--system {plan.systems[0]}"] if len(plan.systems) == 1 else []
    options += [f"--model {model}" for model in plan.models]
    if plan.seconds != _SECONDS:
        options.append(f"--seconds {plan.seconds:g}")
    command = f"kconform bugs --mutant {shlex.quote(mutant.id)} --seed {plan.seed}"
    return " ".join([command, *options])


def _finished(plan: MutationPlan, run: MutationRun, seconds: float) -> StageFinished:
    fates = Counter(result.fate for result in run.results)
    if fates[SURVIVED]:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.INCONCLUSIVE if fates[OPEN] or not run.results else Verdict.PASS
    return StageFinished(
        STAGE,
        ", ".join(plan.systems),
        verdict,
        seconds,
        _summary(run, fates),
        {
            "drawn_from": run.population,
            "models": run.models,
            "fates": dict(fates),
            "by_module": {file: dict(row) for file, row in by_module(run.results).items()},
            "by_kind": {kind: dict(row) for kind, row in _by_kind(run.results).items()},
            "by_cause": dict(by_cause(run.results)),
            "not_made": dict(UNSEEN),
            "set_aside": dict(run.aside),
            "mutants": [result.to_json() for result in run.results],
        },
    )


def _summary(run: MutationRun, fates: Counter[str]) -> str:
    """Parts of what can be seen: those that have a reason are left out of both counts."""
    judged = len(run.results) - fates[OPEN]
    visible = judged - fates[EXPLAINED]
    specification = fates[SPECIFICATION] + fates[LIMIT]
    killed = specification + fates[TESTS]
    return (
        f"{judged} of {len(run.results)} mutants judged along {counted(run.models, 'model')}: "
        f"{specification} killed by the specification ({_percent(specification, visible)}), "
        f"{fates[TESTS]} more by tests ({_percent(killed, visible)} in all), "
        f"{fates[SURVIVED]} survived; {fates[EXPLAINED]} that nobody can see are left out"
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def by_module(results: Iterable[MutantResult]) -> Mapping[str, Counter[str]]:
    """Fates by file."""
    match: dict[str, Counter[str]] = {}
    for result in results:
        match.setdefault(result.mutant.file, Counter())[result.fate] += 1
    return dict(sorted(match.items()))


def _by_kind(results: Iterable[MutantResult]) -> Mapping[str, Counter[str]]:
    match: dict[str, Counter[str]] = {}
    for result in results:
        match.setdefault(result.mutant.kind, Counter())[result.fate] += 1
    return dict(sorted(match.items()))


def by_cause(results: Iterable[MutantResult]) -> Counter[str]:
    """How many of each fate and cause, of those that no specification killed."""
    return Counter(
        f"{result.fate}: {_kind_of(result.cause)}"
        for result in results
        if result.fate not in (SPECIFICATION, LIMIT, OPEN)
    )


def _kind_of(cause: str) -> str:
    """Without numbers, so that alike causes are counted together."""
    if cause.startswith("no model"):
        return "no model reaches the statement"
    if cause.startswith("reached by"):
        return "models reach the statement, and none shows the change"
    return cause
