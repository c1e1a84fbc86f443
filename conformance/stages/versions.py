"""Stage `versions`: models against several systems, and which known deviation tells of a failure.

A system that passes a model's suite agrees. Where it does not, known deviations are sought with
which the specification accounts for the divergence, and the suite of the model as they override it
is driven; and so on. The fewest deviations with which a suite passes are what the system does
otherwise. If none accounts for a divergence, it is new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from typing import Protocol

import msgspec

from conformance.deviations.declared import deviating
from conformance.deviations.table import Deviation, overriding
from conformance.events import Progress, StageStarted
from conformance.modelcheck.manifest import Model
from conformance.printable import counted
from conformance.registry import factory_path, load_factory
from conformance.replay.oracle import GraphOracle
from conformance.replay.parallel import ReplayJob, side_by_side
from conformance.replay.suite import ReplayResult
from conformance.stages.context import (
    Context,
    Outcome,
    Workbench,
    announce_benches,
    emit_finished,
    expected_of,
    workbench,
)
from conformance.stages.fetch import fetch
from conformance.stages.overridden import with_deviations
from conformance.stages.presence import follow
from conformance.stages.replay import tell
from conformance.stages.selection import reason_against_model
from conformance.suites.postman import transition_cover
from conformance.suites.restricted import cover_within
from conformance.suites.suite import Suite
from conformance.systems.capabilities import FactoryCapabilities
from conformance.verdict import Verdict

STAGE = "version"
"""Of one cell; the command's own figures are the matrix."""


