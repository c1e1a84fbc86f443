"""The one reader of temporal formulas: `Init /\\ [][Next]_v /\\ fairness`, and properties.

A formula is a conjunction, perhaps behind names. As TLC does, its conjuncts are told apart by
what they speak of: the initial state, every state (`[]P`), every step (`[][A]_v`), or whole
behaviours (fairness, liveness).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

from conformance.tla.errors import UnsupportedError
from conformance.tla.front import syntax as s

LIVENESS = frozenset({"<>", "~>", "-+->", "WF", "SF", r"\EE", r"\AA"})
"""The operators that speak of whole behaviours; the temporal quantifiers hide variables."""
TEMPORAL = LIVENESS | {"[]"}
_ACTION = frozenset({"'", "UNCHANGED", "[A]_v", "<<A>>_v", r"\cdot"})

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
        found: dict[str, list[s.Expr]] = {"initial": [], "always": [], "steps": [], "rest": []}
        for part in self._conjuncts(node):
            kind, expression = self._sorted(part)
            found[kind].append(expression)
        return TemporalParts(**{kind: tuple(parts) for kind, parts in found.items()})

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
        meaning = self._resolve(node)
        if meaning is not None and not meaning.params and self.temporal(node):
            yield from self._conjuncts(meaning.body)
        else:
            yield node

    def _is_or_calls(self, part: s.Argument, operators: Set[str]) -> bool:
        if isinstance(part, s.Builtin) and part.operator in operators:
            return True
        if isinstance(part, s.Opaque) and part.what in operators:
            return True
        meaning = self._resolve(part)
        if meaning is None:
            return False
        key = meaning.uid, operators
        if key not in self._known:
            self._known[key] = False  # for a recursive operator
            self._known[key] = self.mentions(meaning.body, operators)
        return self._known[key]


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
