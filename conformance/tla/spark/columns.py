"""Turns terms into SQL expressions: where a value is really needed, and not before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.tla.spark import sql, types
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Guard,
    Guards,
    Truth,
    causes_of,
    guards_hold,
)
from conformance.tla.spark.scope import Scope
from conformance.tla.spark.terms import (
    BigUnion,
    Boolean,
    Bounds,
    Column,
    Combined,
    Enumerated,
    Filtered,
    FunctionOf,
    Image,
    Infinite,
    Interval,
    Known,
    Listed,
    Mapped,
    Nothing,
    Subsets,
    Term,
    bare,
    merge,
)
from conformance.tla.spark.types import (
    INTEGER,
    MapOf,
    SequenceOf,
    SetOf,
    StructOf,
    TupleOf,
    Type,
    TypeClash,
)
from conformance.tla.values import Fn, Value, canonical_sorted, make_function

STORED: Bounds = (-(2**53), 2**53)
"""Integers of a row lie within; a row with a larger one is inconclusive (`ranges`)."""

SIZES: Bounds = (0, 2**31)
MAX_INTERVAL = 100_000
MAX_POWER = 12


class NotFinite(Exception):
    """A set without a finite array; `str` says which."""


def stored(kind: Type, text: str) -> Term:
    """The term of a stored value: a column or a part of one."""
    if kind == types.BOOLEAN:
        return Boolean(Atom(text))
    return Column(kind, text, (), STORED if kind == INTEGER else None)


def integer(text: str, bounds: Bounds | None, guards: Guards = ()) -> Column:
    """An integer term."""
    return Column(INTEGER, text, guards, bounds)


def function(entries: Sequence[tuple[Value, Term]], guards: Guards = ()) -> Term:
    """The function with these results, in normal form: a sequence where its domain is 1..n."""
    collected = merge(guards, *(term.guards for _, term in entries))
    parts = [(key, bare(term)) for key, term in entries]
    if all(isinstance(term, Known) for _, term in parts):
        known = {key: term.value for key, term in parts if isinstance(term, Known)}
        return Known(make_function(known), collected)
    by_key = dict(parts)
    size = len(parts)
    if all(type(key) is int and 1 <= key <= size for key in by_key):
        return Listed(tuple(by_key[index] for index in range(1, size + 1)), collected)
    return Mapped(tuple(parts), collected)


def sequence(items: Sequence[Term], guards: Guards = ()) -> Term:
    """The tuple of these items."""
    return function([(index, item) for index, item in enumerate(items, 1)], guards)


def as_mapped(term: Term) -> Mapped | None:
    """The term as a function with a known domain, if it is one (sequences are not)."""
    match term:
        case Mapped():
            return term
        case Known(value=Fn() as value):
            entries = [(key, Known(value[key])) for key in canonical_sorted(value)]
            return Mapped(tuple(entries), term.guards)
        case Column(type=StructOf(fields=fields)):
            entries_of = [
                (key, stored(kind, sql.field(term.text, types.field_name(key))))
                for key, kind in fields
            ]
            return Mapped(tuple(entries_of), term.guards)
    return None


def as_listed(term: Term) -> Listed | None:
    """The term as a sequence of known length, if it is one."""
    match term:
        case Listed():
            return term
        case Known(value=tuple() as value):
            return Listed(tuple(Known(item) for item in value), term.guards)
        case Column(type=TupleOf(items=items)):
            parts = [
                stored(kind, sql.field(term.text, types.item_name(index)))
                for index, kind in enumerate(items, 1)
            ]
            return Listed(tuple(parts), term.guards)
    return None


def natural_type(term: Term) -> Type:
    """The type that a term has by itself; TypeClash or NotFinite where it has none."""
    match term:
        case Known(value=value):
            return types.type_of(value)
        case Column(type=kind):
            return kind
        case Boolean():
            return types.BOOLEAN
        case Mapped(entries=entries):
            by_key = dict(entries)
            return StructOf(tuple((k, natural_type(by_key[k])) for k in canonical_sorted(by_key)))
        case Listed(items=items):
            return types.sequence_type([natural_type(item) for item in items])
        case Enumerated(candidates=candidates):
            return SetOf(types.common_type([natural_type(item) for _, item in candidates]))
        case Interval():
            return SetOf(INTEGER)
        case Filtered(base=base):
            return natural_type(base)
        case Subsets(base=base):
            return SetOf(natural_type(base))
        case Combined(left=left, right=right):
            if isinstance(right, Infinite):
                return natural_type(left)
            return types.unify(natural_type(left), natural_type(right))
        case Infinite(name=name):
            raise NotFinite(name)
    raise NotFinite(type(term).__name__)


def columns(scope: Scope, left: Term, right: Term) -> tuple[Column, Column]:
    """Both terms as expressions of one type."""
    if isinstance(left, Nothing) or isinstance(right, Nothing):
        other = materialise(scope, right if isinstance(left, Nothing) else left)
        return materialise(scope, left, other.type), materialise(scope, right, other.type)
    first, second = materialise(scope, left), materialise(scope, right)
    kind = types.unify(first.type, second.type)
    return convert(scope, first, kind), convert(scope, second, kind)


def materialise(scope: Scope, term: Term, wanted: Type | None = None) -> Column:
    """The term as one SQL expression, of the wanted type if one is named."""
    match term:
        case Known(value=value, guards=guards):
            kind = wanted or types.type_of(value)
            bounds = (value, value) if kind == INTEGER and isinstance(value, int) else None
            return Column(kind, types.literal(value, kind), guards, bounds)
        case Nothing(guards=guards):
            kind = wanted or INTEGER
            return Column(kind, f"cast(NULL AS {types.ddl(kind)})", guards)
        case Column():
            return convert(scope, term, wanted or term.type)
        case Boolean(formula=formula):
            return _expect(Column(types.BOOLEAN, formula.holds(), formula.guard()), wanted)
        case Mapped() if isinstance(wanted, MapOf):
            return _pairs(scope, term, wanted)
        case Mapped():
            return _struct(scope, term, wanted)
        case Listed():
            return _array(scope, term, wanted)
        case FunctionOf():
            return _function(scope, term, wanted)
    made = _set(scope, term)
    return convert(scope, made, wanted or made.type)


def _expect(column: Column, wanted: Type | None) -> Column:
    if wanted is not None and wanted != column.type:
        raise TypeClash(f"{types.describe(column.type)} and {types.describe(wanted)}")
    return column


def convert(scope: Scope, column: Column, wanted: Type) -> Column:
    """The same value in another physical form."""
    kind = column.type
    if kind == wanted or types.ddl(kind) == types.ddl(wanted):
        return column if kind == wanted else Column(wanted, column.text, column.guards)
    if types.unify(kind, wanted) == kind and isinstance(kind, SetOf | SequenceOf):
        return column
    match kind, wanted:
        case (SetOf(element=None), SetOf()) | (SequenceOf(element=None), SequenceOf()):
            return Column(wanted, types.array([], element_type(Column(wanted, ""))), column.guards)
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
                name = scope.fresh()
                part = convert(scope, Column(a, name), b)
                return Column(
                    wanted, f"transform({column.text}, {name} -> {part.text})", column.guards
                )
    raise TypeClash(f"{types.describe(kind)} and {types.describe(wanted)}")


def _struct(scope: Scope, term: Mapped, wanted: Type | None) -> Column:
    if wanted is not None and not isinstance(wanted, StructOf):
        raise TypeClash(f"a function and {types.describe(wanted)}")
    hints = dict(wanted.fields) if wanted is not None else {}
    if wanted is not None and set(hints) != {key for key, _ in term.entries}:
        raise TypeClash(f"functions of different domains: {types.describe(wanted)}")
    entries = [(key, materialise(scope, item, hints.get(key))) for key, item in term.entries]
    if wanted is not None:
        order = {key: index for index, (key, _) in enumerate(wanted.fields)}
        entries.sort(key=lambda entry: order[entry[0]])
    else:
        order = {key: index for index, key in enumerate(canonical_sorted(k for k, _ in entries))}
        entries.sort(key=lambda entry: order[entry[0]])
    text = types.struct([(types.field_name(key), column.text) for key, column in entries])
    guards = merge(term.guards, *(column.guards for _, column in entries))
    return Column(StructOf(tuple((key, c.type) for key, c in entries)), text, guards)


def _pairs(scope: Scope, term: Mapped, wanted: MapOf) -> Column:
    by_key = dict(term.entries)
    columns_of = [
        (key, materialise(scope, by_key[key], wanted.value)) for key in canonical_sorted(by_key)
    ]
    parts = [
        types.struct([(types.KEY, types.literal(key, wanted.key)), (types.RESULT, column.text)])
        for key, column in columns_of
    ]
    guards = merge(term.guards, *(column.guards for _, column in columns_of))
    element = StructOf(((types.KEY, wanted.key), (types.RESULT, wanted.value)))
    return Column(wanted, types.array(parts, element), guards)


def _array(scope: Scope, term: Listed, wanted: Type | None) -> Column:
    kind = wanted or natural_type(term)
    if isinstance(kind, TupleOf):
        if len(kind.items) != len(term.items):
            raise TypeClash(f"a tuple of another length and {types.describe(kind)}")
        parts = [materialise(scope, i, t) for i, t in zip(term.items, kind.items, strict=True)]
        text = types.struct([(types.item_name(i), c.text) for i, c in enumerate(parts, 1)])
    elif isinstance(kind, SequenceOf):
        parts = [materialise(scope, item, kind.element) for item in term.items]
        text = types.array([column.text for column in parts], kind.element)
    else:
        raise TypeClash(f"a sequence and {types.describe(kind)}")
    return Column(kind, text, merge(term.guards, *(column.guards for column in parts)))


def _function(scope: Scope, term: FunctionOf, wanted: Type | None) -> Column:
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
        text = types.struct(
            [(types.KEY, materialise(scope, argument, key).text), (types.RESULT, result.text)]
        )
        return Column(MapOf(key, result.type), text, result.guards)

    pairs = transform(scope, domain, pair, None)
    kind = element_type(pairs)
    return guard_with(
        convert(scope, Column(kind, pairs.text, pairs.guards), wanted or kind), term.guards
    )


def _from_one(interval: Interval) -> bool:
    return isinstance(interval.low, Known) and interval.low.value == 1


def guard_with(column: Column, guards: Guards) -> Column:
    """The column with more guards before its own."""
    if not guards:
        return column
    return Column(column.type, column.text, merge(guards, column.guards), column.bounds)


def transform(
    scope: Scope, array: Column, body: Callable[[Term], Term], wanted: Type | None
) -> Column:
    """The sequence of body(x) over the elements of an array."""
    name = scope.fresh()
    made: list[Column] = []

    def inner() -> str:
        made.append(materialise(scope, body(stored(element_type(array), name)), wanted))
        return sql.choice(guards_hold(made[0].guards), made[0].text, "NULL")

    text = f"transform({array.text}, {name} -> {scope.text(inner)})"
    guards = array.guards
    if made[0].guards:
        text = scope.share(text)
        defined = Guard(f"forall({text}, d_ -> isnotnull(d_))", causes_of(made[0].guards))
        guards = merge(guards, (defined,))
    return Column(SequenceOf(made[0].type), text, guards)


def element_type(column: Column) -> Type:
    """The type of the elements of an array; integers where it is always empty."""
    kind = column.type
    if isinstance(kind, SetOf | SequenceOf):
        return kind.element or INTEGER
    raise TypeClash(f"a set and {types.describe(kind)}")


def distinct(column: Column) -> Column:
    """An array as a set: each element once, in canonical order."""
    element = column.type.element if isinstance(column.type, SequenceOf | SetOf) else None
    text = f"sort_array(array_distinct({column.text}))"
    return Column(SetOf(element), text, column.guards)


def _set(scope: Scope, term: Term) -> Column:
    """A set as an array in canonical order."""
    match term:
        case Enumerated():
            return _enumerated(scope, term)
        case Interval():
            return _interval(term)
        case Filtered():
            return _filtered(scope, term)
        case Image():
            base = materialise(scope, term.base)
            made = distinct(transform(scope, base, term.function, None))
            return guard_with(made, term.guards)
        case Combined():
            return _combined(scope, term)
        case Subsets():
            return _subsets(scope, term)
        case BigUnion(sets=sets):
            array = materialise(scope, sets)
            inner = element_type(array)
            flat = Column(inner, f"flatten({array.text})", merge(term.guards, array.guards))
            return distinct(flat)
        case Infinite(name=name):
            raise NotFinite(name)
    raise NotFinite(
        {"Product": "\\X", "Functions": "[S -> T]", "Sequences": "Seq"}.get(
            type(term).__name__, type(term).__name__
        )
    )


def _enumerated(scope: Scope, term: Enumerated) -> Column:
    kind = natural_type(term)
    element = kind.element if isinstance(kind, SetOf) else None
    parts: list[tuple[Formula, Term]] = list(term.candidates)
    known = [item.value for _, item in parts if isinstance(item, Known)]
    ordered = len(known) == len(parts) and len(set(known)) == len(known)
    if ordered:
        rank = {value: index for index, value in enumerate(canonical_sorted(known))}
        parts.sort(key=lambda part: rank[part[1].value] if isinstance(part[1], Known) else 0)
    columns_of = [(condition, materialise(scope, item, element)) for condition, item in parts]
    guards = merge(term.guards, *(column.guards for _, column in columns_of))
    texts = [sql.choice(c.holds(), column.text, "NULL") for c, column in columns_of]
    text = types.array(texts, element)
    if any(not isinstance(condition, Truth) for condition, _ in parts):
        text = f"array_compact({text})"
    if not ordered and len(parts) > 1:
        text = f"sort_array(array_distinct({text}))"
    return Column(SetOf(element), text, guards)


def _interval(term: Interval) -> Column:
    low, high = interval_ends(term)
    guards = merge(term.guards, low.guards, high.guards)
    bounds = (low.bounds or STORED)[0], (high.bounds or STORED)[1]
    if bounds[1] - bounds[0] > SIZES[1]:
        cause = f"an interval of more than {MAX_INTERVAL} integers"
        small = sql.compare("<=", sql.compare("-", high.text, low.text), f"{MAX_INTERVAL}L")
        guards = merge(guards, (Guard(small, (cause,)),))
        top = f"least({high.text}, {sql.compare('+', low.text, f'{MAX_INTERVAL}L')})"
    else:
        top = high.text
    empty = types.array([], INTEGER)
    some = sql.compare("<=", low.text, high.text)
    text = sql.choice(some, f"sequence({low.text}, {top})", empty)
    return Column(SetOf(INTEGER), text, guards)


def interval_ends(term: Interval) -> tuple[Column, Column]:
    """Both ends as columns."""
    low, high = (
        integer(f"{end.value}L", (end.value, end.value), end.guards)
        if isinstance(end, Known) and isinstance(end.value, int)
        else end
        for end in (term.low, term.high)
    )
    if isinstance(low, Column) and isinstance(high, Column):
        return low, high
    raise TypeClash("an interval and what is not an integer")


def _filtered(scope: Scope, term: Filtered) -> Column:
    base = materialise(scope, term.base)
    array = scope.share(base.text)
    name = scope.fresh()
    condition = scope.formula(lambda: term.predicate(stored(element_type(base), name)))
    guards = merge(term.guards, base.guards)
    if condition.total:
        return Column(base.type, f"filter({array}, {name} -> {condition.holds()})", guards)
    verdicts = scope.share(f"transform({array}, {name} -> {condition.value()})")
    defined = Guard(f"forall({verdicts}, d_ -> isnotnull(d_))", condition.causes)
    text = f"filter({array}, (x_, i_) -> coalesce(get({verdicts}, i_), false))"
    return Column(base.type, text, merge(guards, (defined,)))


def _combined(scope: Scope, term: Combined) -> Column:
    left, right = columns(scope, term.left, term.right)
    guards = merge(term.guards, left.guards, right.guards)
    match term.operator:
        case "\\union":
            text = f"sort_array(array_union({left.text}, {right.text}))"
        case "\\intersect":
            text = f"array_intersect({left.text}, {right.text})"
        case _:
            text = f"array_except({left.text}, {right.text})"
    return Column(left.type, text, guards)


def _subsets(scope: Scope, term: Subsets) -> Column:
    """SUBSET S of a computed set: 2^n arrays, n limited."""
    base = materialise(scope, term.base)
    array = scope.share(base.text)
    guard = Guard(
        sql.compare("<=", f"size({array})", str(MAX_POWER)),
        (f"SUBSET of more than {MAX_POWER} elements",),
    )
    kind = SetOf(element_type(base))
    empty = f"array({types.array([], kind.element)})"
    grown = "concat(a, transform(a, s -> concat(s, array(x))))"
    text = f"sort_array(aggregate(slice({array}, 1, {MAX_POWER}), {empty}, (a, x) -> {grown}))"
    return Column(SetOf(kind), text, merge(term.guards, base.guards, (guard,)))
