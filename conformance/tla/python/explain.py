"""Says why a formula is false: which conjunct, for which values, and what its parts are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from conformance.tla.front import syntax as s
from conformance.tla.python.machine import Machine
from conformance.tla.python.runtime import unpack
from conformance.tla.python.session import TlcSession
from conformance.tla.semantics.equality import Unforced, value_of
from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.semantics.sets import SymbolicSet
from conformance.tla.values import State, Value, canonical_sorted, format_value

_LONGEST_TEXT = 160
_DEEPEST = 25
_MOST_PARTS = 400
"""Levels and parts of an explanation: of a recursive operator there could be any number."""
_MOST_INSTANCES = 3
"""Instances of a false \\E that are shown."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """An expression of the specification, what it came out as, and the parts that made it so.

    `value` is as TLC prints it, or empty where the expression is undefined: then `error` says
    why. `bound` are the values of the names that a quantifier or an operator bound just above.
    """

    text: str
    location: s.Location
    value: str
    error: str = ""
    bound: tuple[tuple[str, str], ...] = ()
    parts: tuple[Explanation, ...] = ()

    def render(self, depth: int = 0) -> str:
        """The explanation as indented lines."""
        return "\n".join(self._lines(depth))

    def _lines(self, depth: int) -> Iterator[str]:
        indent = "  " * depth
        if self.bound:
            yield indent + "for " + ", ".join(f"{name} = {value}" for name, value in self.bound)
        outcome = f"is undefined: {self.error}" if self.error else f"is {self.value}"
        yield f"{indent}{self.location}: {self.text} {outcome}"
        for part in self.parts:
            yield from part._lines(depth + 1)


@dataclass(frozen=True, slots=True)
class _ValueScope:
    """Values of bound names, and the LET definitions around."""

    names: tuple[s.Bound, ...] = ()
    values: Mapping[int, Value] = field(default_factory=lambda: MappingProxyType({}))
    lets: tuple[int, ...] = ()

    def bind(self, names: Sequence[s.Bound], values: Sequence[Value]) -> _ValueScope:
        pairs = {name.uid: value for name, value in zip(names, values, strict=True)}
        kept = tuple(name for name in self.names if name.uid not in pairs)
        return replace(self, names=(*kept, *names), values={**self.values, **pairs})


_Names = tuple[tuple[str, str], ...]
_Outcome = tuple["Unforced | None", str]
"""A value and no error, or None and the reason of an error."""


class Explainer:
    """Explains formulas of one machine's program. Compiles what it looks at: not for hot paths."""

    def __init__(self, machine: Machine, session: TlcSession) -> None:
        assert machine.patient, "else a value could depend on the order of a set"
        self._machine, self._session = machine, session
        self._texts: dict[str, list[str]] = {}
        self._wrapped: dict[tuple[int, tuple[int, ...]], s.Expr] = {}
        self._states: tuple[State, State] = ((), ())
        self._depth = self._explained = 0

    def explain(
        self,
        node: s.Expr,
        state: State,
        next_state: State,
        names: Sequence[s.Bound] = (),
        values: Mapping[int, Value] | None = None,
    ) -> Explanation:
        """Why the formula has the value that it has on these states."""
        self._states, self._explained = (state, next_state), 0
        return self._explain(node, _ValueScope(tuple(names), values or {}))

    def obstacle(
        self,
        node: s.Expr,
        state: State,
        names: Sequence[s.Bound] = (),
        values: Mapping[int, Value] | None = None,
    ) -> Explanation | None:
        """What keeps an action from being enabled: a part that no next state makes true.

        None if there is no such part among those that say nothing about the next state.
        """
        self._states, self._explained = (state, state), 0
        return self._obstacle(node, _ValueScope(tuple(names), values or {}))

    # --- the tree -------------------------------------------------------------------------

    def _explain(self, node: s.Expr, scope: _ValueScope) -> Explanation:
        outcome = self._outcome(node, scope)
        with self._deeper() as shallow:
            parts = tuple(self._parts(node, scope, outcome)) if shallow else ()
        return replace(self._alone(node, outcome), parts=parts)

    def _alone(self, node: s.Expr, outcome: _Outcome) -> Explanation:
        """What an expression came out as, without its parts."""
        value = "" if outcome[1] else shown(outcome[0])
        return Explanation(self._text(node.location), node.location, value, outcome[1])

    @contextmanager
    def _deeper(self) -> Iterator[bool]:
        """A level further down; false where nobody would read on."""
        self._depth += 1
        self._explained += 1
        try:
            yield self._depth <= _DEEPEST and self._explained <= _MOST_PARTS
        finally:
            self._depth -= 1

    def _parts(self, node: s.Expr, scope: _ValueScope, outcome: _Outcome) -> Iterator[Explanation]:
        match node:
            case s.Builtin(operator=r"\land" | r"\lor" as word, args=args):
                yield from self._connective(args, scope, outcome, decisive=word == r"\lor")
            case s.Builtin(operator="[A]_v" | "<<A>>_v", args=(action, subscript)):
                yield self._explain(_expression(action), scope)
                yield self._stuttering(_expression(subscript), scope)
            case s.Builtin(operator="=>", args=(left, right)):
                yield self._explain(_expression(left), scope)
                if self._outcome(_expression(left), scope)[0] is True:
                    yield self._explain(_expression(right), scope)
            case s.Builtin(operator=r"\lnot", args=(part,)):
                yield self._explain(_expression(part), scope)
            case s.Binding(kind=r"\A" | r"\E"):
                yield from self._quantifier(node, scope, outcome)
            case s.If():
                yield self._explain(node.condition, scope)
                chosen = self._outcome(node.condition, scope)[0]
                if isinstance(chosen, bool):
                    yield self._explain(node.then if chosen else node.otherwise, scope)
            case s.Let(definitions=definitions, body=body):
                inner = replace(scope, lets=(*scope.lets, *definitions))
                yield self._explain(body, inner)
            case s.Call() | s.Constant():
                yield from self._call(node, scope)
            case _:
                yield from self._operands(node, scope)

    def _stuttering(self, subscript: s.Expr, scope: _ValueScope) -> Explanation:
        """Whether the subscript of an action stays as it is: `[A]_v` says so without a word."""
        unchanged = s.Builtin(subscript.location, "UNCHANGED", (subscript,))
        text = f"UNCHANGED {self._text(subscript.location)}"
        return replace(self._explain(unchanged, scope), text=text, parts=())

    def _connective(
        self,
        args: Sequence[s.Argument],
        scope: _ValueScope,
        outcome: _Outcome,
        *,
        decisive: bool,
    ) -> Iterator[Explanation]:
        """The operand that decides (the first false conjunct, ...), or else all of them."""
        for arg in args:
            value, error = self._outcome(_expression(arg), scope)
            if error or value is decisive:
                yield self._explain(_expression(arg), scope)
                return
        if outcome[0] is False:
            for arg in args:
                yield self._explain(_expression(arg), scope)

    def _quantifier(
        self, node: s.Binding, scope: _ValueScope, outcome: _Outcome
    ) -> Iterator[Explanation]:
        every = node.kind == r"\A"
        instances = self._instances(node.binders, scope)
        if instances is None or (every and outcome[0] is True):
            return
        for count, inner in enumerate(instances):
            value, error = self._outcome(node.body, inner)
            if value is (not every) or (error and outcome[1]):
                yield self._instance(node, inner)
                return
            if not every and outcome[0] is False and count < _MOST_INSTANCES:
                yield self._instance(node, inner)

    def _instance(self, node: s.Binding, scope: _ValueScope) -> Explanation:
        return replace(self._explain(node.body, scope), bound=_bound(node, scope))

    def _instances(
        self, binders: Sequence[s.Binder], scope: _ValueScope
    ) -> Iterator[_ValueScope] | None:
        domains: list[tuple[tuple[s.Bound, ...], list[Value]]] = []
        for binder in binders:
            if binder.domain is None:
                return None
            value, error = self._outcome(binder.domain, scope)
            if error or not isinstance(value, frozenset | SymbolicSet):
                return None
            items = list(canonical_sorted(value))
            parts = [binder.names] if binder.pattern else [(name,) for name in binder.names]
            domains += [(names, items) for names in parts]
        return _bindings(domains, scope)

    def _call(self, node: s.Call | s.Constant, scope: _ValueScope) -> Iterator[Explanation]:
        """Into the operator's body, where its arguments are plain values."""
        entered = self._entered(node, scope)
        if entered is not None:
            body, inner, bound = entered
            yield replace(self._explain(body, inner), bound=bound)

    def _entered(
        self, node: s.Call | s.Constant, scope: _ValueScope
    ) -> tuple[s.Expr, _ValueScope, _Names] | None:
        """The body of what is called, its scope, and what its parameters stand for."""
        if isinstance(node, s.Call) and node.target in scope.lets:
            definition = self._machine.program.definition(node.target)
            inner = scope
        else:
            meaning = self._machine.program.meaning(node)
            if not isinstance(meaning, s.Definition):
                return None
            definition, inner = meaning, _ValueScope()
        args = node.args if isinstance(node, s.Call) else ()
        primed = self._machine.analysis.primed_names(definition.uid)
        values: list[Value] = []
        for param, arg in zip(definition.params, args, strict=True):
            if isinstance(arg, s.OperatorArg) or param.uid in primed:
                return None
            value = self._outcome(arg, scope)[0]
            if value is None or isinstance(value, SymbolicSet):
                return None
            values.append(value_of(value))
        bound = tuple(
            (param.name, shown(value))
            for param, value in zip(definition.params, values, strict=True)
        )
        return definition.body, inner.bind(definition.params, values), bound

    def _operands(self, node: s.Expr, scope: _ValueScope) -> Iterator[Explanation]:
        """The values of the operands, where the node is no quantifier or other binder."""
        if isinstance(node, s.Binding | s.Except | s.RecursiveFunction):
            return
        for child in s.children(node):
            if isinstance(child, s.Number | s.String | s.OperatorArg):
                continue
            if isinstance(child, s.Builtin) and child.operator in ("{}", "<<>>") and not child.args:
                continue
            # Of what is no formula, the value tells enough, unless it is undefined.
            outcome = self._outcome(child, scope)
            yield self._explain(child, scope) if outcome[1] else self._alone(child, outcome)

    # --- what is false whatever the next state is -----------------------------------------

    def _obstacle(self, node: s.Expr, scope: _ValueScope) -> Explanation | None:
        if not self._machine.analysis.of(node).primes:
            return None if self._outcome(node, scope)[0] is True else self._explain(node, scope)
        match node:
            case s.Builtin(operator=r"\land", args=args):
                return next(
                    filter(None, (self._obstacle(_expression(a), scope) for a in args)), None
                )
            case s.Builtin(operator=r"\lor", args=args):
                return self._blocked(node, (self._obstacle(_expression(a), scope) for a in args))
            case s.Binding(kind=r"\E"):
                instances = self._instances(node.binders, scope)
                if instances is None:
                    return None
                return self._blocked(node, (self._bound_obstacle(node, i) for i in instances))
            case s.If():
                chosen = self._outcome(node.condition, scope)[0]
                if not isinstance(chosen, bool):
                    return None
                return self._obstacle(node.then if chosen else node.otherwise, scope)
            case s.Let(definitions=definitions, body=body):
                return self._obstacle(body, replace(scope, lets=(*scope.lets, *definitions)))
            case s.Call() | s.Constant():
                return self._obstacle_of_call(node, scope)
            case _:
                return None

    def _bound_obstacle(self, node: s.Binding, scope: _ValueScope) -> Explanation | None:
        explanation = self._obstacle(node.body, scope)
        return explanation and replace(explanation, bound=_bound(node, scope))

    def _obstacle_of_call(
        self, node: s.Call | s.Constant, scope: _ValueScope
    ) -> Explanation | None:
        entered = self._entered(node, scope)
        if entered is None:
            return None
        body, inner, bound = entered
        with self._deeper() as shallow:
            explanation = self._obstacle(body, inner) if shallow else None
        return explanation and self._blocked(node, [replace(explanation, bound=bound)])

    def _blocked(self, node: s.Expr, ways: Iterable[Explanation | None]) -> Explanation | None:
        """The expression, false because each way to make it true is barred; None if one is not."""
        barred: list[Explanation] = []
        for way in ways:
            if way is None:
                return None
            barred.append(way)
        text = self._text(node.location)
        return Explanation(text, node.location, "FALSE", parts=tuple(barred[:_MOST_INSTANCES]))

    # --- values ---------------------------------------------------------------------------

    def _outcome(self, node: s.Expr, scope: _ValueScope) -> _Outcome:
        whole = node
        if scope.lets:
            key = (id(node), scope.lets)
            whole = self._wrapped.setdefault(key, s.Let(node.location, scope.lets, node))
        try:
            compiled = self._machine.expression(whole, scope.names)
            values = (scope.values[name.uid] for name in scope.names)
            with self._session.muted():
                return compiled(*self._states, *values), ""
        except EvaluationError as error:
            return None, error.reason

    def _text(self, location: s.Location) -> str:
        """The source text at a location, on one line."""
        lines = self._lines(location.module)[location.line - 1 : location.end_line]
        if not lines:
            return location.module
        lines[-1] = lines[-1][: location.end_column]
        lines[0] = lines[0][location.column - 1 :]
        text = " ".join(" ".join(lines).split())
        return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "..."

    def _lines(self, module: str) -> list[str]:
        if module not in self._texts:
            path = self._machine.program.module.sources.get(module)
            readable = path is not None and path.is_file()
            text = path.read_text(encoding="utf-8") if path is not None and readable else ""
            self._texts[module] = text.splitlines()
        return self._texts[module]


def _bindings(
    domains: Sequence[tuple[tuple[s.Bound, ...], list[Value]]], scope: _ValueScope
) -> Iterator[_ValueScope]:
    if not domains:
        yield scope
        return
    (names, items), *rest = domains
    for item in items:
        values = (item,) if len(names) == 1 else unpack(item, len(names))
        yield from _bindings(rest, scope.bind(names, values))


def _bound(node: s.Binding, scope: _ValueScope) -> _Names:
    names = [name for binder in node.binders for name in binder.names]
    return tuple((name.name, format_value(scope.values[name.uid])) for name in names)


def _expression(node: s.Argument) -> s.Expr:
    assert not isinstance(node, s.OperatorArg)
    return node
