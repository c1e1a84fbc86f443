"""SQL expressions as values: equal expressions are one, however often they are used.

An expression is a node of a directed acyclic graph, made by the functions of this module. Nothing
is written twice where it is used twice: what the compiler puts together is a graph, and
`conformance.tla.spark.writer` decides how it becomes SQL.

All expressions that the back end makes are total under Spark's ANSI mode: none throws, whatever
the row holds. What TLA+ leaves undefined is kept apart as a `Guard` (see `formulas`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

Form = Literal["literal", "column", "field", "call", "cast", "lambda", "variable"]


@dataclass(frozen=True, slots=True, eq=False)
class Sql:
    """An expression; `head` is its own part of the text.

    `free` are the variables of lambdas around it on which it depends. Two expressions are equal
    if they have the same text: compared by digest, because comparing graphs part by part takes
    exponential time.
    """

    form: Form
    head: str
    args: tuple[Sql, ...] = ()
    free: frozenset[str] = field(init=False)
    digest: bytes = field(init=False)

    def __post_init__(self) -> None:
        content = blake2b(f"{self.form} {len(self.args)} {self.head}".encode(), digest_size=16)
        for arg in self.args:
            content.update(arg.digest)
        object.__setattr__(self, "digest", content.digest())
        object.__setattr__(self, "free", self._free())

    def _free(self) -> frozenset[str]:
        if self.form == "variable":
            return frozenset((self.head,))
        free = frozenset[str]().union(*(arg.free for arg in self.args))
        return free - set(parameters(self)) if self.form == "lambda" else free

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sql) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def is_path(self) -> bool:
        """Whether this is a column or a field of one, to any depth."""
        return self.form == "column" or (self.form == "field" and self.args[0].is_path)


def parameters(function: Sql) -> list[str]:
    """The variables that a lambda binds."""
    return function.head.split(", ")


def name(identifier: str) -> str:
    """A quoted column or field name."""
    return "`" + identifier.replace("`", "``") + "`"


def text(value: str) -> str:
    """A string literal's text, whatever characters the value has."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


# Leaves


def literal(source: str) -> Sql:
    """A literal, as it is written."""
    return Sql("literal", source)


def string(value: str) -> Sql:
    """A string literal."""
    return literal(text(value))


def integer(value: int) -> Sql:
    """A 64-bit integer literal."""
    return literal(f"{value}L")


def size_of(value: int) -> Sql:
    """A 32-bit integer literal: a size or an index."""
    return literal(str(value))


def column(source: str) -> Sql:
    """A column of the row, or a field of one, as it is written."""
    return Sql("column", source)


def variable(identifier: str) -> Sql:
    """A variable that a lambda around binds."""
    return Sql("variable", identifier)


TRUE = literal("true")
FALSE = literal("false")
NULL = literal("NULL")


def null(ddl: str) -> Sql:
    """NULL of a type."""
    return literal(f"cast(NULL AS {ddl})")


def empty(element: str) -> Sql:
    """The empty array of elements of a type."""
    return literal(f"cast(array() AS array<{element}>)")


# Shapes


def field_of(expression: Sql, identifier: str) -> Sql:
    """A field of a struct."""
    return Sql("field", name(identifier), (expression,))


def call(function: str, *arguments: Sql) -> Sql:
    """An application. Operators too are written so: the time that Spark's parser takes grows
    steeply with nested parentheses (12 KB of text took 17 s, and 0.4 s in this form)."""
    return Sql("call", function, arguments)


def to_index(expression: Sql) -> Sql:
    """An integer as Spark's 32-bit index; NULL where it does not fit."""
    return Sql("cast", "int", (expression,))


def over(names: Sequence[str], body: Sql) -> Sql:
    """A lambda."""
    return Sql("lambda", ", ".join(names), (body,))


def each(function: str, array: Sql, identifier: str, body: Sql) -> Sql:
    """`function(array, identifier -> body)`, for transform, filter, forall and exists."""
    return call(function, array, over((identifier,), body))


def closed(function: str, array: Sql, body: Callable[[Sql], Sql]) -> Sql:
    """The same, of a body that holds no lambda of the compiler's."""
    return each(function, array, "e_", body(variable("e_")))


def equal(left: Sql, right: Sql) -> Sql:
    """left = right."""
    return TRUE if left == right else call("`=`", left, right)


def compare(operator: str, left: Sql, right: Sql) -> Sql:
    """left operator right, for < <= > >= + - *."""
    return call(f"`{operator}`", left, right)


def between(expression: Sql, low: Sql, high: Sql) -> Sql:
    """low <= expression <= high."""
    return call("between", expression, low, high)


def size(array: Sql) -> Sql:
    """The number of elements, of 32 bits."""
    return call("size", array)


def at(array: Sql, index: Sql | int) -> Sql:
    """The element at an index from 0, NULL where there is none."""
    return call("get", array, size_of(index) if isinstance(index, int) else index)


def case(arms: Iterable[tuple[Sql, Sql]], otherwise: Sql) -> Sql:
    """The expression of the first condition that is true."""
    parts = [part for arm in arms for part in arm]
    return call("`when`", *parts, otherwise) if parts else otherwise


def conjunction(parts: Iterable[Sql]) -> Sql:
    """SQL AND over total conditions, evaluated in this order."""
    kept = list(dict.fromkeys(part for part in parts if part != TRUE))
    if FALSE in kept:
        return FALSE
    return _balanced("`and`", kept) if kept else TRUE


def disjunction(parts: Iterable[Sql]) -> Sql:
    """SQL OR over total conditions, evaluated in this order."""
    kept = list(dict.fromkeys(part for part in parts if part != FALSE))
    if TRUE in kept:
        return TRUE
    return _balanced("`or`", kept) if kept else FALSE


def _balanced(operator: str, parts: list[Sql]) -> Sql:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return call(operator, _balanced(operator, parts[:half]), _balanced(operator, parts[half:]))


def negation(condition: Sql) -> Sql:
    """SQL NOT of a condition."""
    if condition == TRUE:
        return FALSE
    if condition == FALSE:
        return TRUE
    if condition.form == "call" and condition.head == "`not`":
        return condition.args[0]
    return call("`not`", condition)


def choice(condition: Sql, then: Sql, otherwise: Sql) -> Sql:
    """SQL IF on a total condition."""
    if condition == TRUE or then == otherwise:
        return then
    if condition == FALSE:
        return otherwise
    return call("if", condition, then, otherwise)
