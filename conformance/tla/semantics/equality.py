"""Equality and membership, of values and of what is kept as a rule: sets and functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeAlias

from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.semantics.kinds import match_classes, match_model_values, member_of, same
from conformance.tla.semantics.sets import AnySet, SymbolicSet, contains
from conformance.tla.values import Fn, ModelValue, Value, canonical_sorted, make_function


class _TooDeep(Exception):
    """A recursive function needs a result that lies deeper than Python's stack should go."""

    def __init__(self, function: LazyFunction, argument: Value) -> None:
        self.function, self.argument = function, argument


_DEEPEST = 50
"""Applications of recursive functions one within the other, on one stretch of the stack."""


class _Depth:
    """How many applications are being computed, and how many may be: one evaluation at a time."""

    __slots__ = ("most", "now")

    def __init__(self) -> None:
        self.now = 0
        self.most = _DEEPEST


_depth = _Depth()


class LazyFunction:
    """A function kept as a rule: of an infinite domain, or recursive. Results are remembered.

    A recursion may be as deep as it likes: what lies too deep is given up, computed from the
    outermost application on, and then met as a remembered result.
    """

    __slots__ = ("_known", "_rule", "_running", "domain")

    def __init__(self, domain: AnySet, rule: Callable[[LazyFunction, Value], Unforced]) -> None:
        self.domain = domain
        self._rule = rule
        self._known: dict[Value, Value | LazyFunction] = {}
        self._running: set[Value] = set()

    def __call__(self, argument: Value) -> Value | LazyFunction:
        if argument in self._known:
            return self._known[argument]
        if not contains(self.domain, argument):
            raise EvaluationError(
                f"a function is applied to {shown(argument)}, which is not in "
                f"its domain {shown(self.domain)}"
            )
        if argument in self._running:
            raise EvaluationError(
                f"the recursive function needs its own value at {shown(argument)}"
            )
        if _depth.now >= _depth.most:
            raise _TooDeep(self, argument)
        return self._compute(argument) if _depth.now else self._outermost(argument)

    def _compute(self, argument: Value) -> Value | LazyFunction:
        self._running.add(argument)
        _depth.now += 1
        try:
            result = self._rule(self, argument)
            if not isinstance(result, LazyFunction):  # a function of functions is a rule, too
                result = value_of(result)
            self._known[argument] = result
        finally:
            _depth.now -= 1
            self._running.discard(argument)
        return result

    def _outermost(self, argument: Value) -> Value | LazyFunction:
        """The result, and before it what turns out to lie too deep; the deepest comes first.

        A rule that makes its functions anew finds no result remembered, however often it is
        tried: when another function than last time lies too deep, the stack alone is the limit.
        """
        needed: list[tuple[LazyFunction, Value, LazyFunction | None, int]] = []
        needed.append((self, argument, None, _DEEPEST))
        while True:
            function, wanted, before, _depth.most = needed.pop()
            try:
                result = function._compute(wanted)
            except _TooDeep as deeper:
                if before is not None and before is not deeper.function:
                    needed.append((function, wanted, None, sys.maxsize))
                    continue
                needed.append((function, wanted, deeper.function, _DEEPEST))
                needed.append((deeper.function, deeper.argument, None, _DEEPEST))
                continue
            finally:
                _depth.most = _DEEPEST
            if not needed:
                return result

    def except_(self, argument: Value, result: Unforced) -> LazyFunction:
        """The function with another result for one argument of its domain."""
        return LazyFunction(self.domain, lambda _, x: result if eq(x, argument) else self(x))

    def value(self) -> tuple[Value, ...] | Fn:
        """The function as a value: applied to its whole domain."""
        return make_function(
            {argument: value_of(self(argument)) for argument in canonical_sorted(self.domain)}
        )


Unforced: TypeAlias = "Value | SymbolicSet | LazyFunction"
"""A value, or a set or function that is not computed yet."""


def value_of(thing: Unforced) -> Value:
    """The value: symbolic sets and lazy functions are enumerated."""
    if isinstance(thing, SymbolicSet):
        return frozenset(map(value_of, thing))
    return thing.value() if isinstance(thing, LazyFunction) else thing


def eq(a: Unforced, b: Unforced) -> bool:
    """TLA+'s equality; an error where TLC refuses to compare."""
    if a.__class__ is b.__class__ and not isinstance(a, SymbolicSet | LazyFunction):
        return same(a, b)
    if isinstance(a, ModelValue) or isinstance(b, ModelValue):
        match_model_values(a, b)
        return False
    if isinstance(a, SymbolicSet | LazyFunction) or isinstance(b, SymbolicSet | LazyFunction):
        if a is b:
            return True
        return eq(value_of(a), value_of(b))
    match_classes(a, b)
    return False  # of a function and a sequence, in normal form, one only has the domain 1..n


def member(x: Unforced, elements: Unforced) -> bool:
    """x \\in elements."""
    if elements.__class__ is frozenset:
        if x.__class__ is str and x in elements:
            return True
        if isinstance(x, SymbolicSet | LazyFunction):
            x = value_of(x)
        return member_of(x, elements)
    if isinstance(elements, SymbolicSet):
        return x in elements
    raise EvaluationError(f"a set is needed here, not {shown(elements)}")
