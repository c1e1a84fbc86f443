"""The elements that a set can have, where they are known at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, product
from math import prod

from conformance.tla.spark.columns import (
    sequence,
)
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Guard,
    Guards,
    Truth,
    conjoin,
    disjoin,
    negate,
)
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.terms import (
    BigUnion,
    CombinedTerm,
    EnumeratedTerm,
    FilteredTerm,
    FunctionsTerm,
    Image,
    Interval,
    KnownTerm,
    ProductTerm,
    RecordsTerm,
    Subsets,
    Term,
    merge,
)
from conformance.tla.values import Fn, Value, canonical_sorted, make_function

MAX_COPIES = 64
"""A quantifier is written out for each element while there are at most so many copies."""

FEW = 2
"""Integers are written out where there are no more than so many."""

LIMIT_COPIES = 4096
Candidates = tuple[tuple[Formula, Term], ...]


def static_candidates(scope: FormulaScope, term: Term) -> tuple[Candidates, Guards] | None:
    """The elements that a set can have, each with its condition; None if that is not known."""
    match term:
        case KnownTerm(value=frozenset() as value, guards=guards):
            return tuple((Truth(True), KnownTerm(item)) for item in canonical_sorted(value)), guards
        case EnumeratedTerm(candidates=candidates, guards=guards):
            return candidates, guards
        case FilteredTerm(base=base, guards=guards):
            return _filtered_candidates(scope, term, static_candidates(scope, base))
        case CombinedTerm():
            return _combined_candidates(scope, term)
        case Image(base=base):
            return _image_candidates(term, static_candidates(scope, base))
        case Interval(low=KnownTerm(value=int() as low), high=KnownTerm(value=int() as high)):
            if high - low >= LIMIT_COPIES:
                return None
            return tuple((Truth(True), KnownTerm(i)) for i in range(low, high + 1)), term.guards
        case BigUnion(sets=sets):
            return _union_candidates(scope, term, static_candidates(scope, sets))
        case Subsets() | FunctionsTerm() | RecordsTerm():
            return _known_candidates(scope, term)
        case ProductTerm(factors=factors):
            return _product_candidates(term, [static_candidates(scope, f) for f in factors])
    return None


def _filtered_candidates(
    scope: FormulaScope, term: FilteredTerm, base: tuple[Candidates, Guards] | None
) -> tuple[Candidates, Guards] | None:
    if base is None or len(base[0]) * scope.copies > LIMIT_COPIES:
        return None
    kept: list[tuple[Formula, Term]] = []
    guards = merge(term.guards, base[1])
    for condition, item in base[0]:
        test = term.predicate(item)
        if not test.total:
            needed = disjoin([negate(condition), Atom(test.defined())])
            guards = merge(guards, (Guard(needed.holds(), test.causes),))
            test = Atom(test.holds())
        both = conjoin([condition, test])
        if both != Truth(False):
            kept.append((both, item))
    return tuple(kept), guards


def _combined_candidates(
    scope: FormulaScope, term: CombinedTerm
) -> tuple[Candidates, Guards] | None:
    left = static_candidates(scope, term.left)
    right = static_candidates(scope, term.right)
    if left is None:
        return None
    if term.operator == "\\union":
        if right is None:
            return None
        return (*left[0], *right[0]), merge(term.guards, left[1], right[1])
    inside = term.operator == "\\intersect"
    kept: list[tuple[Formula, Term]] = []
    for condition, item in left[0]:
        test = term.in_right(item)
        if not test.total:
            return None
        both = conjoin([condition, test if inside else negate(test)])
        if both != Truth(False):
            kept.append((both, item))
    return tuple(kept), merge(term.guards, left[1], term.right.guards)


def _image_candidates(
    term: Image, base: tuple[Candidates, Guards] | None
) -> tuple[Candidates, Guards] | None:
    if base is None:
        return None
    made = [(condition, term.function(item)) for condition, item in base[0]]
    if any(item.guards for _, item in made):
        return None
    return tuple(made), merge(term.guards, base[1])


def _union_candidates(
    scope: FormulaScope, term: BigUnion, sets: tuple[Candidates, Guards] | None
) -> tuple[Candidates, Guards] | None:
    if sets is None:
        return None
    union_candidates: list[tuple[Formula, Term]] = []
    guards = merge(term.guards, sets[1])
    for condition, item in sets[0]:
        inner = static_candidates(scope, item)
        if inner is None or len(union_candidates) + len(inner[0]) > LIMIT_COPIES:
            return None
        if inner[1] and condition != Truth(True):
            return None
        guards = merge(guards, inner[1])
        union_candidates += [(conjoin([condition, test]), item) for test, item in inner[0]]
    return tuple(union_candidates), guards


def _known_candidates(scope: FormulaScope, term: Term) -> tuple[Candidates, Guards] | None:
    values = known_elements(scope, term)
    if values is None:
        return None
    return tuple((Truth(True), KnownTerm(item)) for item in canonical_sorted(values)), term.guards


def known_elements(scope: FormulaScope, term: Term) -> list[Value] | None:
    """The elements of a set that does not depend on the row and is not too large."""
    match term:
        case Subsets(base=base):
            of = known_elements(scope, base)
            if of is None or 2 ** len(of) > LIMIT_COPIES:
                return None
            sizes = range(len(of) + 1)
            chosen = (combinations(of, size) for size in sizes)
            subsets: list[Value] = [frozenset(c) for c in chain.from_iterable(chosen)]
            return subsets
        case FunctionsTerm(domain=domain, range=range_):
            arguments, results = known_elements(scope, domain), known_elements(scope, range_)
            if arguments is None or results is None:
                return None
            if len(results) ** len(arguments) > LIMIT_COPIES:
                return None
            choices = product(results, repeat=len(arguments))
            return [make_function(dict(zip(arguments, c, strict=True))) for c in choices]
        case RecordsTerm(fields=fields):
            sets = [known_elements(scope, of) for _, of in fields]
            known = [of for of in sets if of is not None]
            if len(known) < len(sets) or prod(map(len, known)) > LIMIT_COPIES:
                return None
            names = [name for name, _ in fields]
            return [Fn(dict(zip(names, c, strict=True))) for c in product(*known)]
    static = static_candidates(scope, term)
    if static is None or static[1]:
        return None
    values = [
        item.value
        for test, item in static[0]
        if isinstance(item, KnownTerm) and test == Truth(True)
    ]
    if len(values) < len(static[0]):
        return None
    return list(canonical_sorted(frozenset(values)))


def _product_candidates(
    term: ProductTerm, factors: Sequence[tuple[Candidates, Guards] | None]
) -> tuple[Candidates, Guards] | None:
    known = [factor for factor in factors if factor is not None]
    if len(known) < len(factors):
        return None
    made = [
        (conjoin([condition for condition, _ in choice]), sequence([item for _, item in choice]))
        for choice in product(*(candidates for candidates, _ in known))
    ]
    return tuple(made), merge(term.guards, *(guards for _, guards in known))
