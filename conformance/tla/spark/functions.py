"""Functions, records and sequences: application, EXCEPT and the operators of Sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.tla.spark import physical, sql
from conformance.tla.spark.branches import choose_branch, guard_term, guarded_choice
from conformance.tla.spark.candidates import MAX_COPIES, static_candidates
from conformance.tla.spark.columns import (
    NotFinite,
    as_listed,
    as_mapped,
    convert,
    function,
    integer,
    materialise,
    sequence,
    stored,
    transform,
)
from conformance.tla.spark.equality import equals
from conformance.tla.spark.formulas import Atom, Formula, Guard, Guards, Nullable, Truth
from conformance.tla.spark.membership import member
from conformance.tla.spark.physical import (
    INTEGER,
    MapOf,
    SequenceOf,
    SetOf,
    StructOf,
    TypeClash,
)
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.terms import (
    Boolean,
    Column,
    CombinedTerm,
    EnumeratedTerm,
    FilteredTerm,
    FunctionOf,
    Image,
    Interval,
    KnownTerm,
    ListedTerm,
    MappedTerm,
    Term,
    UndefinedTerm,
    bare,
    guarded,
    merge,
)
from conformance.tla.values import Value

_INT = (-(2**31), 2**31 - 1)


def undefined(cause: str) -> Guards:
    """The guard of a value that is never defined."""
    return (Guard(sql.FALSE, (cause,)),)


def index_text(column: Column) -> Sql:
    """An integer as Spark's 32-bit index; NULL where it does not fit."""
    if column.bounds and column.bounds[0] >= _INT[0] and column.bounds[1] <= _INT[1] + 1:
        return sql.call("int", column.text)
    return sql.to_index(column.text)


# Application


def apply(scope: FormulaScope, applied: Term, argument: Term, cause: str) -> Term:
    """applied[argument]; `cause` (SQL text) says where it is undefined."""
    guards = merge(applied.guards, argument.guards)
    return guarded(_apply(scope, bare(applied), bare(argument), cause), guards)


def _apply(scope: FormulaScope, applied: Term, argument: Term, cause: str) -> Term:
    if isinstance(applied, UndefinedTerm):
        return applied
    if isinstance(applied, FunctionOf):
        inside = member(scope, argument, applied.domain)
        return guarded(applied.function(argument), required(inside, cause))
    mapped = as_mapped(applied)
    if mapped is not None:
        return _select(scope, mapped.entries, argument, cause)
    listed = as_listed(applied)
    if listed is not None:
        return _select(scope, tuple(enumerate(listed.items, 1)), argument, cause)
    if isinstance(applied, Column) and isinstance(applied.type, SequenceOf):
        return _item(scope, applied, argument, cause)
    if isinstance(applied, Column) and isinstance(applied.type, MapOf):
        return _result(scope, applied, applied.type, argument, cause)
    raise TypeClash(f"a function and {_what(applied)}")


def _what(term: Term) -> str:
    return physical.describe(term.type) if isinstance(term, Column) else type(term).__name__


def required(inside: Formula, cause: str) -> Guards:
    """What protects a term that has a value only where the formula holds."""
    condition = inside.holds()
    return () if condition == sql.TRUE else (Guard(condition, (cause,)),)


def _select(
    scope: FormulaScope, entries: Sequence[tuple[Value, Term]], argument: Term, cause: str
) -> Term:
    if isinstance(argument, KnownTerm):
        term = next((item for key, item in entries if key == argument.value), None)
        return UndefinedTerm(undefined(cause)) if term is None else term
    tests = [(equals(scope, argument, KnownTerm(key)), item) for key, item in entries]
    possible = [(test, item) for test, item in tests if test.holds() != sql.FALSE]
    if not possible:
        return UndefinedTerm(undefined(cause))
    conditions = [test.holds() for test, _ in possible]
    inside = sql.disjunction(conditions)
    result = possible[-1][1]
    for condition, (_, item) in zip(conditions[-2::-1], possible[-2::-1], strict=True):
        result = guarded_choice(scope, condition, item, result, ())
    return guarded(result, (Guard(inside, (cause,)),))


