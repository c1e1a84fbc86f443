"""Stage `formulas`: what still holds of the specification as a system's deviations override it.

TLC stops at a violation. So a model is checked again without the formula that was violated, until
the rest holds: what is left was checked in every state of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from conformance.modelcheck.check import check
from conformance.modelcheck.manifest import Model
from conformance.stages.context import Context, stage
from conformance.stages.overridden import expected_of, with_deviations
from conformance.systems.deviations import Deviation
from conformance.systems.registry import factory_path
from conformance.verdict import Verdict

STAGE = "formulas"


@dataclass(frozen=True, slots=True)
class ViolatedFormula:
    """A formula that is violated under the overrides."""

    formula: str
    length: int
    """States of TLC's counterexample, the initial one included."""
    told: bool
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
        if not all(formula.told for formula in self.broken):
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.problem else Verdict.PASS

    def told(self) -> str:
        """As its line has it."""
        parts = [self.problem or f"{len(self.holds)} formulas hold, {self.states:,} states"]
        if self.broken:
            parts.append(f"broken: {', '.join(map(_told, self.broken))}")
        return "; ".join(parts)


def _told(formula: ViolatedFormula) -> str:
    unknown = "" if formula.told else ", which the table does not say"
    return f"{formula.formula} ({formula.length} states{unknown})"


def weakened(context: Context, models: Sequence[Model], system: str) -> tuple[WeakenedModel, ...]:
    """Check every formula of these models under all overrides of the system's version."""
    path = factory_path(system, context.settings.systems)
    return tuple(_weakened(context, model, expected_of(path, model.spec)) for model in models)


def _weakened(context: Context, model: Model, deviations: tuple[Deviation, ...]) -> WeakenedModel:
    with stage(context, STAGE, model.name) as outcome:
        shown = _formula_by_formula(context, model, deviations)
        outcome.verdict, outcome.summary = shown.verdict, shown.told()
        outcome.figures = {
            "model": model.name,
            "deviations": list(shown.deviations),
            "holds": list(shown.holds),
            "broken": {formula.formula: formula.length for formula in shown.broken},
            "untold": [formula.formula for formula in shown.broken if not formula.told],
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
    broken: list[ViolatedFormula] = []
    while True:
        # A violation is what is looked for here: no finding of a check that was to hold.
        outcome = check(judged, context.check).outcome
        if outcome.result != "violated":
            break
        name = outcome.violated
        broken.append(ViolatedFormula(name, len(outcome.steps), name in names))
        judged = _without(judged, name)
    holds = outcome.result == "holds"
    return WeakenedModel(
        model.name,
        tuple(deviation.id for deviation in deviations),
        (*judged.check.invariants, *judged.check.properties) if holds else (),
        tuple(broken),
        outcome.distinct_states or 0,
        "" if holds else f"TLC came to no end: {outcome.result}",
    )


def _without(model: Model, formula: str) -> Model:
    check = msgspec.structs.replace(
        model.check,
        invariants=tuple(name for name in model.check.invariants if name != formula),
        properties=tuple(name for name in model.check.properties if name != formula),
    )
    return replace(model, check=check)