class ModelOutcome(StrEnum):
    """What a system makes of a model."""

    AGREES = "agrees"
    DEVIATES = "deviates"
    NEW = "deviates in a new way"
    UNDECIDED = "inconclusive"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class VersionCell:
    """One system and one model."""

    system: str
    model: str
    answer: ModelOutcome
    deviations: tuple[str, ...] = ()
    """Of DEVIATES: the fewest known ones with which the suite passes."""
    unexpected: tuple[str, ...] = ()
    """Those of them that the table does not expect of this version."""
    reason: str = ""
    tests: int = 0
    steps: int = 0
    """Of the suite with which it agrees, under these deviations; 0 if there is none."""

    @property
    def verdict(self) -> Verdict:
        """PASS where the system does what the table says of it."""
        if self.answer is ModelOutcome.NEW or self.unexpected:
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.answer is ModelOutcome.UNDECIDED else Verdict.PASS

    @property
    def short(self) -> str:
        """As the matrix has it."""
        if self.answer is ModelOutcome.DEVIATES:
            return " ".join(self.deviations)
        return {ModelOutcome.NEW: "NEW", ModelOutcome.LEFT_OUT: "-"}.get(
            self.answer, str(self.answer)
        )

    def line(self) -> str:
        """As its line has it."""
        parts = [str(self.answer)]
        if self.deviations:
            parts.append(f": {', '.join(self.deviations)}")
        if self.unexpected:
            parts.append(f"; not expected of this version: {', '.join(self.unexpected)}")
        if self.steps:
            parts.append(f"; {self.driven}")
        return "".join(parts) + (f": {self.reason}" if self.reason else "")

    @property
    def driven(self) -> str:
        """How much was driven and agreed; empty if nothing did."""
        return f"{counted(self.tests, 'test')}, {counted(self.steps, 'step')}" if self.steps else ""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is driven: a model as some deviations override it. All by their names."""

    system: str
    model: str
    overrides: tuple[str, ...] = ()

    @property
    def plain(self) -> Trial:
        """Without overrides."""
        return replace(self, overrides=())


Explained = tuple[Trial, ReplayResult]
"""The trial whose suite passes, and what came of it."""
_AT_ONCE = 2
"""How many that are not expected of the version may show in one step."""


class CellStore(Protocol):
    """Keeps cells from one run to the next."""

    def cell(self, trial: Trial) -> VersionCell | None:
        """The cell of an earlier run, if model and specification are what they were."""

    def earlier(self, trial: Trial) -> tuple[VersionCell, str] | None:
        """The cell of an earlier run, whatever they were, and the digest of its state graph."""

    def keep(self, cell: VersionCell, digest: str) -> None:
        """Keep a cell, and the digest of the graph that its suite covers; '' if none was driven."""


def versions(
    context: Context,
    models: Sequence[Model],
    systems: Sequence[str],
    store: CellStore | None = None,
) -> tuple[VersionCell, ...]:
    """Drive every system along every model that it can take; the cells, model by model.

    What the store has is not driven again.
    """
    matrix = _Matrix(replace(context, strict=True), models, systems)
    matrix.fetch()
    cells: list[VersionCell] = []
    for model in models:
        trials = [Trial(system, model.name) for system in systems]
        kept = {trial: None if store is None else matrix.kept(store, trial) for trial in trials}
        made = matrix.cells([trial for trial in trials if kept[trial] is None])
        for trial in trials:
            earlier = kept[trial]
            if earlier is not None:
                matrix.report(trial, earlier, None)
            elif store is not None:
                store.keep(made[trial], matrix.digest(trial, made[trial]))
            cells.append(earlier or made[trial])
        matrix.forget()
    return tuple(cells)


class _Matrix:
    """The models' graphs, each made once, and what is driven along them."""

    def __init__(self, context: Context, models: Sequence[Model], systems: Sequence[str]) -> None:
        self._context = context
        self._models = {model.name: model for model in models}
        configured = context.settings.systems
        self._paths = {system: factory_path(system, configured) for system in systems}
        self._benches: dict[tuple[str, tuple[str, ...], bool], tuple[Workbench, Suite]] = {}

    def cells(self, trials: Sequence[Trial]) -> dict[Trial, VersionCell]:
        """Drive these, and report each."""
        reasons = {trial: self.reason_against(trial) for trial in trials}
        results = self.drive([trial for trial in trials if not reasons[trial]])
        explained = self.explain(
            {trial: result for trial, result in results.items() if result.failed}
        )
        cells: dict[Trial, VersionCell] = {}
        for trial in trials:
            reason = reasons[trial]
            cells[trial] = (
                VersionCell(trial.system, trial.model, ModelOutcome.LEFT_OUT, reason=reason)
                if reason
                else self.cell(trial, results[trial], explained.get(trial))
            )
            self.report(trial, cells[trial], results.get(trial))
        return cells

    def kept(self, store: CellStore, trial: Trial) -> VersionCell | None:
        """The cell that the store has of the same model, or of one with the same state graph.

        Another text may say the same: a comment does, or a rule that this model never comes to.
        """
        if (cell := store.cell(trial)) is not None:
            return cell
        if (earlier := store.earlier(trial)) is None or self.reason_against(trial):
            return None
        cell, digest = earlier
        known = self._table(trial.system)
        if not digest or not known.keys() >= {*cell.deviations}:
            return None
        if self.digest(trial, cell) != digest:
            return None
        store.keep(cell, digest)
        return cell

    def digest(self, trial: Trial, cell: VersionCell) -> str:
        """That of the graph whose suite the cell is of; empty if nothing was driven."""
        if cell.answer is ModelOutcome.LEFT_OUT:
            return ""
        return self._bench(replace(trial, overrides=cell.deviations))[1].graph_digest

    def forget(self) -> None:
        """Let go of the graphs."""
        self._benches.clear()

    def reason_against(self, trial: Trial) -> str:
        """Why the system cannot take the model; empty if it can."""
        model = self._models[trial.model]
        return reason_against_model(self._context, self._paths[trial.system], model)

    def fetch(self) -> None:
        """See that every system's parts are on this machine."""
        for system in self._paths:
            fetch(self._context.settings, self._context.emit, system)

    def drive(self, trials: Sequence[Trial]) -> dict[Trial, ReplayResult]:
        """Replay their suites, as many at a time as there are jobs."""
        if not trials:
            return {}
        jobs = [self._job(trial) for trial in trials]
        self._context.emit(StageStarted(STAGE, f"{len(jobs)} suites", len(jobs)))
        results: dict[Trial, ReplayResult] = {}
        # A broker at a port drives tests side by side itself.
        distant = any(self._bench(trial)[0].distant for trial in trials)
        for number, result in side_by_side(jobs, 1 if distant else self._context.check.jobs):
            results[trials[number]] = result
            self._context.emit(Progress(STAGE, len(results), len(jobs)))
        return results

    def explain(self, failing: Mapping[Trial, ReplayResult]) -> dict[Trial, Explained]:
        """For each the fewest known deviations with which its suite passes, if there are any."""
        runs: dict[Trial, Explained] = {}
        tried: set[Trial] = set()
        while failing:
            wider = {
                larger for trial, result in failing.items() for larger in self._wider(trial, result)
            }
            results = self.drive(sorted(wider - tried, key=self._order))
            tried |= wider
            for trial in sorted(results, key=self._order):
                if results[trial].verdict is Verdict.PASS:
                    runs.setdefault(trial.plain, (trial, results[trial]))
            failing = {
                trial: result
                for trial, result in results.items()
                if result.failed and trial.plain not in runs
            }
        return runs

    def _order(self, trial: Trial) -> tuple[str, list[int]]:
        known = self._known(trial)
        return trial.system, [known.index(override) for override in trial.overrides]

    def _wider(self, trial: Trial, result: ReplayResult) -> list[Trial]:
        """The trial with as few more overrides as account for its divergence, each such choice.

        A path costs the steps that it has, where a suite costs a state graph.
        """
        others = [name for name in self._known(trial) if name not in trial.overrides]
        expected = [name for name in others if name in self._expected(trial)]
        if accounting := self._accounting(trial, result, others, 1):
            return accounting
        # Unless all of them account, their subsets are not asked: there may be thousands.
        if expected and self._accounting(trial, result, expected, len(expected)):
            for size in range(2, len(expected) + 1):
                if accounting := self._accounting(trial, result, expected, size):
                    return accounting
        return self._accounting(trial, result, others, _AT_ONCE)

    def _accounting(
        self, trial: Trial, result: ReplayResult, others: Sequence[str], size: int
    ) -> list[Trial]:
        """The trial with so many of the others that together they account for its divergence."""
        known = self._known(trial)
        chosen = [{*trial.overrides, *more} for more in combinations(others, size)]
        trials = [
            replace(trial, overrides=tuple(name for name in known if name in names))
            for names in chosen
        ]
        announce_benches(self._context, map(self._judged, trials), self._paths[trial.system])
        return [larger for larger in trials if self._accounts(larger, result)]

    def _accounts(self, trial: Trial, result: ReplayResult) -> bool:
        """Whether the divergences are none where the trial's deviations override the model.

        A path that is not one of that model's, or that cannot be driven, says nothing against them.
        """
        bench = workbench(
            self._context, self._judged(trial), self._paths[trial.system], with_graph=False
        )
        return all(
            follow(bench, divergence.initial, divergence.actions).divergence is None
            for divergence in result.divergences
        )

    def cell(self, trial: Trial, result: ReplayResult, explained: Explained | None) -> VersionCell:
        """What came out, held against what the table expects of the version."""
        cell = VersionCell(trial.system, trial.model, ModelOutcome.NEW)
        if not result.failed:
            agrees = result.verdict is Verdict.PASS
            answer = ModelOutcome.AGREES if agrees else ModelOutcome.UNDECIDED
            return replace(cell, answer=answer, tests=result.passed, steps=result.steps)
        if explained is None:
            return cell
        overridden, agreed = explained
        return replace(
            cell,
            answer=ModelOutcome.DEVIATES,
            deviations=overridden.overrides,
            unexpected=self._unexpected(trial, overridden.overrides),
            tests=agreed.passed,
            steps=agreed.steps,
        )

    def report(self, trial: Trial, cell: VersionCell, result: ReplayResult | None) -> None:
        """Tell of a cell; of a new divergence with its story."""
        outcome = Outcome(cell.verdict, cell.line())
        outcome.figures = {
            "system": cell.system,
            "model": cell.model,
            "answer": str(cell.answer),
            "deviations": list(cell.deviations),
            "unexpected": list(cell.unexpected),
            "tests": cell.tests,
            "steps": cell.steps,
        }
        if result and cell.answer is ModelOutcome.NEW:
            bench, _ = self._bench(trial)
            for divergence in result.divergences:
                tell(self._context, bench, GraphOracle(bench.graph), divergence, "replay")
        seconds = result.seconds if result else 0.0
        emit_finished(self._context, STAGE, f"{cell.system} {cell.model}", outcome, seconds)

    def _unexpected(self, trial: Trial, deviations: Sequence[str]) -> tuple[str, ...]:
        expected = self._expected(trial)
        return tuple(name for name in deviations if name not in expected)

    def _expected(self, trial: Trial) -> set[str]:
        """What the system's table has of this specification, and of this version."""
        spec = self._models[trial.model].spec
        return {deviation.id for deviation in expected_of(self._context, trial.system, spec)}

    def _known(self, trial: Trial) -> list[str]:
        """What the system's table has of this specification, of whatever version."""
        bench, _ = self._bench(trial.plain)
        operator = bench.prepared.module.operator
        return [
            deviation.id
            for deviation in overriding(
                tuple(self._table(trial.system).values()), self._models[trial.model].spec
            )
            if deviation.overrides
            and all(operator(name) is not None for name in deviation.overrides)
        ]

    def _table(self, system: str) -> Mapping[str, Deviation]:
        known = deviating(self._paths[system])
        return (
            {} if known is None else {deviation.id: deviation for deviation in known.deviations()}
        )

    def _judged(self, trial: Trial) -> Model:
        """The trial's model, as its deviations override it.

        It is asked for a graph, not for a judgement: a candidate may break any formula.
        """
        if not trial.overrides:
            return self._models[trial.model]
        table = self._table(trial.system)
        chosen = [table[override] for override in trial.overrides]
        model = with_deviations(self._models[trial.model], chosen)
        check = msgspec.structs.replace(model.check, invariants=(), properties=())
        return replace(model, check=check)

    def _job(self, trial: Trial) -> ReplayJob:
        bench, suite = self._bench(trial)
        return ReplayJob(bench.graph, suite, bench.factory, bench.constants)

    def _bench(self, trial: Trial) -> tuple[Workbench, Suite]:
        """One model's graph and suite are the same for all systems."""
        path = self._paths[trial.system]
        distant = FactoryCapabilities(load_factory(path)).distant is not None
        key = (trial.model, trial.overrides, distant)
        if key not in self._benches:
            bench = workbench(self._context, self._judged(trial), path)
            limits = bench.limits
            self._benches[key] = (
                bench,
                transition_cover(bench.graph)
                if limits is None
                else cover_within(bench.graph, limits).suite,
            )
        bench, suite = self._benches[key]
        return replace(bench, factory=path), suite
