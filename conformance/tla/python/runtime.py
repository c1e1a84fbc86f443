"""What generated code calls where TLA+ and Python differ: application, equality, EXCEPT, types.

Generated code keeps the frequent case inline (an `Fn` that is applied, two integers that are
compared) and comes here for the rest, so these functions put correctness before speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from conformance.tla.semantics.equality import LazyFunction, Unforced, member, value_of
from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.semantics.kinds import is_element, is_subset
from conformance.tla.semantics.sets import (
    AnySet,
    Filtered,
    Powerset,
    SymbolicSet,
    all_in,
    cardinality,
    combine,
    needed,
    union_of,
)
from conformance.tla.values import Fn, ModelValue, Value, canonical_sorted


class _Unset:
    """The mark of a LET's value that no path has needed yet."""

    __slots__ = ()


UNSET = _Unset()


def type_error(expected: str, *values: object) -> NoReturn:
    """An operand of a type that the operator is not defined for."""
    for value in values:
        if not _is(value, expected):
            raise EvaluationError(f"{_article(expected)} is needed here, not {shown(value)}")
    raise EvaluationError(f"{_article(expected)} is needed here")


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _is(value: object, kind: str) -> bool:
    match kind:
        case "integer":
            return type(value) is int
        case "boolean":
            return type(value) is bool
        case "set":
            return isinstance(value, frozenset | SymbolicSet)
        case "sequence":
            return type(value) in (tuple, str)
        case _:
            return False


def not_boolean(value: object) -> NoReturn:
    """A formula whose value is no boolean."""
    raise EvaluationError(f"a boolean is needed here, not {shown(value)}")


def in_interval(x: Value, low: Value, high: Value) -> bool:
    """x \\in low..high."""
    if type(low) is not int or type(high) is not int:
        type_error("integer", low, high)
    if type(x) is int:
        return low <= x <= high
    if isinstance(x, ModelValue) or low > high:
        return False
    raise EvaluationError(
        f"whether {shown(x)} is an element of {shown(low)}..{shown(high)} is not defined"
    )


def subset(a: Unforced, b: Unforced) -> bool:
    """a \\subseteq b."""
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return is_subset(a, b)
    if isinstance(a, Powerset) and isinstance(b, Powerset):
        return subset(a.of, b.of)
    if isinstance(b, SymbolicSet):
        return all_in(iterate(a), b)
    return all(member(x, b) for x in iterate(a))


def iterate(elements: Unforced) -> Iterable[Value]:
    """The elements of a set, in any order."""
    if isinstance(elements, frozenset | SymbolicSet):
        return elements
    type_error("set", elements)


def ordered(elements: Unforced) -> Iterable[Value]:
    """The elements of a set in canonical order: what CHOOSE and the successor search follow."""
    if isinstance(elements, frozenset | SymbolicSet):
        return canonical_sorted(elements)
    type_error("set", elements)


def no_choice(elements: Unforced) -> NoReturn:
    """CHOOSE without a witness."""
    raise EvaluationError(f"no element of {shown(elements)} satisfies the condition of CHOOSE")


def set_operation(operator: str, a: Unforced, b: Unforced) -> AnySet:
    """Union, intersection, difference of what may be symbolic."""
    if not isinstance(a, frozenset | SymbolicSet) or not isinstance(b, frozenset | SymbolicSet):
        type_error("set", a, b)
    return combine(operator, a, b)


def big_union(sets: Unforced) -> AnySet:
    """UNION sets."""
    return union_of(iterate(sets))


def filtered(elements: Unforced, rule: Callable[[object], bool]) -> AnySet:
    """{x \\in elements : rule}, a rule itself of a set that is one."""
    if isinstance(elements, frozenset):
        return frozenset(filter(rule, elements))
    return Filtered(needed(elements), rule)


def size(elements: Unforced) -> int:
    """Cardinality(elements)."""
    if isinstance(elements, frozenset):
        return len(elements)
    if isinstance(elements, SymbolicSet):
        count = cardinality(elements)
        if count is None:
            raise EvaluationError(f"Cardinality of the infinite set {shown(elements)}")
        return count
    type_error("set", elements)


def is_finite(elements: Unforced) -> bool:
    """IsFiniteSet(elements)."""
    if not isinstance(elements, frozenset | SymbolicSet):
        type_error("set", elements)
    return cardinality(elements) is not None


# Integers


def interval(low: Value, high: Value) -> range:
    """low..high, to be iterated."""
    if type(low) is not int or type(high) is not int:
        type_error("integer", low, high)
    return range(low, high + 1)


