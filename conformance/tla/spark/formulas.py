"""Three-valued formulas: when does a TLA+ formula hold, when does it fail, why is it undefined.

TLC evaluates from left to right and stops at the first operand that decides. SQL's AND and OR
do not: `NULL AND FALSE` is FALSE in SQL and an error in TLC. A formula is rendered as one SQL
expression, `value`, that is NULL exactly where TLC would find no value; `holds` and `fails` are
total. Where only the last operand of a junction may be undefined, SQL's AND and OR are right as
they are, and nearly all formulas are of that kind. They are right too for the instances of a
quantifier over a set whose order is TLC's own affair: there an element that decides is enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from conformance.tla.spark import sql
from conformance.tla.spark.sql import Sql

Causes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """What must hold for a value to be defined: a total SQL condition, and in words what is
    wrong where it is false (any of the `causes`)."""

    condition: Sql
    causes: Causes


Guards = tuple[Guard, ...]


def guards_hold(guards: Guards) -> Sql:
    """The SQL condition that all guards hold."""
    return sql.conjunction(guard.condition for guard in guards)


def causes_of(parts: Iterable[Guard | Formula]) -> Causes:
    """All causes, each once."""
    return tuple(dict.fromkeys(cause for part in parts for cause in part.causes))


class Formula(ABC):
    """A boolean expression of TLA+ over one row."""

    __slots__ = ()

    @property
    @abstractmethod
    def total(self) -> bool:
        """Whether the formula is defined on every row."""

    @property
    @abstractmethod
    def causes(self) -> Causes:
        """Why the formula may be undefined."""

    @abstractmethod
    def value(self) -> Sql:
        """SQL: true, false, or NULL where the formula is undefined."""

    def holds(self) -> Sql:
        """A total SQL condition: the formula is defined and true."""
        return self.value() if self.total else sql.call("coalesce", self.value(), sql.FALSE)

    def fails(self) -> Sql:
        """A total SQL condition: the formula is defined and false."""
        negated = sql.negation(self.value())
        return negated if self.total else sql.call("coalesce", negated, sql.FALSE)

    def defined(self) -> Sql:
        """A total SQL condition: the formula has a value."""
        return sql.TRUE if self.total else sql.call("isnotnull", self.value())

    def guard(self) -> Guards:
        """The formula's definedness as guards of a value that is made from it."""
        return () if self.total else (Guard(self.defined(), self.causes),)


@dataclass(frozen=True, slots=True)
class Truth(Formula):
    """TRUE or FALSE, known at compile time."""

    known: bool

    @property
    def total(self) -> bool:
        return True

    @property
    def causes(self) -> Causes:
        return ()

    def value(self) -> Sql:
        return sql.TRUE if self.known else sql.FALSE


@dataclass(frozen=True, slots=True)
class Atom(Formula):
    """An SQL condition that is not NULL where its guards hold."""

    condition: Sql
    guards: Guards = ()

    @property
    def total(self) -> bool:
        return not self.guards

    @property
    def causes(self) -> Causes:
        return causes_of(self.guards)

    def value(self) -> Sql:
        return sql.choice(guards_hold(self.guards), self.condition, sql.NULL)

    def holds(self) -> Sql:
        return sql.conjunction((*(g.condition for g in self.guards), self.condition))

    def fails(self) -> Sql:
        negated = sql.negation(self.condition)
        return sql.conjunction((*(g.condition for g in self.guards), negated))

    def defined(self) -> Sql:
        return guards_hold(self.guards)


@dataclass(frozen=True, slots=True)
class Nullable(Formula):
    """An SQL expression that is NULL where the formula is undefined."""

    expression: Sql
    causes_: Causes

    @property
    def total(self) -> bool:
        return False

    @property
    def causes(self) -> Causes:
        return self.causes_

    def value(self) -> Sql:
        return self.expression


