"""CHOOSE, Cardinality, and sets that do not depend on the row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

from conformance.tla.spark import sql
from conformance.tla.spark.branches import choose_branch, guard_term
from conformance.tla.spark.candidates import (
    LIMIT_COPIES,
    MAX_COPIES,
    Candidates,
    known_elements,
    static_candidates,
)
from conformance.tla.spark.columns import (
    element_type,
    integer,
    interval_ends,
    materialise,
    stored,
)
from conformance.tla.spark.formulas import (
    Formula,
    Guard,
    Guards,
    Truth,
    conjoin,
)
from conformance.tla.spark.physical import (
    INTEGER,
)
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.terms import (
    BigUnion,
    Column,
    CombinedTerm,
    EnumeratedTerm,
    FilteredTerm,
    Image,
    Infinite,
    Interval,
    KnownTerm,
    ProductTerm,
    Term,
    UndefinedTerm,
    guarded,
    merge,
)
from conformance.tla.values import canonical_sorted


def choose(
    scope: FormulaScope, domain: Term, predicate: Callable[[Term], Formula], cause: str
) -> Term:
    """CHOOSE x \\in domain : predicate(x): the first in canonical order."""
    if isinstance(domain, UndefinedTerm):
        return domain
    static = static_candidates(scope, domain)
    if static is not None and _all_known(static[0]):
        return _chosen(scope, *static, predicate, cause)
    array = materialise(scope, domain)
    kind = element_type(array)
    with scope.binder() as name:
        test = predicate(stored(kind, sql.variable(name)))
    if test.total:
        result = sql.each("filter", array.text, name, test.holds())
        guard = Guard(sql.compare(">", sql.size(result), sql.size_of(0)), (cause,))
    else:
        rest = sql.each("filter", array.text, name, sql.negation(test.fails()))
        result = sql.call("slice", rest, sql.size_of(1), sql.size_of(1))
        guard = Guard(sql.each("exists", result, name, test.holds()), (cause, *test.causes))
    item = stored(kind, sql.at(result, 0))
    return guard_term(item, merge(array.guards, (guard,)))


def _all_known(candidates: Candidates) -> bool:
    return len(candidates) <= LIMIT_COPIES and all(isinstance(i, KnownTerm) for _, i in candidates)


def _chosen(
    scope: FormulaScope,
    candidates: Candidates,
    guards: Guards,
    predicate: Callable[[Term], Formula],
    cause: str,
) -> Term:
    """Among candidates that are known, in canonical order."""
    rank = {
        value: index
        for index, value in enumerate(
            canonical_sorted({item.value for _, item in candidates if isinstance(item, KnownTerm)})
        )
    }
    ordered = sorted(
        candidates, key=lambda c: rank[c[1].value] if isinstance(c[1], KnownTerm) else 0
    )
    result: Term = UndefinedTerm((Guard(sql.FALSE, (cause,)),))
    arms: list[tuple[Formula, Term]] = []
    for condition, item in ordered:
        test = conjoin([condition, predicate(item)])
        if test == Truth(False):
            continue
        arms.append((test, item))
        if test == Truth(True):
            break
    for test, item in reversed(arms):
        result = choose_branch(scope, test, item, result)
    return guarded(result, guards)


def simplified(scope: FormulaScope, term: Term) -> Term:
    """A set that does not depend on the row as a known value, if it is not too large."""
    match term:
        case (
            EnumeratedTerm()
            | FilteredTerm()
            | Image()
            | CombinedTerm()
            | BigUnion()
            | Interval()
            | ProductTerm()
        ):
            if not _maybe_known(term):
                return term
            values = known_elements(scope, term)
            return term if values is None else KnownTerm(frozenset(values), term.guards)
    return term


def _maybe_known(term: Term) -> bool:
    match term:
        case KnownTerm():
            return not term.guards
        case EnumeratedTerm(candidates=candidates):
            return all(isinstance(item, KnownTerm) for _, item in candidates)
        case FilteredTerm(base=base) | Image(base=base):
            return _maybe_known(base)
        case CombinedTerm(left=left, right=right):
            return _maybe_known(left) and _maybe_known(right)
        case Interval(low=low, high=high):
            return isinstance(low, KnownTerm) and isinstance(high, KnownTerm)
        case ProductTerm(factors=factors):
            return all(map(_maybe_known, factors))
        case BigUnion(sets=sets):
            return _maybe_known(sets)
    return False


def cardinality(scope: FormulaScope, term: Term, cause: str) -> Term:
    """Cardinality(term)."""
    if isinstance(term, UndefinedTerm):
        return term
    if isinstance(term, KnownTerm) and isinstance(term.value, frozenset):
        return KnownTerm(len(term.value), term.guards)
    if isinstance(term, Infinite):
        return UndefinedTerm((Guard(sql.FALSE, (cause,)),))
    if isinstance(term, Interval):
        low, high = interval_ends(term)
        if (
            isinstance(term.low, KnownTerm)
            and term.low.value == 1
            and high.bounds
            and high.bounds[0] >= 0
        ):
            return Column(INTEGER, high.text, merge(term.guards, high.guards), high.bounds)
        span = sql.compare("-", high.text, sql.compare("-", low.text, sql.integer(1)))
        text = sql.call("greatest", span, sql.integer(0))
        return integer(text, (0, 2**54), merge(term.guards, low.guards, high.guards))
    static = static_candidates(scope, term)
    if static is not None and 0 < len(static[0]) <= MAX_COPIES:
        known = [item.value for _, item in static[0] if isinstance(item, KnownTerm)]
        if len(known) == len(static[0]) == len(set(known)):
            ones = [
                sql.choice(test.holds(), sql.integer(1), sql.integer(0)) for test, _ in static[0]
            ]
            return integer(reduce(partial(sql.compare, "+"), ones), (0, len(ones)), static[1])
    array = materialise(scope, term)
    return integer(sql.call("bigint", sql.size(array.text)), (0, 2**31), array.guards)
