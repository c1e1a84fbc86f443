"""Every formula that a model breaks. TLC stops at the first, so it is asked again without that.

TLC's own `-continue` prints a behaviour for each state that violates something, and of several
invariants that one state violates only the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec

from conformance.modelcheck.manifest import Model
from conformance.modelcheck.outcome import EngineOutcome
from conformance.modelcheck.tlc_output import ViolationKind
from conformance.modelcheck.wording import DEADLOCK, breaks


@dataclass(frozen=True, slots=True)
class BrokenFormula:
    """A formula that is violated. `length` counts the states of a shortest counterexample.

    It is 0 where there is no such thing: of a formula about whole behaviours.
    """

    formula: str
    length: int = 0

    def __str__(self) -> str:
        after = f" after {self.length} states" if self.length else ""
        return f"{breaks(self.formula)}{after}"


@dataclass(frozen=True, slots=True)
class BrokenFormulas:
    """All that a model breaks, shortest counterexample first."""

    formulas: tuple[BrokenFormula, ...] = ()
    problem: str = ""
    """Why that may not be all."""
    states: int = 0
    """Distinct states of the search that found nothing else."""

    @staticmethod
    def of(formulas: Iterable[BrokenFormula], states: int, problem: str = "") -> BrokenFormulas:
        """In an order that does not depend on the engine."""
        return BrokenFormulas(
            tuple(sorted(formulas, key=lambda item: (not item.length, item.length, item.formula))),
            problem,
            states,
        )

    def summary(self) -> str:
        """For the terminal; empty if nothing was asked or nothing is broken."""
        text = f"in all it {'; '.join(map(str, self.formulas))}" if self.formulas else ""
        return f"{text}; {self.problem}" if text and self.problem else text or self.problem


NOT_ASKED = BrokenFormulas()


def of_assumption(outcome: EngineOutcome) -> BrokenFormulas:
    """Where an ASSUME is false nothing is searched."""
    return BrokenFormulas(problem=f"no formula was looked at, because {outcome.is_broken()}")


def broken_formulas(
    model: Model, first: EngineOutcome, check: Callable[[Model], EngineOutcome]
) -> BrokenFormulas:
    """Check the model without what is violated, until the rest holds; `first` is known already."""
    formulas: list[BrokenFormula] = []
    outcome = first
    while outcome.result == "violated":
        names = outcome.violated.split(" or ")
        if outcome.kind == ViolationKind.ASSUMPTION:
            return of_assumption(outcome)
        if outcome.kind == ViolationKind.POSTCONDITION:  # TLC judges it when all else holds
            formulas.append(BrokenFormula(outcome.violated))
            break
        if outcome.kind != ViolationKind.TEMPORAL_PROPERTY:
            formulas.append(BrokenFormula(outcome.violated, len(outcome.steps)))
        elif len(names) == 1:
            formulas.append(BrokenFormula(outcome.violated))
        else:  # TLC does not say which of them
            alone = ((name, check(_only(model, name))) for name in names)
            formulas += [
                BrokenFormula(name) for name, answer in alone if answer.result == "violated"
            ]
        model = _without(model, names)
        outcome = check(model)
    open_end = outcome.result in ("timeout", "error")
    problem = f"what else breaks is not known, since TLC ended with {outcome.result}"
    return BrokenFormulas.of(
        formulas, outcome.distinct_states or 0, problem if open_end and formulas else ""
    )


def _without(model: Model, names: Iterable[str]) -> Model:
    left_out, check = {*names}, model.check
    return replace(
        model,
        expect=None,
        check=msgspec.structs.replace(
            check,
            invariants=tuple(name for name in check.invariants if name not in left_out),
            properties=tuple(name for name in check.properties if name not in left_out),
            deadlock=check.deadlock and DEADLOCK not in left_out,
        ),
    )


def _only(model: Model, name: str) -> Model:
    check = msgspec.structs.replace(model.check, invariants=(), properties=(name,), deadlock=False)
    return replace(model, expect=None, check=check)
