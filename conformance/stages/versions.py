"""Stage `versions`: the suites of models against several systems, and what each deviates in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.modelcheck.manifest import Model
from conformance.replay.suite import replay_suite
from conformance.stages.context import Context, Workbench, stage, workbench
from conformance.suites.postman import transition_cover
from conformance.verdict import Verdict

STAGE = "versions"
AGREES = "agrees"
NEW = "deviates in what no table knows"


@dataclass(frozen=True, slots=True)
class Cell:
    """One model's suite on one system."""

    model: str
    system: str
    deviations: tuple[str, ...] | None
    """Those that the suite shows; None if it shows something that no table knows."""

    @property
    def told(self) -> str:
        """As the matrix has it."""
        if self.deviations is None:
            return NEW
        return f"deviates: {', '.join(self.deviations)}" if self.deviations else AGREES


def versions(context: Context, models: Sequence[Model], systems: Sequence[str]) -> list[Cell]:
    """Every model on every system. A cell fails if the suite shows what no table knows."""
    return [_cell(context, model, system) for system in systems for model in models]


def _cell(context: Context, model: Model, system: str) -> Cell:
    with stage(context, STAGE, f"{model.name} on {system}") as outcome:
        cell = Cell(model.name, system, _shown(context, model, system))
        outcome.verdict = Verdict.FAIL if cell.deviations is None else Verdict.PASS
        outcome.summary = cell.told
        outcome.figures = {"model": model.name, "system": system, "told": cell.told}
    return cell


def _shown(context: Context, model: Model, system: str) -> tuple[str, ...] | None:
    """The known deviations that the suite shows: without the override of one it diverges."""
    known = workbench(context, model, system)
    if not _agrees(known):
        return None
    shown = []
    for one in known.deviations:
        others = [other for other in known.deviations if other != one]
        if not _agrees(workbench(context, model, system, deviations=others)):
            shown.append(one)
    return tuple(shown)


def _agrees(bench: Workbench) -> bool:
    """Whether the system goes along the model's whole suite; ends at the first divergence."""
    suite = transition_cover(bench.graph)
    return replay_suite(bench.graph, suite, bench.make_system).verdict is Verdict.PASS
