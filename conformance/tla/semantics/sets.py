"""Sets that the evaluator keeps as a rule, not as elements: Nat, SUBSET S, [S -> T] and the like.

They answer membership at once and are enumerated only where a formula asks for their elements
and there are finitely many. They never occur inside a value: `conformance.tla.evaluate.runtime.
value_of` turns one into a `frozenset` where it is compared or stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from math import prod

from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.semantics.kinds import (
    is_subset,
    match_arguments,
    match_sets,
    member_of,
    set_of,
    union,
)
from conformance.tla.values import (
    Fn,
    ModelValue,
    Value,
    canonical_sorted,
    make_function,
)

LARGEST_ENUMERATION = 10_000_000
"""Elements above which an enumeration is refused (TLC stops at one million by default)."""
MOST_REMEMBERED = 10_000
"""Elements that one set keeps alive because it was asked about them."""


class SymbolicSet:
    """A set given by its rule. `size` is None if it is infinite."""

    __slots__ = ()

    # No abstract base class: its isinstance takes five times as long.
    def __contains__(self, value: object) -> bool:
        """Whether the value is an element; EvaluationError where TLC cannot tell."""
        raise AssertionError(f"{type(self).__name__} must say what its elements are")

    def size(self) -> int | None:
        """The number of elements, None if infinite."""
        return None

    def at_most(self) -> int | None:
        """A number of elements that is known without looking at them, None if infinite."""
        return self.size()

    def elements(self) -> Iterator[Value]:
        """The elements; only called if `size` is finite and not too large."""
        raise AssertionError(f"{self} is infinite")

    def __iter__(self) -> Iterator[Value]:
        size = self.size()
        if size is None:
            raise EvaluationError(
                f"the elements of the infinite set {shown(self)} are needed here. Bound it, or "
                "override it in the configuration (for example `Nat <- SmallNat`)."
            )
        if size > LARGEST_ENUMERATION:
            raise EvaluationError(
                f"the {shown(size)} elements of {shown(self)} are needed here, more than the "
                f"limit of {LARGEST_ENUMERATION:,}. Bound the set."
            )
        return self.elements()


AnySet = frozenset[Value] | SymbolicSet


def cardinality(elements: AnySet) -> int | None:
    """The number of elements, None if infinite."""
    return elements.size() if isinstance(elements, SymbolicSet) else len(elements)


def needed(elements: object) -> AnySet:
    """The set; EvaluationError if it is none."""
    if not isinstance(elements, frozenset | SymbolicSet):
        raise EvaluationError(f"a set is needed here, not {shown(elements)}")
    return elements


def contains(elements: AnySet, value: object) -> bool:
    """Whether the value is an element; EvaluationError where TLC cannot tell."""
    if isinstance(elements, frozenset):
        return member_of(frozenset(value) if isinstance(value, SymbolicSet) else value, elements)
    return value in elements


class Integers(SymbolicSet):
    """Nat (from 0) or Int."""

    __slots__ = ("_least",)

    def __init__(self, least: int | None) -> None:
        self._least = least

    def __contains__(self, value: object) -> bool:
        if type(value) is int:
            return self._least is None or value >= self._least
        if isinstance(value, ModelValue):
            return False
        raise EvaluationError(f"whether {shown(value)} is an element of {self} is not defined")

    def __str__(self) -> str:
        return "Int" if self._least is None else "Nat"


class Strings(SymbolicSet):
    """STRING."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        if type(value) is str:
            return True
        if isinstance(value, ModelValue):
            return False
        raise EvaluationError(f"whether {shown(value)} is an element of STRING is not defined")

    def __str__(self) -> str:
        return "STRING"


class AnyValue(SymbolicSet):
    """TLC's Any: every value is an element."""

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return True

    def __str__(self) -> str:
        return "Any"


