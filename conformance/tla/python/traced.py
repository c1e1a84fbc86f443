"""Code that notes what it reads of a state: a variable as a whole, or a function at one argument.

A machine that is `traced` passes these objects to its code where another passes values. The code
is the same but for `whole(x)`, which stands wherever a variable's value is needed as a whole.
What it finds has a `TracedVariable` where the variable stays as it is, a `ChangedVariable` where
`[f EXCEPT ![x] = v, ...]` changes it, and else a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from conformance.tla.python import runtime
from conformance.tla.semantics.equality import LazyFunction, Unforced, value_of
from conformance.tla.semantics.errors import EvaluationError
from conformance.tla.values import Fn, ModelValue, State, Value

Read = tuple[int, "Value | None"]
"""A variable's position, and the argument that its function is read at; None if as a whole."""

UNDEFINED = (EvaluationError, RecursionError, KeyError, AttributeError, TypeError, IndexError)
"""What the code raises where a formula has no value, or at a fault of ours."""

_T = TypeVar("_T")
_LOCATED = frozenset({int, str, ModelValue})
"""Classes of arguments by which a result is found without a doubt whether TRUE is 1."""


class Reads:
    """What a run reads of `state`, in order; of the variables in `coarse` always the whole."""

    def __init__(self, state: State, coarse: frozenset[int]) -> None:
        self.state = state
        self.coarse = coarse
        self.order: dict[Read, None] = {}

    def variables(self) -> tuple[TracedVariable, ...]:
        """What the code takes in place of the state."""
        return tuple([TracedVariable(self, index) for index in range(len(self.state))])

    def whole(self, index: int) -> Value:
        """The variable's value, from now on read."""
        self.order[index, None] = None
        return self.state[index]


class TracedVariable:
    """A variable's value in the state."""

    __slots__ = ("index", "reads")

    def __init__(self, reads: Reads, index: int) -> None:
        self.reads = reads
        self.index = index

    def whole(self) -> Value:
        """The value, from now on read."""
        return self.reads.whole(self.index)

    def located(self, x: Unforced) -> bool:
        """Whether the value is a function that can be read at x alone; that is then read.

        Not one that was read as a whole: its results say nothing more.
        """
        reads = self.reads
        f = reads.state[self.index]
        if x.__class__ not in _LOCATED or self.index in reads.coarse:
            return False
        if (self.index, None) in reads.order:
            return False
        assert isinstance(x, int | str | ModelValue)
        if result_at(f, x) is None or (isinstance(f, Fn) and has_boolean_argument(f)):
            return False
        reads.order[self.index, x] = None
        return True


class ChangedVariable:
    """[f EXCEPT ![argument] = result, ...], where f is a variable's value."""

    __slots__ = ("results", "variable")

    def __init__(self, variable: TracedVariable, results: Mapping[Value, Value]) -> None:
        self.variable = variable
        self.results = results
        """By argument, each in the domain of f."""

    def whole(self) -> Unforced:
        """The function as a value, for which the variable is read."""
        function: Unforced = self.variable.whole()
        for argument, result in self.results.items():
            function = runtime.replaced(function, argument, result)
        return function

    def located(self, x: Unforced) -> bool:
        """Whether the result at x is known, or can be read at x alone; that is then read."""
        changed = x.__class__ in _LOCATED and x in self.results
        return changed or self.variable.located(x)


def result_at(f: Value, x: Value) -> Value | None:
    """f[x]; None where f is no function or x not in its domain. TRUE and 1 count as equal."""
    if f.__class__ is Fn:
        assert isinstance(f, Fn)
        return f.mapping.get(x)
    if f.__class__ is tuple and x.__class__ is int:
        assert isinstance(f, tuple)
        assert isinstance(x, int)
        return f[x - 1] if 0 < x <= len(f) else None
    return None


def has_boolean_argument(f: Fn) -> bool:
    """Whether the function's domain holds booleans, which Python takes for 0 and 1."""
    return bool in map(type, f.mapping)


# What generated code calls: as the functions of the same names in `runtime`.


def whole(x: _T | TracedVariable | ChangedVariable) -> _T | Unforced:
    """The value."""
    return x.whole() if isinstance(x, TracedVariable | ChangedVariable) else x


def apply(f: Unforced | TracedVariable | ChangedVariable, x: Unforced) -> Unforced:
    """f[x]."""
    if not isinstance(f, TracedVariable | ChangedVariable):
        return runtime.apply(f, x)
    x = value_of(x)
    return _located(f, x) if f.located(x) else runtime.apply(f.whole(), x)


def _located(f: TracedVariable | ChangedVariable, x: Value) -> Value:
    """f[x], where f is located at x."""
    if isinstance(f, ChangedVariable):
        return f.results[x] if x in f.results else _located(f.variable, x)
    result = result_at(f.reads.state[f.index], x)
    assert result is not None
    return result


def field(r: Unforced | TracedVariable | ChangedVariable, name: str) -> Unforced:
    """r.name."""
    if not isinstance(r, TracedVariable | ChangedVariable):
        return runtime.field(r, name)
    return _located(r, name) if r.located(name) else runtime.field(whole(r), name)


def lookup(f: Unforced | TracedVariable | ChangedVariable, x: Value) -> object:
    """f[x], or UNSET outside the domain."""
    if not isinstance(f, TracedVariable | ChangedVariable):
        return runtime.lookup(f, x)
    return _located(f, x) if f.located(x) else runtime.lookup(whole(f), x)


def replaced(
    f: Unforced | TracedVariable | ChangedVariable, x: Value, result: Unforced
) -> Unforced | ChangedVariable:
    """[f EXCEPT ![x] = result] for x in the domain."""
    if not isinstance(f, TracedVariable | ChangedVariable):
        return runtime.replaced(f, x, result)
    if isinstance(result, LazyFunction) or not f.located(x):
        return runtime.replaced(whole(f), x, result)
    if isinstance(f, TracedVariable):
        return ChangedVariable(f, {x: value_of(result)})
    return ChangedVariable(f.variable, {**f.results, x: value_of(result)})
