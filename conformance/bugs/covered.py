"""Which mutants are of what the specifications are about; the others are counted by their reason.

A module is set aside by the list in `covered.toml`, a function if no suite enters it, a statement
if it is in no function, or if all it does is to count for a metric or a quota. What is left is
drawn from, reached or not.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec

from conformance import toml
from conformance.bugs.mutants import Mutant, Positions
from conformance.errors import UserError

FILE = Path(__file__).with_name("covered.toml")
NOT_ENTERED = "in functions that no suite enters"
NO_FUNCTION = "outside of functions: limits, and defaults of settings, of which a model has its own"
METRIC = "statements that only count for a metric or a quota"
_COUNTING = frozenset(
    {
        "mark",
        "mark_failed",
        "mark_isr_expand",
        "mark_isr_shrink",
        "new_gauge",
        "new_meter",
        "record",
        "set_lag",
    }
)
"""Methods of metrics and sensors; none of them has a result that anything is done with."""


class _BelowTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    files: tuple[str, ...]


class _CoveredTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    below: tuple[_BelowTable, ...] = ()


def read_below(path: Path = FILE) -> Mapping[str, str]:
    """By file of the implementation: why no specification is about it. UserError if damaged."""
    try:
        read = toml.decode(path.read_bytes(), _CoveredTable)
    except (OSError, msgspec.DecodeError) as error:
        raise UserError(f"{path} is no list of modules: {error}.") from error
    return {file: table.reason for table in read.below for file in table.files}


@dataclass(frozen=True)
class CoveredModule:
    """A module's functions and its counting statements; offsets are of characters in its text."""

    text: str

    @cached_property
    def _position(self) -> Positions:
        return Positions(self.text)

    @cached_property
    def _tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def functions(self) -> tuple[tuple[int, int], ...]:
        """Where the body of each function begins and ends, by its beginning."""
        result = (
            (self._position.span(node.body[0])[0], self._position.span(node)[1])
            for node in ast.walk(self._tree)
            if isinstance(node, ast.FunctionDef)
        )
        return tuple(sorted(result))

    @cached_property
    def counting(self) -> frozenset[int]:
        """The statements that do nothing but count for a metric."""
        return frozenset(
            self._position.span(node)[0]
            for node in ast.walk(self._tree)
            if isinstance(node, ast.stmt) and _only_counts(node)
        )

    def function(self, statement: int) -> tuple[int, int] | None:
        """The innermost function that the statement is in; None: it runs when it is imported."""
        first = bisect_right(self.functions, (statement, len(self.text)))
        return next(
            (function for function in reversed(self.functions[:first]) if statement < function[1]),
            None,
        )


def _only_counts(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name in _COUNTING
        case ast.If(body=body, orelse=orelse):
            return all(map(_only_counts, [*body, *orelse]))
    return False


@dataclass(frozen=True)
class CoveredStatements:
    """`reached`: by file, the offsets of the statements that a suite runs."""

    modules: Mapping[str, CoveredModule]
    reached: Mapping[str, Collection[int]]
    below: Mapping[str, str]

    @classmethod
    def of(cls, root: Path, reached: Mapping[str, Collection[int]]) -> CoveredStatements:
        """Of the files below `root` of which it is known what is reached."""
        texts = {file: (root / file).read_text(encoding="utf-8") for file in reached}
        modules = {file: CoveredModule(text) for file, text in texts.items()}
        return cls(modules, reached, read_below())

    @cached_property
    def _entered(self) -> Mapping[str, frozenset[tuple[int, int] | None]]:
        return {
            file: frozenset(module.function(offset) for offset in self.reached[file])
            for file, module in self.modules.items()
        }

    def set_aside(self, mutant: Mutant) -> str:
        """Why it is not drawn; empty if it is of what the specifications are about."""
        below = self.below.get(mutant.file)
        if below is not None:
            return below
        module = self.modules[mutant.file]
        if mutant.statement in module.counting:
            return METRIC
        function = module.function(mutant.statement)
        if function is None:
            return NO_FUNCTION
        return "" if function in self._entered[mutant.file] else NOT_ENTERED