def _item(scope: FormulaScope, applied: Column, argument: Term, cause: str) -> Term:
    kind = applied.type
    if not isinstance(kind, SequenceOf) or kind.element is None:
        return UndefinedTerm(undefined(cause))
    index = materialise(scope, argument, INTEGER)
    array = applied.text
    if isinstance(argument, KnownTerm):
        place = sql.size_of(argument.value - 1 if isinstance(argument.value, int) else 0)
    else:
        place = sql.compare("-", index_text(index), sql.size_of(1))
    item = stored(kind.element, sql.at(array, place))
    if index.length_of == array and index.bounds is not None and index.bounds[0] >= 1:
        return item
    inside = sql.between(index.text, sql.integer(1), sql.size(array))
    return guard_term(item, (Guard(inside, (cause,)),))


def _result(scope: FormulaScope, applied: Column, kind: MapOf, argument: Term, cause: str) -> Term:
    key = materialise(scope, argument, kind.key).text
    with scope.binder() as name:
        test = sql.equal(sql.field_of(sql.variable(name), physical.KEY), key)
    result = sql.each("filter", applied.text, name, test)
    item = stored(kind.value, sql.field_of(sql.at(result, 0), physical.RESULT))
    return guard_term(item, (Guard(sql.each("exists", applied.text, name, test), (cause,)),))


def field(scope: FormulaScope, record: Term, name: str, cause: str) -> Term:
    """record.name."""
    if isinstance(record, UndefinedTerm):
        return record
    pairs = isinstance(record, Column) and isinstance(record.type, MapOf)
    if not pairs and as_mapped(record) is None and not isinstance(record, FunctionOf):
        return UndefinedTerm(merge(record.guards, undefined(cause)))
    return apply(scope, record, KnownTerm(name), cause)


def domain(scope: FormulaScope, term: Term) -> Term:
    """DOMAIN term."""
    if isinstance(term, UndefinedTerm):
        return term
    guards = term.guards
    mapped, listed = as_mapped(term), as_listed(term)
    if mapped is not None:
        return KnownTerm(frozenset(key for key, _ in mapped.entries), guards)
    if listed is not None:
        return KnownTerm(frozenset(range(1, len(listed.items) + 1)), guards)
    if isinstance(term, FunctionOf):
        return guarded(term.domain, guards)
    if isinstance(term, Column) and isinstance(term.type, MapOf):
        return Column(SetOf(term.type.key), keys(term.text), guards)
    size = length(scope, term, "")
    if isinstance(size, Column):
        return Interval(KnownTerm(1), size, guards)
    raise TypeClash(f"a function and {_what(term)}")


def keys(pairs: Sql) -> Sql:
    """The arguments of a function that is stored as pairs."""
    return sql.closed("transform", pairs, lambda pair: sql.field_of(pair, physical.KEY))


# EXCEPT


def replaced(
    scope: FormulaScope, changed: Term, path: Sequence[Term], value: Callable[[Term], Term]
) -> Term:
    """[changed EXCEPT !path = value(@)]; unchanged outside the domain, as in TLA+."""
    if not path:
        return value(changed)
    if isinstance(changed, UndefinedTerm):
        return changed
    argument, rest = path[0], path[1:]

    def update(old: Term) -> Term:
        return replaced(scope, old, rest, value)

    guards = merge(changed.guards, argument.guards)
    made = _replaced(scope, bare(changed), bare(argument), update)
    return guarded(made, guards)


def _replaced(
    scope: FormulaScope, changed: Term, argument: Term, update: Callable[[Term], Term]
) -> Term:
    mapped, listed = as_mapped(changed), as_listed(changed)
    if mapped is None and listed is not None:
        mapped = MappedTerm(tuple(enumerate(listed.items, 1)))
    if mapped is not None:
        return function(
            [
                (key, _updated(scope, equals(scope, argument, KnownTerm(key)), item, update))
                for key, item in mapped.entries
            ]
        )
    if isinstance(changed, FunctionOf):
        return FunctionOf(
            changed.domain,
            lambda x: _updated(scope, equals(scope, x, argument), changed.function(x), update),
        )
    if not isinstance(changed, Column):
        raise TypeClash(f"a function and {_what(changed)}")
    if isinstance(changed.type, SequenceOf):
        return _replaced_item(scope, changed, argument, update)
    if isinstance(changed.type, MapOf):
        return _replaced_result(scope, changed, changed.type, argument, update)
    raise TypeClash(f"a function and {_what(changed)}")