def add(a: Value, b: Value) -> int:
    """a + b."""
    if type(a) is int and type(b) is int:
        return a + b
    type_error("integer", a, b)


def subtract(a: Value, b: Value) -> int:
    """a - b."""
    if type(a) is int and type(b) is int:
        return a - b
    type_error("integer", a, b)


def multiply(a: Value, b: Value) -> int:
    """a * b."""
    if type(a) is int and type(b) is int:
        return a * b
    type_error("integer", a, b)


def divide(a: Value, b: Value) -> int:
    """a \\div b, rounded towards minus infinity, as in TLC."""
    if type(a) is not int or type(b) is not int:
        type_error("integer", a, b)
    if b == 0:
        raise EvaluationError("division by zero")
    return a // b


def modulo(a: Value, b: Value) -> int:
    """a % b for positive b."""
    if type(a) is not int or type(b) is not int:
        type_error("integer", a, b)
    if b <= 0:
        raise EvaluationError(f"the second operand of % must be positive, not {shown(b)}")
    return a % b


def power(a: Value, b: Value) -> int:
    """a ^ b for natural b."""
    if type(a) is not int or type(b) is not int:
        type_error("integer", a, b)
    if b < 0 or (a == 0 and b == 0):
        raise EvaluationError(f"{shown(a)}^{shown(b)} is not defined")
    return int(a**b)


def less(a: Value, b: Value) -> bool:
    """a < b."""
    if type(a) is int and type(b) is int:
        return a < b
    type_error("integer", a, b)


def at_most(a: Value, b: Value) -> bool:
    """a <= b."""
    if type(a) is int and type(b) is int:
        return a <= b
    type_error("integer", a, b)


# Functions


def apply(f: Unforced, x: Unforced) -> Value | LazyFunction:
    """f[x]."""
    if isinstance(f, Fn):
        mapping = f.mapping
        if x.__class__ is int and x in mapping and next(iter(mapping)).__class__ is int:
            return mapping[x]
        x = value_of(x)
        if is_element(x, f.mapping):
            return f.mapping[x]
        outside(f, x)
    if isinstance(f, tuple):
        if type(x) is int and 0 < x <= len(f):
            return f[x - 1]
        outside(f, x)
    if isinstance(f, LazyFunction):
        return f(value_of(x))
    raise EvaluationError(f"{shown(f)} is applied to {shown(x)}, but is not a function")


def not_in_domain(x: Unforced) -> NoReturn:
    """An action that is written as a function, applied outside its domain."""
    raise EvaluationError(f"a function is applied to {shown(x)}, which is not in its domain")


def outside(f: Unforced, x: Unforced) -> NoReturn:
    """A function applied outside its domain."""
    raise EvaluationError(f"{shown(f)} is applied to {shown(x)}, which is not in its domain")


def field(r: Unforced, name: str) -> Value:
    """r.name."""
    if isinstance(r, Fn):
        if name in r.mapping:
            return r.mapping[name]
        raise EvaluationError(f"the record {shown(r)} has no field {name}")
    raise EvaluationError(f"{shown(r)} has no field {name}: it is not a record")


def domain(f: Unforced) -> AnySet:
    """DOMAIN f."""
    if isinstance(f, Fn):
        return frozenset(f.mapping)
    if isinstance(f, tuple):
        return frozenset(range(1, len(f) + 1))
    if isinstance(f, LazyFunction):
        return f.domain
    raise EvaluationError(f"DOMAIN of {shown(f)}, which is not a function")


def lookup(f: Unforced, x: Value) -> object:
    """f[x], or UNSET outside the domain: for EXCEPT, which leaves such a function unchanged."""
    if isinstance(f, Fn):
        return f.mapping[x] if is_element(x, f.mapping) else UNSET
    if isinstance(f, tuple):
        return f[x - 1] if type(x) is int and 0 < x <= len(f) else UNSET
    if isinstance(f, LazyFunction):
        return f(x) if x in f.domain else UNSET
    raise EvaluationError(f"EXCEPT on {shown(f)}, which is not a function")


def replaced(f: Unforced, x: Value, result: Unforced) -> Unforced:
    """[f EXCEPT ![x] = result] for x in the domain."""
    if isinstance(f, LazyFunction):
        return f.except_(x, result)
    if isinstance(result, LazyFunction) and cardinality(result.domain) is None:
        return LazyFunction(domain(f), lambda _, y: apply(f, y)).except_(x, result)
    value = value_of(result)
    if isinstance(f, Fn):
        return f.except_(x, value)
    if isinstance(f, tuple) and type(x) is int:
        return (*f[: x - 1], value, *f[x:])
    raise EvaluationError(f"EXCEPT on {shown(f)}, which is not a function")


