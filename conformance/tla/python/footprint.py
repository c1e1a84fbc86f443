"""Which places of a state an action may read or change, whatever the state.

A *place* is a variable as a whole, or a function at one argument. `[f EXCEPT ![x] = v]` changes f
at x alone, and `f[x]` reads it there, where x is known: a literal, a constant, an argument of the
action. Every other use of a variable is one of the whole. What an action changes counts as read.

Two actions of which neither changes what the other one reads can be taken in either order, with
the same result: each finds what it reads as it was, and what it changes the other one leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conformance.tla.front import syntax as s
from conformance.tla.python.labels import ActionInstance
from conformance.tla.semantics.analysis import Analysis
from conformance.tla.semantics.program import Program
from conformance.tla.values import ModelValue, Value

StatePlace = tuple[str, "Value | None"]
"""A variable, and the argument of its function; None for the whole."""

_KEYS = frozenset({int, str, ModelValue})
"""Classes of arguments that are known apart without a doubt whether TRUE is 1."""
_DEEPEST = 60
"""Operators within operators; what is deeper is taken as a whole."""
_MANY = 5_000
"""Operators with different arguments; what is called behind so many is taken as a whole."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """What an action may read, and what of it the action may change."""

    reads: frozenset[StatePlace]
    writes: frozenset[StatePlace]

    def joined(self, other: Footprint) -> Footprint:
        """What one of both may read or change."""
        return Footprint(self.reads | other.reads, self.writes | other.writes)


@dataclass(frozen=True, slots=True, eq=False)
class _Passed:
    """An expression or operator that a parameter stands for, and the names where it stands.

    There is one object for one expression and what its names stand for.
    """

    node: s.Argument
    scope: _BoundNames


@dataclass(frozen=True, slots=True)
class _BoundNames:
    """What bound names stand for; those that are not here may be anything."""

    names: Mapping[int, Value | _Passed]
    within: frozenset[int] = frozenset()
    """The operators that were entered."""

    def without(self, binders: Iterable[s.Binder]) -> _BoundNames:
        """The same, where these names may be anything."""
        bound = {name.uid for binder in binders for name in binder.names}
        if bound.isdisjoint(self.names):
            return self
        kept = {uid: meaning for uid, meaning in self.names.items() if uid not in bound}
        return _BoundNames(kept, self.within)


_Meanings = frozenset[tuple[int, type, "Value | _Passed"]]
"""By a bound name's number, what it stands for; its type tells TRUE from 1."""


def footprint(program: Program, analysis: Analysis, instance: ActionInstance) -> Footprint:
    """The places that an action instance may read or change in any state."""
    outer = _BoundNames({})
    operators = {uid: _Passed(arg, outer) for uid, arg in instance.operators.items()}
    collector = _Collector(program, analysis)
    collector.visit(instance.node, _BoundNames({**instance.values, **operators}))
    return Footprint(frozenset(collector.reads), frozenset(collector.writes))


