"""Tells TRUE from 1, at every depth, where Python's == and `in` take the one for the other.

TLC refuses to compare the two, so that a formula has no value where they meet. Python's answer
comes first, since it is fast and nearly always the last word: only values that are equal for
Python, and yet not the same object, are looked at here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.values import Fn, ModelValue, Value, mismatch


def same(a: object, b: object) -> bool:
    """a = b for values of one class; an error if they are equal but for TRUE and 1."""
    if a is b:
        return True
    if a != b:
        if isinstance(a, Fn) and isinstance(b, Fn):
            match_arguments(a.mapping, b.mapping)
        elif isinstance(a, ModelValue):
            match_model_values(a, b)
        elif isinstance(a, frozenset) and isinstance(b, frozenset) and a and len(a) == len(b):
            match_elements([next(iter(a)), next(iter(b))])  # sets of two sizes differ, whatever
        return False
    _match(a, b)
    return True


def match_model_values(a: object, b: object) -> None:
    """An error if one is a typed model value, and the other neither of its type nor untyped."""
    types = {value.letter if isinstance(value, ModelValue) else "" for value in (a, b)} - {None}
    if len(types) == 2:
        raise incomparable(a, b)


def match_arguments(a: Iterable[object], b: Iterable[object]) -> None:
    """An error if the domains of two functions are of different kinds."""
    first, other = next(iter(a)), next(iter(b))
    kinds = {first.__class__, other.__class__}
    if len(kinds) == 2 and kinds <= _SCALARS:
        raise incomparable(first, other)


_SCALARS = {int, bool, str}
_FLAT = {*_SCALARS, ModelValue}


def is_element(x: object, elements: Collection[Value]) -> bool:
    """x \\in elements, which may be a function's mapping, for its domain.

    An error where that holds only if TRUE is 1.
    """
    if x not in elements:
        return False
    kind = x.__class__
    if kind is int or kind is bool:
        _match(x, next(iter(elements)))
    elif kind is not str and kind is not ModelValue:
        _match(x, _equal_element(x, elements))
    return True


def member_of(x: object, elements: frozenset[Value]) -> bool:
    """x \\in elements for any x; an error where TLC cannot compare it with an element."""
    if is_element(x, elements):
        return True
    for element in elements:
        if element.__class__ is not x.__class__:
            match_classes(x, element)
        elif element.__class__ is ModelValue:
            match_model_values(x, element)
        break
    return False


def match_classes(a: object, b: object) -> None:
    """An error if TLC cannot compare two values of different classes.

    It can compare an untyped model value with everything, and functions with sequences.
    """
    if isinstance(a, ModelValue) or isinstance(b, ModelValue):
        match_model_values(a, b)
        return
    if not (isinstance(a, Fn | tuple) and isinstance(b, Fn | tuple)):
        raise incomparable(a, b)
    if a and b:  # 1 is an argument of every sequence
        match_arguments([1] if isinstance(a, tuple) else a, [1] if isinstance(b, tuple) else b)


def match_elements(elements: Collection[object]) -> None:
    """An error if TLC cannot compare two elements of a set, as it must to keep the set sorted.

    What the elements contain is not looked at.
    """
    first: object = None
    for element in elements:
        if isinstance(element, ModelValue) and element.letter is None:
            continue  # can be compared with everything
        if first is None:
            first = element
        elif element.__class__ is not first.__class__:
            match_classes(first, element)
        elif isinstance(element, ModelValue):
            match_model_values(first, element)


def set_of(items: Sequence[Value]) -> frozenset[Value]:
    """The set of these values; an error where TLC cannot compare two of them."""
    result = frozenset(items)
    classes = set(map(type, items))
    if len(classes) > 1:
        match_elements(items)
    if len(result) < len(items) and not classes <= _FLAT:
        first: dict[Value, Value] = {}
        for item in items:
            _match(item, first.setdefault(item, item))
    return result


def match_sets(a: Collection[Value], b: Collection[Value]) -> None:
    """An error if TLC cannot compare the elements of two sets, or the arguments of two functions.

    Within one of them the elements can be compared.
    """
    if not a or not b:
        return
    kind = next(iter(a)).__class__
    alike = kind is next(iter(b)).__class__ and kind is not ModelValue
    if not alike and len({*map(type, a), *map(type, b)}) > 1:
        match_elements([*a, *b])
    if kind not in _FLAT:
        few, many = (a, b) if len(a) <= len(b) else (b, a)
        for element in few:
            if element in many:
                _match(element, _equal_element(element, many))


def union(a: frozenset[Value], b: frozenset[Value]) -> frozenset[Value]:
    """a \\union b."""
    match_sets(a, b)
    return a | b


def intersection(a: frozenset[Value], b: frozenset[Value]) -> frozenset[Value]:
    """a \\intersect b."""
    match_sets(a, b)
    return a & b


def difference(a: frozenset[Value], b: frozenset[Value]) -> frozenset[Value]:
    """a \\ b."""
    match_sets(a, b)
    return a - b


def is_subset(a: frozenset[Value], b: frozenset[Value]) -> bool:
    """a \\subseteq b."""
    match_sets(a, b)
    return a <= b


def _match(a: object, b: object) -> None:
    """An error if values that are equal for Python, or a set and one with all of its elements,
    differ in kind."""
    result = mismatch(a, b)
    if result is not None:
        raise incomparable(*result)


class _Probe:
    """Equal to what equals a value, and remembers the object that was compared with it."""

    __slots__ = ("match", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self.match = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        if self.value != other:
            return False
        self.match = other
        return True


def _equal_element(x: object, elements: Collection[Value]) -> object:
    """The element that equals x, without a look at the others."""
    probe = _Probe(x)
    assert probe in elements
    return probe.match


def incomparable(a: object, b: object) -> EvaluationError:
    """The error of values that TLC cannot compare."""
    return EvaluationError(
        f"{shown(a)} and {shown(b)} are of different kinds: TLC cannot compare them"
    )