class Replacements:
    """`replaced` that remembers what it made: the same parts give the same object.

    A large search makes the same function of the same parts over and over. Who remembers functions
    by identity, a `Fingerprinter` above all, then knows the result already, and the copy is saved.
    The parts count by identity, so that 1 is never taken for TRUE, and each entry keeps its parts
    alive. Memory is bounded: it starts again after `limit` entries, and for good ends a memory
    from which fewer results were taken than it has entries.
    """

    __slots__ = ("_hits", "_known", "_limit")

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        self._known: dict[tuple[int, int, int], tuple[Unforced, ...]] = {}
        self._hits = 0

    def __call__(self, f: Unforced, x: Value, result: Unforced) -> Unforced:
        """As `replaced`."""
        if f.__class__ is not Fn:
            return replaced(f, x, result)
        key = id(f), id(x), id(result)
        known = self._known.get(key)
        if known is not None:
            self._hits += 1
            return known[0]
        made = replaced(f, x, result)
        if self._limit and made.__class__ is Fn:
            self._remember(key, (made, f, x, result))
        return made

    def _remember(self, key: tuple[int, int, int], entry: tuple[Unforced, ...]) -> None:
        if len(self._known) >= self._limit:
            if self._hits < self._limit:
                self._limit = 0
            self._known.clear()
            self._hits = 0
        if self._limit:
            self._known[key] = entry


def unpack(value: Value, count: int) -> tuple[Value, ...]:
    """The components of a tuple that a quantifier over <<a, b>> takes apart."""
    if type(value) is tuple and len(value) == count:
        return value
    raise EvaluationError(f"a tuple of {count} components is needed here, not {shown(value)}")


def no_case() -> NoReturn:
    """CASE without a true guard and without OTHER."""
    raise EvaluationError("no guard of this CASE is true, and it has no OTHER")


def not_assigned(variable: str) -> NoReturn:
    """A primed variable used before it has a value."""
    raise EvaluationError(f"{variable}' is used before the action gives it a value")


def incomplete(action: str, variables: Iterable[str]) -> NoReturn:
    """A successor with variables that the action says nothing about."""
    names = ", ".join(variables)
    raise EvaluationError(f"{action} does not say what becomes of the variables {names}")


def raise_again(error: EvaluationError) -> NoReturn:
    """The error of a constant subexpression, raised where a formula needs its value."""
    raise EvaluationError(error.reason, error.location)


# Sequences


def length(s: Unforced) -> int:
    """Len(s)."""
    if isinstance(s, tuple | str):
        return len(s)
    if isinstance(s, LazyFunction):
        return length(s.value())
    type_error("sequence", s)


def append(s: Unforced, item: Value) -> tuple[Value, ...] | str:
    """Append(s, item); as TLC takes it, also of a string to a string."""
    if isinstance(s, LazyFunction):
        s = s.value()
    if isinstance(s, tuple):
        return (*s, item)
    if isinstance(s, str) and isinstance(item, str):
        return s + item
    type_error("sequence", s)


def concat(a: Unforced, b: Unforced) -> tuple[Value, ...] | str:
    """a \\o b, of sequences or of strings."""
    a, b = value_of(a), value_of(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return a + b
    if isinstance(a, str) and isinstance(b, str):
        return a + b
    type_error("sequence", a, b)


def head(s: Unforced) -> Value:
    """Head(s)."""
    s = value_of(s)
    if isinstance(s, tuple | str):
        if s:
            return s[0]
        raise EvaluationError("Head of the empty sequence")
    type_error("sequence", s)


def tail(s: Unforced) -> Value:
    """Tail(s)."""
    s = value_of(s)
    if isinstance(s, tuple | str):
        if s:
            return s[1:]
        raise EvaluationError("Tail of the empty sequence")
    type_error("sequence", s)


def sub_seq(s: Unforced, first: Value, last: Value) -> Value:
    """SubSeq(s, first, last)."""
    s = value_of(s)
    if not isinstance(s, tuple | str):
        type_error("sequence", s)
    if type(first) is not int or type(last) is not int:
        type_error("integer", first, last)
    if first > last:
        return s[:0]
    if first < 1 or last > len(s):
        raise EvaluationError(
            f"SubSeq from {shown(first)} to {shown(last)} of a sequence of length {len(s)}"
        )
    return s[first - 1 : last]


def items(s: Unforced) -> Iterator[Value]:
    """The elements of a sequence, in order; of a string its characters, as TLC does."""
    s = value_of(s)
    if isinstance(s, tuple | str):
        return iter(s)
    type_error("sequence", s)
