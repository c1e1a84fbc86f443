"""Functions, records and sequences: application, EXCEPT and the operators of Sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from conformance.tla.spark import sql, types
from conformance.tla.spark.branches import choose_branch, guard_term, guarded_choice
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
from conformance.tla.spark.formulas import Atom, Formula, Guard, Guards, Nullable
from conformance.tla.spark.relations import equals, member, static_candidates
from conformance.tla.spark.scope import Scope
from conformance.tla.spark.terms import (
    Boolean,
    Column,
    Combined,
    Enumerated,
    Filtered,
    FunctionOf,
    Image,
    Interval,
    Known,
    Listed,
    Mapped,
    Nothing,
    Term,
    bare,
    guarded,
    merge,
)
from conformance.tla.spark.types import (
    INTEGER,
    MapOf,
    SequenceOf,
    SetOf,
    StructOf,
    TypeClash,
)
from conformance.tla.values import Value

_INT = (-(2**31), 2**31 - 1)


def undefined(cause: str) -> Guards:
    """The guard of a value that is never defined."""
    return (Guard(sql.FALSE, (cause,)),)


def index_text(column: Column) -> str:
    """An integer as Spark's 32-bit index; NULL where it does not fit."""
    if column.bounds and column.bounds[0] >= _INT[0] and column.bounds[1] <= _INT[1] + 1:
        return f"int({column.text})"
    return f"try_cast({column.text} AS int)"


# Application


def apply(scope: Scope, applied: Term, argument: Term, cause: str) -> Term:
    """applied[argument]; `cause` (SQL text) says where it is undefined."""
    guards = merge(applied.guards, argument.guards)
    return guarded(_apply(scope, bare(applied), bare(argument), cause), guards)


def _apply(scope: Scope, applied: Term, argument: Term, cause: str) -> Term:
    if isinstance(applied, Nothing):
        return applied
    if isinstance(applied, FunctionOf):
        inside = member(scope, argument, applied.domain)
        return guarded(applied.function(argument), _required(inside, cause))
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
    return types.describe(term.type) if isinstance(term, Column) else type(term).__name__


def _required(inside: Formula, cause: str) -> Guards:
    condition = inside.holds()
    return () if condition == sql.TRUE else (Guard(condition, (cause,)),)


def _select(
    scope: Scope, entries: Sequence[tuple[Value, Term]], argument: Term, cause: str
) -> Term:
    if isinstance(argument, Known):
        found = next((item for key, item in entries if key == argument.value), None)
        return Nothing(undefined(cause)) if found is None else found
    tests = [(equals(scope, argument, Known(key)), item) for key, item in entries]
    possible = [(test, item) for test, item in tests if test.holds() != sql.FALSE]
    if not possible:
        return Nothing(undefined(cause))
    conditions = [scope.share(test.holds()) for test, _ in possible]
    inside = scope.share(sql.disjunction(conditions))
    result = possible[-1][1]
    for condition, (_, item) in zip(conditions[-2::-1], possible[-2::-1], strict=True):
        result = guarded_choice(scope, condition, item, result, ())
    return guarded(result, (Guard(inside, (cause,)),))


def _item(scope: Scope, applied: Column, argument: Term, cause: str) -> Term:
    kind = applied.type
    if not isinstance(kind, SequenceOf) or kind.element is None:
        return Nothing(undefined(cause))
    index = materialise(scope, argument, INTEGER)
    array = applied.text
    if isinstance(argument, Known):
        place = str(int(argument.value) - 1) if isinstance(argument.value, int) else "0"
    else:
        place = sql.compare("-", index_text(index), "1")
    item = stored(kind.element, f"get({array}, {place})")
    if index.length_of == array and index.bounds is not None and index.bounds[0] >= 1:
        return item
    inside = sql.between(index.text, "1L", f"size({array})")
    return guard_term(item, (Guard(inside, (cause,)),))


def _result(scope: Scope, applied: Column, kind: MapOf, argument: Term, cause: str) -> Term:
    key = scope.share(materialise(scope, argument, kind.key).text)
    name = scope.fresh()
    test = f"{name} -> {sql.equal(f'{name}.{types.KEY}', key)}"
    item = stored(kind.value, f"get(filter({applied.text}, {test}), 0).{types.RESULT}")
    return guard_term(item, (Guard(f"exists({applied.text}, {test})", (cause,)),))


def field(scope: Scope, record: Term, name: str, cause: str) -> Term:
    """record.name."""
    if isinstance(record, Nothing):
        return record
    pairs = isinstance(record, Column) and isinstance(record.type, MapOf)
    if not pairs and as_mapped(record) is None and not isinstance(record, FunctionOf):
        return Nothing(merge(record.guards, undefined(cause)))
    return apply(scope, record, Known(name), cause)