class Sequences(SymbolicSet):
    """Seq(S)."""

    __slots__ = ("_of",)

    def __init__(self, of: AnySet) -> None:
        self._of = needed(of)

    def __contains__(self, value: object) -> bool:
        if isinstance(value, tuple | str):  # TLC takes a string for one of its characters
            of = self._of
            return all(contains(of, item) for item in value)
        if isinstance(value, ModelValue):
            return False
        raise EvaluationError(f"whether {shown(value)} is an element of {self} is not defined")

    def size(self) -> int | None:
        return 1 if cardinality(self._of) == 0 else None

    def elements(self) -> Iterator[Value]:
        return iter([()])

    def __str__(self) -> str:
        return f"Seq({shown(self._of)})"


class Filtered(SymbolicSet):
    """{x \\in S : P(x)} of an S that is infinite or itself given by a rule."""

    __slots__ = ("_known", "_of", "_rule")

    def __init__(self, of: AnySet, rule: Callable[[object], bool]) -> None:
        self._of = needed(of)
        self._rule = rule
        self._known: tuple[Value, ...] | None = None

    def __contains__(self, value: object) -> bool:
        return contains(self._of, value) and self._rule(value)

    def size(self) -> int | None:
        return None if self.at_most() is None else len(self._members())

    def at_most(self) -> int | None:
        of = self._of
        return of.at_most() if isinstance(of, SymbolicSet) else len(of)

    def elements(self) -> Iterator[Value]:
        return iter(self._members())

    def _members(self) -> tuple[Value, ...]:
        if self._known is None:
            self._known = tuple(filter(self._rule, self._of))
        return self._known

    def __str__(self) -> str:
        return f"{{x \\in {shown(self._of)} : ...}}"


class Powerset(SymbolicSet):
    """SUBSET S."""

    __slots__ = ("_of",)

    def __init__(self, of: AnySet) -> None:
        self._of = needed(of)

    @property
    def of(self) -> AnySet:
        """S."""
        return self._of

    def __contains__(self, value: object) -> bool:
        if isinstance(value, frozenset):
            of = self._of
            return is_subset(value, of) if isinstance(of, frozenset) else all_in(value, of)
        if isinstance(value, SymbolicSet):
            return frozenset(value) in self
        if isinstance(value, ModelValue):
            return False
        raise EvaluationError(f"whether {shown(value)} is an element of {self} is not defined")

    def size(self) -> int | None:
        size = cardinality(self._of)
        return None if size is None else 1 << size

    def elements(self) -> Iterator[Value]:
        items = canonical_sorted(self._of)
        chosen = (combinations(items, size) for size in range(len(items) + 1))
        return map(frozenset, chain.from_iterable(chosen))

    def __str__(self) -> str:
        return f"SUBSET {shown(self._of)}"