def _updated(scope: FormulaScope, test: Formula, old: Term, update: Callable[[Term], Term]) -> Term:
    condition = test.holds()
    if condition == sql.FALSE:
        return old
    return choose_branch(scope, test, update(old), old)


def _replaced_item(
    scope: FormulaScope, changed: Column, argument: Term, update: Callable[[Term], Term]
) -> Term:
    kind = changed.type
    if not isinstance(kind, SequenceOf) or kind.element is None:
        return changed
    index = materialise(scope, argument, INTEGER)
    array, at, one = changed.text, index_text(index), sql.size_of(1)
    inside = sql.between(index.text, sql.integer(1), sql.size(array))
    before, after = sql.compare("-", at, one), sql.compare("+", at, one)
    new = materialise(scope, update(stored(kind.element, sql.at(array, before))), kind.element)
    parts = (
        sql.call("slice", array, one, sql.call("greatest", before, sql.size_of(0))),
        sql.call("array", new.text),
        sql.call("slice", array, sql.call("greatest", after, one), sql.size(array)),
    )
    text = sql.choice(inside, sql.call("concat", *parts), array)
    return Column(kind, text, _unless(inside, new.guards))


def _unless(inside: Sql, guards: Guards) -> Guards:
    return tuple(
        Guard(sql.disjunction((sql.negation(inside), g.condition)), g.causes) for g in guards
    )


def _replaced_result(
    scope: FormulaScope,
    changed: Column,
    kind: MapOf,
    argument: Term,
    update: Callable[[Term], Term],
) -> Term:
    key = materialise(scope, argument, kind.key).text
    pairs = Column(SequenceOf(StructOf((("key", kind.key), ("value", kind.value)))), changed.text)

    def pair(old: Term) -> Term:
        mapped = as_mapped(old)
        if mapped is None:
            raise TypeClash("a pair")
        argument_of, result = dict(mapped.entries)["key"], dict(mapped.entries)["value"]
        test = equals(scope, argument_of, Column(kind.key, key))
        return function(
            [("key", argument_of), ("value", choose_branch(scope, test, update(result), result))]
        )

    made = transform(scope, pairs, pair, None)
    return Column(kind, made.text, made.guards)


# Sequences


def as_array(scope: FormulaScope, term: Term) -> Column:
    """A sequence as an SQL array."""
    if isinstance(term, ListedTerm) or (
        isinstance(term, KnownTerm) and isinstance(term.value, tuple)
    ):
        listed = as_listed(term)
        kinds = (
            physical.common_type([materialise(scope, i).type for i in listed.items])
            if listed
            else None
        )
        return materialise(scope, term, SequenceOf(kinds))
    column = materialise(scope, term)
    if not isinstance(column.type, SequenceOf):
        raise TypeClash(f"a sequence and {physical.describe(column.type)}")
    return column


def length(scope: FormulaScope, term: Term, cause: str) -> Term:
    """Len(term)."""
    listed = as_listed(term)
    if listed is not None:
        return KnownTerm(len(listed.items), term.guards)
    if isinstance(term, KnownTerm) and isinstance(term.value, str):
        return KnownTerm(len(term.value), term.guards)
    if isinstance(term, Column) and term.type == physical.STRING:
        return integer(sql.call("bigint", sql.call("length", term.text)), (0, 2**31), term.guards)
    if not isinstance(term, Column | FunctionOf):
        return UndefinedTerm(merge(term.guards, undefined(cause)))
    array = as_array(scope, term)
    count = sql.call("bigint", sql.size(array.text))
    return Column(INTEGER, count, array.guards, (0, 2**31), array.text)


def concatenation(scope: FormulaScope, left: Term, right: Term) -> Term:
    """left \\o right, of sequences or of strings."""
    first, second = as_listed(left), as_listed(right)
    if first is not None and second is not None:
        return sequence([*first.items, *second.items], merge(left.guards, right.guards))
    if first is not None and not first.items:
        return guarded(right, left.guards)
    if second is not None and not second.items:
        return guarded(left, right.guards)
    if any(isinstance(term, Column) and term.type == physical.STRING for term in (left, right)):
        a, b = materialise(scope, left, physical.STRING), materialise(scope, right, physical.STRING)
    else:
        a, b = as_array(scope, left), as_array(scope, right)
        kind = physical.unify(a.type, b.type)
        a, b = convert(scope, a, kind), convert(scope, b, kind)
    return Column(a.type, sql.call("concat", a.text, b.text), merge(a.guards, b.guards))


