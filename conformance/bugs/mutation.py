"""`kconform bugs --mutants`: random mutants, judged by the specification alone, then by tests."""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

import msgspec

from conformance.bugs.bench import running
from conformance.bugs.fault import copied
from conformance.bugs.judge import JudgeJob, Judgement
from conformance.bugs.mutants import UNSEEN, Mutant, draw
from conformance.bugs.scope import driving, files_of
from conformance.errors import UserError
from conformance.events import Emit, Finding, JsonValue, Progress, StageFinished, StageStarted
from conformance.resources import implementation_dir, resource_root
from conformance.verdict import Verdict

STAGE = "mutants"
_TESTS = ("tests/unit/impl", "tests/property/impl")
_TEST_SECONDS = 300.0

SPECIFICATION, TESTS, SURVIVED, OPEN = "specification", "tests", "survived", "open"


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
    """What to measure. `seconds` for one mutant; `budget` for all, 0: no limit."""

    number: int
    seed: int
    systems: tuple[str, ...]
    models: tuple[str, ...]
    output: Path
    seconds: float = 60.0
    budget: float = 0.0
    tests: bool = True
    only: tuple[str, ...] = ()
    """Patterns of files, relative to the implementation's folder; none: all that a system runs."""

    def takes(self, file: str) -> bool:
        """Whether mutants of this file are wanted."""
        return not self.only or any(fnmatch(file, pattern) for pattern in self.only)


def run_mutants(plan: MutationPlan, emit: Emit) -> list[MutantResult]:
    """Judge the mutants that no earlier run judged; one event for the table.

    What is judged is kept in the output folder at once: a run that is interrupted goes on.
    """
    started = time.monotonic()
    package = implementation_dir()
    models = driving(plan.systems, plan.models)
    files = {system: files_of(system, package) for system in plan.systems}
    every = sorted(file for file in frozenset().union(*files.values()) if plan.takes(file))
    if not every:
        raise UserError(
            f"No file that {', '.join(plan.systems)} runs fits {', '.join(plan.only)}. Patterns "
            "are relative to impl/, such as `controller/*`."
        )
    mutants, population = draw(package, every, plan.number, plan.seed)
    subject = ", ".join(plan.systems)
    emit(StageStarted(STAGE, subject, len(mutants)))
    kept = _Kept(plan.output / "mutants" / f"{_digest(plan, package, every)}.jsonl")
    known = {one.mutant.id: one for one in kept.read()}
    job = JudgeJob(
        tuple(mutants),
        tuple(model.name for model in models),
        {model.name: tuple(sorted(files[model.system])) for model in models},
        plan.seed,
        plan.seconds,
        tuple(sorted(known)),
    )
    by_id = {mutant.id: mutant for mutant in mutants}
    done = sum(mutant.id in known for mutant in mutants)
    for judgement in _judgements(job):
        mutant = by_id[judgement.mutant]
        result = _by_tests(_of(mutant, judgement), plan)
        kept.add(result)
        known[mutant.id] = result
        done += 1
        emit(Progress(STAGE, done, len(mutants), f"{result.fate}: {mutant}"))
        if plan.budget and time.monotonic() - started > plan.budget:
            break
    results = [known.get(mutant.id) or MutantResult(mutant, OPEN) for mutant in mutants]
    for result in results:
        if result.fate == SURVIVED:
            emit(_survivor(result, plan))
    emit(_finished(subject, results, population, len(models), time.monotonic() - started))
    return results


def _of(mutant: Mutant, judgement: Judgement) -> MutantResult:
    if judgement.killed:
        fate, cause = SPECIFICATION, ""
    elif judgement.undone:
        fate, cause = OPEN, f"no time for {judgement.undone}"
    elif judgement.reached:
        fate, cause = SURVIVED, f"reached by {judgement.reached} models, and none of them shows it"
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


