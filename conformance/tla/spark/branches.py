"""IF between terms: field by field where both are records, and guards of what is chosen."""

from __future__ import annotations

from dataclasses import replace

from conformance.tla.spark import physical, sql
from conformance.tla.spark.columns import STORED, as_mapped, columns, function
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Guard,
    Guards,
    Truth,
    causes_of,
    conditional,
    guards_hold,
)
from conformance.tla.spark.physical import (
    INTEGER,
    TypeClash,
)
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.terms import (
    Boolean,
    Column,
    KnownTerm,
    Term,
    UndefinedTerm,
    bare,
    guarded_formula,
    merge,
)


def choose_branch(scope: FormulaScope, condition: Formula, then: Term, otherwise: Term) -> Term:
    """IF condition THEN then ELSE otherwise, fieldwise where both are records."""
    if isinstance(condition, Truth):
        return then if condition.known else otherwise
    if isinstance(then, UndefinedTerm) or isinstance(otherwise, UndefinedTerm):
        test = condition.holds()
        guards = merge(condition.guard(), _branch_guards(test, then.guards, otherwise.guards))
        defined = otherwise if isinstance(then, UndefinedTerm) else then
        return (
            UndefinedTerm(guards)
            if isinstance(defined, UndefinedTerm)
            else guard_term(bare(defined), guards)
        )
    if isinstance(then, Boolean) or isinstance(otherwise, Boolean):
        return Boolean(conditional(condition, as_formula(then), as_formula(otherwise)))
    test = condition.holds()
    guards = merge(condition.guard(), _branch_guards(test, then.guards, otherwise.guards))
    return guarded_choice(scope, test, bare(then), bare(otherwise), guards)


def as_formula(term: Term) -> Formula:
    """A boolean term as a formula; TypeClash where it is none."""
    match term:
        case Boolean(formula=formula):
            return formula
        case UndefinedTerm(guards=guards):
            return Atom(sql.FALSE, guards)
        case KnownTerm(value=bool() as value, guards=()):
            return Truth(value)
        case KnownTerm(value=bool() as value, guards=guards):
            return Atom(sql.TRUE if value else sql.FALSE, guards)
        case Column(type=physical.BOOLEAN):
            return Atom(term.text, term.guards)
    raise TypeClash("a boolean and another value")


def _branch_guards(test: Sql, then: Guards, otherwise: Guards) -> Guards:
    if not then and not otherwise:
        return ()
    if then == otherwise:
        return then
    condition = sql.choice(test, guards_hold(then), guards_hold(otherwise))
    return (Guard(condition, causes_of((*then, *otherwise))),)


def guarded_choice(
    scope: FormulaScope, test: Sql, then: Term, otherwise: Term, guards: Guards
) -> Term:
    """IF on an SQL condition between terms without guards."""
    if then == otherwise:
        return guard_term(then, guards)
    if isinstance(then, Boolean) or isinstance(otherwise, Boolean):
        made = conditional(Atom(test), as_formula(then), as_formula(otherwise))
        return Boolean(guarded_formula(made, guards))
    first, second = as_mapped(then), as_mapped(otherwise)
    if first is not None and second is not None:
        keys = [key for key, _ in first.entries]
        by_key = dict(second.entries)
        if set(keys) == set(by_key):
            merged = [
                (key, guarded_choice(scope, test, item, by_key[key], ()))
                for key, item in first.entries
            ]
            return function(merged, guards)
    left, right = columns(scope, then, otherwise)
    text = sql.choice(test, left.text, right.text)
    bounds = None
    if left.type == INTEGER:
        a, b = left.bounds or STORED, right.bounds or STORED
        bounds = min(a[0], b[0]), max(a[1], b[1])
    return _column_term(Column(left.type, text, merge(guards, left.guards, right.guards), bounds))


def _column_term(column: Column) -> Term:
    if column.type == physical.BOOLEAN:
        return Boolean(Atom(column.text, column.guards))
    return column


def guard_term(term: Term, guards: Guards) -> Term:
    """The term, undefined where a guard is false."""
    if not guards:
        return term
    if isinstance(term, Boolean):
        formula = term.formula
        return Boolean(guarded_formula(formula, guards))
    return replace(term, guards=merge(guards, term.guards))