@dataclass(frozen=True, slots=True)
class Not(Formula):
    """Negation."""

    operand: Formula

    @property
    def total(self) -> bool:
        return self.operand.total

    @property
    def causes(self) -> Causes:
        return self.operand.causes

    def value(self) -> Sql:
        return sql.negation(self.operand.value())

    def holds(self) -> Sql:
        return self.operand.fails()

    def fails(self) -> Sql:
        return self.operand.holds()

    def defined(self) -> Sql:
        return self.operand.defined()


def _strict(value: Sql, then: Sql) -> Sql:
    """`then`, NULL where the value is NULL."""
    return sql.choice(sql.call("isnull", value), sql.NULL, then)


@dataclass(frozen=True, slots=True)
class Junction(Formula):
    """Conjunction or disjunction, decided by its first operand that is not `neutral`; by any such
    operand unless `in_order`."""

    operands: tuple[Formula, ...]
    neutral: bool
    in_order: bool = True

    @property
    def total(self) -> bool:
        return all(operand.total for operand in self.operands)

    @property
    def causes(self) -> Causes:
        return causes_of(self.operands)

    def value(self) -> Sql:
        if not self.in_order:
            return self._join(operand.value() for operand in self.operands)
        *before, last = self.operands
        # Runs of total operands stay flat: else the expression is as deep as the junction is long.
        tail = [last.value()]
        for operand in reversed(before):
            value = operand.value()
            if not operand.total:
                tail = [_strict(value, self._join((value, *tail)))]
            else:
                tail.insert(0, value)
        return self._join(tail)

    def _join(self, parts: Iterable[Sql]) -> Sql:
        return sql.conjunction(parts) if self.neutral else sql.disjunction(parts)

    def holds(self) -> Sql:
        return self._total(True)

    def fails(self) -> Sql:
        return self._total(False)

    def _total(self, positive: bool) -> Sql:
        """All operands neutral, or all before the one that decides total."""
        late = not self.in_order or all(operand.total for operand in self.operands[:-1])
        if positive != self.neutral and not late:
            return Formula.holds(self) if positive else Formula.fails(self)
        parts = [o.holds() if positive else o.fails() for o in self.operands]
        return sql.conjunction(parts) if positive == self.neutral else sql.disjunction(parts)


@dataclass(frozen=True, slots=True)
class Conditional(Formula):
    """IF condition THEN then ELSE otherwise."""

    condition: Formula
    then: Formula
    otherwise: Formula

    @property
    def total(self) -> bool:
        return self.condition.total and self.then.total and self.otherwise.total

    @property
    def causes(self) -> Causes:
        return causes_of((self.condition, self.then, self.otherwise))

    def value(self) -> Sql:
        test = self.condition.value()
        made = sql.choice(test, self.then.value(), self.otherwise.value())
        return made if self.condition.total else _strict(test, made)


@dataclass(frozen=True, slots=True)
class Quantified(Formula):
    """`forall` or `exists` over an SQL array in canonical order, decided by the first element
    whose body is not `neutral` (TRUE for `forall`); by any such element unless `in_order`."""

    array: Sql
    guards: Guards
    variable: str
    body: Formula
    neutral: bool
    in_order: bool = False

    @property
    def total(self) -> bool:
        return not self.guards and self.body.total

    @property
    def causes(self) -> Causes:
        return causes_of((*self.guards, self.body))

    def value(self) -> Sql:
        made = self._first() if self.in_order and not self.body.total else self._any()
        return sql.choice(guards_hold(self.guards), made, sql.NULL)

    def _any(self) -> Sql:
        """Three-valued, as Spark's `forall` is whatever the session's configuration."""
        if self.neutral or self.body.total:
            return self._fold(self.body.value())
        fails = sql.each("forall", self.array, self.variable, sql.negation(self.body.value()))
        return sql.negation(fails)

    def _fold(self, body: Sql) -> Sql:
        return sql.each("forall" if self.neutral else "exists", self.array, self.variable, body)

    def _first(self) -> Sql:
        """The first verdict that is not neutral."""
        verdicts = sql.each("transform", self.array, self.variable, self.body.value())
        neutral = sql.TRUE if self.neutral else sql.FALSE

        def other(verdict: Sql) -> Sql:
            return sql.negation(sql.call("`<=>`", verdict, neutral))

        others = sql.closed("filter", verdicts, other)
        none = sql.equal(sql.size(others), sql.size_of(0))
        return sql.choice(none, neutral, sql.at(others, 0))

    def holds(self) -> Sql:
        return self._total(True)

    def fails(self) -> Sql:
        return self._total(False)

    def _total(self, positive: bool) -> Sql:
        if positive != self.neutral and self.in_order:
            return Formula.holds(self) if positive else Formula.fails(self)
        body = self.body.holds() if positive else self.body.fails()
        fold = "forall" if positive == self.neutral else "exists"
        folded = sql.each(fold, self.array, self.variable, body)
        return sql.conjunction((guards_hold(self.guards), folded))