@dataclass(slots=True)
class _Collector:
    """Walks through a formula and the operators that it calls, and notes places."""

    program: Program
    analysis: Analysis
    reads: set[StatePlace] = field(default_factory=set)
    writes: set[StatePlace] = field(default_factory=set)
    _passed_on: dict[tuple[int, _Meanings], _Passed] = field(default_factory=dict)
    _visited: set[object] = field(default_factory=set)
    """What was passed, and operators with what their names stand for: a second visit of one would
    note the same places, and operators that call others twice would take exponential time."""

    def visit(self, node: s.Argument, scope: _BoundNames) -> None:
        """Note what a formula or expression may read or change."""
        match node:
            case s.Variable(name=name):
                self.reads.add((name, None))
            case s.Apply(function=function, argument=argument):
                self._applied(function, self._key(argument, scope), scope)
                self.visit(argument, scope)
            case s.Field(record=record, name=key):
                self._applied(record, key, scope)
            case s.Builtin(operator="=", args=(s.Builtin(operator="'", args=(left,)), right)):
                self._equation(left, right, scope)
            case s.Builtin(operator="UNCHANGED"):
                pass  # nothing is changed; what is changed elsewhere counts as read there
            case s.Builtin(operator="'" | "ENABLED" | "[A]_v" | "<<A>>_v" | r"\cdot"):
                self._whole(node, scope)
            case s.OperatorArg():
                self._whole(node, scope)
            case s.Bound(uid=uid):
                passed = scope.names.get(uid)
                if isinstance(passed, _Passed) and self._is_new(passed):
                    self.visit(passed.node, passed.scope)
            case s.Call(target=s.Bound(uid=uid), args=args):
                self._passed_operator(uid, args, scope)
            case s.Binding(binders=binders) | s.RecursiveFunction(binders=binders):
                self._parts(node, scope.without(binders))
            case _:
                meaning = self.program.meaning(node)
                if isinstance(meaning, s.Definition):
                    self._entered(meaning, _operands(node), scope)
                else:
                    self._parts(node, scope)

    def _parts(self, node: s.Argument, scope: _BoundNames) -> None:
        for child in s.children(node):
            self.visit(child, scope)

    def _is_new(self, visited: object) -> bool:
        """Whether it is visited for the first time."""
        if visited in self._visited:
            return False
        self._visited.add(visited)
        return True

    def _meanings(self, node: s.Argument, scope: _BoundNames) -> _Meanings:
        """What the free names of an expression stand for."""
        names = scope.names
        return frozenset(
            (uid, type(names[uid]), names[uid])
            for uid in self.analysis.of(node).free
            if uid in names
        )

    def _applied(self, function: s.Argument, key: Value | None, scope: _BoundNames) -> None:
        function, scope = self._resolved(function, scope)
        if isinstance(function, s.Variable):
            self.reads.add((function.name, key))
        else:
            self.visit(function, scope)

    # --- operators ------------------------------------------------------------------------------

    def _entered(
        self, definition: s.Definition, args: tuple[s.Argument, ...], scope: _BoundNames
    ) -> None:
        """An operator's body, with its arguments in the place of its parameters."""
        inner = self._inner(definition, args, scope, scope)
        if inner is not None and self._is_new(
            (definition.uid, self._meanings(definition.body, inner))
        ):
            self.visit(definition.body, inner)

    def _inner(
        self,
        definition: s.Definition,
        args: tuple[s.Argument, ...],
        scope: _BoundNames,
        around: _BoundNames,
    ) -> _BoundNames | None:
        """The names in an operator's body; None of a recursion, which is noted as a whole.

        `scope` is where the arguments stand, `around` where the operator is defined.
        """
        is_deep = len(scope.within) > _DEEPEST or len(self._visited) > _MANY
        if definition.uid in scope.within or is_deep:
            primes = self.analysis.of(definition.body).primes
            self._whole(definition.body, around)
            for arg in args:
                self._whole(arg, scope, changed=primes)
            return None
        pairs = zip(definition.params, args, strict=True)
        names = {param.uid: self._passed(arg, scope) for param, arg in pairs}
        return _BoundNames({**around.names, **names}, scope.within | {definition.uid})

    def _passed(self, arg: s.Argument, scope: _BoundNames) -> Value | _Passed:
        value = None if isinstance(arg, s.OperatorArg) else self._value(arg, scope)
        if value is not None:
            return value
        node, at = self._resolved(arg, scope)
        return self._passed_on.setdefault((id(node), self._meanings(node, at)), _Passed(node, at))

    def _passed_operator(self, uid: int, args: tuple[s.Argument, ...], scope: _BoundNames) -> None:
        """A call of an operator that is a parameter."""
        passed = scope.names.get(uid)
        if not isinstance(passed, _Passed) or not isinstance(passed.node, s.OperatorArg):
            for variable in self.program.module.variables:
                self._write(variable.name, None)
            return
        target, meaning = passed.node.target, self.program.meaning(passed.node)
        if isinstance(target, s.Bound):
            outer = _BoundNames({**scope.names, **passed.scope.names}, scope.within)
            self._passed_operator(target.uid, args, outer)
        elif isinstance(meaning, s.Definition):
            inner = self._inner(meaning, args, scope, passed.scope)
            if inner is not None:
                self.visit(meaning.body, inner)
        else:
            for arg in args:
                self.visit(arg, scope)

    # --- what is changed ------------------------------------------------------------------------

    def _equation(self, left: s.Argument, right: s.Argument, scope: _BoundNames) -> None:
        """`left' = right`."""
        variable, at = self._resolved(left, scope)
        if isinstance(variable, s.Variable):
            self._assigned(variable.name, right, scope)
            return
        self._whole(variable, at, changed=True)
        self.visit(right, scope)

    def _assigned(self, name: str, value: s.Argument, scope: _BoundNames) -> None:
        """A variable's next value."""
        value, scope = self._resolved(value, scope)
        match value:
            case s.Variable(name=other) if other == name:
                return
            case s.If(condition=condition, then=then, otherwise=otherwise):
                self.visit(condition, scope)
                self._assigned(name, then, scope)
                self._assigned(name, otherwise, scope)
            case s.Let(body=body):
                self._assigned(name, body, scope)
            case s.Except(function=function, updates=updates):
                self._assigned(name, function, scope)
                for update in updates:
                    self._write(name, self._key(update.path[0], scope))
                    for part in (*update.path, update.value):  # `@` is read where it is changed
                        self.visit(part, scope)
            case s.Call(target=int(), args=args):
                meaning = self.program.meaning(value)
                if isinstance(meaning, s.Definition):
                    inner = self._inner(meaning, args, scope, scope)
                    if inner is None:
                        self._write(name, None)
                    else:
                        self._assigned(name, meaning.body, inner)
            case _:
                self._write(name, None)
                self.visit(value, scope)

    def _resolved(self, node: s.Argument, scope: _BoundNames) -> tuple[s.Argument, _BoundNames]:
        """The expression that a parameter stands for, and where it stands."""
        while isinstance(node, s.Bound):
            passed = scope.names.get(node.uid)
            if not isinstance(passed, _Passed):
                break
            node, scope = passed.node, passed.scope
        return node, scope

    # --- places ---------------------------------------------------------------------------------

    def _write(self, name: str, key: Value | None) -> None:
        self.reads.add((name, key))
        self.writes.add((name, key))

    def _whole(self, node: s.Argument, scope: _BoundNames, *, changed: bool = False) -> None:
        """Every variable of a formula, changed too if it has primes."""
        facts = self.analysis.of(node)
        changed = changed or facts.primes
        for name in facts.variables:
            self.reads.add((name, None))
            if changed:
                self.writes.add((name, None))
        for uid in facts.free:
            passed = scope.names.get(uid)
            if isinstance(passed, _Passed):
                self._whole(passed.node, passed.scope, changed=changed)

    # --- arguments ----------------------------------------------------------------------------

    def _key(self, node: s.Argument, scope: _BoundNames) -> Value | None:
        value = self._value(node, scope)
        return value if type(value) in _KEYS else None

    def _value(self, node: s.Argument, scope: _BoundNames) -> Value | None:
        """The value of a name or literal that is the same in all states; None of all else."""
        match node:
            case s.Number(value=value):
                return value
            case s.String(value=text):
                return text
            case s.Bound(uid=uid):
                passed = scope.names.get(uid)
                if isinstance(passed, _Passed):
                    return self._value(passed.node, passed.scope)
                return passed
            case s.Constant():
                meaning = self.program.meaning(node)
                return None if isinstance(meaning, s.Definition) else meaning
            case _:
                return None


def _operands(node: s.Argument) -> tuple[s.Argument, ...]:
    return node.args if isinstance(node, s.Call | s.Builtin) else ()
