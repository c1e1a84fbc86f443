"""Three-valued formulas: when does a TLA+ formula hold, when does it fail, why is it undefined.

TLC evaluates from left to right and stops at the first operand that decides. SQL's AND and OR
do not: `NULL AND FALSE` is FALSE in SQL and an error in TLC. So a formula is rendered as two
total SQL conditions, `holds` and `fails`; a row where neither is true is undefined, and
`reason` says why. A formula that is `total` is never undefined, and then `fails` is simply NOT
`holds`, which keeps the text of nearly all formulas as short as if SQL had two values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.tla.spark import sql


@dataclass(frozen=True, slots=True)
class Guard:
    """What must hold for a value to be defined.

    `condition` is a total SQL condition, `reason` an SQL string that says what is wrong
    where the condition is false.
    """

    condition: str
    reason: str


Guards = tuple[Guard, ...]


def guards_hold(guards: Guards) -> str:
    """The SQL condition that all guards hold."""
    return sql.conjunction(guard.condition for guard in guards)


def guards_reason(guards: Guards, otherwise: str = "NULL") -> str:
    """The reason of the first guard that does not hold, else `otherwise`."""
    if not guards:
        return otherwise
    arms = " ".join(f"WHEN NOT {guard.condition} THEN {guard.reason}" for guard in guards)
    return f"CASE {arms} ELSE {otherwise} END"


class Formula(ABC):
    """A boolean expression of TLA+ over one row."""

    __slots__ = ()

    @property
    @abstractmethod
    def total(self) -> bool:
        """Whether the formula is defined on every row."""

    @abstractmethod
    def holds(self) -> str:
        """A total SQL condition: the formula is defined and true."""

    @abstractmethod
    def fails(self) -> str:
        """A total SQL condition: the formula is defined and false."""

    @abstractmethod
    def reason(self) -> str:
        """An SQL string, meaningful where the formula is undefined: the first cause."""

    def defined(self) -> str:
        """A total SQL condition: the formula has a value."""
        return sql.TRUE if self.total else sql.disjunction((self.holds(), self.fails()))

    def guard(self) -> Guards:
        """The formula's definedness as guards of a value that is made from it."""
        return () if self.total else (Guard(self.defined(), self.reason()),)


@dataclass(frozen=True, slots=True)
class Truth(Formula):
    """TRUE or FALSE, known at compile time."""

    value: bool

    @property
    def total(self) -> bool:
        return True

    def holds(self) -> str:
        return sql.TRUE if self.value else sql.FALSE

    def fails(self) -> str:
        return sql.FALSE if self.value else sql.TRUE

    def reason(self) -> str:
        return "NULL"


@dataclass(frozen=True, slots=True)
class Atom(Formula):
    """An SQL condition that is not NULL where its guards hold."""

    condition: str
    guards: Guards = ()

    @property
    def total(self) -> bool:
        return not self.guards

    def holds(self) -> str:
        return sql.conjunction((*(g.condition for g in self.guards), self.condition))

    def fails(self) -> str:
        negated = sql.negation(self.condition)
        return sql.conjunction((*(g.condition for g in self.guards), negated))

    def reason(self) -> str:
        return guards_reason(self.guards)


