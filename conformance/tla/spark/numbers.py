"""Integer arithmetic that cannot overflow, or says where it does."""

from __future__ import annotations

from conformance.tla.spark import sql
from conformance.tla.spark.columns import STORED, integer, materialise
from conformance.tla.spark.formulas import Atom, Formula, Guard, Guards, Truth
from conformance.tla.spark.physical import INTEGER
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.sql import Sql
from conformance.tla.spark.terms import Bounds, Column, KnownTerm, Term, UndefinedTerm, merge

_LONG = (-(2**63), 2**63 - 1)
_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


def arithmetic(scope: FormulaScope, operator: str, left: Term, right: Term, cause: str) -> Term:
    """left operator right, for + - * \\div % ^; `cause` (SQL text): undefined or too large."""
    guards = merge(left.guards, right.guards)
    if isinstance(left, KnownTerm) and isinstance(right, KnownTerm):
        value = _known(operator, left.value, right.value)
        return (
            UndefinedTerm(merge(guards, _never(cause)))
            if value is None
            else KnownTerm(value, guards)
        )
    a, b = materialise(scope, left, INTEGER), materialise(scope, right, INTEGER)
    scope.bounded |= {text for column in (a, b) for text in _relied_on(column)}
    if operator in _TRY:
        return _simple(operator, a, b, cause)
    if operator == "^":
        return _power(scope, a, right, cause)
    return _division(operator, a, b, cause)


def _relied_on(column: Column) -> set[Sql | None]:
    """The stored integers whose bounds an operand inherits: itself, or any (None)."""
    low, high = column.bounds or STORED
    if low > STORED[0] and high < STORED[1]:
        return set()
    return {column.text if column.text.is_path else None}


def _never(cause: str) -> Guards:
    return (Guard(sql.FALSE, (cause,)),)


def _known(operator: str, a: object, b: object) -> int | None:
    if type(a) is not int or type(b) is not int:
        return None
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "\\div":
            return a // b if b != 0 else None
        case "%":
            return a % b if b > 0 else None
    return int(a**b) if b >= 0 and (a, b) != (0, 0) else None


def _simple(operator: str, a: Column, b: Column, cause: str) -> Column:
    guards = merge(a.guards, b.guards)
    bounds = _combine(operator, a.bounds or STORED, b.bounds or STORED)
    if _LONG[0] <= bounds[0] and bounds[1] <= _LONG[1]:
        return integer(sql.compare(operator, a.text, b.text), bounds, guards)
    text = sql.call(_TRY[operator], a.text, b.text)
    return integer(text, STORED, merge(guards, (_fits(text, cause),)))


def _fits(text: Sql, cause: str) -> Guard:
    inside = sql.between(text, sql.integer(STORED[0]), sql.integer(STORED[1]))
    return Guard(sql.call("coalesce", inside, sql.FALSE), (cause,))


def _combine(operator: str, a: Bounds, b: Bounds) -> Bounds:
    if operator == "+":
        return a[0] + b[0], a[1] + b[1]
    if operator == "-":
        return a[0] - b[1], a[1] - b[0]
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _division(operator: str, a: Column, b: Column, cause: str) -> Column:
    """Rounded towards minus infinity, as in TLC; SQL rounds towards zero."""
    x, y = a.text, b.text
    guards = merge(a.guards, b.guards)
    zero = sql.equal(y, sql.integer(0))
    if operator == "%":
        guards = merge(guards, _positive(b, sql.compare(">", y, sql.integer(0)), cause))
        text = sql.call("pmod", x, sql.call("greatest", y, sql.integer(1)))
        return integer(text, (0, (b.bounds or STORED)[1]), guards)
    guards = merge(guards, _positive(b, sql.negation(zero), cause))
    safe = sql.choice(zero, sql.integer(1), y)
    rest = sql.equal(sql.call("`%`", x, safe), sql.integer(0))
    same_sign = sql.equal(sql.compare("<", x, sql.integer(0)), sql.compare("<", y, sql.integer(0)))
    down = sql.choice(sql.disjunction((rest, same_sign)), sql.integer(0), sql.integer(1))
    widest = max(abs(end) for end in (a.bounds or STORED)) + 1
    return integer(sql.compare("-", sql.call("div", x, safe), down), (-widest, widest), guards)


def _positive(b: Column, condition: Sql, cause: str) -> Guards:
    if b.bounds is not None and b.bounds[0] > 0:
        return ()
    return (Guard(condition, (cause,)),)


def _power(scope: FormulaScope, a: Column, exponent: Term, cause: str) -> Column:
    """By repeated multiplication where the exponent is known, else as a bounded product."""
    if isinstance(exponent, KnownTerm) and isinstance(exponent.value, int) and exponent.value > 0:
        result: Term = a
        for _ in range(exponent.value - 1):
            result = arithmetic(scope, "*", result, a, cause)
        return materialise(scope, result, INTEGER)
    b = materialise(scope, exponent, INTEGER)
    x, n = a.text, b.text
    zero, one, most = sql.integer(0), sql.integer(1), sql.integer(62)
    steps = sql.choice(sql.between(n, one, most), sql.call("sequence", one, n), sql.empty("bigint"))
    step = sql.over(("p_", "i_"), sql.call("try_multiply", sql.variable("p_"), x))
    text = sql.call("aggregate", steps, one, step)
    both_zero = sql.conjunction((sql.equal(x, zero), sql.equal(n, zero)))
    inside = sql.conjunction((sql.between(n, zero, most), sql.negation(both_zero)))
    guards = merge(a.guards, b.guards, (Guard(inside, (cause,)), _fits(text, cause)))
    return integer(text, STORED, guards)


def negative(scope: FormulaScope, term: Term, cause: str) -> Term:
    """-term."""
    return arithmetic(scope, "-", KnownTerm(0), term, cause)


_COMPARE = {"<": "<", ">": ">", "\\leq": "<=", "\\geq": ">="}


def compare(scope: FormulaScope, operator: str, left: Term, right: Term) -> Formula:
    """left operator right, for < > \\leq \\geq."""
    if isinstance(left, KnownTerm) and isinstance(right, KnownTerm):
        a, b = left.value, right.value
        if isinstance(a, int) and isinstance(b, int) and not (left.guards or right.guards):
            return Truth({"<": a < b, ">": a > b, "\\leq": a <= b, "\\geq": a >= b}[operator])
    x, y = materialise(scope, left, INTEGER), materialise(scope, right, INTEGER)
    return Atom(sql.compare(_COMPARE[operator], x.text, y.text), merge(x.guards, y.guards))
