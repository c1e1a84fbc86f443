"""What the parts of the code generator ask of each other.

`writer` brings the handlers of `builtins`, `logic` and `structures` together: it sends each kind
of node to the one that writes it. The handlers know the writer as a `CodeWriter`, the writer knows
the machine that owns the code as `Services`; so no module needs one that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from conformance.tla.errors import UnsupportedError
from conformance.tla.front import syntax as s
from conformance.tla.python.emitter import Emitter
from conformance.tla.python.scope import Frame, Kind, Operator, PythonCode
from conformance.tla.semantics.analysis import Analysis
from conformance.tla.semantics.program import Program
from conformance.tla.semantics.temporal import TEMPORAL


class Routine(Protocol):
    """A compiled definition: its Python name, the variables it reads, how it takes arguments."""

    name: str
    variables: tuple[str, ...]
    strict: tuple[bool, ...]
    kind: Kind
    lazy: bool


class Services(Protocol):
    """What a writer asks of the machine that owns the generated code."""

    program: Program
    analysis: Analysis
    patient: bool
    traced: bool

    def constant(self, node: s.Expr) -> PythonCode: ...
    def pool(self, value: object) -> PythonCode: ...
    def elements(self, node: s.Expr) -> tuple[PythonCode, Kind] | None: ...
    def empty(self, code: PythonCode) -> bool: ...
    def infinite(self, node: s.Expr) -> bool: ...
    def by_rule(self, node: s.Expr) -> bool: ...
    def routine(self, definition: s.Definition) -> Routine: ...
    def enabled(self, writer: CodeWriter, node: s.Expr, context: Frame) -> PythonCode: ...


class CodeWriter(Protocol):
    """The body of one generated function, as the handlers see it."""

    services: Services
    emitter: Emitter
    partial: bool

    def expr(self, node: s.Expr, context: Frame) -> PythonCode: ...
    def expression(self, node: s.Argument) -> s.Expr: ...
    def argument(self, node: s.Argument, context: Frame) -> PythonCode: ...
    def value(self, node: s.Argument, context: Frame) -> PythonCode: ...
    def truth(self, node: s.Argument, context: Frame) -> PythonCode: ...
    def checked(self, code: PythonCode) -> PythonCode: ...
    def atom(self, code: PythonCode, prefix: str = "t") -> PythonCode: ...
    def named(self, code: PythonCode) -> tuple[str, str]: ...
    def function(self, header: str) -> AbstractContextManager[None]: ...
    def let(self, node: s.Let, context: Frame) -> Frame: ...
    def operator(self, arg: s.Argument, context: Frame) -> Operator: ...
    def callable(self, arg: s.Argument, context: Frame) -> str: ...
    def callee(self, node: s.Expr, context: Frame) -> tuple[s.Expr, Frame] | None: ...
    def expands(self, definition: s.Definition, args: Sequence[s.Argument]) -> bool: ...
    def apply_definition(
        self, definition: s.Definition, args: Sequence[s.Argument], context: Frame
    ) -> PythonCode: ...
    def apply_operator(
        self, operator: Operator, args: Sequence[s.Argument], at: s.Location, context: Frame
    ) -> PythonCode: ...


def unsupported(node: s.Node, what: str) -> UnsupportedError:
    """The error for what the Python evaluator lacks."""
    hint = " TLC checks temporal formulas." if what in TEMPORAL else ""
    return UnsupportedError(
        f"{node.location}: {what} is not supported by the Python evaluator.{hint}"
    )
