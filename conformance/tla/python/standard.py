"""The operators of Bags and TLC as Python functions on values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

from conformance.tla.python.runtime import items, iterate
from conformance.tla.semantics.equality import Unforced, value_of
from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.semantics.kinds import is_element, match_sets, set_of
from conformance.tla.values import Fn, Value, canonical_sorted, format_value, make_function


def pairs(f: Unforced) -> dict[Value, Value]:
    """A function as a new dict."""
    f = value_of(f)
    if isinstance(f, Fn):
        return dict(f.mapping)
    if isinstance(f, tuple):
        return dict(enumerate(f, start=1))
    raise EvaluationError(f"a function is needed here, not {shown(f)}")


# TLC


def single(argument: Unforced, result: Unforced) -> Value:
    """argument :> result."""
    return make_function({value_of(argument): value_of(result)})


def override(f: Unforced, g: Unforced) -> Value:
    """f @@ g: f's results where both are defined."""
    first, other = pairs(f), pairs(g)
    match_sets(first, other)
    return make_function({**other, **first})


def permutation_set(elements: Unforced) -> frozenset[Value]:
    """Permutations(S): the bijections of S."""
    items = canonical_sorted(iterate(elements))
    return frozenset(
        make_function(dict(zip(items, order, strict=True))) for order in permutations(items)
    )


def sort_seq(sequence: Unforced, before: Callable[[Value, Value], bool]) -> Value:
    """SortSeq(s, Op) by insertion, as TLC does it: also for an Op that is no strict order."""
    result: list[Value] = []
    for item in items(sequence):
        place = len(result)
        while place > 0 and before(item, result[place - 1]):
            place -= 1
        result.insert(place, item)
    return tuple(result)


def assertion(value: Unforced, message: Unforced) -> bool:
    """Assert(value, message)."""
    if value is True:
        return True
    raise EvaluationError(f"the assertion failed: {shown(value_of(message))}")


def to_string(value: Unforced) -> str:
    """ToString(v)."""
    return format_value(value_of(value))


# Bags: functions from elements to positive numbers


def _counts(bag: Unforced) -> dict[Value, int]:
    counts: dict[Value, int] = {}
    for element, count in pairs(bag).items():
        if type(count) is not int or count <= 0:
            raise EvaluationError(f"a bag is needed here, not {shown(value_of(bag))}")
        counts[element] = count
    return counts


def _bag(counts: dict[Value, int]) -> Value:
    return make_function({element: count for element, count in counts.items() if count > 0})


def is_a_bag(value: Unforced) -> bool:
    """IsABag(value)."""
    value = value_of(value)
    if not isinstance(value, Fn | tuple):
        return False
    return all(type(count) is int and count > 0 for count in pairs(value).values())


def bag_to_set(bag: Unforced) -> frozenset[Value]:
    """BagToSet(bag)."""
    return frozenset(pairs(bag))


def set_to_bag(elements: Unforced) -> Value:
    """SetToBag(S)."""
    return make_function(dict.fromkeys(iterate(elements), 1))


def bag_in(element: Unforced, bag: Unforced) -> bool:
    """BagIn(e, B)."""
    return is_element(value_of(element), pairs(bag))


def bag_sum(a: Unforced, b: Unforced) -> Value:
    """a (+) b."""
    counts, others = _counts(a), _counts(b)
    match_sets(counts, others)
    for element, count in others.items():
        counts[element] = counts.get(element, 0) + count
    return _bag(counts)


def bag_difference(a: Unforced, b: Unforced) -> Value:
    """a (-) b."""
    counts, others = _counts(a), _counts(b)
    match_sets(counts, others)
    return _bag({element: count - others.get(element, 0) for element, count in counts.items()})


def bag_union(bags: Unforced) -> Value:
    """BagUnion(S)."""
    total: Value = ()
    for bag in iterate(bags):
        total = bag_sum(total, bag)
    return total


def sub_bag_of(a: Unforced, b: Unforced) -> bool:
    """a \\sqsubseteq b."""
    counts, whole = _counts(a), _counts(b)
    match_sets(counts, whole)
    return all(count <= whole.get(element, 0) for element, count in counts.items())


def sub_bags(bag: Unforced) -> frozenset[Value]:
    """SubBag(B): all bags that B contains."""
    parts: list[dict[Value, int]] = [{}]
    for element, count in _counts(bag).items():
        parts = [{**part, element: n} for part in parts for n in range(count + 1)]
    return frozenset(map(_bag, parts))


def bag_of_all(operator: Callable[[Value], Value], bag: Unforced) -> Value:
    """BagOfAll(F, B)."""
    images = [(value_of(operator(element)), count) for element, count in _counts(bag).items()]
    counts: dict[Value, int] = dict.fromkeys(set_of([image for image, _ in images]), 0)
    for image, count in images:
        counts[image] += count
    return _bag(counts)


def bag_cardinality(bag: Unforced) -> int:
    """BagCardinality(B)."""
    return sum(_counts(bag).values())


def copies_in(element: Unforced, bag: Unforced) -> int:
    """CopiesIn(e, B)."""
    counts, item = pairs(bag), value_of(element)
    count = counts[item] if is_element(item, counts) else 0
    if type(count) is not int:
        raise EvaluationError(f"a bag is needed here, not {shown(value_of(bag))}")
    return count
