"""Compiles TLA+ expressions to terms: one case per kind of syntax node.

The pipeline from here on, of which `kconform show NAME --stages` prints every step:

    syntax tree   front/syntax   names and instances resolved
    terms         terms          typed, structure kept; guards say where they have a value
    formula       formulas       three-valued: true, false, or no value
    expression    sql            a graph in which equal parts are one node, none of which throws
    projections   writer         what is used several times is a column of an earlier stage

`api` starts it from a formula's name, `frames` applies it to rows. This module only sends each
kind of node to the handler that knows it; handlers know it as a `TermCompiler` (`protocol`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from conformance.tla.errors import UnsupportedError
from conformance.tla.front import syntax as s
from conformance.tla.front.syntax import Location
from conformance.tla.semantics.analysis import Analysis
from conformance.tla.semantics.program import Program
from conformance.tla.spark import binders, functions, sql
from conformance.tla.spark.branches import as_formula, choose_branch
from conformance.tla.spark.builtins import OPERATORS, Application
from conformance.tla.spark.choice import simplified
from conformance.tla.spark.columns import NotFinite, function, stored
from conformance.tla.spark.environment import Environment, Operand, Operator, rigid
from conformance.tla.spark.equality import equals
from conformance.tla.spark.formulas import (
    Atom,
    Formula,
    conjoin,
    disjoin,
    negate,
    never,
    undefined,
)
from conformance.tla.spark.physical import Type, TypeClash
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.terms import (
    Boolean,
    KnownTerm,
    RecordsTerm,
    Term,
    UndefinedTerm,
)
from conformance.tla.values import Value
from conformance.tla.values.types import is_mixed

BACK_END = "the Spark back end"
MAX_DEPTH = 150
Row = Callable[[str], str]
"""The SQL of a variable."""


class Compiler:
    """Compiles the expressions of one formula; both rows may be the same where no prime occurs."""

    def __init__(
        self, program: Program, types: Mapping[str, Type], current: Row, following: Row | None
    ) -> None:
        self.program = program
        self._types = types
        self._rows = {False: current, True: following}
        self.scope = FormulaScope()
        self.variables: dict[Sql, Type] = {}
        """SQL and type of each variable that the formula mentions."""

    @cached_property
    def analysis(self) -> Analysis:
        """Facts of the program's expressions."""
        return self.program.analysis()

    # Entry points

    def formula(self, node: s.Argument, names: Environment) -> Formula:
        """A boolean expression."""
        term = self.term(node, names)
        try:
            return as_formula(term)
        except TypeClash:
            if isinstance(node, s.Node):
                return undefined(self.cause(node.location, "a boolean is needed"))
            raise

    def cause(self, location: Location, what: str) -> str:
        """What is wrong, and where."""
        return f"{location}: {what}"

    def term(self, node: s.Argument, names: Environment) -> Term:
        """Any expression; UnsupportedError names what the back end cannot do, and where."""
        try:
            return simplified(self.scope, self._term(node, names))
        except (TypeClash, NotFinite) as error:
            what = node.operator if isinstance(node, s.Builtin) else type(node).__name__
            place = node.location if isinstance(node, s.Node) else self.program.module.name
            problem = (
                f"needs one type for {error}"
                if isinstance(error, TypeClash)
                else f"needs the elements of {error}, which are not finite or not known"
            )
            raise UnsupportedError(f"{place}: {what} {problem} in {BACK_END}.") from error

    def lazy(self, node: s.Argument, names: Environment, *, share: bool) -> Operand:
        """An operand; `share` it where it may be used several times."""

        def compile_operand(primed: bool) -> Term:
            term = self.term(node, names.in_next_state() if primed else names)
            return functions.settled(self.scope, term) if share else term

        return Operand(compile_operand)

    # Cases

    def _term(self, node: s.Argument, names: Environment) -> Term:
        match node:
            case s.Number(value=value):
                return KnownTerm(value)
            case s.String(value=text):
                return KnownTerm(text)
            case s.Variable(name=name):
                return self._variable(node, name, names.primed)
            case s.Bound(uid=uid):
                return self._bound(node, uid, names)
            case s.Constant() | s.Call():
                return self._call(node, names)
            case s.Builtin():
                return self._builtin(node, names)
            case s.Binding():
                return binders.binding(self, node, names)
            case s.If():
                return self._if(node, names)
            case s.Case():
                return self._case(node, names)
            case s.Let():
                return self.term(node.body, self._let(node, names))
            case s.Apply():
                applied, argument = self.term(node.function, names), self.term(node.argument, names)
                cause = self.cause(node.location, "a function is applied outside its domain")
                return functions.apply(self.scope, applied, argument, cause)
            case s.Field():
                cause = self.cause(node.location, f"the record has no field {node.name}")
                return functions.field(self.scope, self.term(node.record, names), node.name, cause)
            case s.Record(fields=fields):
                return function([(name, self.term(value, names)) for name, value in fields])
            case s.RecordSet(fields=fields):
                sets = tuple((name, self.term(of, names)) for name, of in fields)
                return RecordsTerm(sets, tuple(g for _, of in sets for g in of.guards))
            case s.Except():
                return self._except(node, names)
            case s.RecursiveFunction():
                return binders.recursive_function(self, node, names)
            case s.Opaque(what=what):
                raise self.unsupported(node, what)
            case s.OperatorArg():
                raise self.unsupported(node, "an operator as a value")

    def unsupported(self, node: s.Node, what: str) -> UnsupportedError:
        """The error that names operator, place and back end."""
        return UnsupportedError(f"{node.location}: {what} is not supported by {BACK_END}.")

    def _variable(self, node: s.Node, name: str, primed: bool) -> Term:
        row = self._rows[primed]
        if row is None:
            raise self.unsupported(node, f"the primed variable {name}' in a state formula")
        kind = self._types.get(name)
        if kind is None:
            raise UnsupportedError(
                f"{node.location}: the schema of the states has no variable {name}, "
                f"which {BACK_END} needs."
            )
        if is_mixed(kind):
            what = f"the variable {name}, which has values of several kinds at one place,"
            raise self.unsupported(node, what)
        text = sql.column(row(name))
        self.variables[text] = kind
        return stored(kind, text)

    def _bound(self, node: s.Node, uid: int, names: Environment) -> Term:
        meaning = names.bound.get(uid)
        if not isinstance(meaning, Operand):
            raise self.unsupported(node, "an operator as a value")
        return meaning.term(names.primed)

    # Calls

    def _call(self, node: s.Constant | s.Call, names: Environment) -> Term:
        if isinstance(node, s.Call) and isinstance(node.target, s.Bound):
            meaning = names.bound.get(node.target.uid)
            if not isinstance(meaning, Operator):
                raise self.unsupported(node, f"the operator parameter {node.name}")
            return self.apply_operator(node, meaning, self._operands(node.args, names), names)
        local = isinstance(node, s.Call) and isinstance(node.target, int)
        if local and isinstance(node, s.Call) and not node.args:
            known = names.bound.get(node.target) if isinstance(node.target, int) else None
            if isinstance(known, Operand):
                return known.term(names.primed)
        meaning_of = self.program.meaning(node)
        args = node.args if isinstance(node, s.Call) else ()
        return self._meaning(node, meaning_of, self._operands(args, names), names)

    def _operands(self, args: Sequence[s.Argument], names: Environment) -> list[Operand | Operator]:
        return [
            self._operator(arg, names)
            if isinstance(arg, s.OperatorArg)
            else self.lazy(arg, names, share=True)
            for arg in args
        ]

    def _operator(self, arg: s.OperatorArg, names: Environment) -> Operator:
        if isinstance(arg.target, s.Bound):
            meaning = names.bound.get(arg.target.uid)
            if isinstance(meaning, Operator):
                return meaning
        return Operator(arg, names)

    def _meaning(
        self,
        node: s.Node,
        meaning: s.Definition | Value | None,
        operands: Sequence[Operand | Operator],
        names: Environment,
    ) -> Term:
        if not isinstance(meaning, s.Definition):
            if meaning is None:
                raise self.unsupported(node, "a name without a meaning")
            return KnownTerm(meaning)
        bound = {p.uid: operand for p, operand in zip(meaning.params, operands, strict=True)}
        inner = names.inside(meaning, bound)
        if names.depth > MAX_DEPTH:
            what = f"the recursion of {inner.recursive or meaning.name}"
            raise self.unsupported(node, f"{what}, which does not end at compile time,")
        return self.term(meaning.body, inner)

    def apply_operator(
        self,
        node: s.Node,
        operator: Operator,
        operands: Sequence[Operand | Operator],
        names: Environment,
    ) -> Term:
        """An operator that came as an argument."""
        target = operator.target.target
        if isinstance(target, str) and self.program.meaning(operator.target) is None:
            return self._apply_builtin(node, target, operands, names)
        seen = operator.names.in_next_state() if names.primed else operator.names
        depth = max(seen.depth, names.depth)
        inner = replace(names, bound=seen.bound, primed=seen.primed, depth=depth)
        return self._meaning(node, self.program.meaning(operator.target), operands, inner)

    def _let(self, node: s.Let, names: Environment) -> Environment:
        """The names of the body: definitions without parameters are evaluated once."""
        inner = names
        for uid in node.definitions:
            definition = self.program.definition(uid)
            if not definition.params and not definition.recursive:
                inner = inner.having({uid: self.lazy(definition.body, inner, share=True)})
        return inner

    # Builtins

    def _builtin(self, node: s.Builtin, names: Environment) -> Term:
        replaced = self.program.meaning(node)
        if replaced is not None:
            return self._meaning(node, replaced, self._operands(node.args, names), names)
        special = _SPECIAL.get(node.operator)
        if special is not None:
            return special(self, node, names)
        operands = [
            self._operator(arg, names)
            if isinstance(arg, s.OperatorArg)
            else self.lazy(arg, names, share=False)
            for arg in node.args
        ]
        return self._apply_builtin(node, node.operator, operands, names)

    def _apply_builtin(
        self,
        node: s.Node,
        operator: str,
        operands: Sequence[Operand | Operator],
        names: Environment,
    ) -> Term:
        implementation = OPERATORS.get(operator)
        if implementation is None:
            raise self.unsupported(node, f"the operator {operator}")

        def call(target: Operator, args: Sequence[Term]) -> Term:
            return self.apply_operator(node, target, [rigid(arg) for arg in args], names)

        context = Application(self.scope, names.primed, operator, str(node.location), call)
        return implementation(context, *operands)

    def _prime(self, node: s.Builtin, names: Environment) -> Term:
        if names.primed:
            raise self.unsupported(node, "a prime within a prime")
        return self.term(node.args[0], names.in_next_state())

    def _unchanged(self, node: s.Builtin, names: Environment) -> Term:
        return Boolean(self._is_unchanged(node.args[0], names))

    def _is_unchanged(self, node: s.Argument, names: Environment) -> Formula:
        """e' = e, tuples taken apart."""
        if isinstance(node, s.Builtin) and node.operator == "<<>>":
            return conjoin([self._is_unchanged(arg, names) for arg in node.args])
        if isinstance(node, s.Call) and isinstance(node.target, int) and not node.args:
            meaning = self.program.meaning(node)
            if isinstance(meaning, s.Definition) and node.target not in names.bound:
                return self._is_unchanged(meaning.body, names)
        after = self.term(node, names.in_next_state())
        return equals(self.scope, after, self.term(node, names))

    def _square(self, node: s.Builtin, names: Environment) -> Term:
        """[A]_v: A, or v is unchanged."""
        action = self.formula(node.args[0], names)
        return Boolean(disjoin([action, self._is_unchanged(node.args[1], names)]))

    def _angle(self, node: s.Builtin, names: Environment) -> Term:
        """<<A>>_v: A, and v is changed."""
        action = self.formula(node.args[0], names)
        return Boolean(conjoin([action, negate(self._is_unchanged(node.args[1], names))]))

    def _junction(self, node: s.Builtin, names: Environment) -> Term:
        """Operands after the one that decides are not compiled, so that recursion can end."""
        neutral = node.operator == "\\land"
        parts: list[Formula] = []
        for arg in node.args:
            parts.append(self.formula(arg, names))
            if parts[-1] == negate(conjoin([])) if neutral else parts[-1] == conjoin([]):
                break
        return Boolean(conjoin(parts) if neutral else disjoin(parts))

    def _implies(self, node: s.Builtin, names: Environment) -> Term:
        condition = self.formula(node.args[0], names)
        if condition == disjoin([]):
            return Boolean(conjoin([]))
        return Boolean(disjoin([negate(condition), self.formula(node.args[1], names)]))

    # IF, CASE

    def _if(self, node: s.If, names: Environment) -> Term:
        condition = self.formula(node.condition, names)
        if condition in (conjoin([]), disjoin([])):
            return self.term(node.then if condition == conjoin([]) else node.otherwise, names)
        if isinstance(condition, Atom) and never(condition.guards):
            return UndefinedTerm(condition.guards)  # recursion may not end in either branch
        then, otherwise = (self.term(part, names) for part in (node.then, node.otherwise))
        return choose_branch(self.scope, condition, then, otherwise)

    def _case(self, node: s.Case, names: Environment) -> Term:
        arms: list[tuple[Formula, Term]] = []
        last: Term = UndefinedTerm(
            functions.undefined(self.cause(node.location, "no guard of this CASE is true"))
        )
        for guard, value in node.arms:
            condition = self.formula(guard, names)
            if condition == disjoin([]):
                continue
            if condition == conjoin([]):
                last = self.term(value, names)
                break
            arms.append((condition, self.term(value, names)))
        else:
            if node.other is not None:
                last = self.term(node.other, names)
        for condition, value_term in reversed(arms):
            last = choose_branch(self.scope, condition, value_term, last)
        return last

    def _except(self, node: s.Except, names: Environment) -> Term:
        result = self.term(node.function, names)
        for update in node.updates:
            path = [self.term(step, names) for step in update.path]

            def value(old: Term, update: s.Update = update) -> Term:
                inner = names.having({update.at.uid: rigid(old)})
                return self.term(update.value, inner)

            result = functions.replaced(self.scope, result, path, value)
        return result


_SPECIAL: Mapping[str, Callable[[Compiler, s.Builtin, Environment], Term]] = {
    "'": Compiler._prime,
    "UNCHANGED": Compiler._unchanged,
    "[A]_v": Compiler._square,
    "<<A>>_v": Compiler._angle,
    "\\land": Compiler._junction,
    "\\lor": Compiler._junction,
    "=>": Compiler._implies,
}