@dataclass(frozen=True, slots=True)
class Undefined(Formula):
    """A formula without a value on any row."""

    why: str

    @property
    def total(self) -> bool:
        return False

    def holds(self) -> str:
        return sql.FALSE

    def fails(self) -> str:
        return sql.FALSE

    def reason(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class Not(Formula):
    """Negation."""

    operand: Formula

    @property
    def total(self) -> bool:
        return self.operand.total

    def holds(self) -> str:
        return self.operand.fails()

    def fails(self) -> str:
        return self.operand.holds()

    def reason(self) -> str:
        return self.operand.reason()


@dataclass(frozen=True, slots=True)
class Junction(Formula):
    """Conjunction or disjunction, decided by its first operand that is not `neutral`."""

    operands: tuple[Formula, ...]
    neutral: bool

    @property
    def total(self) -> bool:
        return all(operand.total for operand in self.operands)

    def holds(self) -> str:
        return self._all_neutral(True) if self.neutral else self._decided(True)

    def fails(self) -> str:
        return self._decided(False) if self.neutral else self._all_neutral(False)

    def _all_neutral(self, positive: bool) -> str:
        return sql.conjunction(o.holds() if positive else o.fails() for o in self.operands)

    def _decided(self, positive: bool) -> str:
        """Some operand decides, and all before it are defined (they are then neutral)."""
        text = sql.FALSE
        for operand in reversed(self.operands):
            decides, neutral = operand.holds(), operand.fails()
            if not positive:
                decides, neutral = neutral, decides
            rest = text if operand.total else sql.conjunction((neutral, text))
            text = sql.disjunction((decides, rest))
        return text

    def reason(self) -> str:
        """Where the junction is undefined, its first operand that is not neutral is so."""
        arms = []
        for operand in self.operands:
            if not operand.total:
                neutral = operand.holds() if self.neutral else operand.fails()
                arms.append(f"WHEN NOT {neutral} THEN {operand.reason()}")
        return f"CASE {' '.join(arms)} END" if arms else "NULL"


@dataclass(frozen=True, slots=True)
class Conditional(Formula):
    """IF condition THEN then ELSE otherwise."""

    condition: Formula
    then: Formula
    otherwise: Formula

    @property
    def total(self) -> bool:
        return self.condition.total and self.then.total and self.otherwise.total

    def holds(self) -> str:
        return self._select(self.then.holds(), self.otherwise.holds())

    def fails(self) -> str:
        if self.total:
            return sql.negation(self.holds())
        return self._select(self.then.fails(), self.otherwise.fails())

    def _select(self, then: str, otherwise: str) -> str:
        if self.condition.total:
            return sql.choice(self.condition.holds(), then, otherwise)
        return sql.disjunction(
            (
                sql.conjunction((self.condition.holds(), then)),
                sql.conjunction((self.condition.fails(), otherwise)),
            )
        )

    def reason(self) -> str:
        branches = sql.choice(self.condition.holds(), self.then.reason(), self.otherwise.reason())
        if self.condition.total:
            return branches
        return sql.choice(self.condition.defined(), branches, self.condition.reason())


@dataclass(frozen=True, slots=True)
class Quantified(Formula):
    """`forall` or `exists` over an SQL array in canonical order, decided by the first element
    whose body is not `neutral` (TRUE for `forall`)."""

    array: str
    guards: Guards
    variable: str
    body: Formula
    neutral: bool

    @property
    def total(self) -> bool:
        return not self.guards and self.body.total

    def holds(self) -> str:
        return self._all_neutral() if self.neutral else self._decided()

    def fails(self) -> str:
        return self._decided() if self.neutral else self._all_neutral()

    def _neutral(self) -> str:
        return self.body.holds() if self.neutral else self.body.fails()

    def _decisive(self) -> str:
        return self.body.fails() if self.neutral else self.body.holds()

    def _all_neutral(self) -> str:
        every = f"forall({self.array}, {self.variable} -> {self._neutral()})"
        return sql.conjunction((guards_hold(self.guards), every))

    def _first(self) -> str:
        """An array of the first element that is not neutral."""
        rest = f"filter({self.array}, {self.variable} -> {sql.negation(self._neutral())})"
        return f"slice({rest}, 1, 1)"

    def _decided(self) -> str:
        array = self.array if self.body.total else self._first()
        some = f"exists({array}, {self.variable} -> {self._decisive()})"
        return sql.conjunction((guards_hold(self.guards), some))

    def reason(self) -> str:
        if self.body.total:
            return guards_reason(self.guards)
        inner = f"transform({self._first()}, {self.variable} -> {self.body.reason()})"
        return guards_reason(self.guards, sql.first(inner))


@dataclass(frozen=True, slots=True)
class Bind(Formula):
    """A formula in which `variable` stands for an SQL expression that is evaluated once."""

    variable: str
    expression: str
    body: Formula

    @property
    def total(self) -> bool:
        return self.body.total

    def holds(self) -> str:
        return self._bound(self.body.holds())

    def fails(self) -> str:
        return self._bound(self.body.fails())

    def _bound(self, condition: str) -> str:
        uses = condition.count(self.variable)
        if uses == 0:
            return condition
        if uses == 1 and "->" not in condition:
            return condition.replace(self.variable, self.expression)
        return f"exists(array({self.expression}), {self.variable} -> {condition})"

    def reason(self) -> str:
        reason = self.body.reason()
        if self.variable not in reason:
            return reason
        return sql.first(f"transform(array({self.expression}), {self.variable} -> {reason})")


def conjoin(operands: Sequence[Formula]) -> Formula:
    """The conjunction; nothing after an operand that is always FALSE."""
    return _join(operands, neutral=True)


def disjoin(operands: Sequence[Formula]) -> Formula:
    """The disjunction; nothing after an operand that is always TRUE."""
    return _join(operands, neutral=False)


def _join(operands: Sequence[Formula], *, neutral: bool) -> Formula:
    kept: list[Formula] = []
    for operand in operands:
        nested = isinstance(operand, Junction) and operand.neutral == neutral
        for part in operand.operands if nested else (operand,):
            if isinstance(part, Truth):
                if part.value == neutral:
                    continue
                kept.append(part)
                return _made(kept, neutral)
            kept.append(part)
    return _made(kept, neutral)


def _made(kept: list[Formula], neutral: bool) -> Formula:
    if not kept:
        return Truth(neutral)
    if len(kept) == 1:
        return kept[0]
    if all(operand.total for operand in kept) and isinstance(kept[-1], Truth):
        return kept[-1]
    return Junction(tuple(kept), neutral)


def negate(operand: Formula) -> Formula:
    """The negation."""
    if isinstance(operand, Truth):
        return Truth(not operand.value)
    return operand.operand if isinstance(operand, Not) else Not(operand)


def conditional(condition: Formula, then: Formula, otherwise: Formula) -> Formula:
    """IF condition THEN then ELSE otherwise."""
    if isinstance(condition, Truth):
        return then if condition.value else otherwise
    if condition.total and then == otherwise:
        return then
    return Conditional(condition, then, otherwise)


def equivalent(left: Formula, right: Formula) -> Formula:
    """left <=> right: both are evaluated."""
    if isinstance(right, Truth):
        return left if right.value else negate(left)
    if isinstance(left, Truth):
        return right if left.value else negate(right)
    condition = f"(({left.holds()}) = ({right.holds()}))"
    return Atom(condition, (*left.guard(), *right.guard()))
