"""Equality, membership and quantifiers: where terms become formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations, product
from math import prod

from conformance.tla.spark import sql, types
from conformance.tla.spark.branches import as_formula
from conformance.tla.spark.columns import (
    NotFinite,
    as_listed,
    as_mapped,
    columns,
    element_type,
    integer,
    interval_ends,
    materialise,
    sequence,
    stored,
)
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    Guard,
    Guards,
    Quantified,
    Truth,
    conjoin,
    disjoin,
    equivalent,
    negate,
    undefined,
)
from conformance.tla.spark.scope import Scope
from conformance.tla.spark.terms import (
    SETS,
    BigUnion,
    Boolean,
    Column,
    Combined,
    Enumerated,
    Filtered,
    FunctionOf,
    Functions,
    Image,
    Infinite,
    Interval,
    Known,
    Listed,
    Mapped,
    Nothing,
    Product,
    Records,
    Sequences,
    Subsets,
    Term,
    bare,
    guarded_formula,
    merge,
)
from conformance.tla.spark.types import (
    INTEGER,
    MODEL_VALUE,
    STRING,
    MapOf,
    SequenceOf,
    SetOf,
    Type,
    TypeClash,
)
from conformance.tla.values import Fn, ModelValue, Value, canonical_sorted, equal, make_function

MAX_COPIES = 64
"""A quantifier is written out for each element while there are at most so many copies."""

FEW = 2
"""Integers are written out where there are no more than so many."""

LIMIT_COPIES = 4096
_EMPTY: tuple[Value, ...] = ((), frozenset())
Candidates = tuple[tuple[Formula, Term], ...]


def is_set(term: Term) -> bool:
    """Whether the term is a set, as far as is known at compile time."""
    if isinstance(term, Known):
        return isinstance(term.value, frozenset)
    return isinstance(term, SETS) or (isinstance(term, Column) and isinstance(term.type, SetOf))


# Equality


def equals(scope: Scope, left: Term, right: Term) -> Formula:
    """left = right."""
    guards = merge(left.guards, right.guards)
    return guarded_formula(_equals(scope, bare(left), bare(right)), guards)


def _equals(scope: Scope, left: Term, right: Term) -> Formula:
    for one in (left, right):
        if isinstance(one, Nothing):
            return Atom(sql.FALSE, one.guards)
    if isinstance(left, Column) and isinstance(right, Column) and left.type == right.type:
        return Truth(True) if left.text == right.text else Atom(sql.equal(left.text, right.text))
    if isinstance(left, Known) and isinstance(right, Known):
        return Truth(equal(left.value, right.value))
    if left == right:
        return Truth(True)
    if isinstance(left, Boolean) or isinstance(right, Boolean):
        return equivalent(as_formula(left), as_formula(right))
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Known) and one.value in _EMPTY and not isinstance(other, Infinite):
            return _is_empty(scope, other, one)
    first, second = as_mapped(left), as_mapped(right)
    if first is not None and second is not None:
        return _equal_functions(scope, first, second)
    one_list, other_list = as_listed(left), as_listed(right)
    if one_list is not None and other_list is not None:
        pairs = zip(one_list.items, other_list.items, strict=False)
        same = len(one_list.items) == len(other_list.items)
        return conjoin([_equals(scope, a, b) for a, b in pairs]) if same else Truth(False)
    for listed, other in ((one_list, right), (other_list, left)):
        kind = other.type if isinstance(other, Column) else None
        if listed is not None and isinstance(other, Column) and isinstance(kind, SequenceOf):
            return _equal_items(scope, listed, other, element_type(other))
    return _equal_columns(scope, left, right)


def _equal_items(scope: Scope, listed: Listed, array: Column, element: Type) -> Formula:
    """A sequence of known length and an array: no array is built."""
    same = Atom(sql.equal(f"size({array.text})", str(len(listed.items))))
    parts = [stored(element, f"get({array.text}, {i})") for i in range(len(listed.items))]
    pairs = zip(listed.items, parts, strict=True)
    return conjoin([same, *(_equals(scope, item, part) for item, part in pairs)])


def _equal_functions(scope: Scope, left: Mapped, right: Mapped) -> Formula:
    results = dict(right.entries)
    if {key for key, _ in left.entries} != set(results):
        return Truth(False)
    return conjoin([_equals(scope, item, results[key]) for key, item in left.entries])


def _equal_columns(scope: Scope, left: Term, right: Term) -> Formula:
    try:
        a, b = columns(scope, left, right)
    except TypeClash as clash:
        if any(_is_model_value(term) for term in (left, right)):
            return Truth(False)
        return undefined(f"cannot compare {clash}")
    return guarded_formula(Atom(sql.equal(a.text, b.text)), merge(a.guards, b.guards))


def _is_model_value(term: Term) -> bool:
    if isinstance(term, Known):
        return isinstance(term.value, ModelValue)
    return isinstance(term, Column) and term.type == MODEL_VALUE


def _is_empty(scope: Scope, term: Term, empty: Known) -> Formula:
    """term = {} or term = <<>>, without an array where that is possible."""
    if isinstance(term, Mapped):
        return Truth(False)
    if isinstance(term, Listed):
        return Truth(not term.items)
    if (empty.value == ()) == is_set(term):
        return undefined("a set is compared with a sequence")
    if is_set(term):
        return negate(quantify(scope, term, lambda _: Truth(True), neutral=False))
    if isinstance(term, Column) and not isinstance(term.type, SequenceOf | MapOf):
        return undefined(f"cannot compare <<>> and {types.describe(term.type)}")
    column = materialise(scope, term)
    return guarded_formula(Atom(sql.equal(f"size({column.text})", "0")), column.guards)


# Quantifiers


def static_candidates(scope: Scope, term: Term) -> tuple[Candidates, Guards] | None:
    """The elements that a set can have, each with its condition; None if that is not known."""
    match term:
        case Known(value=frozenset() as value, guards=guards):
            return tuple((Truth(True), Known(item)) for item in canonical_sorted(value)), guards
        case Enumerated(candidates=candidates, guards=guards):
            return candidates, guards
        case Filtered(base=base, guards=guards):
            return _filtered_candidates(scope, term, static_candidates(scope, base))
        case Combined():
            return _combined_candidates(scope, term)
        case Image(base=base):
            return _image_candidates(term, static_candidates(scope, base))
        case Interval(low=Known(value=int() as low), high=Known(value=int() as high)):
            if high - low >= LIMIT_COPIES:
                return None
            return tuple((Truth(True), Known(i)) for i in range(low, high + 1)), term.guards
        case BigUnion(sets=sets):
            return _union_candidates(scope, term, static_candidates(scope, sets))
        case Subsets() | Functions() | Records():
            return _known_candidates(scope, term)
        case Product(factors=factors):
            return _product_candidates(term, [static_candidates(scope, f) for f in factors])
    return None


def _filtered_candidates(
    scope: Scope, term: Filtered, base: tuple[Candidates, Guards] | None
) -> tuple[Candidates, Guards] | None:
    if base is None or len(base[0]) * scope.copies > LIMIT_COPIES:
        return None
    kept: list[tuple[Formula, Term]] = []
    guards = merge(term.guards, base[1])
    for condition, item in base[0]:
        test = term.predicate(item)
        if not test.total:
            needed = disjoin([negate(condition), Atom(test.defined())])
            guards = merge(guards, (Guard(needed.holds(), test.causes),))
            test = Atom(test.holds())
        both = conjoin([condition, test])
        if both != Truth(False):
            kept.append((both, item))
    return tuple(kept), guards


def _combined_candidates(scope: Scope, term: Combined) -> tuple[Candidates, Guards] | None:
    left = static_candidates(scope, term.left)
    right = static_candidates(scope, term.right)
    if left is None:
        return None
    if term.operator == "\\union":
        if right is None:
            return None
        return (*left[0], *right[0]), merge(term.guards, left[1], right[1])
    inside = term.operator == "\\intersect"
    kept: list[tuple[Formula, Term]] = []
    for condition, item in left[0]:
        test = member(scope, item, bare(term.right))
        if not test.total:
            return None
        both = conjoin([condition, test if inside else negate(test)])
        if both != Truth(False):
            kept.append((both, item))
    return tuple(kept), merge(term.guards, left[1], term.right.guards)


def _image_candidates(
    term: Image, base: tuple[Candidates, Guards] | None
) -> tuple[Candidates, Guards] | None:
    if base is None:
        return None
    made = [(condition, term.function(item)) for condition, item in base[0]]
    if any(item.guards for _, item in made):
        return None
    return tuple(made), merge(term.guards, base[1])


def _union_candidates(
    scope: Scope, term: BigUnion, sets: tuple[Candidates, Guards] | None
) -> tuple[Candidates, Guards] | None:
    if sets is None:
        return None
    found: list[tuple[Formula, Term]] = []
    guards = merge(term.guards, sets[1])
    for condition, one in sets[0]:
        inner = static_candidates(scope, one)
        if inner is None or len(found) + len(inner[0]) > LIMIT_COPIES:
            return None
        if inner[1] and condition != Truth(True):
            return None
        guards = merge(guards, inner[1])
        found += [(conjoin([condition, test]), item) for test, item in inner[0]]
    return tuple(found), guards


def _known_candidates(scope: Scope, term: Term) -> tuple[Candidates, Guards] | None:
    values = known_elements(scope, term)
    if values is None:
        return None
    return tuple((Truth(True), Known(item)) for item in canonical_sorted(values)), term.guards


def known_elements(scope: Scope, term: Term) -> list[Value] | None:
    """The elements of a set that does not depend on the row and is not too large."""
    match term:
        case Subsets(base=base):
            of = known_elements(scope, base)
            if of is None or 2 ** len(of) > LIMIT_COPIES:
                return None
            sizes = range(len(of) + 1)
            chosen = (combinations(of, size) for size in sizes)
            subsets: list[Value] = [frozenset(c) for c in chain.from_iterable(chosen)]
            return subsets
        case Functions(domain=domain, range=range_):
            arguments, results = known_elements(scope, domain), known_elements(scope, range_)
            if arguments is None or results is None:
                return None
            if len(results) ** len(arguments) > LIMIT_COPIES:
                return None
            choices = product(results, repeat=len(arguments))
            return [make_function(dict(zip(arguments, c, strict=True))) for c in choices]
        case Records(fields=fields):
            sets = [known_elements(scope, of) for _, of in fields]
            known = [of for of in sets if of is not None]
            if len(known) < len(sets) or prod(map(len, known)) > LIMIT_COPIES:
                return None
            names = [name for name, _ in fields]
            return [Fn(dict(zip(names, c, strict=True))) for c in product(*known)]
    static = static_candidates(scope, term)
    if static is None or static[1]:
        return None
    values = [
        item.value for test, item in static[0] if isinstance(item, Known) and test == Truth(True)
    ]
    if len(values) < len(static[0]):
        return None
    return list(canonical_sorted(frozenset(values)))


def _product_candidates(
    term: Product, factors: Sequence[tuple[Candidates, Guards] | None]
) -> tuple[Candidates, Guards] | None:
    known = [factor for factor in factors if factor is not None]
    if len(known) < len(factors):
        return None
    made = [
        (conjoin([condition for condition, _ in choice]), sequence([item for _, item in choice]))
        for choice in product(*(candidates for candidates, _ in known))
    ]
    return tuple(made), merge(term.guards, *(guards for _, guards in known))


def quantify(
    scope: Scope, domain: Term, body: Callable[[Term], Formula], *, neutral: bool
) -> Formula:
    """`\\A x \\in domain : body(x)` where neutral is TRUE, `\\E` where it is FALSE."""
    if isinstance(domain, Nothing):
        return Atom(sql.FALSE, domain.guards)
    static = static_candidates(scope, domain)
    if static is not None:
        candidates, guards = static
        copies = scope.copies * len(candidates)
        few = copies <= MAX_COPIES and len(candidates) <= FEW
        if few or (_names_only(candidates) and copies <= LIMIT_COPIES):
            return _written_out(scope, candidates, guards, body, neutral)
    if isinstance(domain, Product):
        return _nested(scope, domain.factors, (), body, neutral)
    if isinstance(domain, Image):
        mapped = _through(scope, domain, body, neutral)
        if mapped is not None:
            return mapped
    return _over_array(scope, domain, body, neutral)


def _nested(
    scope: Scope,
    factors: tuple[Term, ...],
    items: tuple[Term, ...],
    body: Callable[[Term], Formula],
    neutral: bool,
) -> Formula:
    """Over S \\X T: over S, then over T."""
    if not factors:
        return body(sequence(items))
    first, rest = factors[0], factors[1:]
    return quantify(
        scope, first, lambda x: _nested(scope, rest, (*items, x), body, neutral), neutral=neutral
    )


def _names_only(candidates: Candidates) -> bool:
    return all(isinstance(i, Known) and not isinstance(i.value, int) for _, i in candidates)


def _written_out(
    scope: Scope,
    candidates: Candidates,
    guards: Guards,
    body: Callable[[Term], Formula],
    neutral: bool,
) -> Formula:
    parts: list[Formula] = []
    with scope.unrolled(max(1, len(candidates))):
        for condition, item in candidates:
            made = body(item)
            if condition != Truth(True):
                made = disjoin([negate(condition), made]) if neutral else conjoin([condition, made])
            parts.append(made)
            if made == Truth(not neutral):
                break
    return guarded_formula(conjoin(parts) if neutral else disjoin(parts), guards)


def _through(
    scope: Scope, domain: Image, body: Callable[[Term], Formula], neutral: bool
) -> Formula | None:
    """Over the base of {e(x) : x \\in S}: the order of elements does not matter if all is total."""
    made = quantify(scope, domain.base, lambda x: body(domain.function(x)), neutral=neutral)
    return guarded_formula(made, domain.guards) if made.total else None


def _over_array(
    scope: Scope, domain: Term, body: Callable[[Term], Formula], neutral: bool
) -> Formula:
    array = materialise(scope, domain)
    text = scope.share(array.text)
    name = scope.fresh()
    item = stored(element_type(array), name)
    if isinstance(item, Column) and isinstance(domain, Interval):
        item = _index(domain, name)
    made = scope.formula(lambda: body(item))
    if isinstance(made, Truth):
        empty = Atom(sql.equal(f"size({text})", "0"), array.guards)
        return guarded_formula(made, array.guards) if made.known == neutral else _flip(empty, made)
    return Quantified(text, array.guards, name, made, neutral)


def _flip(empty: Formula, made: Truth) -> Formula:
    """Every body is FALSE: `\\A` holds of the empty set only; TRUE: `\\E` of the others."""
    return negate(empty) if made.known else empty


def _index(domain: Interval, name: str) -> Column:
    low, high = interval_ends(domain)
    ends = (low.bounds or (None, None))[0], (high.bounds or (None, None))[1]
    bounds = None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
    positive = bounds is not None and bounds[0] >= 1
    return Column(INTEGER, name, (), bounds, high.length_of if positive else None)


# Membership


def member(scope: Scope, item: Term, domain: Term) -> Formula:
    """item \\in domain."""
    guards = merge(item.guards, domain.guards)
    return guarded_formula(_member(scope, bare(item), bare(domain)), guards)


def _member(scope: Scope, item: Term, domain: Term) -> Formula:
    for one in (item, domain):
        if isinstance(one, Nothing):
            return Atom(sql.FALSE, one.guards)
    match domain:
        case Known(value=frozenset() as values):
            return _member_of_known(scope, item, values)
        case Infinite(name=name):
            return _member_of_infinite(item, name)
        case Interval():
            return _member_of_interval(scope, item, domain)
        case Enumerated(candidates=candidates):
            return disjoin([conjoin([c, equals(scope, item, each)]) for c, each in candidates])
        case Filtered(base=base):
            test = conjoin([_member(scope, item, base), domain.predicate(item)])
            if test.total:
                return test
        case Combined(operator=operator, left=left, right=right):
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
        case Sequences(base=base):
            return _is_sequence_over(scope, item, base)
        case Functions():
            return _is_function(scope, item, domain)
        case Records(fields=fields):
            return _is_record(scope, item, dict(fields))
        case Product(factors=factors):
            return _is_tuple(scope, item, factors)
    return _in_array(scope, item, domain)


def _member_of_known(scope: Scope, item: Term, values: frozenset[Value]) -> Formula:
    if isinstance(item, Known):
        return Truth(item.value in values)
    if not values:
        return Truth(False)
    if isinstance(item, Boolean):
        if values == {True, False}:
            return guarded_formula(Truth(True), item.guards)
        return disjoin([_equals(scope, item, Known(value)) for value in canonical_sorted(values)])
    if isinstance(item, Column) and isinstance(item.type, types.Scalar):
        return _in_list(item, values)
    if len(values) <= MAX_COPIES:
        return disjoin([_equals(scope, item, Known(value)) for value in canonical_sorted(values)])
    return _in_array(scope, item, Known(values))


def _in_list(item: Column, values: frozenset[Value]) -> Formula:
    try:
        known = [types.literal(value, item.type) for value in canonical_sorted(values)]
    except TypeClash as clash:
        return undefined(f"cannot compare {clash}")
    if len(known) == 1:
        return Atom(sql.equal(item.text, known[0]))
    return Atom(sql.call("`in`", item.text, *known))


def _member_of_infinite(item: Term, name: str) -> Formula:
    if isinstance(item, Known):
        return Truth(_known_in(item.value, name))
    kind = item.type if isinstance(item, Column) else None
    if isinstance(item, Column) and kind == INTEGER and name in ("Nat", "Int"):
        if name == "Int" or (item.bounds is not None and item.bounds[0] >= 0):
            return Truth(True)
        return Atom(sql.compare(">=", item.text, "0L"))
    if kind == STRING and name == "STRING":
        return Truth(True)
    if kind == MODEL_VALUE:
        return Truth(False)
    return undefined(f"whether a value of another type is an element of {name}")


def _known_in(value: Value, name: str) -> bool:
    if name == "STRING":
        return isinstance(value, str)
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and (name == "Int" or (isinstance(value, int) and value >= 0))


def _member_of_interval(scope: Scope, item: Term, domain: Interval) -> Formula:
    low, high = interval_ends(domain)
    try:
        column = materialise(scope, item, INTEGER)
    except TypeClash as clash:
        return undefined(f"cannot compare {clash}")
    guards = merge(low.guards, high.guards, column.guards)
    return Atom(sql.between(column.text, low.text, high.text), guards)


def _is_sequence_over(scope: Scope, item: Term, base: Term) -> Formula:
    listed = as_listed(item)
    if listed is not None:
        return conjoin([member(scope, part, base) for part in listed.items])
    if as_mapped(item) is not None:
        return Truth(False)
    if isinstance(item, Column) and isinstance(item.type, SequenceOf):
        if item.type.element is None:
            return Truth(True)
        as_set = Column(SetOf(item.type.element), item.text)
        return quantify(scope, as_set, lambda x: member(scope, x, base), neutral=True)
    if isinstance(item, FunctionOf):
        return _is_sequence_over(scope, materialise(scope, item), base)
    raise NotFinite("Seq")


def _is_function(scope: Scope, item: Term, domain: Functions) -> Formula:
    mapped, listed = as_mapped(item), as_listed(item)
    if mapped is None and listed is not None:
        mapped = Mapped(tuple((i, part) for i, part in enumerate(listed.items, 1)))
    if mapped is not None:
        keys = Known(frozenset(key for key, _ in mapped.entries))
        same = equals(scope, keys, domain.domain)
        return conjoin([same, *(member(scope, part, domain.range) for _, part in mapped.entries)])
    if not isinstance(item, Column):
        item = materialise(scope, item)
    if isinstance(item.type, SequenceOf):
        size = integer(f"bigint(size({item.text}))", (0, 2**31))
        same = equals(scope, Interval(Known(1), size), domain.domain)
        return conjoin([same, _is_sequence_over(scope, item, domain.range)])
    if isinstance(item.type, MapOf):
        return _is_pairs(scope, item, item.type, domain)
    return undefined("whether a value that is not a function is in [S -> T]")


def _is_pairs(scope: Scope, item: Column, kind: MapOf, domain: Functions) -> Formula:
    keys = Column(SetOf(kind.key), f"transform({item.text}, p -> p.{types.KEY})")
    results = Column(SetOf(kind.value), f"transform({item.text}, p -> p.{types.RESULT})")
    same = equals(scope, keys, domain.domain)
    every = quantify(scope, results, lambda x: member(scope, x, domain.range), neutral=True)
    return conjoin([same, every])


def _is_record(scope: Scope, item: Term, fields: dict[str, Term]) -> Formula:
    mapped = as_mapped(item)
    if mapped is None or {key for key, _ in mapped.entries} != set(fields):
        return Truth(False)
    results = dict(mapped.entries)
    return conjoin([member(scope, results[name], of) for name, of in fields.items()])


def _is_tuple(scope: Scope, item: Term, factors: tuple[Term, ...]) -> Formula:
    listed = as_listed(item)
    if listed is not None:
        if len(listed.items) != len(factors):
            return Truth(False)
        pairs = zip(listed.items, factors, strict=True)
        return conjoin([member(scope, part, of) for part, of in pairs])
    if isinstance(item, Column) and isinstance(item.type, SequenceOf) and item.type.element:
        kind = item.type.element
        parts = [stored(kind, f"get({item.text}, {i})") for i in range(len(factors))]
        inside = [member(scope, p, of) for p, of in zip(parts, factors, strict=True)]
        return conjoin([Atom(sql.equal(f"size({item.text})", str(len(factors)))), *inside])
    return Truth(False)


def _in_array(scope: Scope, item: Term, domain: Term) -> Formula:
    array = materialise(scope, domain)
    kind = array.type
    if not isinstance(kind, SetOf):
        raise TypeClash(f"a set and {types.describe(kind)}")
    if kind.element is None:
        return guarded_formula(Truth(False), array.guards)
    try:
        column = materialise(scope, item, kind.element)
    except TypeClash as clash:
        return undefined(f"cannot compare {clash}")
    test = Atom(f"array_contains({array.text}, {column.text})")
    return guarded_formula(test, merge(array.guards, column.guards))


def subset(scope: Scope, left: Term, right: Term) -> Formula:
    """left \\subseteq right."""
    guards = merge(left.guards, right.guards)
    inner = bare(right)
    every = quantify(scope, bare(left), lambda x: member(scope, x, inner), neutral=True)
    return guarded_formula(every, guards)
