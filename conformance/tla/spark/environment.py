"""What bound names mean while an expression is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from conformance.tla.front import syntax as s
from conformance.tla.spark.terms import Term


@dataclass(slots=True)
class Operand:
    """An operand: compiled when it is used, once for the state and once for the next one."""

    compile: Callable[[bool], Term]
    terms: dict[bool, Term] = field(default_factory=dict)

    def term(self, primed: bool = False) -> Term:
        """The operand's term, in the next state if `primed`."""
        if primed not in self.terms:
            self.terms[primed] = self.compile(primed)
        return self.terms[primed]


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator as an argument, with the names that it may mention."""

    target: s.OperatorArg
    names: Environment


Meaning = Operand | Operator


@dataclass(frozen=True, slots=True)
class Environment:
    """Bound names and local definitions; `primed`: variables are those of the next state.

    `depth` calls have been entered, of which `recursive` is the last of a RECURSIVE operator.
    """

    bound: Mapping[int, Meaning]
    primed: bool = False
    depth: int = 0
    recursive: str = ""

    def having(self, more: Mapping[int, Meaning]) -> Environment:
        """These names and more."""
        return replace(self, bound={**self.bound, **more})

    def in_next_state(self) -> Environment:
        """The same under a prime."""
        return replace(self, primed=True)

    def inside(self, definition: s.Definition, operands: Mapping[int, Meaning]) -> Environment:
        """Inside a call, which sees its operands too."""
        return Environment(
            {**self.bound, **operands},
            self.primed,
            self.depth + 1,
            definition.name if definition.recursive else self.recursive,
        )


def rigid(term: Term) -> Operand:
    """A name for a value, which a prime does not change."""
    return Operand(lambda _: term)