class _RememberingSet(SymbolicSet):
    """A set that looks at the parts of a value to say whether it is an element.

    It remembers the values that are, since states have most of their parts in common: by
    identity, because equal Python values may differ in kind ((1,) and (True,)).
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, object] = {}

    def __contains__(self, value: object) -> bool:
        known = self._known
        if id(value) in known:
            return True
        if not self._holds(value):
            return False
        if len(known) >= MOST_REMEMBERED:
            known.clear()
        known[id(value)] = value
        return True

    def _holds(self, value: object) -> bool:
        raise AssertionError(f"{type(self).__name__} cannot tell of {shown(value)}")


class Functions(_RememberingSet):
    """[S -> T]."""

    __slots__ = ("_domain", "_length", "_range")

    def __init__(self, domain: AnySet, range_: AnySet) -> None:
        super().__init__()
        self._domain = frozenset(needed(domain))
        self._range = needed(range_)
        size = len(self._domain)
        self._length = size if self._domain == frozenset(range(1, size + 1)) else None

    @property
    def domain(self) -> frozenset[Value]:
        """S."""
        return self._domain

    @property
    def range(self) -> AnySet:
        """T."""
        return self._range

    def _holds(self, value: object) -> bool:
        range_ = self._range
        if type(value) is Fn:
            mapping = value.mapping
            if mapping.keys() != self._domain:
                return False
            match_sets(mapping, self._domain)
            try:
                for result in mapping.values():
                    if not contains(range_, result):
                        return False
            except EvaluationError:
                return all_in(mapping.values(), range_)
            return True
        if type(value) is tuple:
            return len(value) == self._length and all(contains(range_, result) for result in value)
        if isinstance(value, ModelValue):
            return False
        raise EvaluationError(f"whether {shown(value)} is an element of {self} is not defined")

    def size(self) -> int | None:
        base, exponent = cardinality(self._range), len(self._domain)
        if base is None:
            return 1 if exponent == 0 else None
        return int(base**exponent)

    def elements(self) -> Iterator[Value]:
        arguments = canonical_sorted(self._domain)
        results = canonical_sorted(self._range) if arguments else []
        for choice in product(results, repeat=len(arguments)):
            yield make_function(dict(zip(arguments, choice, strict=True)))

    def __str__(self) -> str:
        return f"[{shown(self._domain)} -> {shown(self._range)}]"


class Records(_RememberingSet):
    """[a : S, b : T]."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, AnySet]) -> None:
        super().__init__()
        self._fields = {name: needed(of) for name, of in fields.items()}

    @property
    def fields(self) -> Mapping[str, AnySet]:
        """The sets, by field."""
        return self._fields

    def _holds(self, value: object) -> bool:
        if type(value) is Fn:
            mapping, fields = value.mapping, self._fields
            if mapping.keys() != fields.keys():
                match_arguments(mapping, fields)
                return False
            for name, of in fields.items():  # noqa: SIM110 - all() takes half as long again
                if not contains(of, mapping[name]):
                    return False
            return True
        if isinstance(value, ModelValue) or value == ():
            return False
        raise EvaluationError(f"whether {shown(value)} is an element of {self} is not defined")

    def size(self) -> int | None:
        return _product_size(list(self._fields.values()))

    def elements(self) -> Iterator[Value]:
        if self.size() == 0:  # another factor may be infinite
            return
        names = list(self._fields)
        for choice in product(*map(canonical_sorted, self._fields.values())):
            yield Fn(dict(zip(names, choice, strict=True)))

    def __str__(self) -> str:
        return "[" + ", ".join(f"{name}: {shown(of)}" for name, of in self._fields.items()) + "]"


class Product(SymbolicSet):
    """S \\X T."""

    __slots__ = ("_factors",)

    def __init__(self, factors: Sequence[AnySet]) -> None:
        self._factors = tuple(map(needed, factors))

    @property
    def factors(self) -> tuple[AnySet, ...]:
        """S, T, ..."""
        return self._factors

    def __contains__(self, value: object) -> bool:
        if type(value) is tuple:
            if len(value) != len(self._factors):
                return False
            return all(map(contains, self._factors, value))
        if isinstance(value, Fn):
            match_arguments(value, [1])
        if isinstance(value, ModelValue | Fn):
            return False
        raise EvaluationError(f"whether {shown(value)} is an element of {self} is not defined")

    def size(self) -> int | None:
        return _product_size(self._factors)

    def elements(self) -> Iterator[Value]:
        if self.size() == 0:  # another factor may be infinite
            return iter(())
        return product(*map(canonical_sorted, self._factors))

    def __str__(self) -> str:
        return r" \X ".join(map(shown, self._factors))


class Combined(SymbolicSet):
    """S \\union T where S or T is a rule; S \\intersect T or S \\ T where one is infinite."""

    __slots__ = ("_known", "_left", "_operator", "_right")

    def __init__(self, operator: str, left: AnySet, right: AnySet) -> None:
        self._operator, self._left, self._right = operator, left, right
        self._known: frozenset[Value] | None = None

    def __contains__(self, value: object) -> bool:
        left, right = self._left, self._right
        match self._operator:
            case "\\union":
                return contains(left, value) or contains(right, value)
            case "\\intersect":
                return contains(left, value) and contains(right, value)
            case _:
                return contains(left, value) and not contains(right, value)

    def size(self) -> int | None:
        most = self.at_most()
        return most if most is None or most > LARGEST_ENUMERATION else len(self._members())

    def at_most(self) -> int | None:
        sizes = [_at_most(self._left), _at_most(self._right)]
        if self._operator != "\\union" or None in sizes:
            return None
        return sum(size for size in sizes if size is not None)

    def elements(self) -> Iterator[Value]:
        return iter(self._members())

    def _members(self) -> frozenset[Value]:
        if self._known is None:
            self._known = union(frozenset(self._left), frozenset(self._right))
        return self._known

    def __str__(self) -> str:
        return f"({shown(self._left)} {self._operator} {shown(self._right)})"


