"""Typed terms: what a TLA+ expression is at compile time, before it becomes SQL text.

A term keeps its structure as long as it can: `[s EXCEPT !.hw = n].hw` is `n`, `x \\in {y \\in S :
P(y)}` is `x \\in S` and `P(x)`, and no record or set is built on any row. Only where SQL needs a
value is a term turned into a `Column` (`materialise`).

Every term carries the guards of its definedness; the text of a `Column` never throws, and what
it gives where a guard is false does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from conformance.tla.spark import sql
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Guards,
    Nullable,
    Truth,
    causes_of,
    guards_hold,
)
from conformance.tla.spark.physical import Type
from conformance.tla.spark.sql import Sql
from conformance.tla.values import Value

Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class KnownTerm:
    """A value that is known at compile time, maybe an infinite set's name."""

    value: Value
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class UndefinedTerm:
    """A term that is undefined on every row: one of its guards is FALSE."""

    guards: Guards


@dataclass(frozen=True, slots=True)
class Column:
    """An SQL expression of the physical form of `type`.

    Of integers only: `bounds`, between which they lie, and `length_of`, the array of which the
    integer is the length, or a valid index where it is bound by a quantifier over 1 .. length.
    """

    type: Type
    text: Sql
    guards: Guards = ()
    bounds: Bounds | None = None
    length_of: Sql | None = None


@dataclass(frozen=True, slots=True)
class Boolean:
    """A boolean value."""

    formula: Formula

    @property
    def guards(self) -> Guards:
        return self.formula.guard()


@dataclass(frozen=True, slots=True)
class MappedTerm:
    """A function or record whose domain is known; `entries` hold no guards of their own."""

    entries: tuple[tuple[Value, Term], ...]
    guards: Guards = ()

    def get(self, key: Value) -> Term | None:
        """The result for an argument, or None outside the domain."""
        return next((term for known, term in self.entries if known == key), None)


@dataclass(frozen=True, slots=True)
class ListedTerm:
    """A tuple or sequence whose length is known; `items` hold no guards of their own."""

    items: tuple[Term, ...]
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class Infinite:
    """Nat, Int, STRING or another set that can only be asked for membership."""

    name: str
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class EnumeratedTerm:
    """Those of the candidates whose condition holds; candidates may be equal.

    Conditions are total.
    """

    candidates: tuple[tuple[Formula, Term], ...]
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class Interval:
    """low .. high."""

    low: Column | KnownTerm
    high: Column | KnownTerm
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class FilteredTerm:
    """{x \\in base : predicate(x)}."""

    base: Term
    predicate: Callable[[Term], Formula]
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class Image:
    """{function(x) : x \\in base}."""

    base: Term
    function: Callable[[Term], Term]
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class CombinedTerm:
    """Union, intersection or difference; `in_right` is membership in the right one."""

    operator: str
    left: Term
    right: Term
    in_right: Callable[[Term], Formula]
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class BigUnion:
    """UNION sets."""

    sets: Term
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class Subsets:
    """SUBSET base."""

    base: Term
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class SequencesTerm:
    """Seq(base)."""

    base: Term
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class FunctionsTerm:
    """[domain -> range]."""

    domain: Term
    range: Term
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class RecordsTerm:
    """[field : set, ...]."""

    fields: tuple[tuple[str, Term], ...]
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class ProductTerm:
    """factor \\X factor ..."""

    factors: tuple[Term, ...]
    guards: Guards = ()


@dataclass(frozen=True, slots=True)
class FunctionOf:
    """[x \\in domain |-> function(x)] over a domain that is not known."""

    domain: Term
    function: Callable[[Term], Term]
    guards: Guards = ()


Term = (
    KnownTerm
    | UndefinedTerm
    | Column
    | Boolean
    | MappedTerm
    | ListedTerm
    | Infinite
    | EnumeratedTerm
    | Interval
    | FilteredTerm
    | Image
    | CombinedTerm
    | BigUnion
    | Subsets
    | SequencesTerm
    | FunctionsTerm
    | RecordsTerm
    | ProductTerm
    | FunctionOf
)
SETS = (
    Infinite,
    EnumeratedTerm,
    Interval,
    FilteredTerm,
    Image,
    CombinedTerm,
    BigUnion,
    Subsets,
    SequencesTerm,
    FunctionsTerm,
    RecordsTerm,
    ProductTerm,
)


def bare(term: Term) -> Term:
    """The term without its guards; whoever takes it so must keep them elsewhere."""
    if isinstance(term, UndefinedTerm):
        return term
    if isinstance(term, Boolean):
        formula = term.formula
        return term if formula.total else Boolean(Atom(formula.holds()))
    return replace(term, guards=()) if term.guards else term


def guarded(term: Term, guards: Guards) -> Term:
    """The term with more guards before its own."""
    if not guards:
        return term
    if isinstance(term, Boolean):
        return Boolean(guarded_formula(term.formula, guards))
    return replace(term, guards=merge(guards, term.guards))


def guarded_formula(formula: Formula, guards: Guards) -> Formula:
    """The formula, undefined where a guard is false."""
    if not guards:
        return formula
    if isinstance(formula, Atom):
        return Atom(formula.condition, merge(guards, formula.guards))
    if isinstance(formula, Truth):
        return Atom(formula.holds(), guards)
    if formula.total:
        return Atom(formula.holds(), guards)
    value = sql.choice(guards_hold(guards), formula.value(), sql.NULL)
    return Nullable(value, causes_of((*guards, formula)))


def merge(*groups: Guards) -> Guards:
    """The guards in order, each once."""
    return tuple(dict.fromkeys(guard for group in groups for guard in group))
