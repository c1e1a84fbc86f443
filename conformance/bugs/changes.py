"""Which statements of a copy differ from the clean implementation: what has to run for a fault."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from conformance.bugs.mutants import Positions
from conformance.bugs.reach import Statement
from conformance.bugs.scope import changed_files

_LOCK = re.compile(r"(?<![a-zA-Z])lock")
"""A lock's name; no clock, and nothing that blocks."""


def changed_statements(clean: Path, copy: Path) -> tuple[Statement, ...]:
    """The statements of the copy that a change is in; both are folders of the package.

    Of lines that were removed it is the function that they were in. A change outside of functions
    runs when the module is imported, and has no statement here.
    """
    statements: dict[Statement, None] = {}
    for file in changed_files(copy, clean):
        if (copy / file).is_file():
            before = _text(clean / file) if (clean / file).is_file() else ""
            module = _Module(file, _text(copy / file))
            statements.update(dict.fromkeys(module.changed(before)))
    return tuple(sorted(statements))


def changes_a_lock(clean: Path, copy: Path) -> bool:
    """Whether a changed line names a lock: then the fault shows where threads meet."""
    return any(
        _LOCK.search(line) is not None
        for file in changed_files(copy, clean)
        for line in _changed_lines(clean / file, copy / file)
    )


def _changed_lines(before: Path, after: Path) -> Iterator[str]:
    old, new = (_text(path).splitlines() if path.is_file() else [] for path in (before, after))
    for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (*old[i:j], *new[k:m])


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class _Module:
    file: str
    text: str

    @cached_property
    def _positions(self) -> Positions:
        return Positions(self.text)

    @cached_property
    def _functions(self) -> Sequence[ast.FunctionDef]:
        return [n for n in ast.walk(ast.parse(self.text)) if isinstance(n, ast.FunctionDef)]

    def changed(self, before: str) -> Iterator[Statement]:
        """The statements in which this text differs from the one before."""
        old, new = before.splitlines(), self.text.splitlines()
        for tag, _, _, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "delete":
                yield from self._entry_of(first)
            elif tag != "equal":
                for line in range(first + 1, last + 1):
                    yield from self._at(line)

    def _at(self, line: int) -> Iterator[Statement]:
        """The innermost statement at a line of the text, of those in functions."""
        inside = [
            node
            for function in self._functions
            for node in ast.walk(function)
            if isinstance(node, ast.stmt) and _first_line(node) <= line <= _last_line(node)
        ]
        if inside:
            innermost = min(inside, key=lambda node: _last_line(node) - _first_line(node))
            yield self._statement(_entry(innermost))

    def _entry_of(self, line: int) -> Iterator[Statement]:
        """Where the innermost function is entered that has the lines around this place."""
        inside = [f for f in self._functions if _first_line(f) <= max(line, 1) <= _last_line(f)]
        if inside:
            yield self._statement(_entry(min(inside, key=lambda f: _last_line(f) - f.lineno)))

    def _statement(self, node: ast.stmt) -> Statement:
        return Statement(self.file, self._positions.offset(node.lineno, node.col_offset))


def _first_line(node: ast.stmt) -> int:
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.lineno
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _entry(node: ast.stmt) -> ast.stmt:
    """The statement; of a function the first that runs when it is called."""
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node
    body = [child for child in node.body if not _is_docstring(child)] or node.body[-1:]
    return _entry(body[0])


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
