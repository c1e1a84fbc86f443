"""`kconform bugs --history`: faults that somebody else described and wrote as patches."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from conformance.bugs.bench import BugEffort, nearest_job, search, touched
from conformance.bugs.changes import changed_statements
from conformance.bugs.fault import Catalogue, clean_package, patched_by_file
from conformance.bugs.ordinary import OrdinaryTests
from conformance.bugs.worker import FaultSearchResult
from conformance.errors import UserError
from conformance.events import Emit, Finding, JsonValue, Progress, StageFinished, StageStarted
from conformance.inputs import read_toml
from conformance.printable import counted
from conformance.resources import resource_root
from conformance.verdict import Verdict

STAGE = "history"
PACKAGE = "impl"
_CLOCK_SECONDS = 3_600.0
"""For the oracles on one bug, by the clock, however busy the machine is."""

KILLED, ADAPTER, TESTS, SURVIVED, OPEN = "killed", "adapter", "tests", "survived", "open"
BUG_FATES = (KILLED, ADAPTER, TESTS, SURVIVED, OPEN)


class DescribedBug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bug as somebody described it. `patch`: a diff of impl/, relative to the list."""

    name: str
    description: str
    patch: str
    jira: str = ""
    component: str = ""


class _BugHistory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bug: tuple[DescribedBug, ...]


