"""What a temporal formula asks of a behaviour, step by step.

An obligation is a set of formulas that the rest of a behaviour has to satisfy. `choices` lists the
ways to begin: what the first step must be like, what is then still to be satisfied, and which
`Until`s were put off. A behaviour satisfies the formula if some way through puts off no `Until` for
ever (Couvreur, On-the-fly verification of linear temporal logic, 1999).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from conformance.tla.semantics.behaviours import (
    AllOf,
    AnyOf,
    Claim,
    Temporal,
    Unless,
    Until,
    negation,
)

Obligation = frozenset[Temporal]


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to begin; `pending` is what was not yet taken apart."""

    claims: frozenset[Claim] = frozenset()
    """True of the first step."""
    rest: Obligation = frozenset()
    put_off: frozenset[Until] = frozenset()
    pending: tuple[Temporal, ...] = ()


def choices(obligation: Obligation, going: Callable[[], None] = lambda: None) -> tuple[Choice, ...]:
    """The ways to begin, without those that ask for more than another one does.

    There may be very many for a large formula: `going` is called for each, and may end the work.

    A behaviour that satisfies what it must as soon as it can finds its way through the others, too:
    it puts off nothing that it need not.
    """
    ways: dict[Choice, None] = {}
    for way in _complete(Choice(pending=tuple(obligation))):
        going()
        ways[way] = None
    kept: list[Choice] = []
    for way in sorted(ways, key=_asked):
        going()
        if not any(_asks_less(item, way) for item in kept):
            kept.append(way)
    return tuple(kept)


def _asked(way: Choice) -> int:
    return len(way.claims) + len(way.rest) + len(way.put_off)


def _asks_less(item: Choice, other: Choice) -> bool:
    return item.claims <= other.claims and item.rest <= other.rest and item.put_off <= other.put_off


def _complete(choice: Choice) -> Iterator[Choice]:
    if not choice.pending:
        yield choice
        return
    formula, *others = choice.pending
    for way in _ways(formula, replace(choice, pending=tuple(others))):
        yield from _complete(way)


def _ways(formula: Temporal, choice: Choice) -> Iterator[Choice]:
    def first(*parts: Temporal) -> Choice:
        return replace(choice, pending=(*parts, *choice.pending))

    match formula:
        case Claim():
            if formula in choice.claims:
                yield choice
            elif negation(formula) not in choice.claims:
                yield replace(choice, claims=choice.claims | {formula})
        case AllOf(parts):
            yield first(*parts)
        case AnyOf(parts):
            yield from map(first, parts)
        case Until(meanwhile, goal):
            yield first(goal)
            later, off = choice.rest | {formula}, choice.put_off | {formula}
            yield replace(first(meanwhile), rest=later, put_off=off)
        case Unless(freed, kept):
            yield first(freed, kept)
            yield replace(first(kept), rest=choice.rest | {formula})