def never(guards: Guards) -> bool:
    """Whether a guard is false on every row."""
    return any(guard.condition == sql.FALSE for guard in guards)


def undefined(cause: str) -> Formula:
    """A formula without a value on any row."""
    return Atom(sql.FALSE, (Guard(sql.FALSE, (cause,)),))


def conjoin(operands: Sequence[Formula]) -> Formula:
    """The conjunction; nothing after an operand that is always FALSE."""
    return _join(operands, neutral=True, in_order=True)


def disjoin(operands: Sequence[Formula]) -> Formula:
    """The disjunction; nothing after an operand that is always TRUE."""
    return _join(operands, neutral=False, in_order=True)


def instances(operands: Sequence[Formula], *, neutral: bool, in_order: bool) -> Formula:
    """The instances of a quantifier, joined: `\\A` if `neutral`, else `\\E`."""
    return _join(operands, neutral=neutral, in_order=in_order)


def _join(operands: Sequence[Formula], *, neutral: bool, in_order: bool) -> Formula:
    kept: list[Formula] = []
    for operand in operands:
        for part in _flat(operand, neutral, in_order):
            if isinstance(part, Truth):
                if part.known == neutral:
                    continue
                if not in_order:
                    return part
                kept.append(part)
                return _made(kept, neutral, in_order)
            kept.append(part)
    return _made(kept, neutral, in_order)


def _flat(operand: Formula, neutral: bool, in_order: bool) -> Sequence[Formula]:
    if not isinstance(operand, Junction) or operand.neutral != neutral:
        return (operand,)
    return operand.operands if operand.total or operand.in_order == in_order else (operand,)


def _made(kept: list[Formula], neutral: bool, in_order: bool) -> Formula:
    if not kept:
        return Truth(neutral)
    if len(kept) == 1:
        return kept[0]
    if all(operand.total for operand in kept) and isinstance(kept[-1], Truth):
        return kept[-1]
    return Junction(tuple(kept), neutral, in_order)


def negate(operand: Formula) -> Formula:
    """The negation."""
    if isinstance(operand, Truth):
        return Truth(not operand.known)
    return operand.operand if isinstance(operand, Not) else Not(operand)


def conditional(condition: Formula, then: Formula, otherwise: Formula) -> Formula:
    """IF condition THEN then ELSE otherwise."""
    if isinstance(condition, Truth):
        return then if condition.known else otherwise
    if condition.total and then == otherwise:
        return then
    return Conditional(condition, then, otherwise)


def equivalent(left: Formula, right: Formula) -> Formula:
    """left <=> right: both are evaluated."""
    if isinstance(right, Truth):
        return left if right.known else negate(left)
    if isinstance(left, Truth):
        return right if left.known else negate(right)
    condition = sql.equal(left.value(), right.value())
    causes = causes_of((left, right))
    return Atom(condition) if left.total and right.total else Nullable(condition, causes)