class Union(SymbolicSet):
    """UNION of several sets of which one at least is a rule: none is enumerated to ask for an
    element."""

    __slots__ = ("_known", "_parts")

    def __init__(self, parts: Sequence[AnySet]) -> None:
        self._parts = tuple(parts)
        self._known: frozenset[Value] | None = None

    def __contains__(self, value: object) -> bool:
        return any(contains(part, value) for part in self._parts)

    def size(self) -> int | None:
        most = self.at_most()
        return most if most is None or most > LARGEST_ENUMERATION else len(self._members())

    def at_most(self) -> int | None:
        sizes = list(map(_at_most, self._parts))
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def elements(self) -> Iterator[Value]:
        return iter(self._members())

    def _members(self) -> frozenset[Value]:
        if self._known is None:
            self._known = set_of(list(chain.from_iterable(self._parts)))
        return self._known

    def __str__(self) -> str:
        more = ", ..." if len(self._parts) > 3 else ""
        return f"UNION {{{', '.join(map(shown, self._parts[:3]))}{more}}}"


def _at_most(elements: AnySet) -> int | None:
    return elements.at_most() if isinstance(elements, SymbolicSet) else len(elements)


def combine(operator: str, left: AnySet, right: AnySet) -> AnySet:
    """`left operator right`; a union with a rule stays one, as TLC's SetCupValue does."""
    if operator == "\\union" and not (isinstance(left, frozenset) and isinstance(right, frozenset)):
        if left == frozenset() or right == frozenset():
            return right if left == frozenset() else left
        return Combined(operator, left, right)
    finite_left, finite_right = cardinality(left) is not None, cardinality(right) is not None
    if finite_left and finite_right:
        if operator == "\\union":
            return union(frozenset(left), frozenset(right))
        if operator == "\\intersect":
            return frozenset(x for x in left if contains(right, x))
        return frozenset(x for x in left if not contains(right, x))
    if finite_left and operator != "\\union":
        keep = operator == "\\intersect"
        return frozenset(x for x in left if contains(right, x) == keep)
    if finite_right and operator == "\\intersect":
        return frozenset(x for x in right if contains(left, x))
    return Combined(operator, left, right)


def union_of(sets: Iterable[object]) -> AnySet:
    """UNION of sets. As TLC, which must first tell whether two of them are one, it enumerates
    sets that are infinite unless there is only one."""
    parts = tuple(map(needed, sets))
    if len(parts) == 1:
        return parts[0]
    infinite = next((part for part in parts if _at_most(part) is None), None)
    if infinite is not None:
        return frozenset(infinite)
    plain = [part for part in parts if isinstance(part, frozenset)]
    if len(plain) < len(parts):
        return Union(parts)
    return set_of(list(chain.from_iterable(plain)))


def all_in(items: Iterable[Value], of: AnySet) -> bool:
    """Whether all are elements. One that is none decides, though of another it be undefined."""
    undefined: EvaluationError | None = None
    for item in items:
        try:
            if not contains(of, item):
                return False
        except EvaluationError as error:
            undefined = undefined or error
    if undefined is not None:
        raise undefined
    return True


def _product_size(factors: Sequence[AnySet]) -> int | None:
    sizes = [cardinality(factor) for factor in factors]
    if 0 in sizes:
        return 0
    finite = [size for size in sizes if size is not None]
    return prod(finite) if len(finite) == len(sizes) else None