def head(scope: FormulaScope, term: Term, cause: str) -> Term:
    """Head(term)."""
    return apply(scope, term, KnownTerm(1), cause)


def tail(scope: FormulaScope, term: Term, cause: str) -> Term:
    """Tail(term)."""
    listed = as_listed(term)
    if listed is not None:
        guards = term.guards if listed.items else merge(term.guards, undefined(cause))
        return sequence(listed.items[1:], guards)
    array = as_array(scope, term)
    size = sql.size(array.text)
    guard = Guard(sql.compare(">", size, sql.size_of(0)), (cause,))
    rest = sql.call("slice", array.text, sql.size_of(2), size)
    return Column(array.type, rest, merge(array.guards, (guard,)))


def sub_sequence(scope: FormulaScope, term: Term, low: Term, high: Term, cause: str) -> Term:
    """SubSeq(term, low, high): empty where low > high, else both must be indices."""
    array = as_array(scope, term)
    first, last = (materialise(scope, end, INTEGER) for end in (low, high))
    text, m, n = array.text, first.text, last.text
    zero, one = sql.integer(0), sql.integer(1)
    guards = merge(array.guards, first.guards, last.guards)
    proper = sql.compare(">=", m, one), sql.compare("<=", n, sql.size(text))
    inside = sql.disjunction((sql.compare(">", m, n), sql.conjunction(proper)))
    if not _within_length(first, last, array.text):
        guards = merge(guards, (Guard(inside, (cause,)),))
    most = sql.integer(_INT[1])
    start = sql.call("int", sql.call("greatest", sql.call("least", m, most), one))
    end = sql.call("least", n, sql.integer(_INT[1] - 1))
    span = sql.compare("-", end, sql.call("greatest", m, one))
    count = sql.call("int", sql.call("greatest", sql.compare("+", span, one), zero))
    return Column(array.type, sql.call("slice", text, start, count), guards)


def _within_length(first: Column, last: Column, array: Sql) -> bool:
    return first.bounds is not None and first.bounds[0] >= 1 and last.length_of == array


def select(scope: FormulaScope, term: Term, test: Callable[[Term], Formula]) -> Term:
    """SelectSeq(term, test)."""
    array = as_array(scope, term)
    kind = array.type
    if not isinstance(kind, SequenceOf):
        raise NotFinite("SelectSeq")
    as_set = FilteredTerm(Column(SetOf(kind.element), array.text, array.guards), test)
    made = materialise(scope, as_set)
    return Column(kind, made.text, made.guards)


def override(left: Term, right: Term) -> Term:
    """left @@ right, of functions with known domains."""
    first, second = _entries(left), _entries(right)
    if first is None or second is None:
        raise NotFinite("@@ of a function whose domain is computed")
    return function([*{**dict(second), **dict(first)}.items()], merge(left.guards, right.guards))


def _entries(term: Term) -> Sequence[tuple[Value, Term]] | None:
    mapped, listed = as_mapped(term), as_listed(term)
    if mapped is not None:
        return mapped.entries
    return None if listed is None else tuple(enumerate(listed.items, 1))


# Operands


def settled(scope: FormulaScope, term: Term) -> Term:
    """An operand that may be used several times: what would be made each time is made once, here.

    Expressions are shared by themselves; this is about functions and sets that are still a
    recipe, and about formulas that are still to be rendered.
    """
    match term:
        case Boolean(formula=Atom() | Nullable() | Truth()):
            return term
        case Boolean(formula=formula):
            value = formula.value()
            return Boolean(Atom(value) if formula.total else Nullable(value, formula.causes))
        case FilteredTerm() | CombinedTerm() | Image():
            static = static_candidates(scope, term)
            if static is not None and len(static[0]) <= MAX_COPIES:
                return EnumeratedTerm(*static)
    if not isinstance(term, FunctionOf | FilteredTerm | CombinedTerm | Image):
        return term
    try:
        return materialise(scope, term)
    except (NotFinite, TypeClash):
        return term
