"""What the handlers of binding constructs ask of the compiler that brings all handlers together."""

from __future__ import annotations

from typing import Protocol

from conformance.tla.errors import UnsupportedError
from conformance.tla.front import syntax as s
from conformance.tla.semantics.analysis import Analysis
from conformance.tla.semantics.program import Program
from conformance.tla.spark.environment import Environment
from conformance.tla.spark.formulas import Formula
from conformance.tla.spark.scope import FormulaScope
from conformance.tla.spark.terms import Term


class TermCompiler(Protocol):
    """Compiles the expressions of one formula."""

    program: Program
    scope: FormulaScope

    @property
    def analysis(self) -> Analysis: ...
    def term(self, node: s.Argument, names: Environment) -> Term: ...
    def formula(self, node: s.Argument, names: Environment) -> Formula: ...
    def cause(self, location: s.Location, what: str) -> str: ...
    def unsupported(self, node: s.Node, what: str) -> UnsupportedError: ...
