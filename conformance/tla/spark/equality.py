"""Equality of terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from conformance.tla.semantics.equality import eq
from conformance.tla.semantics.errors import EvaluationError
from conformance.tla.semantics.kinds import match_arguments
from conformance.tla.spark import physical, sql
from conformance.tla.spark.branches import as_formula
from conformance.tla.spark.columns import (
    as_listed,
    as_mapped,
    columns,
    element_type,
    materialise,
    stored,
)
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Truth,
    conjoin,
    equivalent,
    negate,
    undefined,
)
from conformance.tla.spark.physical import (
    MODEL_VALUE,
    MapOf,
    SequenceOf,
    SetOf,
    Type,
    TypeClash,
)
from conformance.tla.spark.quantifiers import quantify
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.terms import (
    SETS,
    Boolean,
    Column,
    Infinite,
    KnownTerm,
    ListedTerm,
    MappedTerm,
    Term,
    UndefinedTerm,
    bare,
    guarded_formula,
    merge,
)
from conformance.tla.values import ModelValue, Value

_EMPTY: tuple[Value, ...] = ((), frozenset())


def is_set(term: Term) -> bool:
    """Whether the term is a set, as far as is known at compile time."""
    if isinstance(term, KnownTerm):
        return isinstance(term.value, frozenset)
    return isinstance(term, SETS) or (isinstance(term, Column) and isinstance(term.type, SetOf))


def decided(question: Callable[[], bool]) -> Formula:
    """The formula of a question about known values; undefined where the evaluator gives up."""
    try:
        return Truth(question())
    except EvaluationError as error:
        return undefined(error.reason)


def unequal_domains(arguments: Iterable[Value], others: Iterable[Value]) -> Formula:
    """FALSE: two functions have different domains; undefined where these are of different kinds."""

    def question() -> bool:
        match_arguments(arguments, others)
        return False

    return decided(question)


def equals(scope: FormulaScope, left: Term, right: Term) -> Formula:
    """left = right."""
    guards = merge(left.guards, right.guards)
    return guarded_formula(_equals(scope, bare(left), bare(right)), guards)


def _equals(scope: FormulaScope, left: Term, right: Term) -> Formula:
    for term in (left, right):
        if isinstance(term, UndefinedTerm):
            return Atom(sql.FALSE, term.guards)
    if isinstance(left, Column) and isinstance(right, Column) and left.type == right.type:
        return Truth(True) if left.text == right.text else Atom(sql.equal(left.text, right.text))
    if isinstance(left, KnownTerm) and isinstance(right, KnownTerm):
        return decided(lambda: eq(left.value, right.value))
    if left == right:
        return Truth(True)
    if isinstance(left, Boolean) or isinstance(right, Boolean):
        return equivalent(as_formula(left), as_formula(right))
    for term, other in ((left, right), (right, left)):
        if isinstance(term, KnownTerm) and term.value in _EMPTY and not isinstance(other, Infinite):
            return _is_empty(scope, other, term)
    first, second = as_mapped(left), as_mapped(right)
    if first is not None and second is not None:
        return _equal_functions(scope, first, second)
    one_list, other_list = as_listed(left), as_listed(right)
    for mapped, listed in ((first, other_list), (second, one_list)):
        if mapped is not None and listed is not None:
            return unequal_domains([key for key, _ in mapped.entries], [1])
    if one_list is not None and other_list is not None:
        pairs = zip(one_list.items, other_list.items, strict=False)
        same = len(one_list.items) == len(other_list.items)
        return conjoin([_equals(scope, a, b) for a, b in pairs]) if same else Truth(False)
    for listed, other in ((one_list, right), (other_list, left)):
        kind = other.type if isinstance(other, Column) else None
        if listed is not None and isinstance(other, Column) and isinstance(kind, SequenceOf):
            return _equal_items(scope, listed, other, element_type(other))
    return _equal_columns(scope, left, right)


def _equal_items(scope: FormulaScope, listed: ListedTerm, array: Column, element: Type) -> Formula:
    """A sequence of known length and an array: no array is built."""
    same = Atom(sql.equal(sql.size(array.text), sql.size_of(len(listed.items))))
    parts = [stored(element, sql.at(array.text, i)) for i in range(len(listed.items))]
    pairs = zip(listed.items, parts, strict=True)
    return conjoin([same, *(_equals(scope, item, part) for item, part in pairs)])


def _equal_functions(scope: FormulaScope, left: MappedTerm, right: MappedTerm) -> Formula:
    results = dict(right.entries)
    arguments = [key for key, _ in left.entries]
    if set(arguments) != set(results):
        return unequal_domains(arguments, results)
    return conjoin([_equals(scope, item, results[key]) for key, item in left.entries])


def _equal_columns(scope: FormulaScope, left: Term, right: Term) -> Formula:
    try:
        a, b = columns(scope, left, right)
    except TypeClash as clash:
        if any(_is_model_value(term) for term in (left, right)):
            return Truth(False)
        return undefined(f"cannot compare {clash}")
    return guarded_formula(Atom(sql.equal(a.text, b.text)), merge(a.guards, b.guards))


def _is_model_value(term: Term) -> bool:
    if isinstance(term, KnownTerm):
        return isinstance(term.value, ModelValue)
    return isinstance(term, Column) and term.type == MODEL_VALUE


def _is_empty(scope: FormulaScope, term: Term, empty: KnownTerm) -> Formula:
    """term = {} or term = <<>>, without an array where that is possible."""
    if empty.value == () and as_mapped(term) is not None:
        return Truth(False)
    if isinstance(term, ListedTerm):
        return Truth(not term.items)
    if (empty.value == ()) == is_set(term):
        return undefined("a set is compared with a sequence")
    if is_set(term):
        return negate(quantify(scope, term, lambda _: Truth(True), neutral=False))
    if isinstance(term, Column) and not isinstance(term.type, SequenceOf | MapOf):
        return undefined(f"cannot compare <<>> and {physical.describe(term.type)}")
    column = materialise(scope, term)
    return guarded_formula(Atom(sql.equal(sql.size(column.text), sql.size_of(0))), column.guards)
