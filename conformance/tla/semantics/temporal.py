"""The one reader of temporal formulas: `Init /\\ [][Next]_v /\\ fairness`, and properties.

A formula is a conjunction, perhaps behind names. As TLC does, its conjuncts are told apart by
what they speak of: the initial state, every state (`[]P`), every step (`[][A]_v`), or whole
behaviours (fairness, liveness).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, fields, replace
from typing import TypeVar, cast

from conformance.tla.errors import UnsupportedError
from conformance.tla.front import syntax as s

LIVENESS = frozenset({"<>", "~>", "-+->", "WF", "SF", r"\EE", r"\AA"})
"""The operators that speak of whole behaviours; the temporal quantifiers hide variables."""
TEMPORAL = LIVENESS | {"[]"}
_ACTION = frozenset({"'", "UNCHANGED", "[A]_v", "<<A>>_v", r"\cdot"})

_OUTERMOST = frozenset({"[]", "[A]_v", "<>", "~>", "WF", "SF", "<<A>>_v"})
"""What stays around a LET that is moved into the conjuncts of its body."""

Resolve = Callable[[s.Argument], "s.Definition | None"]
"""The definition that a node stands for, if it is a name or a call of one."""


@dataclass(frozen=True, slots=True)
class TemporalParts:
    """The conjuncts of a temporal formula, in the order of the text."""

    initial: tuple[s.Expr, ...] = ()
    """State predicates: of the first state."""
    always: tuple[s.Expr, ...] = ()
    """P of `[]P`."""
    steps: tuple[s.Expr, ...] = ()
    """`[A]_v` of `[][A]_v`."""
    rest: tuple[s.Expr, ...] = ()
    """Fairness, liveness and whatever else takes a whole behaviour to judge."""


class TemporalReader:
    """Takes temporal formulas apart; what it finds of definitions it remembers."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._known: dict[tuple[int, Set[str]], bool] = {}

    def parts(self, node: s.Expr) -> TemporalParts:
        """The conjuncts, looking through names of temporal formulas (`Fair == Spec /\\ WF...`)."""
        parts: dict[str, list[s.Expr]] = {"initial": [], "always": [], "steps": [], "rest": []}
        for part in self._conjuncts(node):
            kind, expression = self._sorted(part)
            parts[kind].append(expression)
        return TemporalParts(**{kind: tuple(parts) for kind, parts in parts.items()})

    def steps_of(self, definition: s.Definition, back_end: str) -> tuple[s.Expr, ...]:
        """What a property made of `[]P` and `[][A]_v` says of every step.

        A formula that is not temporal is an action: it is all that it says. UnsupportedError, which
        names the `back_end`, for one that speaks of initial states or whole behaviours too.
        """
        if not self.temporal(definition.body):
            return (definition.body,)
        parts = self.parts(definition.body)
        if parts.rest or parts.initial:
            odd = (*parts.rest, *parts.initial)[0]
            raise UnsupportedError(
                f"{odd.location}: {definition.name} is a temporal formula that is not "
                f"of the form [][A]_v, which {back_end} does not support."
            )
        return (*parts.always, *parts.steps)

    def temporal(self, node: s.Argument) -> bool:
        """Whether a formula is temporal, itself or through the operators that it calls."""
        return self.mentions(node, TEMPORAL)

    def mentions(self, node: s.Argument, operators: Set[str]) -> bool:
        """Whether one of the operators occurs, in the expression or in what it calls.

        What stands within ENABLED does not count: it is a formula of one state.
        """
        return any(self._is_or_calls(part, operators) for part in _outside_enabled(node))

    def _sorted(self, part: s.Expr) -> tuple[str, s.Expr]:
        match part:
            case s.Builtin(operator="[]", args=(inner,)) if not self.temporal(inner):
                assert not isinstance(inner, s.OperatorArg)
                return ("steps" if self.mentions(inner, _ACTION) else "always"), inner
            case _ if self.temporal(part):
                return "rest", part
            case _:
                return "initial", part

    def _conjuncts(self, node: s.Expr) -> Iterator[s.Expr]:
        if isinstance(node, s.Builtin) and node.operator == r"\land":
            for arg in node.args:
                assert not isinstance(arg, s.OperatorArg)
                yield from self._conjuncts(arg)
            return
        if isinstance(node, s.Let):
            for part in self._conjuncts(node.body):
                yield _within(node, part)
            return
        body = self.body_of(node)
        if body is None:
            yield node
        else:
            yield from self._conjuncts(body)

    def body_of(self, node: s.Expr) -> s.Expr | None:
        """What the name or the call of a temporal formula stands for; None of anything else.

        A LET in the body would mention parameters from outside of the tree: such a call stays.
        """
        meaning = self._resolve(node)
        if meaning is None or not self._is_temporal_call(node):
            return None
        args = node.args if isinstance(node, s.Call) else ()
        if not meaning.params:
            return meaning.body
        if any(isinstance(part, s.Let) for part in s.walk(meaning.body)):
            return None
        pairs = zip(meaning.params, args, strict=True)
        made = substituted(meaning.body, {param.uid: arg for param, arg in pairs})
        return made if isinstance(made, s.Expr) else None

    def _is_temporal_call(self, node: s.Expr) -> bool:
        parts = (node, *node.args) if isinstance(node, s.Call) else (node,)
        return any(map(self.temporal, parts))

    def _is_or_calls(self, part: s.Argument, operators: Set[str]) -> bool:
        if isinstance(part, s.Builtin) and part.operator in operators:
            return True
        if isinstance(part, s.Opaque) and part.what.partition(" ")[0] in operators:
            return True
        meaning = self._resolve(part)
        if meaning is None:
            return False
        key = meaning.uid, operators
        if key not in self._known:
            self._known[key] = False  # for a recursive operator
            self._known[key] = self.mentions(meaning.body, operators)
        return self._known[key]


