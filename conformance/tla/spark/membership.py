"""Membership of terms in sets."""

from __future__ import annotations

from conformance.tla.semantics.equality import member as member_of
from conformance.tla.semantics.sets import Integers, Strings
from conformance.tla.spark import physical, sql
from conformance.tla.spark.candidates import MAX_COPIES
from conformance.tla.spark.columns import (
    NotFinite,
    as_listed,
    as_mapped,
    integer,
    interval_ends,
    materialise,
    stored,
)
from conformance.tla.spark.equality import decided, equals, unequal_domains
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Truth,
    conjoin,
    disjoin,
    negate,
    undefined,
)
from conformance.tla.spark.physical import (
    INTEGER,
    MODEL_VALUE,
    STRING,
    MapOf,
    SequenceOf,
    SetOf,
    TypeClash,
)
from conformance.tla.spark.quantifiers import quantify
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.terms import (
    BigUnion,
    Boolean,
    Column,
    CombinedTerm,
    EnumeratedTerm,
    FilteredTerm,
    FunctionOf,
    FunctionsTerm,
    Image,
    Infinite,
    Interval,
    KnownTerm,
    MappedTerm,
    ProductTerm,
    RecordsTerm,
    SequencesTerm,
    Subsets,
    Term,
    UndefinedTerm,
    bare,
    guarded_formula,
    merge,
)
from conformance.tla.values import Value, canonical_sorted

_INFINITE = {"Nat": Integers(0), "Int": Integers(None), "STRING": Strings()}


def member(scope: FormulaScope, item: Term, domain: Term) -> Formula:
    """item \\in domain."""
    guards = merge(item.guards, domain.guards)
    return guarded_formula(_member(scope, bare(item), bare(domain)), guards)


def _member(scope: FormulaScope, item: Term, domain: Term) -> Formula:
    for term in (item, domain):
        if isinstance(term, UndefinedTerm):
            return Atom(sql.FALSE, term.guards)
    match domain:
        case KnownTerm(value=frozenset() as values):
            return _member_of_known(scope, item, values)
        case Infinite(name=name):
            return _member_of_infinite(item, name)
        case Interval():
            return _member_of_interval(scope, item, domain)
        case EnumeratedTerm(candidates=candidates):
            return disjoin([conjoin([c, equals(scope, item, each)]) for c, each in candidates])
        case FilteredTerm(base=base):
            test = conjoin([_member(scope, item, base), domain.predicate(item)])
            # Of a constant only its own value would be asked for, of the predicate TLC asks all.
            decided_here = isinstance(item, KnownTerm) and isinstance(base, KnownTerm)
            if _by_rule(base) or (test.total and not decided_here):
                return test
        case CombinedTerm(operator=operator, left=left, right=right):
            in_left, in_right = member(scope, item, left), member(scope, item, right)
            if operator == "\\union":
                return disjoin([in_left, in_right])
            return conjoin([in_left, in_right if operator == "\\intersect" else negate(in_right)])
        case Image(base=base):
            test = quantify(
                scope, base, lambda x: equals(scope, domain.function(x), item), neutral=False
            )
            if test.total:
                return test
        case BigUnion(sets=sets):
            test = quantify(scope, sets, lambda s: member(scope, item, s), neutral=False)
            if test.total:
                return test
        case Subsets(base=base):
            return subset(scope, item, base)
        case SequencesTerm(base=base):
            return _is_sequence_over(scope, item, base)
        case FunctionsTerm():
            return _is_function(scope, item, domain)
        case RecordsTerm(fields=fields):
            return _is_record(scope, item, dict(fields))
        case ProductTerm(factors=factors):
            return _is_tuple(scope, item, factors)
    return _in_array(scope, item, domain)


def _by_rule(base: Term) -> bool:
    """Whether TLC asks a filter's condition of the one element only."""
    if isinstance(base, FilteredTerm):
        return _by_rule(base.base)
    return isinstance(base, Subsets | SequencesTerm | FunctionsTerm | RecordsTerm | Infinite)


def _member_of_known(scope: FormulaScope, item: Term, values: frozenset[Value]) -> Formula:
    if isinstance(item, KnownTerm):
        return decided(lambda: member_of(item.value, values))
    if not values:
        return Truth(False)
    if isinstance(item, Boolean):
        if values == {True, False}:
            return guarded_formula(Truth(True), item.guards)
        return disjoin(
            [equals(scope, item, KnownTerm(value)) for value in canonical_sorted(values)]
        )
    if isinstance(item, Column) and isinstance(item.type, physical.Scalar):
        return _in_list(item, values)
    if len(values) <= MAX_COPIES:
        return disjoin(
            [equals(scope, item, KnownTerm(value)) for value in canonical_sorted(values)]
        )
    return _in_array(scope, item, KnownTerm(values))


def _in_list(item: Column, values: frozenset[Value]) -> Formula:
    try:
        known = [physical.literal(value, item.type) for value in canonical_sorted(values)]
    except TypeClash as clash:
        return undefined(f"cannot compare {clash}")
    if len(known) == 1:
        return Atom(sql.equal(item.text, known[0]))
    return Atom(sql.call("`in`", item.text, *known))


def _member_of_infinite(item: Term, name: str) -> Formula:
    if isinstance(item, KnownTerm):
        return decided(lambda: member_of(item.value, _INFINITE[name]))
    kind = item.type if isinstance(item, Column) else None
    if isinstance(item, Column) and kind == INTEGER and name in ("Nat", "Int"):
        if name == "Int" or (item.bounds is not None and item.bounds[0] >= 0):
            return Truth(True)
        return Atom(sql.compare(">=", item.text, sql.integer(0)))
    if kind == STRING and name == "STRING":
        return Truth(True)
    if kind == MODEL_VALUE:
        return Truth(False)
    return undefined(f"whether a value of another type is an element of {name}")


