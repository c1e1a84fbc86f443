"""Formulas of whole behaviours, in negation normal form, over claims about single steps.

What a specification says (`[]`, `<>`, `~>`, WF, SF) becomes one of five kinds of node. A `Claim` is
a formula of a state and its successor, looked at in a step of the behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from conformance.tla.values import State

StepPredicate = Callable[[State, State], bool]


@dataclass(frozen=True, slots=True)
class Claim:
    """That a formula of a state and its successor is true, or false, in the first step."""

    number: int
    """What tells it from the other claims of its specification."""
    holds: StepPredicate = field(compare=False)
    of_steps: bool = field(compare=False)
    """Whether it depends on the successor."""
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part; without parts it is true."""

    parts: tuple[Temporal, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part; without parts it is false."""

    parts: tuple[Temporal, ...]


@dataclass(frozen=True, slots=True)
class Until:
    """`goal` in some step, and `meanwhile` in all steps before it."""

    meanwhile: Temporal
    goal: Temporal


@dataclass(frozen=True, slots=True)
class Unless:
    """`kept` in every step, up to and with a step in which `freed` is true; perhaps for ever."""

    freed: Temporal
    kept: Temporal


Temporal = Claim | AllOf | AnyOf | Until | Unless

TRUE, FALSE = AllOf(()), AnyOf(())


def always(inner: Temporal) -> Temporal:
    """`[]inner`."""
    return Unless(FALSE, inner)


def eventually(inner: Temporal) -> Temporal:
    """`<>inner`."""
    return Until(TRUE, inner)


def all_of(parts: Iterable[Temporal]) -> Temporal:
    """The conjunction, without conjunctions in it."""
    flat = [part for item in parts for part in (item.parts if isinstance(item, AllOf) else (item,))]
    if FALSE in flat:
        return FALSE
    return flat[0] if len(flat) == 1 else AllOf(tuple(dict.fromkeys(flat)))


def any_of(parts: Iterable[Temporal]) -> Temporal:
    """The disjunction, without disjunctions in it."""
    flat = [part for item in parts for part in (item.parts if isinstance(item, AnyOf) else (item,))]
    if TRUE in flat:
        return TRUE
    return flat[0] if len(flat) == 1 else AnyOf(tuple(dict.fromkeys(flat)))


def negation(formula: Temporal) -> Temporal:
    """What is true of exactly the other behaviours."""
    match formula:
        case Claim(wanted=wanted):
            return replace(formula, wanted=not wanted)
        case AllOf(parts):
            return any_of(map(negation, parts))
        case AnyOf(parts):
            return all_of(map(negation, parts))
        case Until(meanwhile, goal):
            return Unless(negation(meanwhile), negation(goal))
        case Unless(freed, kept):
            return Until(negation(freed), negation(kept))
