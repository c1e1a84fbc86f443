"""What names mean while code is generated: contexts, entries of bound names, pieces of code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from conformance.tla.front import syntax as s
from conformance.tla.python.emitter import SourceLine
from conformance.tla.values import Fn, ModelValue

Kind = str | None
"""What is known of a value: "int", "bool", "str", "model", "set", "tuple", "fn"; "lazy" for what
may be a symbolic set or lazy function; None for an unknown value, which is never lazy."""
ATOMS = frozenset(["int", "str", "bool", "model"])
"""Kinds of values without parts."""


@dataclass(frozen=True, slots=True)
class PythonCode:
    """A Python expression. An atom is a name or literal: cheap to repeat."""

    text: str
    kind: Kind = None
    atom: bool = False


_WHOLE = "whole("


def as_whole(text: str) -> str:
    """The code of a variable's value where a machine traces what is read of `text`."""
    return f"{_WHOLE}{text})"


def read_of(text: str) -> str:
    """What the value is read of; any other code as it is."""
    return text[len(_WHOLE) : -1] if text.startswith(_WHOLE) else text


TRUE = PythonCode("True", "bool", atom=True)
FALSE = PythonCode("False", "bool", atom=True)


@dataclass(frozen=True, slots=True)
class BoundVariable:
    """A bound name that a Python variable holds."""

    code: PythonCode


@dataclass(slots=True)
class Slot:
    """The Python variable of a lazy value in one function, for one side of a prime."""

    name: str
    declaration: SourceLine
    loops: int
    emitted: bool = False
    kind: Kind = None


@dataclass(slots=True, eq=False)
class LazyDefinition:
    """A LET's definition or an argument: computed where first needed, as in TLC.

    `thunk` is the Python function that computes it, for a parameter passed as one, `kind` the
    kind of its result. With a `name`, all uses share the function of `function_name`, which
    remembers its result under that name.
    """

    node: s.Expr | None
    context: Frame
    declaration: SourceLine
    loops: int
    function: int
    thunk: str | None = None
    kind: Kind = "lazy"
    name: str = ""
    function_name: str = ""
    slots: dict[tuple[int, bool], Slot] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Closure:
    """An operator with the scope that it was defined in: expanded where it is applied."""

    definition: s.Definition
    context: Frame


@dataclass(frozen=True, slots=True)
class Standard:
    """A standard operator passed as an argument."""

    name: str


@dataclass(frozen=True, slots=True)
class NamedOperator:
    """An operator that is a Python function of this name: recursive, or a parameter of one.

    Of a recursive one also the definition.
    """

    name: str
    definition: s.Definition | None = None


Operator = Closure | Standard | NamedOperator
Entry = BoundVariable | LazyDefinition | Operator


@dataclass(frozen=True, slots=True)
class Frame:
    """Entries by uid; Python names of the variables' values in this and in the next state.

    `next` lacks a variable that the action has not assigned (yet). Under a prime, `primed`.
    `recursive` are the recursive functions within whose bodies the code stands.
    """

    env: Mapping[int, Entry] = field(default_factory=lambda: MappingProxyType({}))
    now: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    next: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    primed: bool = False
    recursive: frozenset[int] = frozenset()

    def bind(self, entries: Mapping[int, Entry]) -> Frame:
        """With more entries."""
        return self._in({**self.env, **entries}, self.primed)

    def within(self, env: Mapping[int, Entry], *, primed: bool = False) -> Frame:
        """The same states in another scope."""
        return self._in(env, self.primed or primed)

    def _in(self, env: Mapping[int, Entry], primed: bool) -> Frame:
        """Nothing is made as often: `dataclasses.replace` takes four times as long."""
        return Frame(env, self.now, self.next, primed, self.recursive)

    def within_function(self, uid: int) -> Frame:
        """In the body of a recursive function."""
        return replace(self, recursive=self.recursive | {uid})

    def variables(self) -> Mapping[str, str]:
        """The names of the variables' values on this side of the prime."""
        return self.next if self.primed else self.now


def kind_of(value: object) -> Kind:
    """The kind of a constant."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case str():
            return "str"
        case ModelValue():
            return "model" if value.letter is None else None
        case frozenset():
            return "set"
        case tuple():
            return "tuple"
        case Fn():
            return "fn"
        case _:
            return "lazy"


def common(first: Kind, second: Kind) -> Kind:
    """What is known of a value that is one or the other."""
    if first == second:
        return first
    return "lazy" if "lazy" in (first, second) else None