def _member_of_interval(scope: FormulaScope, item: Term, domain: Interval) -> Formula:
    low, high = interval_ends(domain)
    try:
        column = materialise(scope, item, INTEGER)
    except TypeClash as clash:
        return undefined(f"cannot compare {clash}")
    guards = merge(low.guards, high.guards, column.guards)
    return Atom(sql.between(column.text, low.text, high.text), guards)


def _is_sequence_over(scope: FormulaScope, item: Term, base: Term) -> Formula:
    listed = as_listed(item)
    if listed is not None:
        return conjoin([member(scope, part, base) for part in listed.items])
    if as_mapped(item) is not None:
        return undefined("whether a function that is not a sequence is in Seq(S)")
    if isinstance(item, Column) and isinstance(item.type, SequenceOf):
        if item.type.element is None:
            return Truth(True)
        as_set = Column(SetOf(item.type.element), item.text)
        return quantify(scope, as_set, lambda x: member(scope, x, base), neutral=True)
    if isinstance(item, FunctionOf):
        return _is_sequence_over(scope, materialise(scope, item), base)
    raise NotFinite("Seq")


def _is_function(scope: FormulaScope, item: Term, domain: FunctionsTerm) -> Formula:
    mapped, listed = as_mapped(item), as_listed(item)
    if mapped is None and listed is not None:
        mapped = MappedTerm(tuple((i, part) for i, part in enumerate(listed.items, 1)))
    if mapped is not None:
        keys = KnownTerm(frozenset(key for key, _ in mapped.entries))
        same = equals(scope, keys, domain.domain)
        return conjoin([same, *(member(scope, part, domain.range) for _, part in mapped.entries)])
    if not isinstance(item, Column):
        item = materialise(scope, item)
    if isinstance(item.type, SequenceOf):
        size = integer(sql.call("bigint", sql.size(item.text)), (0, 2**31))
        same = equals(scope, Interval(KnownTerm(1), size), domain.domain)
        return conjoin([same, _is_sequence_over(scope, item, domain.range)])
    if isinstance(item.type, MapOf):
        return _is_pairs(scope, item, item.type, domain)
    return undefined("whether a value that is not a function is in [S -> T]")


def _is_pairs(scope: FormulaScope, item: Column, kind: MapOf, domain: FunctionsTerm) -> Formula:
    keys = Column(SetOf(kind.key), _parts(item.text, physical.KEY))
    results = Column(SetOf(kind.value), _parts(item.text, physical.RESULT))
    same = equals(scope, keys, domain.domain)
    every = quantify(scope, results, lambda x: member(scope, x, domain.range), neutral=True)
    return conjoin([same, every])


def _parts(pairs: Sql, part: str) -> Sql:
    return sql.closed("transform", pairs, lambda pair: sql.field_of(pair, part))


def _is_record(scope: FormulaScope, item: Term, fields: dict[str, Term]) -> Formula:
    mapped, listed = as_mapped(item), as_listed(item)
    if mapped is None:
        if listed is not None and not listed.items:
            return Truth(False)
        return undefined("whether a value that is not a record is in a set of records")
    if {key for key, _ in mapped.entries} != set(fields):
        return unequal_domains([key for key, _ in mapped.entries], fields)
    results = dict(mapped.entries)
    return conjoin([member(scope, results[name], of) for name, of in fields.items()])


def _is_tuple(scope: FormulaScope, item: Term, factors: tuple[Term, ...]) -> Formula:
    listed = as_listed(item)
    if listed is not None:
        if len(listed.items) != len(factors):
            return Truth(False)
        pairs = zip(listed.items, factors, strict=True)
        return conjoin([member(scope, part, of) for part, of in pairs])
    if isinstance(item, Column) and isinstance(item.type, SequenceOf) and item.type.element:
        kind = item.type.element
        parts = [stored(kind, sql.at(item.text, i)) for i in range(len(factors))]
        inside = [member(scope, p, of) for p, of in zip(parts, factors, strict=True)]
        return conjoin([Atom(sql.equal(sql.size(item.text), sql.size_of(len(factors)))), *inside])
    mapped = as_mapped(item)
    if mapped is not None:
        return unequal_domains([key for key, _ in mapped.entries], [1])
    return undefined("whether a value that is not a tuple is in a product of sets")


def _in_array(scope: FormulaScope, item: Term, domain: Term) -> Formula:
    array = materialise(scope, domain)
    kind = array.type
    if not isinstance(kind, SetOf):
        raise TypeClash(f"a set and {physical.describe(kind)}")
    if kind.element is None:
        return guarded_formula(Truth(False), array.guards)
    try:
        column = materialise(scope, item, kind.element)
    except TypeClash as clash:
        return undefined(f"cannot compare {clash}")
    test = Atom(sql.call("array_contains", array.text, column.text))
    return guarded_formula(test, merge(array.guards, column.guards))


def subset(scope: FormulaScope, left: Term, right: Term) -> Formula:
    """left \\subseteq right."""
    guards = merge(left.guards, right.guards)
    inner = bare(right)
    every = quantify(scope, bare(left), lambda x: member(scope, x, inner), neutral=True)
    return guarded_formula(every, guards)
