"""Which mutants a model's suite comes by: a copy of the implementation that notes it.

A mutant whose statement no model reaches need not be run, and one that few reach is run with
these alone. So the copy has a note before each statement in question; what is noted is exact,
also for code that runs in greenlets, where a tracer of Python's would see nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from conformance.bugs.mutants import Mutant

MODULE = "_kconform_reached"
"""The copy's module that keeps the notes, in its set REACHED."""
_SOURCE = '''"""What was run, by the number of the mutant there."""

REACHED: set[int] = set()


def reached(*numbers: int) -> None:
    """Note it."""
    REACHED.update(numbers)
'''


def note_reached(package: Path, mutants: Sequence[Mutant]) -> None:
    """Rewrite the copy of the package so that running it notes which mutants it comes by."""
    (package / f"{MODULE}.py").write_text(_SOURCE, encoding="utf-8")
    by_file: dict[str, dict[int, list[int]]] = {}
    for number, mutant in enumerate(mutants):
        by_file.setdefault(mutant.file, {}).setdefault(mutant.statement, []).append(number)
    for file, numbers in by_file.items():
        path = package / file
        text = path.read_text(encoding="utf-8")
        path.write_text(_with_notes(text, package.name, numbers), encoding="utf-8")


def _with_notes(text: str, package: str, numbers: Mapping[int, Sequence[int]]) -> str:
    tree = ast.parse(text)
    _Notes(text, numbers).generic_visit(tree)
    ast.fix_missing_locations(tree)
    place = sum(_comes_first(statement) for statement in tree.body)
    importing = ast.parse(f"from {package}.{MODULE} import reached as {MODULE}").body
    tree.body[place:place] = importing
    return ast.unparse(tree)


def _comes_first(statement: ast.stmt) -> bool:
    """The module's docstring, and imports from the future."""
    match statement:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.ImportFrom(module="__future__"):
            return True
    return False


class _Notes(ast.NodeTransformer):
    """Puts a call before each statement that a mutant is in."""

    def __init__(self, text: str, numbers: Mapping[int, Sequence[int]]) -> None:
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST]:
        """A statement comes back with a note before it."""
        offset = self._offset(node) if isinstance(node, ast.stmt) else None
        self.generic_visit(node)
        numbers = () if offset is None else self._numbers.get(offset, ())
        return [_note(numbers), node] if numbers else node

    def _offset(self, node: ast.stmt) -> int:
        prefix = self._lines[node.lineno - 1].encode()[: node.col_offset]
        return self._starts[node.lineno - 1] + len(prefix.decode())


def _note(numbers: Iterable[int]) -> ast.stmt:
    arguments: list[ast.expr] = [ast.Constant(number) for number in numbers]
    return ast.Expr(ast.Call(ast.Name(MODULE, ast.Load()), arguments, []))
