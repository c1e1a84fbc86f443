"""The operators of the language and of the standard modules, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from conformance.tla.spark import functions, numbers, sql
from conformance.tla.spark.branches import as_formula, choose_branch
from conformance.tla.spark.candidates import known_elements
from conformance.tla.spark.choice import cardinality
from conformance.tla.spark.columns import function, materialise, sequence
from conformance.tla.spark.environment import Operand, Operator
from conformance.tla.spark.equality import equals, is_set
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Guard,
    Truth,
    conjoin,
    disjoin,
    equivalent,
    negate,
)
from conformance.tla.spark.membership import member, subset
from conformance.tla.spark.physical import INTEGER, TypeClash
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.terms import (
    BigUnion,
    Boolean,
    Column,
    CombinedTerm,
    EnumeratedTerm,
    FunctionsTerm,
    Infinite,
    Interval,
    KnownTerm,
    ProductTerm,
    SequencesTerm,
    Subsets,
    Term,
    UndefinedTerm,
    bare,
    guarded,
    merge,
)
from conformance.tla.values import canonical_sorted, format_value, make_function


@dataclass(frozen=True, slots=True)
class Application:
    """Where an operator is applied, and how it applies an operator that it is given."""

    scope: FormulaScope
    primed: bool
    operator: str
    place: str
    call: Callable[[Operator, Sequence[Term]], Term]

    def cause(self, what: str) -> str:
        """What is wrong, and where."""
        return f"{self.place}: {what}"

    def term(self, operand: Operand | Operator) -> Term:
        """The operand as a term."""
        if isinstance(operand, Operator):
            raise TypeClash("an operator and a value")
        return operand.term(self.primed)

    def terms(self, operands: Sequence[Operand | Operator]) -> list[Term]:
        """All operands as terms."""
        return [self.term(operand) for operand in operands]

    def formula(self, operand: Operand | Operator) -> Formula:
        """The operand as a formula."""
        return as_formula(self.term(operand))


Implementation = Callable[..., Term]


def _truth(value: bool) -> Implementation:
    return lambda _: Boolean(Truth(value))


def _junction(neutral: bool) -> Implementation:
    def junction(context: Application, *operands: Operand) -> Term:
        parts = [context.formula(operand) for operand in operands]
        return Boolean(conjoin(parts) if neutral else disjoin(parts))

    return junction


def _not(context: Application, operand: Operand) -> Term:
    return Boolean(negate(context.formula(operand)))


def _implies(context: Application, condition: Operand, conclusion: Operand) -> Term:
    return Boolean(disjoin([negate(context.formula(condition)), context.formula(conclusion)]))


def _equivalent(context: Application, left: Operand, right: Operand) -> Term:
    return Boolean(equivalent(context.formula(left), context.formula(right)))


def _relation(
    relate: Callable[[FormulaScope, Term, Term], Formula], *, negated: bool = False
) -> Implementation:
    def relation(context: Application, left: Operand, right: Operand) -> Term:
        made = relate(context.scope, context.term(left), context.term(right))
        return Boolean(negate(made) if negated else made)

    return relation


def _compare(context: Application, left: Operand, right: Operand) -> Term:
    return Boolean(
        numbers.compare(context.scope, context.operator, context.term(left), context.term(right))
    )


def _arithmetic(context: Application, left: Operand, right: Operand) -> Term:
    cause = context.cause(f"{context.operator} is undefined or out of range")
    a, b = context.term(left), context.term(right)
    return numbers.arithmetic(context.scope, context.operator, a, b, cause)


def _negative(context: Application, operand: Operand) -> Term:
    return numbers.negative(
        context.scope, context.term(operand), context.cause("an integer out of range")
    )


def _interval(context: Application, low: Operand, high: Operand) -> Term:
    ends = [
        end if isinstance(end, KnownTerm) else materialise(context.scope, end, INTEGER)
        for end in (context.term(low), context.term(high))
    ]
    guards = merge(ends[0].guards, ends[1].guards)
    first, last = (bare(end) for end in ends)
    if isinstance(first, KnownTerm | Column) and isinstance(last, KnownTerm | Column):
        return Interval(first, last, guards)
    raise TypeClash("an interval and what is not an integer")


def _infinite(context: Application) -> Term:
    return Infinite(context.operator)


def _enumeration(context: Application, *operands: Operand) -> Term:
    terms = context.terms(operands)
    guards = merge(*(term.guards for term in terms))
    return EnumeratedTerm(tuple((Truth(True), bare(term)) for term in terms), guards)


def _tuple(context: Application, *operands: Operand) -> Term:
    return sequence(context.terms(operands))


def _combination(context: Application, left: Operand, right: Operand) -> Term:
    a, b = context.term(left), context.term(right)
    inner = bare(b)
    return CombinedTerm(
        context.operator,
        bare(a),
        inner,
        lambda item: member(context.scope, item, inner),
        merge(a.guards, b.guards),
    )


def _unary_set(make: Callable[..., Term]) -> Implementation:
    def construct(context: Application, operand: Operand) -> Term:
        term = context.term(operand)
        return make(bare(term), term.guards)

    return construct


def _function_set(context: Application, domain: Operand, range_: Operand) -> Term:
    a, b = context.term(domain), context.term(range_)
    return FunctionsTerm(bare(a), bare(b), merge(a.guards, b.guards))


def _product(context: Application, *operands: Operand) -> Term:
    terms = context.terms(operands)
    return ProductTerm(tuple(map(bare, terms)), merge(*(term.guards for term in terms)))


def _domain(context: Application, operand: Operand) -> Term:
    return functions.domain(context.scope, context.term(operand))


def _cardinality(context: Application, operand: Operand) -> Term:
    cause = context.cause("Cardinality of an infinite set")
    return cardinality(context.scope, _set(context, operand), cause)


def _is_finite(context: Application, operand: Operand) -> Term:
    return Boolean(Truth(not isinstance(_set(context, operand), Infinite | SequencesTerm)))


def _set(context: Application, operand: Operand) -> Term:
    term = context.term(operand)
    if not is_set(term) and not isinstance(term, UndefinedTerm):
        raise TypeClash("a set and another value")
    return term


def _length(context: Application, operand: Operand) -> Term:
    return functions.length(
        context.scope, context.term(operand), context.cause("Len of what is no sequence")
    )


def _append(context: Application, operand: Operand, item: Operand) -> Term:
    last = sequence([context.term(item)])
    return functions.concatenation(context.scope, context.term(operand), last)


def _concatenation(context: Application, left: Operand, right: Operand) -> Term:
    return functions.concatenation(context.scope, context.term(left), context.term(right))


def _head(context: Application, operand: Operand) -> Term:
    cause = context.cause("Head of the empty sequence")
    return functions.head(context.scope, context.term(operand), cause)


def _tail(context: Application, operand: Operand) -> Term:
    cause = context.cause("Tail of the empty sequence")
    return functions.tail(context.scope, context.term(operand), cause)


def _sub_sequence(context: Application, operand: Operand, low: Operand, high: Operand) -> Term:
    cause = context.cause("SubSeq beyond the ends of the sequence")
    first, last = context.term(low), context.term(high)
    return functions.sub_sequence(context.scope, context.term(operand), first, last, cause)


def _select(context: Application, operand: Operand, test: Operator) -> Term:
    def holds(item: Term) -> Formula:
        return as_formula(context.call(test, [item]))

    return functions.select(context.scope, context.term(operand), holds)


def _pair(context: Application, argument: Operand, result: Operand) -> Term:
    key, value = context.term(argument), context.term(result)
    if not isinstance(key, KnownTerm):
        raise TypeClash("a known argument of :> and a computed one")
    return function([(key.value, value)], key.guards)


def _override(context: Application, left: Operand, right: Operand) -> Term:
    return functions.override(context.term(left), context.term(right))


# Bags: functions from elements to positive numbers


def _elements(context: Application, bag: Operand) -> tuple[Term, Term]:
    """A bag and the set of what it holds."""
    counted = context.term(bag)
    return counted, functions.domain(context.scope, counted)


def _bag_to_set(context: Application, bag: Operand) -> Term:
    return _elements(context, bag)[1]


def _bag_in(context: Application, element: Operand, bag: Operand) -> Term:
    return Boolean(member(context.scope, context.term(element), _elements(context, bag)[1]))


def _copies_in(context: Application, element: Operand, bag: Operand) -> Term:
    item = context.term(element)
    counted, elements = _elements(context, bag)
    inside = member(context.scope, item, elements)
    cause = context.cause("CopiesIn of what is no bag")
    copies = functions.apply(context.scope, counted, item, cause)
    if not isinstance(copies, UndefinedTerm):
        copies = materialise(context.scope, copies, INTEGER)
    return choose_branch(context.scope, inside, copies, KnownTerm(0))


# What is printed, or would be, is evaluated by TLC: without a value it is an error.


def _assert(context: Application, operand: Operand, message: Operand) -> Term:
    test, guards = context.formula(operand), context.term(message).guards
    cause = context.cause("the assertion failed")
    return Boolean(Atom(sql.TRUE, (*test.guard(), *guards, Guard(test.holds(), (cause,)))))


def _print_value(context: Application, printed: Operand, operand: Operand) -> Term:
    return guarded(context.term(operand), context.term(printed).guards)


def _print(context: Application, printed: Operand) -> Term:
    return guarded(Boolean(Truth(True)), context.term(printed).guards)


def _itself(context: Application, operand: Operand) -> Term:
    return context.term(operand)


def _to_string(context: Application, operand: Operand) -> Term:
    term = context.term(operand)
    if isinstance(term, KnownTerm):
        return KnownTerm(format_value(term.value), term.guards)
    raise TypeClash("a known value and a computed one in ToString")


def _permutations(context: Application, operand: Operand) -> Term:
    values = known_elements(context.scope, context.term(operand))
    if values is None or len(values) > 6:
        raise TypeClash("a known small set and a computed one in Permutations")
    items = canonical_sorted(values)
    every = (make_function(dict(zip(items, p, strict=True))) for p in permutations(items))
    return KnownTerm(frozenset(every))


OPERATORS: Mapping[str, Implementation] = {
    "TRUE": _truth(True),
    "FALSE": _truth(False),
    "BOOLEAN": lambda _: KnownTerm(frozenset((True, False))),
    "STRING": _infinite,
    "Nat": _infinite,
    "Int": _infinite,
    "\\land": _junction(True),
    "\\lor": _junction(False),
    "\\lnot": _not,
    "=>": _implies,
    "\\equiv": _equivalent,
    "=": _relation(equals),
    "/=": _relation(equals, negated=True),
    "\\in": _relation(member),
    "\\notin": _relation(member, negated=True),
    "\\subseteq": _relation(subset),
    "\\union": _combination,
    "\\intersect": _combination,
    "\\": _combination,
    "SUBSET": _unary_set(Subsets),
    "UNION": _unary_set(BigUnion),
    "Seq": _unary_set(SequencesTerm),
    "DOMAIN": _domain,
    "\\X": _product,
    "{}": _enumeration,
    "<<>>": _tuple,
    "[->]": _function_set,
    "+": _arithmetic,
    "-": _arithmetic,
    "*": _arithmetic,
    "^": _arithmetic,
    "%": _arithmetic,
    "\\div": _arithmetic,
    "-.": _negative,
    "..": _interval,
    "<": _compare,
    ">": _compare,
    "\\leq": _compare,
    "\\geq": _compare,
    "Len": _length,
    "\\o": _concatenation,
    "Append": _append,
    "Head": _head,
    "Tail": _tail,
    "SubSeq": _sub_sequence,
    "SelectSeq": _select,
    "IsFiniteSet": _is_finite,
    "Cardinality": _cardinality,
    ":>": _pair,
    "@@": _override,
    "EmptyBag": lambda _: KnownTerm(()),
    "BagToSet": _bag_to_set,
    "BagIn": _bag_in,
    "CopiesIn": _copies_in,
    "Assert": _assert,
    "Print": _print_value,
    "PrintT": _print,
    "TLCEval": _itself,
    "ToString": _to_string,
    "Permutations": _permutations,
}
"""What the back end supports of `conformance.tla.syntax.BUILTINS`, actions apart."""

__all__ = ["OPERATORS", "Application"]
