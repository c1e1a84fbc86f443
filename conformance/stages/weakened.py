"""Stage `formulas`: what still holds of the specification as a system's deviations override it.

What is not broken was checked in every state of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from conformance.deviations.table import Deviation
from conformance.modelcheck.check import check
from conformance.modelcheck.manifest import Model
from conformance.stages.context import Context, expected_of, stage
from conformance.stages.overridden import with_deviations
from conformance.verdict import Verdict

STAGE = "formulas"


@dataclass(frozen=True, slots=True)
class ViolatedFormula:
    """A formula that is violated under the overrides."""

    formula: str
    length: int
    """States of TLC's counterexample, the initial one included; 0 of whole behaviours."""
    is_declared: bool
    """Whether the table says that a deviation breaks it."""


@dataclass(frozen=True, slots=True)
class WeakenedModel:
    """A model under a version's overrides, formula by formula."""

    model: str
    deviations: tuple[str, ...]
    holds: tuple[str, ...]
    broken: tuple[ViolatedFormula, ...]
    states: int
    problem: str = ""
    """Why TLC came to no end; then nothing is known to hold."""

    @property
    def verdict(self) -> Verdict:
        """FAIL if a formula breaks of which the table says nothing."""
        if not all(formula.is_declared for formula in self.broken):
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.problem else Verdict.PASS

    def line(self) -> str:
        """As its line has it."""
        parts = [self.problem or f"{len(self.holds)} formulas hold, {self.states:,} states"]
        if self.broken:
            parts.append(f"broken: {', '.join(map(_formula_text, self.broken))}")
        return "; ".join(parts)


def _formula_text(formula: ViolatedFormula) -> str:
    unknown = "" if formula.is_declared else ", which the table does not say"
    length = f"{formula.length} states" if formula.length else "a whole behaviour"
    return f"{formula.formula} ({length}{unknown})"


def weakened(context: Context, models: Sequence[Model], system: str) -> tuple[WeakenedModel, ...]:
    """Check every formula of these models under all overrides of the system's version."""
    return tuple(
        _weakened(context, model, expected_of(context, system, model.spec)) for model in models
    )


def _weakened(context: Context, model: Model, deviations: tuple[Deviation, ...]) -> WeakenedModel:
    with stage(context, STAGE, model.name) as outcome:
        shown = _formula_by_formula(context, model, deviations)
        outcome.verdict, outcome.summary = shown.verdict, shown.line()
        outcome.figures = {
            "model": model.name,
            "deviations": list(shown.deviations),
            "holds": list(shown.holds),
            "broken": {formula.formula: formula.length for formula in shown.broken},
            "untold": [formula.formula for formula in shown.broken if not formula.is_declared],
            "states": shown.states,
        }
    return shown


def _formula_by_formula(
    context: Context, model: Model, deviations: tuple[Deviation, ...]
) -> WeakenedModel:
    names = {name for deviation in deviations for name in deviation.breaks}
    # The table's own word on what breaks is what is looked at: nothing is left out for it.
    judged = with_deviations(
        model, [msgspec.structs.replace(deviation, breaks=()) for deviation in deviations]
    )
    # A violation is what is looked for here: no finding of a check that was to hold.
    result = check(judged, replace(context.check, all_formulas=True))
    outcome, broken = result.outcome, result.broken
    names_broken = {item.formula for item in broken.formulas}
    checked = (*judged.check.invariants, *judged.check.properties)
    problem = broken.problem or (
        "" if outcome.is_answer else f"TLC came to no end: {outcome.result}"
    )
    return WeakenedModel(
        model.name,
        tuple(deviation.id for deviation in deviations),
        () if problem else tuple(name for name in checked if name not in names_broken),
        tuple(
            ViolatedFormula(item.formula, item.length, item.formula in names)
            for item in broken.formulas
        ),
        broken.states if broken.formulas else outcome.distinct_states or 0,
        problem,
    )