def _within(let: s.Let, node: s.Argument) -> s.Expr:
    """A conjunct of a LET's body as one of its own: the temporal operators outside, LET inside."""
    assert not isinstance(node, s.OperatorArg)
    if isinstance(node, s.Builtin) and node.operator in _OUTERMOST:
        return replace(node, args=tuple(_within(let, arg) for arg in node.args))
    return s.Let(let.location, let.definitions, node)


_T = TypeVar("_T")


def substituted(node: _T, values: Mapping[int, s.Argument]) -> _T:
    """A part of the tree in which arguments stand for the parameters, known by their uids."""
    if isinstance(node, s.Bound):
        return cast("_T", values.get(node.uid, node))
    if isinstance(node, tuple):
        return cast("_T", tuple(substituted(item, values) for item in node))
    if isinstance(node, s.OperatorArg | s.Call) and isinstance(node.target, s.Bound):
        operator = values.get(node.target.uid)
        if isinstance(operator, s.OperatorArg):
            return cast("_T", _with_operator(node, operator, values))
    return _with_parts(node, values) if isinstance(node, s.Node) else node


def _with_operator(
    node: s.OperatorArg | s.Call, operator: s.OperatorArg, values: Mapping[int, s.Argument]
) -> s.Argument:
    """An operator parameter, passed on or applied, for which an operator was given."""
    if isinstance(node, s.OperatorArg):
        return replace(operator, location=node.location)
    args = substituted(node.args, values)
    if isinstance(operator.target, str):
        return s.Builtin(node.location, operator.target, args)
    return s.Call(node.location, operator.target, node.name, args)


def _with_parts(node: _T, values: Mapping[int, s.Argument]) -> _T:
    assert isinstance(node, s.Node)
    parts = {field.name: getattr(node, field.name) for field in fields(node)}
    made = {name: substituted(part, values) for name, part in parts.items() if name != "target"}
    return cast("_T", replace(node, **made))


def _outside_enabled(node: s.Argument) -> Iterator[s.Argument]:
    yield node
    if isinstance(node, s.Builtin) and node.operator == "ENABLED":
        return
    for child in s.children(node):
        yield from _outside_enabled(child)


def reader_of(module: s.Module) -> TemporalReader:
    """A reader of a module as it is written, without a configuration's overrides."""

    def resolve(node: s.Argument) -> s.Definition | None:
        if isinstance(node, s.Call) and isinstance(node.target, int):
            return module.definitions.get(node.target)
        return None

    return TemporalReader(resolve)