def domain(scope: Scope, term: Term) -> Term:
    """DOMAIN term."""
    if isinstance(term, Nothing):
        return term
    guards = term.guards
    mapped, listed = as_mapped(term), as_listed(term)
    if mapped is not None:
        return Known(frozenset(key for key, _ in mapped.entries), guards)
    if listed is not None:
        return Known(frozenset(range(1, len(listed.items) + 1)), guards)
    if isinstance(term, FunctionOf):
        return guarded(term.domain, guards)
    if isinstance(term, Column) and isinstance(term.type, MapOf):
        keys = f"transform({term.text}, p -> p.{types.KEY})"
        return Column(SetOf(term.type.key), keys, guards)
    size = length(scope, term, "")
    if isinstance(size, Column):
        return Interval(Known(1), size, guards)
    raise TypeClash(f"a function and {_what(term)}")


# EXCEPT


def replaced(
    scope: Scope, changed: Term, path: Sequence[Term], value: Callable[[Term], Term]
) -> Term:
    """[changed EXCEPT !path = value(@)]; unchanged outside the domain, as in TLA+."""
    if not path:
        return value(changed)
    if isinstance(changed, Nothing):
        return changed
    argument, rest = path[0], path[1:]

    def update(old: Term) -> Term:
        return replaced(scope, old, rest, value)

    guards = merge(changed.guards, argument.guards)
    made = _replaced(scope, bare(changed), bare(argument), update)
    return guarded(made, guards)


