"""Quantifiers: written out over known elements, else lambdas over an array."""

from __future__ import annotations

from collections.abc import Callable

from conformance.tla.spark import sql
from conformance.tla.spark.candidates import (
    FEW,
    LIMIT_COPIES,
    MAX_COPIES,
    Candidates,
    static_candidates,
)
from conformance.tla.spark.columns import (
    element_type,
    interval_ends,
    materialise,
    sequence,
    stored,
)
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Quantified,
    Truth,
    conjoin,
    disjoin,
    instances,
    negate,
)
from conformance.tla.spark.physical import (
    INTEGER,
    SetOf,
)
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.terms import (
    Column,
    Image,
    Interval,
    KnownTerm,
    ProductTerm,
    Term,
    UndefinedTerm,
    guarded_formula,
)


def quantify(
    scope: FormulaScope,
    domain: Term,
    body: Callable[[Term], Formula],
    *,
    neutral: bool,
    in_order: bool = False,
) -> Formula:
    """`\\A x \\in domain : body(x)` where neutral is TRUE, `\\E` where it is FALSE.

    One element that decides is enough, even if the body is undefined for another; `in_order`: the
    first one that decides or is undefined counts.
    """
    if isinstance(domain, UndefinedTerm):
        return Atom(sql.FALSE, domain.guards)
    static = static_candidates(scope, domain)
    if static is not None:
        candidates, guards = static
        copies = scope.copies * len(candidates)
        few = copies <= MAX_COPIES and len(candidates) <= FEW
        if few or (_names_only(candidates) and copies <= LIMIT_COPIES):
            made = _written_out(scope, candidates, body, neutral, in_order)
            return guarded_formula(made, guards)
    if isinstance(domain, ProductTerm):
        return _nested(scope, domain.factors, (), body, neutral)
    if isinstance(domain, Column) and domain.type == SetOf(None):
        return guarded_formula(Truth(neutral), domain.guards)
    if isinstance(domain, Image):
        mapped = _through(scope, domain, body, neutral)
        if mapped is not None:
            return mapped
    return _over_array(scope, domain, body, neutral, in_order)


def _nested(
    scope: FormulaScope,
    factors: tuple[Term, ...],
    items: tuple[Term, ...],
    body: Callable[[Term], Formula],
    neutral: bool,
) -> Formula:
    """Over S \\X T: over S, then over T."""
    if not factors:
        return body(sequence(items))
    first, rest = factors[0], factors[1:]
    return quantify(
        scope, first, lambda x: _nested(scope, rest, (*items, x), body, neutral), neutral=neutral
    )


def _names_only(candidates: Candidates) -> bool:
    return all(isinstance(i, KnownTerm) and not isinstance(i.value, int) for _, i in candidates)


def _written_out(
    scope: FormulaScope,
    candidates: Candidates,
    body: Callable[[Term], Formula],
    neutral: bool,
    in_order: bool,
) -> Formula:
    parts: list[Formula] = []
    with scope.unrolled(max(1, len(candidates))):
        for condition, item in candidates:
            made = body(item)
            if condition != Truth(True):
                made = disjoin([negate(condition), made]) if neutral else conjoin([condition, made])
            parts.append(made)
            if made == Truth(not neutral):
                break
    return instances(parts, neutral=neutral, in_order=in_order)


def _through(
    scope: FormulaScope, domain: Image, body: Callable[[Term], Formula], neutral: bool
) -> Formula | None:
    """Over the base of {e(x) : x \\in S}: the order of elements does not matter if all is total."""
    made = quantify(scope, domain.base, lambda x: body(domain.function(x)), neutral=neutral)
    return guarded_formula(made, domain.guards) if made.total else None


def _over_array(
    scope: FormulaScope,
    domain: Term,
    body: Callable[[Term], Formula],
    neutral: bool,
    in_order: bool,
) -> Formula:
    array = materialise(scope, domain)
    with scope.binder() as name:
        item = stored(element_type(array), sql.variable(name))
        if isinstance(item, Column) and isinstance(domain, Interval):
            item = _index(domain, item.text)
        made = body(item)
    if isinstance(made, Truth):
        empty = Atom(sql.equal(sql.size(array.text), sql.size_of(0)), array.guards)
        return guarded_formula(made, array.guards) if made.known == neutral else _flip(empty, made)
    return Quantified(array.text, array.guards, name, made, neutral, in_order)


def _flip(empty: Formula, made: Truth) -> Formula:
    """Every body is FALSE: `\\A` holds of the empty set only; TRUE: `\\E` of the others."""
    return negate(empty) if made.known else empty


def _index(domain: Interval, name: Sql) -> Column:
    low, high = interval_ends(domain)
    ends = (low.bounds or (None, None))[0], (high.bounds or (None, None))[1]
    bounds = None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
    positive = bounds is not None and bounds[0] >= 1
    return Column(INTEGER, name, (), bounds, high.length_of if positive else None)
