"""Turns terms into SQL expressions: where a value is really needed, and not before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.tla.spark import physical, sql
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Guard,
    Guards,
    Truth,
    causes_of,
    guards_hold,
)
from conformance.tla.spark.physical import (
    INTEGER,
    KEY,
    RESULT,
    MapOf,
    SequenceOf,
    SetOf,
    StructOf,
    TupleOf,
    Type,
    TypeClash,
)
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.terms import (
    BigUnion,
    Boolean,
    Bounds,
    Column,
    CombinedTerm,
    EnumeratedTerm,
    FilteredTerm,
    FunctionOf,
    Image,
    Infinite,
    Interval,
    KnownTerm,
    ListedTerm,
    MappedTerm,
    Subsets,
    Term,
    UndefinedTerm,
    bare,
    merge,
)
from conformance.tla.values import Fn, Value, canonical_sorted, make_function

STORED: Bounds = (-(2**53), 2**53)
"""Integers of a row lie within; a row with a larger one is inconclusive (`ranges`)."""

SIZES: Bounds = (0, 2**31)
MAX_INTERVAL = 100_000
MAX_POWER = 12

INDEX = "n_"
"""The variable of the index, from 0, in a lambda that has one."""


class NotFinite(Exception):
    """A set without a finite array; `str` says which."""


def stored(kind: Type, text: Sql) -> Term:
    """The term of a stored value: a column or a part of one."""
    if kind == physical.BOOLEAN:
        return Boolean(Atom(text))
    return Column(kind, text, (), STORED if kind == INTEGER else None)


def integer(text: Sql, bounds: Bounds | None, guards: Guards = ()) -> Column:
    """An integer term."""
    return Column(INTEGER, text, guards, bounds)


def function(entries: Sequence[tuple[Value, Term]], guards: Guards = ()) -> Term:
    """The function with these results, in normal form: a sequence where its domain is 1..n."""
    collected = merge(guards, *(term.guards for _, term in entries))
    parts = [(key, bare(term)) for key, term in entries]
    if all(isinstance(term, KnownTerm) for _, term in parts):
        known = {key: term.value for key, term in parts if isinstance(term, KnownTerm)}
        return KnownTerm(make_function(known), collected)
    by_key = dict(parts)
    size = len(parts)
    if all(type(key) is int and 1 <= key <= size for key in by_key):
        return ListedTerm(tuple(by_key[index] for index in range(1, size + 1)), collected)
    return MappedTerm(tuple(parts), collected)


def sequence(items: Sequence[Term], guards: Guards = ()) -> Term:
    """The tuple of these items."""
    return function([(index, item) for index, item in enumerate(items, 1)], guards)


def as_mapped(term: Term) -> MappedTerm | None:
    """The term as a function with a known domain, if it is one (sequences are not)."""
    match term:
        case MappedTerm():
            return term
        case KnownTerm(value=Fn() as value):
            entries = [(key, KnownTerm(value[key])) for key in canonical_sorted(value)]
            return MappedTerm(tuple(entries), term.guards)
        case Column(type=StructOf(fields=fields)):
            entries_of = [
                (key, stored(kind, sql.field_of(term.text, physical.field_name(key))))
                for key, kind in fields
            ]
            return MappedTerm(tuple(entries_of), term.guards)
    return None


def as_listed(term: Term) -> ListedTerm | None:
    """The term as a sequence of known length, if it is one."""
    match term:
        case ListedTerm():
            return term
        case KnownTerm(value=tuple() as value):
            return ListedTerm(tuple(KnownTerm(item) for item in value), term.guards)
        case Column(type=TupleOf(items=items)):
            parts = [
                stored(kind, sql.field_of(term.text, physical.item_name(index)))
                for index, kind in enumerate(items, 1)
            ]
            return ListedTerm(tuple(parts), term.guards)
    return None


def natural_type(term: Term) -> Type:
    """The type that a term has by itself; TypeClash or NotFinite where it has none."""
    match term:
        case KnownTerm(value=value):
            return physical.type_of(value)
        case Column(type=kind):
            return kind
        case Boolean():
            return physical.BOOLEAN
        case MappedTerm(entries=entries):
            by_key = dict(entries)
            return StructOf(tuple((k, natural_type(by_key[k])) for k in canonical_sorted(by_key)))
        case ListedTerm(items=items):
            return physical.sequence_type([natural_type(item) for item in items])
        case EnumeratedTerm(candidates=candidates):
            return SetOf(physical.common_type([natural_type(item) for _, item in candidates]))
        case Interval():
            return SetOf(INTEGER)
        case FilteredTerm(base=base):
            return natural_type(base)
        case Subsets(base=base):
            return SetOf(natural_type(base))
        case CombinedTerm(left=left, right=right):
            if isinstance(right, Infinite):
                return natural_type(left)
            return physical.unify(natural_type(left), natural_type(right))
        case Infinite(name=name):
            raise NotFinite(name)
    raise NotFinite(type(term).__name__)


def columns(scope: FormulaScope, left: Term, right: Term) -> tuple[Column, Column]:
    """Both terms as expressions of one type."""
    if isinstance(left, UndefinedTerm) or isinstance(right, UndefinedTerm):
        other = materialise(scope, right if isinstance(left, UndefinedTerm) else left)
        return materialise(scope, left, other.type), materialise(scope, right, other.type)
    first, second = materialise(scope, left), materialise(scope, right)
    kind = physical.unify(first.type, second.type)
    return convert(scope, first, kind), convert(scope, second, kind)


def materialise(scope: FormulaScope, term: Term, wanted: Type | None = None) -> Column:
    """The term as one SQL expression, of the wanted type if one is named."""
    match term:
        case KnownTerm(value=value, guards=guards):
            kind = wanted or physical.type_of(value)
            bounds = (value, value) if kind == INTEGER and isinstance(value, int) else None
            return Column(kind, physical.literal(value, kind), guards, bounds)
        case UndefinedTerm(guards=guards):
            kind = wanted or INTEGER
            return Column(kind, sql.null(physical.ddl(kind)), guards)
        case Column():
            return convert(scope, term, wanted or term.type)
        case Boolean(formula=formula):
            return _expect(Column(physical.BOOLEAN, formula.holds(), formula.guard()), wanted)
        case MappedTerm() if isinstance(wanted, MapOf):
            return _pairs(scope, term, wanted)
        case MappedTerm():
            return _struct(scope, term, wanted)
        case ListedTerm():
            return _array(scope, term, wanted)
        case FunctionOf():
            return _function(scope, term, wanted)
    made = _set(scope, term)
    return convert(scope, made, wanted or made.type)


def _expect(column: Column, wanted: Type | None) -> Column:
    if wanted is not None and wanted != column.type:
        raise TypeClash(f"{physical.describe(column.type)} and {physical.describe(wanted)}")
    return column


def convert(scope: FormulaScope, column: Column, wanted: Type) -> Column:
    """The same value in another physical form."""
    kind = column.type
    if kind == wanted or physical.ddl(kind) == physical.ddl(wanted):
        return column if kind == wanted else Column(wanted, column.text, column.guards)
    if physical.unify(kind, wanted) == kind and isinstance(kind, SetOf | SequenceOf):
        return column
    match kind, wanted:
        case (SetOf(element=None), SetOf()) | (SequenceOf(element=None), SequenceOf()):
            return Column(
                wanted, physical.array([], element_type(Column(wanted, sql.NULL))), column.guards
            )
        case StructOf(), MapOf() | StructOf():
            mapped = as_mapped(column)
            if mapped is not None:
                return materialise(scope, mapped, wanted)
        case TupleOf(), TupleOf():
            listed = as_listed(column)
            if listed is not None:
                return materialise(scope, listed, wanted)
        case (SetOf(element=a), SetOf(element=b)) | (SequenceOf(element=a), SequenceOf(element=b)):
            if a is not None and b is not None:
                with scope.binder() as name:
                    part = convert(scope, Column(a, sql.variable(name)), b)
                text = sql.each("transform", column.text, name, part.text)
                return Column(wanted, text, column.guards)
    raise TypeClash(f"{physical.describe(kind)} and {physical.describe(wanted)}")


def _struct(scope: FormulaScope, term: MappedTerm, wanted: Type | None) -> Column:
    if wanted is not None and not isinstance(wanted, StructOf):
        raise TypeClash(f"a function and {physical.describe(wanted)}")
    hints = dict(wanted.fields) if wanted is not None else {}
    if wanted is not None and set(hints) != {key for key, _ in term.entries}:
        raise TypeClash(f"functions of different domains: {physical.describe(wanted)}")
    entries = [(key, materialise(scope, item, hints.get(key))) for key, item in term.entries]
    if wanted is not None:
        order = {key: index for index, (key, _) in enumerate(wanted.fields)}
        entries.sort(key=lambda entry: order[entry[0]])
    else:
        order = {key: index for index, key in enumerate(canonical_sorted(k for k, _ in entries))}
        entries.sort(key=lambda entry: order[entry[0]])
    text = physical.struct([(physical.field_name(key), column.text) for key, column in entries])
    guards = merge(term.guards, *(column.guards for _, column in entries))
    return Column(StructOf(tuple((key, c.type) for key, c in entries)), text, guards)


def _pairs(scope: FormulaScope, term: MappedTerm, wanted: MapOf) -> Column:
    by_key = dict(term.entries)
    columns_of = [
        (key, materialise(scope, by_key[key], wanted.value)) for key in canonical_sorted(by_key)
    ]
    parts = [
        physical.struct([(KEY, physical.literal(key, wanted.key)), (RESULT, column.text)])
        for key, column in columns_of
    ]
    guards = merge(term.guards, *(column.guards for _, column in columns_of))
    element = StructOf(((KEY, wanted.key), (RESULT, wanted.value)))
    return Column(wanted, physical.array(parts, element), guards)


def _array(scope: FormulaScope, term: ListedTerm, wanted: Type | None) -> Column:
    kind = wanted or natural_type(term)
    if isinstance(kind, TupleOf):
        if len(kind.items) != len(term.items):
            raise TypeClash(f"a tuple of another length and {physical.describe(kind)}")
        parts = [materialise(scope, i, t) for i, t in zip(term.items, kind.items, strict=True)]
        text = physical.struct([(physical.item_name(i), c.text) for i, c in enumerate(parts, 1)])
    elif isinstance(kind, SequenceOf):
        parts = [materialise(scope, item, kind.element) for item in term.items]
        text = physical.array([column.text for column in parts], kind.element)
    else:
        raise TypeClash(f"a sequence and {physical.describe(kind)}")
    return Column(kind, text, merge(term.guards, *(column.guards for column in parts)))


def _function(scope: FormulaScope, term: FunctionOf, wanted: Type | None) -> Column:
    """[x \\in S |-> e]: a sequence over 1..n, else pairs."""
    domain = materialise(scope, term.domain)
    interval = term.domain
    if isinstance(interval, Interval) and _from_one(interval) and not isinstance(wanted, MapOf):
        element = wanted.element if isinstance(wanted, SequenceOf) else None
        made = transform(scope, domain, term.function, element)
        return guard_with(convert(scope, made, wanted or made.type), term.guards)
    hint = wanted if isinstance(wanted, MapOf) else None
    key = hint.key if hint else element_type(domain)

    def pair(argument: Term) -> Term:
        result = materialise(scope, term.function(argument), hint.value if hint else None)
        text = physical.struct(
            [(KEY, materialise(scope, argument, key).text), (RESULT, result.text)]
        )
        return Column(MapOf(key, result.type), text, result.guards)

    pairs = transform(scope, domain, pair, None)
    kind = element_type(pairs)
    return guard_with(
        convert(scope, Column(kind, pairs.text, pairs.guards), wanted or kind), term.guards
    )


def _from_one(interval: Interval) -> bool:
    return isinstance(interval.low, KnownTerm) and interval.low.value == 1


def guard_with(column: Column, guards: Guards) -> Column:
    """The column with more guards before its own."""
    if not guards:
        return column
    return Column(column.type, column.text, merge(guards, column.guards), column.bounds)


def transform(
    scope: FormulaScope, array: Column, body: Callable[[Term], Term], wanted: Type | None
) -> Column:
    """The sequence of body(x) over the elements of an array."""
    with scope.binder() as name:
        item = stored(element_type(array), sql.variable(name))
        made = materialise(scope, body(item), wanted)
    value = sql.choice(guards_hold(made.guards), made.text, sql.NULL)
    text = sql.each("transform", array.text, name, value)
    guards = array.guards
    if made.guards:
        guards = merge(guards, (Guard(all_known(text), causes_of(made.guards)),))
    return Column(SequenceOf(made.type), text, guards)


def all_known(array: Sql) -> Sql:
    """No element of the array is NULL."""
    return sql.closed("forall", array, lambda item: sql.call("isnotnull", item))


def element_type(column: Column) -> Type:
    """The type of the elements of an array; integers where it is always empty."""
    kind = column.type
    if isinstance(kind, SetOf | SequenceOf):
        return kind.element or INTEGER
    raise TypeClash(f"a set and {physical.describe(kind)}")


def distinct(column: Column) -> Column:
    """An array as a set: each element once, in canonical order."""
    element = column.type.element if isinstance(column.type, SequenceOf | SetOf) else None
    return Column(SetOf(element), sorted_set(column.text), column.guards)


def sorted_set(array: Sql) -> Sql:
    """The elements of an array, each once, in canonical order."""
    return sql.call("sort_array", sql.call("array_distinct", array))


def _set(scope: FormulaScope, term: Term) -> Column:
    """A set as an array in canonical order."""
    match term:
        case EnumeratedTerm():
            return _enumerated(scope, term)
        case Interval():
            return _interval(term)
        case FilteredTerm():
            return _filtered(scope, term)
        case Image():
            base = materialise(scope, term.base)
            made = distinct(transform(scope, base, term.function, None))
            return guard_with(made, term.guards)
        case CombinedTerm():
            return _combined(scope, term)
        case Subsets():
            return _subsets(scope, term)
        case BigUnion(sets=sets):
            array = materialise(scope, sets)
            inner = element_type(array)
            if array.type == SetOf(None):  # UNION {}
                return guard_with(array, term.guards)
            if not isinstance(inner, SetOf):
                raise TypeClash(f"a set and {physical.describe(inner)}")
            flat = Column(inner, sql.call("flatten", array.text), merge(term.guards, array.guards))
            return distinct(flat)
        case Infinite(name=name):
            raise NotFinite(name)
    raise NotFinite(
        {"ProductTerm": "\\X", "FunctionsTerm": "[S -> T]", "SequencesTerm": "Seq"}.get(
            type(term).__name__, type(term).__name__
        )
    )


def _enumerated(scope: FormulaScope, term: EnumeratedTerm) -> Column:
    kind = natural_type(term)
    element = kind.element if isinstance(kind, SetOf) else None
    parts: list[tuple[Formula, Term]] = list(term.candidates)
    known = [item.value for _, item in parts if isinstance(item, KnownTerm)]
    ordered = len(known) == len(parts) and len(set(known)) == len(known)
    if ordered:
        rank = {value: index for index, value in enumerate(canonical_sorted(known))}
        parts.sort(key=lambda part: rank[part[1].value] if isinstance(part[1], KnownTerm) else 0)
    columns_of = [(condition, materialise(scope, item, element)) for condition, item in parts]
    guards = merge(term.guards, *(column.guards for _, column in columns_of))
    texts = [sql.choice(c.holds(), column.text, sql.NULL) for c, column in columns_of]
    text = physical.array(texts, element)
    if any(not isinstance(condition, Truth) for condition, _ in parts):
        text = sql.call("array_compact", text)
    if not ordered and len(parts) > 1:
        text = sorted_set(text)
    return Column(SetOf(element), text, guards)


def _interval(term: Interval) -> Column:
    low, high = interval_ends(term)
    guards = merge(term.guards, low.guards, high.guards)
    bounds = (low.bounds or STORED)[0], (high.bounds or STORED)[1]
    if bounds[1] - bounds[0] > SIZES[1]:
        cause = f"an interval of more than {MAX_INTERVAL} integers"
        most = sql.integer(MAX_INTERVAL)
        small = sql.compare("<=", sql.compare("-", high.text, low.text), most)
        guards = merge(guards, (Guard(small, (cause,)),))
        top = sql.call("least", high.text, sql.compare("+", low.text, most))
    else:
        top = high.text
    empty = physical.array([], INTEGER)
    some = sql.compare("<=", low.text, high.text)
    text = sql.choice(some, sql.call("sequence", low.text, top), empty)
    return Column(SetOf(INTEGER), text, guards)


def interval_ends(term: Interval) -> tuple[Column, Column]:
    """Both ends as columns."""
    low, high = (
        integer(sql.integer(end.value), (end.value, end.value), end.guards)
        if isinstance(end, KnownTerm) and isinstance(end.value, int)
        else end
        for end in (term.low, term.high)
    )
    if isinstance(low, Column) and isinstance(high, Column):
        return low, high
    raise TypeClash("an interval and what is not an integer")


def _filtered(scope: FormulaScope, term: FilteredTerm) -> Column:
    base = materialise(scope, term.base)
    with scope.binder() as name:
        condition = term.predicate(stored(element_type(base), sql.variable(name)))
    guards = merge(term.guards, base.guards)
    if condition.total:
        kept = sql.each("filter", base.text, name, condition.holds())
        return Column(base.type, kept, guards)
    verdicts = sql.each("transform", base.text, name, condition.value())
    verdict = sql.call("coalesce", sql.at(verdicts, sql.variable(INDEX)), sql.FALSE)
    text = sql.call("filter", base.text, sql.over(("e_", INDEX), verdict))
    return Column(base.type, text, merge(guards, (Guard(all_known(verdicts), condition.causes),)))


def _combined(scope: FormulaScope, term: CombinedTerm) -> Column:
    left, right = columns(scope, term.left, term.right)
    guards = merge(term.guards, left.guards, right.guards)
    match term.operator:
        case "\\union":
            text = sql.call("sort_array", sql.call("array_union", left.text, right.text))
        case "\\intersect":
            text = sql.call("array_intersect", left.text, right.text)
        case _:
            text = sql.call("array_except", left.text, right.text)
    return Column(left.type, text, guards)


def _subsets(scope: FormulaScope, term: Subsets) -> Column:
    """SUBSET S of a computed set: 2^n arrays, n limited."""
    base = materialise(scope, term.base)
    guard = Guard(
        sql.compare("<=", sql.size(base.text), sql.size_of(MAX_POWER)),
        (f"SUBSET of more than {MAX_POWER} elements",),
    )
    kind = SetOf(element_type(base))
    start = sql.call("array", physical.array([], kind.element))
    made, item = sql.variable("a_"), sql.call("array", sql.variable("i_"))
    more = sql.closed("transform", made, lambda subset: sql.call("concat", subset, item))
    grow = sql.over(("a_", "i_"), sql.call("concat", made, more))
    some = sql.call("slice", base.text, sql.size_of(1), sql.size_of(MAX_POWER))
    text = sql.call("sort_array", sql.call("aggregate", some, start, grow))
    return Column(SetOf(kind), text, merge(term.guards, base.guards, (guard,)))
