"""Random well-typed, well-defined TLA+ expressions, for a vote between TLC and us.

Every expression has a value: divisors are positive literals, sequences are never empty where
their head is taken. Numbers stay within TLC's 32 bits.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

Choice = TypeVar("Choice")

MEMBERSHIP = ["\\in", "\\notin"]
QUANTIFIERS = ["\\A", "\\E"]
SETS_COMPARED = ["=", "#", "\\subseteq"]
DIVISION = ["%", "\\div"]


class Expressions:
    """Writes expressions of four types: integer, boolean, set and sequence of integers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._bound: list[str] = []
        self._names = 0

    def any(self, depth: int) -> str:
        """An expression of some type, structured values included."""
        wrap = self._pick([self._plain, self._structured])
        return wrap(depth)

    def _plain(self, depth: int) -> str:
        return self._pick([self.integer, self.boolean, self.set, self.sequence])(depth)

    def _structured(self, depth: int) -> str:
        d = depth - 1
        templates: list[Callable[[], str]] = [
            lambda: f"[a |-> {self._plain(d)}, b |-> {self._plain(d)}]",
            lambda: f"<<{self._plain(d)}, {self._plain(d)}>>",
            lambda: self._scoped("[{x} \\in {set} |-> {body}]", self._plain, d),
            lambda: f"{{{self.sequence(d)}, {self.sequence(d)}}}",
            lambda: f"SUBSET ({self.set(d)} \\cap 0..3)",
            lambda: f"({self.set(d)} \\cap 0..2) \\X ({self.set(d)} \\cap 1..3)",
            lambda: f"[({self.set(d)} \\cap 0..2) -> {{0, {self.integer(d)}}}]",
            lambda: f"[p : ({self.set(d)} \\cap 0..4), q : {{{self.integer(d)}}}]",
            lambda: f"[[a |-> {self.integer(d)}, b |-> {self.set(d)}] EXCEPT !.a = @ + 1]",
            lambda: f"({self.integer(d)} :> {self._plain(d)} @@ {self.integer(d)} :> 0)",
            lambda: f"Permutations({self.set(d)} \\cap 1..3)",
            lambda: self._scoped(
                '[{x} \\in {set}, $k \\in {{"u", "v"}} |-> {body}]', self.integer, d
            ),
        ]
        return self._renamed(self._pick(templates)())

    def integer(self, depth: int) -> str:
        """An integer."""
        if depth <= 0:
            return self._leaf()
        d = depth - 1
        templates: list[Callable[[], str]] = [
            self._leaf,
            lambda: f"({self.integer(d)} {self._pick(['+', '-'])} {self.integer(d)})",
            lambda: f"(({self.integer(d)} % 7) * ({self.integer(d)} % 5))",
            lambda: f"({self.integer(d)} {self._pick(DIVISION)} {self._pick('235')})",
            lambda: f"(-({self.integer(d)}))",
            lambda: f"Cardinality({self.set(d)})",
            lambda: f"Len({self.sequence(d)})",
            lambda: f"Head(Append({self.sequence(d)}, {self.integer(d)}))",
            lambda: f"(IF {self.boolean(d)} THEN {self.integer(d)} ELSE {self.integer(d)})",
            lambda: f"(CASE {self.boolean(d)} -> {self.integer(d)} [] OTHER -> {self.integer(d)})",
            lambda: self._let(self.integer, d),
            lambda: f"[$i \\in 0..2 |-> {self.integer(d)}][({self.integer(d)}) % 3]",
            lambda: f"[a |-> {self.integer(d)}, b |-> {self.boolean(d)}].a",
            lambda: f"<<{self.integer(d)}, {self.integer(d)}>>[1 + ({self.integer(d)} % 2)]",
            lambda: self._scoped(
                "(CHOOSE {x} \\in {set} \\cup {{5}} : {body} \\/ {x} = 5)", self.boolean, d
            ),
            lambda: f"[[$j \\in 1..3 |-> $j] EXCEPT ![2] = @ + {self.integer(d)}][2]",
            lambda: self._scoped("(LAMBDAS)", self.integer, d, operator=True),
            lambda: f"SumUpTo({self.integer(d)} % 6)",
            lambda: f"Squares[{self.integer(d)} % 5]",
        ]
        return self._renamed(self._pick(templates)())

    def boolean(self, depth: int) -> str:
        """A boolean."""
        if depth <= 0:
            return self._pick(["TRUE", "FALSE"])
        d = depth - 1
        compare = ["=", "#", "<", "<=", ">", ">="]
        connect = ["/\\", "\\/", "=>", "<=>"]
        templates: list[Callable[[], str]] = [
            lambda: f"({self.integer(d)} {self._pick(compare)} {self.integer(d)})",
            lambda: f"({self.boolean(d)} {self._pick(connect)} {self.boolean(d)})",
            lambda: f"(~ {self.boolean(d)})",
            lambda: f"({self.integer(d)} {self._pick(MEMBERSHIP)} {self.set(d)})",
            lambda: f"({self.set(d)} {self._pick(SETS_COMPARED)} {self.set(d)})",
            lambda: f"({self.sequence(d)} = {self.sequence(d)})",
            lambda: self._scoped(
                f"({self._pick(QUANTIFIERS)} {{x}} \\in {{set}} : {{body}})",
                self.boolean,
                d,
            ),
            lambda: f"({self.set(d)} \\in SUBSET {self.set(d)})",
            lambda: f"({self.sequence(d)} \\in Seq({self.set(d)}))",
            lambda: f"(<<{self.integer(d)}, {self.integer(d)}>> \\in {self.set(d)} \\X Nat)",
            lambda: (
                f"(\\E <<$p, $q>> \\in {self.set(d)} \\X {{1, 2}} : $p + $q = {self.integer(d)})"
            ),
            lambda: f"([$i \\in 1..2 |-> {self.integer(d)}] \\in [1..2 -> {self.set(d)}])",
        ]
        return self._renamed(self._pick(templates)())

    def set(self, depth: int) -> str:
        """A set of integers."""
        if depth <= 0:
            return self._pick(["{}", "{1}", "{2, 0}", "(1..3)", "((-1)..1)"])
        d = depth - 1
        operators = ["\\cup", "\\cap", "\\"]
        templates: list[Callable[[], str]] = [
            lambda: f"{{{self.integer(d)}, {self.integer(d)}}}",
            lambda: f"(({self.integer(d)} % 4)..({self.integer(d)} % 6))",
            lambda: f"({self.set(d)} {self._pick(operators)} {self.set(d)})",
            lambda: self._scoped("{{{x} \\in {set} : {body}}}", self.boolean, d),
            lambda: self._scoped("{{{body} : {x} \\in {set}}}", self.integer, d),
            lambda: f"(UNION {{{self.set(d)}, {self.set(d)}}})",
            lambda: f"(DOMAIN {self.sequence(d)})",
            lambda: self._let(self.set, d),
            lambda: f"(IF {self.boolean(d)} THEN {self.set(d)} ELSE {self.set(d)})",
            lambda: f"{{$e + $g : $e \\in {self.set(d)}, $g \\in {{0, {self.integer(d)}}}}}",
        ]
        return self._renamed(self._pick(templates)())

    def sequence(self, depth: int) -> str:
        """A sequence of integers."""
        if depth <= 0:
            return self._pick(["<<>>", "<<1>>", "<<2, 0>>", "<<3, 1, 2>>"])
        d = depth - 1
        templates: list[Callable[[], str]] = [
            lambda: f"<<{self.integer(d)}, {self.integer(d)}>>",
            lambda: f"Append({self.sequence(d)}, {self.integer(d)})",
            lambda: f"Tail(<<{self.integer(d)}>> \\o {self.sequence(d)})",
            lambda: f"({self.sequence(d)} \\o {self.sequence(d)})",
            lambda: f"SubSeq(<<1, 2>> \\o {self.sequence(d)}, 1 + ({self.integer(d)} % 2), 2)",
            lambda: f"SelectSeq({self.sequence(d)}, LAMBDA $n : $n > {self.integer(d)})",
            lambda: f"[$i \\in 1..({self.integer(d)} % 4) |-> $i * 2]",
            lambda: f"SortSeq({self.sequence(d)}, LAMBDA $m, $n : $m < $n)",
            lambda: f"[<<4, 5>> EXCEPT ![1] = {self.integer(d)}, ![2] = @ - 1]",
        ]
        return self._renamed(self._pick(templates)())

    def _leaf(self) -> str:
        return self._pick([*self._bound[-3:] * 2, str(self._random.randrange(5)), "(-2)"])

    def _let(self, body: Callable[[int], str], depth: int) -> str:
        name, value = self._name(), self.integer(depth)
        return f"(LET {name} == {value} IN {self._within(name, body, depth)})"

    def _scoped(
        self, template: str, body: Callable[[int], str], depth: int, *, operator: bool = False
    ) -> str:
        name, elements = self._name(), self.set(depth)
        inner = self._within(name, body, depth)
        if operator:
            return f"Twice(LAMBDA {name} : {inner} % 9, {self.integer(depth)})"
        return template.format(x=name, set=elements, body=inner)

    def _within(self, name: str, body: Callable[[int], str], depth: int) -> str:
        self._bound.append(name)
        try:
            return body(depth)
        finally:
            self._bound.pop()

    def _renamed(self, text: str) -> str:
        """The text with a fresh name for each of its `$x`: SANY refuses a name bound twice."""
        fresh: dict[str, str] = {}
        return re.sub(r"\$\w", lambda found: fresh.setdefault(found[0], self._name()), text)

    def _name(self) -> str:
        self._names += 1
        return f"x{self._names}"

    def _pick(self, choices: Sequence[Choice]) -> Choice:
        return self._random.choice(choices)


def module(name: str, expressions: Sequence[str]) -> str:
    """A module with one initial state <<i, value of the i-th expression>> for each expression."""
    header = f"---- MODULE {name} ----\nEXTENDS Integers, Sequences, FiniteSets, TLC\nVARIABLE v\n"
    operators = (
        "Twice(op(_), x) == op(op(x))\n"
        "RECURSIVE SumUpTo(_)\n"
        "SumUpTo(n) == IF n = 0 THEN 0 ELSE n + SumUpTo(n - 1)\n"
        "Squares[n \\in 0..4] == IF n = 0 THEN 0 ELSE Squares[n - 1] + 2 * n - 1\n"
    )
    definitions = "\n".join(f"E{i} == {text}" for i, text in enumerate(expressions, 1))
    choices = "\n".join(f"        \\/ v = <<{i}, E{i}>>" for i in range(1, len(expressions) + 1))
    return f"{header}{operators}{definitions}\nInit ==\n{choices}\nNext == v' = v\n====\n"
