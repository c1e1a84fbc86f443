"""From names of formulas and actions to Spark columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from conformance.tla.errors import SpecError
from conformance.tla.front import syntax as s
from conformance.tla.semantics.program import Program
from conformance.tla.semantics.temporal import TemporalReader
from conformance.tla.spark import sql
from conformance.tla.spark.columns import stored
from conformance.tla.spark.compiler import BACK_END, Compiler, Row
from conformance.tla.spark.environment import Environment, rigid
from conformance.tla.spark.formulas import (
    Causes,
    Formula,
    Guard,
    Truth,
    conjoin,
)
from conformance.tla.spark.ranges import within_bounds
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.terms import KnownTerm, Term, guarded_formula
from conformance.tla.spark.writer import expression
from conformance.tla.values import Action
from conformance.tla.values.schema import Schema
from conformance.tla.values.types import INTEGER, Type

ROOM = 20_000
"""Python's frames while formulas are compiled: some dozen for each level of the text."""


def _current(variable: str) -> str:
    """The column of a variable: of the variable's name."""
    return sql.name(variable)


def _following(variable: str) -> str:
    """The column of a variable's next value."""
    return sql.name(f"next_{variable}")


@dataclass(frozen=True)
class SparkFormula:
    """A formula as native Spark SQL.

    A row's verdict is pass where `value` is true, fail where it is false, and inconclusive
    where it is NULL; `reason` then says why. On other rows `reason` means nothing: evaluate it
    on the rows that need it, it may cost more than the value. No row makes Spark throw.
    """

    name: str
    location: s.Location
    formula: Formula
    written: Formula
    """The formula as the text says it; `formula` is undefined also where its arithmetic might
    overflow."""

    @property
    def total(self) -> bool:
        """Whether no row can be inconclusive."""
        return self.formula.total

    @cached_property
    def value(self) -> str:
        """SQL of type boolean, NULL where the formula is undefined."""
        return expression(self.node)

    @cached_property
    def node(self) -> Sql:
        """`value` as an expression, to be written together with others (`together`)."""
        return self.formula.value()

    @property
    def reason(self) -> str:
        """SQL of type string: why the formula may be undefined, with places in the specification.

        Which of several causes it was, the Python evaluator says of a row (`explain`).
        """
        return sql.text(_reason(self.formula.causes))


_SHOWN = 3


def _reason(causes: Causes) -> str:
    shown = "; or ".join(causes[:_SHOWN])
    return shown if len(causes) <= _SHOWN else f"{shown}; or one of {len(causes) - _SHOWN} others"


def compile_state_formulas(
    program: Program, names: Iterable[str], schema: Schema
) -> list[SparkFormula]:
    """State predicates over one row that holds a state, in columns of the variables' names.

    UnsupportedError names operator, place and back end; SpecError a name that does not exist.
    """
    return [_compile(program, schema, name, _body(program, name), None) for name in names]


def compile_action_formulas(
    program: Program,
    names: Iterable[str | Action],
    schema: Schema,
) -> list[SparkFormula]:
    """Action formulas over one row that holds a state and the next one.

    A name is an action without parameters or a property `[][A]_v`; an `Action` gives the
    arguments. The next state's columns are named with the prefix `next_`.
    """
    reader = program.temporal_reader()
    return [
        _compile(program, schema, str(name), _action_body(program, reader, name), _following)
        for name in names
    ]


def compile_action(
    program: Program,
    name: str,
    schema: Schema,
    arguments: Sequence[tuple[Type, str]] = (),
) -> SparkFormula:
    """An action over one row that holds a state, the next one, and the action's arguments.

    An argument is its type and the SQL of its column. One formula judges all instances of an
    action; where the arguments are few, `compile_action_formulas` gives faster formulas.
    """
    terms = [stored(kind, sql.column(text)) for kind, text in arguments]
    body = _action_on(program, program.temporal_reader(), name, terms)
    return _compile(program, schema, name, body, _following)


Body = Callable[[Compiler], Formula]


def _compile(
    program: Program,
    schema: Schema,
    name: str,
    body: tuple[s.Location, Body],
    following: Row | None,
) -> SparkFormula:
    location, compile_body = body
    compiler = Compiler(program, dict(schema.variables), _current, following)
    with _room_for_recursion():
        formula = compile_body(compiler)
    return SparkFormula(name, location, _bounded(compiler, location, formula), formula)


@contextmanager
def _room_for_recursion() -> Iterator[None]:
    """Python's own limit would be met before the compiler's (`MAX_DEPTH`), which has a message."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, ROOM))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _bounded(compiler: Compiler, location: s.Location, formula: Formula) -> Formula:
    """Undefined where a stored integer is so large that the formula's arithmetic may overflow."""
    leaves = compiler.scope.bounded
    if not leaves or isinstance(formula, Truth):
        return formula
    checks = _in_order(
        {within_bounds(kind, text) for text, kind in compiler.variables.items()}
        if None in leaves
        else {within_bounds(INTEGER, leaf) for leaf in leaves if leaf is not None}
    )
    condition = sql.conjunction(checks)
    if condition == sql.TRUE:
        return formula
    cause = f"{location}: an integer beyond 2^53"
    return guarded_formula(formula, (Guard(condition, (cause,)),))


def _in_order(conditions: Iterable[Sql]) -> list[Sql]:
    return sorted(conditions, key=lambda condition: condition.digest)


def _body(program: Program, name: str) -> tuple[s.Location, Body]:
    definition = program.operator(name, "a formula")
    if definition.params:
        raise SpecError(f"{definition.location}: {name} takes arguments; a formula takes none.")
    return definition.location, lambda compiler: compiler.formula(definition.body, Environment({}))


def _action_body(
    program: Program, reader: TemporalReader, name: str | Action
) -> tuple[s.Location, Body]:
    action = Action(name) if isinstance(name, str) else name
    return _action_on(program, reader, action.name, [KnownTerm(value) for value in action.args])


def _action_on(
    program: Program, reader: TemporalReader, name: str, arguments: Sequence[Term]
) -> tuple[s.Location, Body]:
    definition = program.operator(name, "an action")
    if len(definition.params) != len(arguments):
        raise SpecError(
            f"{definition.location}: {name} takes {len(definition.params)} arguments, "
            f"not {len(arguments)}."
        )
    bound = {
        parameter.uid: rigid(argument)
        for parameter, argument in zip(definition.params, arguments, strict=True)
    }
    steps = reader.steps_of(definition, BACK_END)
    return definition.location, lambda c: conjoin(
        [c.formula(step, Environment(bound)) for step in steps]
    )