class _Kept:
    """Results of this plan, one JSON object a line; an unfinished last line is left out."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Iterator[MutantResult]:
        """What earlier runs have found."""
        if not self._path.is_file():
            return
        for line in self._path.read_bytes().splitlines():
            try:
                yield msgspec.json.decode(line, type=MutantResult)
            except msgspec.DecodeError:
                continue

    def add(self, result: MutantResult) -> None:
        """Keep it, unless there was no time to judge it."""
        if result.fate == OPEN:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(result) + b"\n")


def _digest(plan: MutationPlan, package: Path, files: Sequence[str]) -> str:
    """Of the implementation's text, of the specifications, models, seed and effort.

    Not of the number: a longer run begins with what a shorter one has judged.
    """
    root = resource_root()
    told = hashlib.sha256(
        repr((plan.seed, plan.systems, plan.models, plan.seconds, plan.tests, plan.only)).encode()
    )
    for path in [package / file for file in files]:
        told.update(path.read_bytes())
    for path in sorted((root / "spec").glob("*.tla")) + sorted((root / "models").rglob("*.toml")):
        told.update(path.read_bytes())
    return f"{plan.seed}-{told.hexdigest()[:16]}"


def _judgements(job: JudgeJob) -> Iterator[Judgement]:
    """From a process of its own, which is ended with its children."""
    if {mutant.id for mutant in job.mutants} <= {*job.judged}:
        return
    command = [sys.executable, "-m", "conformance.bugs.judge"]
    with running(command, None, cwd=Path.cwd(), errors=None) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the judge has no pipes")
        process.stdin.write(msgspec.json.encode(job))
        process.stdin.close()
        for line in process.stdout:
            yield msgspec.json.decode(line, type=Judgement)
        if process.wait() != 0:
            raise RuntimeError(f"the judge of mutants ended with {process.returncode}")


# ---- ordinary tests ------------------------------------------------------------------------


def _by_tests(result: MutantResult, plan: MutationPlan) -> MutantResult:
    """A mutant that the specification did not kill: do the tests of the implementation?"""
    if result.fate == SPECIFICATION or not plan.tests:
        return result
    root = resource_root()
    chosen = _tests_of(result.mutant.file, root)
    if not chosen:
        return result
    started = time.monotonic()
    with copied() as folder:
        path = folder / "impl" / result.mutant.file
        path.write_text(result.mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
        killed = _tests_fail(chosen, folder, root)
    seconds = round(result.seconds + time.monotonic() - started, 3)
    if not killed:
        return msgspec.structs.replace(result, seconds=seconds)
    return msgspec.structs.replace(result, fate=TESTS, oracle="tests of impl", seconds=seconds)


def _tests_of(file: str, root: Path) -> list[str]:
    """The implementation's test files, those first that speak of the mutated module."""
    module = "impl." + file.removesuffix(".py").replace("/", ".")
    every = [path for folder in _TESTS for path in sorted((root / folder).rglob("test_*.py"))]
    return [
        str(path.relative_to(root))
        for path in sorted(every, key=lambda one: module not in one.read_text(encoding="utf-8"))
    ]


def _tests_fail(tests: Sequence[str], folder: Path, root: Path) -> bool:
    """Whether one fails, or they do not end."""
    first = f"pythonpath={shlex.quote(str(folder))} {shlex.quote(str(root))}"
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "-o", first]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    with running(command, folder, cwd=root) as process:
        try:
            process.communicate(timeout=_TEST_SECONDS)
        except subprocess.TimeoutExpired:
            return True
    return process.returncode != 0


# ---- the report ----------------------------------------------------------------------------


def _survivor(result: MutantResult, plan: MutationPlan) -> Finding:
    return Finding(
        key=f"{STAGE}:{result.mutant.id}",
        title=f"survived: {result.mutant}",
        stage=STAGE,
        message=f"Neither the specification nor a test shows this change: {result.cause}.",
        location=f"impl/{result.mutant.file}:{result.mutant.line}",
        reproduce=_command(plan),
    )


def _command(plan: MutationPlan) -> str:
    """What asks for the same mutants; what is judged is not judged again."""
    options = [f"--system {plan.systems[0]}"] if len(plan.systems) == 1 else []
    options += [f"--model {model}" for model in plan.models]
    options += [f"--only '{pattern}'" for pattern in plan.only]
    return " ".join([f"kconform bugs --mutants {plan.number} --seed {plan.seed}", *options])


def _finished(
    subject: str, results: Sequence[MutantResult], population: int, models: int, seconds: float
) -> StageFinished:
    fates = Counter(result.fate for result in results)
    judged = len(results) - fates[OPEN]
    killed = fates[SPECIFICATION] + fates[TESTS]
    if fates[SURVIVED]:
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.INCONCLUSIVE if fates[OPEN] or not results else Verdict.PASS
    summary = (
        f"{judged} of {len(results)} mutants judged along {models} models: "
        f"{fates[SPECIFICATION]} killed by the specification "
        f"({_percent(fates[SPECIFICATION], judged)}), {fates[TESTS]} more by tests "
        f"({_percent(killed, judged)} in all), {fates[SURVIVED]} survived"
    )
    return StageFinished(
        STAGE,
        subject,
        verdict,
        seconds,
        summary,
        {
            "drawn_from": population,
            "models": models,
            "fates": dict(fates),
            "by_module": {file: dict(row) for file, row in by_module(results).items()},
            "by_kind": {kind: dict(row) for kind, row in _by_kind(results).items()},
            "by_cause": dict(_by_cause(results)),
            "not_made": dict(UNSEEN),
            "mutants": [result.to_json() for result in results],
        },
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def by_module(results: Iterable[MutantResult]) -> Mapping[str, Counter[str]]:
    """Fates by file."""
    found: dict[str, Counter[str]] = {}
    for result in results:
        found.setdefault(result.mutant.file, Counter())[result.fate] += 1
    return dict(sorted(found.items()))


def _by_kind(results: Iterable[MutantResult]) -> Mapping[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for result in results:
        found.setdefault(result.mutant.kind, Counter())[result.fate] += 1
    return dict(sorted(found.items()))


def _by_cause(results: Iterable[MutantResult]) -> Counter[str]:
    return Counter(
        f"{result.fate}: {result.cause}" for result in results if result.fate != SPECIFICATION
    )