def _replaced(scope: Scope, changed: Term, argument: Term, update: Callable[[Term], Term]) -> Term:
    mapped, listed = as_mapped(changed), as_listed(changed)
    if mapped is None and listed is not None:
        mapped = Mapped(tuple(enumerate(listed.items, 1)))
    if mapped is not None:
        return function(
            [
                (key, _updated(scope, equals(scope, argument, Known(key)), item, update))
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


def _updated(scope: Scope, test: Formula, old: Term, update: Callable[[Term], Term]) -> Term:
    condition = test.holds()
    if condition == sql.FALSE:
        return old
    return choose_branch(scope, test, update(old), old)


def _replaced_item(
    scope: Scope, changed: Column, argument: Term, update: Callable[[Term], Term]
) -> Term:
    kind = changed.type
    if not isinstance(kind, SequenceOf) or kind.element is None:
        return changed
    index = materialise(scope, argument, INTEGER)
    array, at = scope.share(changed.text), scope.share(index_text(index))
    inside = scope.share(sql.between(index.text, "1L", f"size({array})"))
    before, after = sql.compare("-", at, "1"), sql.compare("+", at, "1")
    new = materialise(scope, update(stored(kind.element, f"get({array}, {before})")), kind.element)
    parts = (
        f"slice({array}, 1, greatest({before}, 0))",
        f"array({new.text})",
        f"slice({array}, greatest({after}, 1), size({array}))",
    )
    text = sql.choice(inside, sql.call("concat", *parts), array)
    return Column(kind, text, _unless(inside, new.guards))


def _unless(inside: str, guards: Guards) -> Guards:
    return tuple(
        Guard(sql.disjunction((sql.negation(inside), g.condition)), g.causes) for g in guards
    )


def _replaced_result(
    scope: Scope, changed: Column, kind: MapOf, argument: Term, update: Callable[[Term], Term]
) -> Term:
    key = scope.share(materialise(scope, argument, kind.key).text)
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


def as_array(scope: Scope, term: Term) -> Column:
    """A sequence as an SQL array."""
    if isinstance(term, Listed) or (isinstance(term, Known) and isinstance(term.value, tuple)):
        listed = as_listed(term)
        kinds = (
            types.common_type([materialise(scope, i).type for i in listed.items])
            if listed
            else None
        )
        return materialise(scope, term, SequenceOf(kinds))
    column = materialise(scope, term)
    if not isinstance(column.type, SequenceOf):
        raise TypeClash(f"a sequence and {types.describe(column.type)}")
    return column


def length(scope: Scope, term: Term, cause: str) -> Term:
    """Len(term)."""
    listed = as_listed(term)
    if listed is not None:
        return Known(len(listed.items), term.guards)
    if isinstance(term, Known) and isinstance(term.value, str):
        return Known(len(term.value), term.guards)
    if isinstance(term, Column) and term.type == types.STRING:
        return integer(f"bigint(length({term.text}))", (0, 2**31), term.guards)
    if not isinstance(term, Column | FunctionOf):
        return Nothing(merge(term.guards, undefined(cause)))
    array = as_array(scope, term)
    return Column(INTEGER, f"bigint(size({array.text}))", array.guards, (0, 2**31), array.text)


def concatenation(scope: Scope, left: Term, right: Term) -> Term:
    """left \\o right, of sequences or of strings."""
    first, second = as_listed(left), as_listed(right)
    if first is not None and second is not None:
        return sequence([*first.items, *second.items], merge(left.guards, right.guards))
    if first is not None and not first.items:
        return guarded(right, left.guards)
    if second is not None and not second.items:
        return guarded(left, right.guards)
    if any(isinstance(term, Column) and term.type == types.STRING for term in (left, right)):
        a, b = materialise(scope, left, types.STRING), materialise(scope, right, types.STRING)
    else:
        a, b = as_array(scope, left), as_array(scope, right)
        kind = types.unify(a.type, b.type)
        a, b = convert(scope, a, kind), convert(scope, b, kind)
    return Column(a.type, f"concat({a.text}, {b.text})", merge(a.guards, b.guards))


def head(scope: Scope, term: Term, cause: str) -> Term:
    """Head(term)."""
    return apply(scope, term, Known(1), cause)


def tail(scope: Scope, term: Term, cause: str) -> Term:
    """Tail(term)."""
    listed = as_listed(term)
    if listed is not None:
        guards = term.guards if listed.items else merge(term.guards, undefined(cause))
        return sequence(listed.items[1:], guards)
    array = as_array(scope, term)
    text = scope.share(array.text)
    guard = Guard(sql.compare(">", f"size({text})", "0"), (cause,))
    rest = f"slice({text}, 2, size({text}))"
    return Column(array.type, rest, merge(array.guards, (guard,)))


def sub_sequence(scope: Scope, term: Term, low: Term, high: Term, cause: str) -> Term:
    """SubSeq(term, low, high): empty where low > high, else both must be indices."""
    array = as_array(scope, term)
    first, last = (materialise(scope, end, INTEGER) for end in (low, high))
    text, m, n = (scope.share(part) for part in (array.text, first.text, last.text))
    guards = merge(array.guards, first.guards, last.guards)
    proper = sql.compare(">=", m, "1L"), sql.compare("<=", n, f"size({text})")
    inside = sql.disjunction((sql.compare(">", m, n), sql.conjunction(proper)))
    if not _within_length(first, last, array.text):
        guards = merge(guards, (Guard(inside, (cause,)),))
    start = f"int(greatest(least({m}, 2147483647L), 1L))"
    span = sql.compare("-", f"least({n}, 2147483646L)", f"greatest({m}, 1L)")
    count = f"int(greatest({sql.compare('+', span, '1L')}, 0L))"
    return Column(array.type, f"slice({text}, {start}, {count})", guards)


def _within_length(first: Column, last: Column, array: str) -> bool:
    return first.bounds is not None and first.bounds[0] >= 1 and last.length_of == array


def select(scope: Scope, term: Term, test: Callable[[Term], Formula]) -> Term:
    """SelectSeq(term, test)."""
    array = as_array(scope, term)
    kind = array.type
    if not isinstance(kind, SequenceOf):
        raise NotFinite("SelectSeq")
    as_set = Filtered(Column(SetOf(kind.element), array.text, array.guards), test)
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


# Sharing


def shared(scope: Scope, term: Term) -> Term:
    """The term such that each of its SQL expressions is evaluated once however often it is used."""
    if isinstance(term, FunctionOf):
        try:
            return shared(scope, materialise(scope, term))
        except (NotFinite, TypeClash):
            return term
    guards = () if isinstance(term, Boolean) else scope.share_guards(term.guards)
    match term:
        case Column(text=text):
            name = scope.share(text)
            length_of = term.length_of
            return Column(term.type, name, guards, term.bounds, length_of)
        case Boolean(formula=formula):
            value = formula.value()
            if len(value) <= 100:
                return term
            name = scope.share(value)
            return Boolean(Atom(name) if formula.total else Nullable(name, formula.causes))
        case Mapped(entries=entries):
            return Mapped(tuple((key, shared(scope, item)) for key, item in entries), guards)
        case Listed(items=items):
            return Listed(tuple(shared(scope, item) for item in items), guards)
        case Enumerated(candidates=candidates):
            parts = [
                (Atom(scope.share(c.holds())) if len(c.holds()) > 100 else c, shared(scope, item))
                for c, item in candidates
            ]
            return Enumerated(tuple(parts), guards)
        case Interval(low=low, high=high):
            return Interval(_shared_end(scope, low), _shared_end(scope, high), guards)
    return _shared_set(scope, term)


def _shared_end(scope: Scope, end: Column | Known) -> Column | Known:
    return end if isinstance(end, Known) else replace(end, text=scope.share(end.text))


def _shared_set(scope: Scope, term: Term) -> Term:
    if not isinstance(term, Filtered | Combined | Image):
        return term
    static = static_candidates(scope, term)
    if static is not None and len(static[0]) <= 64:
        return shared(scope, Enumerated(*static))
    try:
        column = materialise(scope, term)
    except (NotFinite, TypeClash):
        return term
    return shared(scope, column)
