"""Which tests come by which statement: a copy of the implementation that notes what it runs.

A mutant whose statement no test reaches need not be run, and one that few reach is run with
these alone. So the copy has a note before each statement in question; what is noted is exact,
also for code that runs in greenlets, where a tracer of Python's would see nothing.
"""

from __future__ import annotations

import ast
import importlib.util
import marshal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from conformance.bugs.mutants import Mutant, Positions, mutants_of
from conformance.errors import DataError
from conformance.systems.bundled import import_name

MODULE = "_kconform_reached"
"""The copy's module that keeps the notes, in its set REACHED."""
_SOURCE = '''"""What was run, by the number of the statement."""

REACHED: set[int] = set()
reached = REACHED.add
'''


@dataclass(frozen=True, slots=True, order=True)
class Statement:
    """A statement that can be mutated; `start` is the offset of its first character."""

    file: str
    start: int


def statements_of(root: Path, files: Iterable[str]) -> tuple[Statement, ...]:
    """The statements of these files, relative to `root`, that have mutants."""
    return tuple(
        Statement(file, start)
        for file in sorted(files)
        for start in sorted({mutant.statement for mutant in _mutants_of(root, file)})
    )


def _mutants_of(root: Path, file: str) -> Sequence[Mutant]:
    return mutants_of(file, (root / file).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, eq=False)
class StatementReach:
    """Which statements each of some tests runs: a bit per test and statement."""

    bits: npt.NDArray[np.uint8]
    """A row per test, eight statements in a byte, as `numpy.packbits` has them."""

    def __len__(self) -> int:
        """The number of tests."""
        return len(self.bits)

    def tests(self, statement: int) -> list[int]:
        """The tests that run this statement."""
        column = self.bits[:, statement >> 3] >> (7 - (statement & 7))
        tests: list[int] = np.flatnonzero(column & 1).tolist()
        return tests

    @property
    def statements(self) -> frozenset[int]:
        """The statements that any of them runs."""
        if not len(self.bits):
            return frozenset()
        together = np.unpackbits(np.bitwise_or.reduce(self.bits, axis=0))
        return frozenset(np.flatnonzero(together).tolist())

    @classmethod
    def of_nothing(cls) -> StatementReach:
        """Of no test."""
        return cls(np.zeros((0, 0), np.uint8))

    def to_bytes(self) -> bytes:
        """Its bits."""
        return self.bits.tobytes()

    @classmethod
    def from_bytes(cls, content: bytes, statements: int) -> StatementReach:
        """Of so many statements; DataError if it cannot be."""
        width = (statements + 7) // 8
        if not width or len(content) % width:
            raise DataError(f"{len(content)} bytes are no notes of {statements} statements.")
        return cls(np.frombuffer(content, np.uint8).reshape(-1, width))


class ReachOfEachTest:
    """The notes of a copy that this process has imported, test by test."""

    def __init__(self, package: str, statements: int) -> None:
        self._reached = reached_statements(package)
        self._width = statements
        self._rows: list[npt.NDArray[np.uint8]] = []
        self._always = frozenset(self._reached)

    def begin(self) -> None:
        """Forget what was run."""
        self._reached.clear()

    def end(self) -> None:
        """A test is over. What the imports ran, each test comes by."""
        row = np.zeros(self._width, np.uint8)
        row[sorted(self._reached | self._always)] = 1
        self._rows.append(np.packbits(row))

    def reach(self) -> StatementReach:
        """Of all tests until now."""
        empty = np.zeros((0, (self._width + 7) // 8), np.uint8)
        return StatementReach(np.stack(self._rows) if self._rows else empty)


def note_reached(package: Path, statements: Sequence[Statement]) -> None:
    """Let the copy of the package note, when it runs, which of these statements it comes by.

    Only compiled modules are written: the text and its lines stay as tracebacks show them.
    """
    (package / f"{MODULE}.py").write_text(_SOURCE, encoding="utf-8")
    by_file: dict[str, dict[int, int]] = {}
    for number, statement in enumerate(statements):
        by_file.setdefault(statement.file, {})[statement.start] = number
    for file, numbers in by_file.items():
        _compile(package / file, _with_notes(package / file, file, numbers))


def reached_statements(package: str) -> set[int]:
    """What the copy that this process has imported notes, as it does."""
    reached: set[int] = sys.modules[f"{import_name(package)}.{MODULE}"].REACHED
    return reached


def _compile(path: Path, tree: ast.Module) -> None:
    """Have this imported in place of the text, which is not looked at again (PEP 552)."""
    code = compile(tree, str(path), "exec", dont_inherit=True)
    unchecked = (1).to_bytes(4, "little")
    digest = importlib.util.source_hash(path.read_bytes())
    compiled = Path(importlib.util.cache_from_source(str(path)))
    compiled.parent.mkdir(exist_ok=True, parents=True)
    compiled.unlink(missing_ok=True)  # it may be a link to another copy's
    compiled.write_bytes(importlib.util.MAGIC_NUMBER + unchecked + digest + marshal.dumps(code))


def _with_notes(path: Path, file: str, numbers: Mapping[int, int]) -> ast.Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    place = len(list(takewhile(_comes_first, tree.body)))
    _Notes(text, numbers).generic_visit(tree)
    up = "." * len(Path(file).parts)
    importing = ast.parse(f"from {up}{MODULE} import reached as {MODULE}").body
    tree.body[place:place] = importing
    return ast.fix_missing_locations(tree)


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

    def __init__(self, text: str, numbers: Mapping[int, int]) -> None:
        self._position = Positions(text)
        self._numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST]:
        """A statement comes back with a note before it."""
        number = None
        if isinstance(node, ast.stmt):
            number = self._numbers.get(self._position.offset(node.lineno, node.col_offset))
        self.generic_visit(node)
        return node if number is None else [ast.copy_location(_note(number), node), node]


def _note(number: int) -> ast.stmt:
    return ast.Expr(ast.Call(ast.Name(MODULE, ast.Load()), [ast.Constant(number)], []))