class BugHistoryResult(msgspec.Struct, frozen=True):
    """One row. `fate`: who killed it, or that it survived, or that it is open; `why` if not."""

    bug: DescribedBug
    fate: str
    search: FaultSearchResult
    why: str = ""

    @property
    def by(self) -> str:
        """What killed it."""
        if self.fate == TESTS:
            return "tests of impl"
        killer = f"{self.search.oracle} of {self.search.model}" if self.search.killed else ""
        return f"{killer}: the adapter raised" if self.fate == ADAPTER else killer

    def to_json(self) -> dict[str, JsonValue]:
        """The row in the JSON report."""
        return {
            "name": self.bug.name,
            "jira": self.bug.jira,
            "component": self.bug.component,
            "description": self.bug.description,
            "fate": self.fate,
            "oracle": self.search.oracle or None,
            "model": self.search.model or None,
            "title": self.search.title,
            "steps": self.search.steps,
            "seconds": self.search.seconds,
            "reached": list(self.search.reached),
            "clean_failures": list(self.search.clean_failures),
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class BugHistoryPlan:
    """What to judge, and by what. `tests`: None if ordinary tests are not asked."""

    path: Path
    bugs: tuple[DescribedBug, ...]
    catalogues: Sequence[Catalogue]
    effort: BugEffort
    models: tuple[str, ...] = ()
    tests: OrdinaryTests | None = None

    def patch(self, bug: DescribedBug) -> Path:
        """Where the bug's diff is."""
        return self.path.parent / bug.patch


def load_history(path: Path) -> tuple[DescribedBug, ...]:
    """The bugs of a list; UserError if it is none, is empty, or a name stands twice in it."""
    bugs = read_toml(path, _BugHistory, "a list of historical bugs", "docs/bugs.md").bug
    if not bugs:
        raise UserError(f"{path} lists no bug: there is nothing to judge.")
    for name, number in Counter(bug.name for bug in bugs).items():
        if number > 1:
            raise UserError(f"{path}: the bug {name} stands twice. Give each its own name.")
    return bugs


def ordinary_tests() -> OrdinaryTests:
    """The tests of this checkout; an installation has none, and none kills."""
    return OrdinaryTests(resource_root())


def run_history(
    plan: BugHistoryPlan, emit: Emit, decided: Callable[[BugHistoryResult], None]
) -> list[BugHistoryResult]:
    """Judge each bug; a finding for each that nothing kills, one event for the table.

    `decided` hears of each as soon as it is judged: a whole list takes hours. UserError for a
    patch that does not apply, before any bug is judged.
    """
    started = time.monotonic()
    emit(StageStarted(STAGE, plan.path.name, len(plan.bugs)))
    for bug in plan.bugs:
        with patched_by_file(plan.patch(bug)):
            pass
    results = []
    for number, bug in enumerate(plan.bugs):
        emit(Progress(STAGE, number, len(plan.bugs), f"{bug.name} {bug.description}"))
        results.append(_judged(bug, plan))
        decided(results[-1])
        for finding in _findings(results[-1], plan.patch(bug)):
            emit(finding)
    emit(_finished(plan, results, time.monotonic() - started))
    return results


def _judged(bug: DescribedBug, plan: BugHistoryPlan) -> BugHistoryResult:
    with patched_by_file(plan.patch(bug)) as folder:
        result = _searched(folder, plan)
        if result.killed and not result.by_adapter:
            return BugHistoryResult(bug, KILLED, result)
        fate, why = _unkilled(result)
        if plan.tests is not None:
            # The statements of the clean text: what tests come by is noted there.
            changed = changed_statements(folder / PACKAGE, clean_package(PACKAGE))
            killed, number = plan.tests.kill_copy(folder, changed)
            if killed:
                return BugHistoryResult(bug, TESTS, result, why)
            why = f"{why}; {counted(number, 'test')} come by it"
        return BugHistoryResult(bug, fate, result, why)


def _searched(folder: Path, plan: BugHistoryPlan) -> FaultSearchResult:
    catalogues = touched(plan.catalogues, folder)
    if not catalogues:
        return FaultSearchResult(killed=False)
    job = nearest_job(catalogues, plan.effort, plan.models)
    return search(job, folder, _CLOCK_SECONDS)


def _unkilled(result: FaultSearchResult) -> tuple[str, str]:
    """The fate by the oracles alone, and why they did not kill it."""
    if result.by_adapter:
        return ADAPTER, "the adapter raised, not the implementation"
    if not result.judged:
        return OPEN, result.note
    undone = result.parts - len(result.covered)
    time_left = f"; no time for {undone} of {result.parts} parts" if undone else ""
    if not result.reached:
        return (OPEN if undone else SURVIVED), f"not reached by any suite{time_left}"
    where = counted(len(result.reached), "model")
    fate = OPEN if undone else SURVIVED
    return fate, f"reached by {where}, but nothing that is observed differs{time_left}"


def scores(results: Iterable[BugHistoryResult]) -> Mapping[str, Counter[str]]:
    """Fates by component."""
    by_component: dict[str, Counter[str]] = {}
    for result in results:
        by_component.setdefault(result.bug.component or "?", Counter())[result.fate] += 1
    return dict(sorted(by_component.items()))


def _findings(result: BugHistoryResult, patch: Path) -> Iterable[Finding]:
    name = result.bug.name
    for failure in result.search.clean_failures:
        yield Finding(
            f"{STAGE}:clean:{failure}",
            f"the clean tree fails: {failure}",
            STAGE,
            f"The search for {name} found this; the clean tree shows it too, so it kills nothing.",
            reproduce="kconform bugs --clean",
        )
    if result.fate not in (KILLED, TESTS):
        yield Finding(
            f"{STAGE}:{name}",
            f"{name} {result.bug.jira} {result.fate}: {result.bug.description}",
            STAGE,
            f"Nothing killed it: {result.why}.",
            reproduce=f"kconform bugs --patch {shlex.quote(str(patch))}",
        )


def _finished(
    plan: BugHistoryPlan, results: Sequence[BugHistoryResult], seconds: float
) -> StageFinished:
    fates = Counter(result.fate for result in results)
    return StageFinished(
        STAGE,
        plan.path.name,
        _verdict(fates),
        seconds,
        f"{counted(len(results), 'bug')}: {fates[KILLED]} killed by the specification, "
        f"{fates[TESTS]} more by tests, {fates[SURVIVED]} survived, {fates[OPEN]} open, "
        f"{fates[ADAPTER]} where only the adapter raised",
        {
            "fates": dict(fates),
            "by_component": {name: dict(row) for name, row in scores(results).items()},
            "bugs": [result.to_json() for result in results],
        },
    )


def _verdict(fates: Counter[str]) -> Verdict:
    if fates[SURVIVED]:
        return Verdict.FAIL
    return Verdict.INCONCLUSIVE if fates[OPEN] or fates[ADAPTER] else Verdict.PASS
