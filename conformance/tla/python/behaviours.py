"""Temporal formulas of a specification as formulas of behaviours over compiled claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from conformance.tla.errors import UnsupportedError
from conformance.tla.front import syntax as s
from conformance.tla.semantics.analysis import Analysis
from conformance.tla.semantics.behaviours import (
    FALSE,
    TRUE,
    Claim,
    StepPredicate,
    Temporal,
    all_of,
    always,
    any_of,
    eventually,
    negation,
)
from conformance.tla.semantics.temporal import TemporalReader
from conformance.tla.values import Value, canonical_sorted

Compile = Callable[[s.Expr, tuple[s.Bound, ...], tuple[Value, ...]], StepPredicate]
"""The predicate of a formula in which bound names have these values."""
Elements = Callable[[s.Expr, tuple[s.Bound, ...], tuple[Value, ...]], object]
"""The value of a constant set."""

_Values = Mapping[s.Bound, Value]


@dataclass(frozen=True, slots=True)
class _Place:
    """What surrounds a part of a formula: bound names with their values, and LETs."""

    values: _Values
    lets: tuple[s.Let, ...] = ()


class BehaviourReader:
    """Translates temporal formulas; quantifiers over constant sets are written out, as by TLC."""

    def __init__(
        self,
        reader: TemporalReader,
        analysis: Analysis,
        compile_: Compile,
        elements: Elements,
        numbers: Iterator[int],
    ) -> None:
        self._reader = reader
        self._analysis = analysis
        self._compile = compile_
        self._elements = elements
        self._numbers = numbers

    def formula(self, node: s.Expr) -> Temporal:
        """The formula; UnsupportedError for what TLC does not check either, or we cannot yet."""
        return self._formula(node, _Place({}))

    def _formula(self, node: s.Argument, at: _Place) -> Temporal:
        if isinstance(node, s.OperatorArg) or not self._reader.temporal(node):
            return self._claim(node, at)
        match node:
            case s.Builtin(operator=operator, args=args):
                return self._builtin(node, operator, args, at)
            case s.Binding(kind=r"\A" | r"\E", binders=binders, body=body):
                join = all_of if node.kind == r"\A" else any_of
                return join(self._formula(body, item) for item in self._bound(binders, at))
            case s.If(condition=condition, then=then, otherwise=otherwise):
                chosen = self._formula(condition, at)
                first = all_of([chosen, self._formula(then, at)])
                return any_of([first, all_of([negation(chosen), self._formula(otherwise, at)])])
            case s.Let(body=body):
                return self._formula(body, replace(at, lets=(*at.lets, node)))
            case _:
                meaning = self._reader.body_of(node)
                if meaning is None:
                    raise _unsupported(node)
                return self._formula(meaning, at)

    def _builtin(
        self, node: s.Expr, operator: str, args: tuple[s.Argument, ...], at: _Place
    ) -> Temporal:
        if operator in ("WF", "SF"):
            return self._fairness(node, operator, args, at)
        parts = [self._formula(arg, at) for arg in args]
        match operator, parts:
            case r"\land", _:
                return all_of(parts)
            case r"\lor", _:
                return any_of(parts)
            case r"\lnot", [only]:
                return negation(only)
            case "[]", [only]:
                return always(only)
            case "<>", [only]:
                return eventually(only)
            case "=>", [left, right]:
                return any_of([negation(left), right])
            case "~>", [left, right]:
                return always(any_of([negation(left), eventually(right)]))
            case ((r"\equiv" | "="), [left, right]):
                both = all_of([left, right])
                return any_of([both, all_of([negation(left), negation(right)])])
            case _:
                raise _unsupported(node)

    def _fairness(
        self, node: s.Expr, operator: str, args: tuple[s.Argument, ...], at: _Place
    ) -> Temporal:
        """WF: again and again disabled or taken. SF: for ever disabled, or again and again taken.

        A is enabled where a step of it changes the subscript.
        """
        step = s.Builtin(node.location, "<<A>>_v", args)
        enabled = s.Builtin(node.location, "ENABLED", (step,))
        if operator == "WF":
            waits = s.Builtin(node.location, r"\lnot", (enabled,))
            either = s.Builtin(node.location, r"\lor", (waits, step))
            return always(eventually(self._claim(either, at)))
        disabled = negation(self._claim(enabled, at))
        chosen = self._claim(step, at)
        return any_of([eventually(always(disabled)), always(eventually(chosen))])

    def _claim(self, node: s.Argument, at: _Place) -> Temporal:
        assert not isinstance(node, s.OperatorArg)
        whole, names, values = self._closed(node, at)
        holds = self._compile(whole, names, values)
        facts = self._analysis.of(whole)
        if facts.timeless:
            return TRUE if holds((), ()) else FALSE
        return Claim(next(self._numbers), holds, of_steps=facts.primes)

    def _closed(
        self, node: s.Expr, at: _Place
    ) -> tuple[s.Expr, tuple[s.Bound, ...], tuple[Value, ...]]:
        """The expression with the LETs that it needs, the bound names in it, and their values."""
        whole = node
        for let in reversed(at.lets):
            if self._analysis.of(whole).calls.intersection(let.definitions):
                whole = s.Let(let.location, let.definitions, whole)
        free = self._analysis.of(whole).free
        names = tuple(name for name in at.values if name.uid in free)
        return whole, names, tuple(at.values[name] for name in names)

    def _bound(self, binders: tuple[s.Binder, ...], at: _Place) -> Iterator[_Place]:
        """The place with values of the bound names, for each choice of elements."""
        choices: list[list[_Values]] = []
        for binder in binders:
            elements = self._members(binder, at)
            if binder.pattern:
                choices.append([_taken_apart(binder, element) for element in elements])
            else:
                choices += [[{name: element} for element in elements] for name in binder.names]
        for chosen in product(*choices):
            values = dict(at.values)
            for item in chosen:
                values.update(item)
            yield replace(at, values=values)

    def _members(self, binder: s.Binder, at: _Place) -> Sequence[Value]:
        if binder.domain is None:
            raise _unsupported(binder)
        whole, names, values = self._closed(binder.domain, at)
        if not self._analysis.of(whole).timeless:
            raise _unsupported(binder)
        elements = self._elements(whole, names, values)
        if not isinstance(elements, frozenset):
            raise _unsupported(binder)
        return canonical_sorted(elements)


def _taken_apart(binder: s.Binder, element: Value) -> _Values:
    if not isinstance(element, tuple) or len(element) != len(binder.names):
        raise _unsupported(binder)
    return dict(zip(binder.names, element, strict=True))


def _unsupported(node: s.Node) -> UnsupportedError:
    return UnsupportedError(
        f"{node.location}: a temporal formula of this form is not supported by the Python "
        "evaluator. Check it with TLC."
    )
