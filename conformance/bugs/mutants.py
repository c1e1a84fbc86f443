"""Random mutants of the implementation: small changes of its text that nobody chose.

Every mutant is a patch of exact source positions, found in the syntax tree. What cannot make a
difference that anybody could see is left out, each kind for the reason in `UNSEEN`.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from conformance.errors import UserError

UNSEEN: Mapping[str, str] = MappingProxyType(
    {
        "log lines": "nothing but a log line is changed",
        "messages of exceptions": "nothing but the text of an exception is changed",
        "protocols": "the body of a Protocol or abstract method never runs",
        "same code": "the syntax tree is the same",
    }
)
"""Kinds of equivalent mutants that are not made, and why."""

LOCK = "lock removed"

_COMPARISONS: Mapping[type[ast.cmpop], tuple[str, str]] = MappingProxyType(
    {
        ast.Lt: ("<", "<="),
        ast.LtE: ("<=", "<"),
        ast.Gt: (">", ">="),
        ast.GtE: (">=", ">"),
        ast.Eq: ("==", "!="),
        ast.NotEq: ("!=", "=="),
        ast.Is: ("is", "is not"),
        ast.IsNot: ("is not", "is"),
        ast.In: ("in", "not in"),
        ast.NotIn: ("not in", "in"),
    }
)
_ARITHMETIC: Mapping[type[ast.operator], tuple[str, str]] = MappingProxyType(
    {
        ast.Add: ("+", "-"),
        ast.Sub: ("-", "+"),
        ast.BitOr: ("|", "&"),
        ast.BitAnd: ("&", "|"),
    }
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file; `start` and `end` are offsets of characters in its text."""

    file: str
    line: int
    kind: str
    start: int
    end: int
    new: str
    old: str
    statement: int
    """Offset of the statement that the change is in."""

    @property
    def id(self) -> str:
        """What it is called: the file, the line and the place in it."""
        return f"{self.file}:{self.line}:{self.start}:{self.kind}:{self.texts[1]}"

    @property
    def texts(self) -> tuple[str, str]:
        """What is shown of the old text and of the new one.

        Of a lock's section: the lock, and the first line of what it guards.
        """
        if self.kind == LOCK:
            lock, _, guarded = self.old.partition(":\n")
            return lock, guarded.strip().partition("\n")[0]
        return " ".join(self.old.split()), " ".join(self.new.split())

    def apply(self, text: str) -> str:
        """The changed text."""
        return text[: self.start] + self.new + text[self.end :]

    def __str__(self) -> str:
        old, new = self.texts
        joined = "before" if self.kind == LOCK else "becomes"
        return f"{self.file}:{self.line} {self.kind}: {old!r} {joined} {new!r}"


class Positions:
    """Offsets of characters for the syntax tree's positions, which count bytes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def offset(self, line: int, column: int) -> int:
        """The character at a position of the tree."""
        prefix = self._lines[line - 1].encode()[:column]
        return self._starts[line - 1] + len(prefix.decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where the node stands."""
        end_line = node.end_lineno or node.lineno
        end_column = node.end_col_offset or 0
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)


def mutants_of(file: str, text: str) -> list[Mutant]:
    """All mutants of a file's text, in the order of their places."""
    mutants = {mutant.id: mutant for mutant in _Finder(file, Positions(text)).of(ast.parse(text))}
    return sorted(mutants.values(), key=lambda mutant: (mutant.start, mutant.kind, mutant.new))


def named(root: Path, ids: Iterable[str]) -> tuple[Mutant, ...]:
    """The mutants of these ids, of files below `root`.

    UserError if a file or its text has no such mutant.
    """
    known: dict[str, dict[str, Mutant]] = {}
    mutants = []
    for id_ in ids:
        file = id_.partition(":")[0]
        if file not in known:
            path = root / file
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            known[file] = {mutant.id: mutant for mutant in mutants_of(file, text)}
        if id_ not in known[file]:
            raise UserError(
                f"There is no mutant {id_!r} of this implementation's text. Ids are in the JSON "
                "report of `kconform bugs --mutants`; they change with the text."
            )
        mutants.append(known[file][id_])
    return tuple(mutants)


def differs(mutant: Mutant, text: str) -> bool:
    """Whether the change is a program, and another one."""
    try:
        changed = ast.dump(ast.parse(mutant.apply(text)))
    except SyntaxError:
        return False
    return changed != ast.dump(ast.parse(text))


class _Finder:
    """Walks a module's statements."""

    def __init__(self, file: str, text: Positions) -> None:
        self._file = file
        self._text = text

    def of(self, module: ast.Module) -> Iterator[Mutant]:
        """Every mutant, some of them perhaps twice."""
        for statement in module.body:
            yield from self._statement(statement)

    def _statement(self, node: ast.stmt) -> Iterator[Mutant]:
        if _never_runs(node):
            return
        yield from self._of_statement(node)
        for expression in _own_expressions(node):
            yield from self._expression(expression, node)
        for child in _nested(node):
            yield from self._statement(child)

    def _of_statement(self, node: ast.stmt) -> Iterator[Mutant]:
        start, end = self._text.span(node)
        match node:
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete():
                yield self._mutant(node, "statement removed", start, end, "pass", node)
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self._mutant(node, "statement removed", start, end, "pass", node)
            case ast.If(test=test) | ast.While(test=test):
                yield from self._negated(test, node)
            case ast.With(items=[ast.withitem(context_expr=lock, optional_vars=None)]) if _is_lock(
                lock
            ):
                yield self._mutant(node, LOCK, start, end, self._unlocked(node, lock), node)
            case ast.Return(value=ast.expr() as value) if _is_flag(value):
                yield from self._negated(value, node)

    def _unlocked(self, section: ast.With, lock: ast.expr) -> str:
        """The section without its lock: another thread may come in before each statement.

        Taking the lock and giving it back is such a place also for threads that change only at
        locks; where a caller holds the lock, it is none.
        """
        text, end = self._text.text, self._text.span(section)[1]
        selection = text[slice(*self._text.span(lock))]
        before = text.index(":", self._text.span(lock)[1]) + 1
        parts = ["if True:"]
        for place, column in self._places(section.body):
            pause = f"with {selection}:\n{' ' * (column + 4)}pass\n{' ' * column}"
            parts += [text[before:place], pause]
            before = place
        return "".join([*parts, text[before:end]])

    def _places(self, body: Sequence[ast.stmt]) -> Iterator[tuple[int, int]]:
        """Where the statements begin, those within them too, and in which column."""
        for node in body:
            start = self._text.span(node)[0]
            if not self._text.text.startswith("elif", start):
                yield start, node.col_offset
            if not isinstance(node, ast.FunctionDef):
                yield from self._places(list(_nested(node)))

    def _negated(self, test: ast.expr, node: ast.stmt) -> Iterator[Mutant]:
        start, end = self._text.span(test)
        yield self._mutant(
            test, "condition negated", start, end, f"not ({self._text.text[start:end]})", node
        )

    def _expression(self, node: ast.expr, owner: ast.stmt) -> Iterator[Mutant]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield from self._between(node, owner, left, right, *_COMPARISONS[type(op)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                yield from self._between(node, owner, left, right, *_ARITHMETIC[type(op)])
            case ast.BoolOp(op=op, values=[left, right]):
                old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                yield from self._between(node, owner, left, right, old, new)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                start, end = self._text.span(node)
                inner = slice(*self._text.span(operand))
                yield self._mutant(
                    node, "not removed", start, end, f"({self._text.text[inner]})", owner
                )
            case ast.Constant(value=bool() | int() as value):
                start, end = self._text.span(node)
                new = str(not value) if isinstance(value, bool) else str(value + 1)
                yield self._mutant(node, "constant", start, end, new, owner)
            case ast.Call(func=ast.Name(id="min" | "max" as name) as function):
                start, end = self._text.span(function)
                other = "max" if name == "min" else "min"
                yield self._mutant(node, "operator", start, end, other, owner)
            case ast.Call(args=[first, second, *_]):
                yield from self._swapped(first, second, owner)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self._expression(child, owner)
            elif isinstance(child, ast.keyword):
                yield from self._expression(child.value, owner)
            elif isinstance(child, ast.comprehension):
                for part in (child.iter, *child.ifs):
                    yield from self._expression(part, owner)

    def _between(
        self, node: ast.expr, owner: ast.stmt, left: ast.expr, right: ast.expr, old: str, new: str
    ) -> Iterator[Mutant]:
        """Another operator between the two, if there is exactly one."""
        start, end = self._text.span(left)[1], self._text.span(right)[0]
        place = self._text.text[start:end]
        if place.count(old) == 1:
            kind = "comparison" if isinstance(node, ast.Compare) else "operator"
            yield self._mutant(node, kind, start, end, place.replace(old, new), owner)

    def _swapped(self, first: ast.expr, second: ast.expr, owner: ast.stmt) -> Iterator[Mutant]:
        if isinstance(first, ast.Starred) or isinstance(second, ast.Starred):
            return
        (a, b), (c, d) = self._text.span(first), self._text.span(second)
        text = self._text.text
        yield self._mutant(
            first, "arguments swapped", a, d, text[c:d] + text[b:c] + text[a:b], owner
        )

    def _mutant(
        self, node: ast.expr | ast.stmt, kind: str, start: int, end: int, new: str, owner: ast.stmt
    ) -> Mutant:
        old = self._text.text[start:end]
        statement = self._text.span(owner)[0]
        return Mutant(self._file, node.lineno, kind, start, end, new, old, statement)


def _never_runs(node: ast.stmt) -> bool:
    """Imports, log lines, raised messages, protocols: see UNSEEN."""
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Raise() | ast.Assert():
            return True
        case ast.ClassDef(bases=bases):
            return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)
        case ast.FunctionDef(decorator_list=decorators, name=name):
            abstract = any(
                ast.unparse(decorator).endswith("abstractmethod") for decorator in decorators
            )
            return abstract or name in ("__repr__", "__str__")
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=value))):
            return ast.unparse(value).rpartition(".")[2] in ("_log", "log", "logging", "_logger")
    return False


def _is_lock(expression: ast.expr) -> bool:
    return "lock" in ast.unparse(expression).lower()


def _is_flag(expression: ast.expr) -> bool:
    return isinstance(expression, ast.Compare | ast.BoolOp)


def _nested(node: ast.stmt) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _own_expressions(node: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement that belong to no statement within it.

    Not annotations, decorators or the bases of classes.
    """
    match node:
        case ast.FunctionDef(args=arguments):
            yield from (
                default for default in (*arguments.defaults, *arguments.kw_defaults) if default
            )
        case ast.ClassDef():
            return
        case ast.AnnAssign(value=value):
            if value is not None:
                yield value
        case ast.With(items=items):
            yield from (item.context_expr for item in items)
        case ast.Match(subject=subject, cases=cases):
            yield subject
            yield from (case.guard for case in cases if case.guard is not None)
        case _:
            yield from (node for node in ast.iter_child_nodes(node) if isinstance(node, ast.expr))


@dataclass(frozen=True, slots=True)
class Draw:
    """Mutants that were drawn, how many there were to draw from, and the others by reason."""

    mutants: tuple[Mutant, ...]
    population: int
    aside: Mapping[str, int]


def draw(
    root: Path,
    files: Iterable[str],
    number: int,
    seed: int,
    set_aside: Callable[[Mutant], str] = lambda _: "",
) -> Draw:
    """As many mutants as wanted of these files below `root`, but of those that are set aside.

    Spread over the files as their mutants are; the same seed draws the same of the same text, and
    a longer draw begins with a shorter one.
    """
    texts = {file: (root / file).read_text(encoding="utf-8") for file in sorted(files)}
    every: list[tuple[float, Mutant]] = []
    aside: Counter[str] = Counter()
    for file, text in texts.items():
        chance = random.Random(f"{seed}:{file}")
        result = [(mutant, set_aside(mutant)) for mutant in mutants_of(file, text)]
        aside.update(reason for _, reason in result if reason)
        own = [mutant for mutant, reason in result if not reason]
        chance.shuffle(own)
        begin = chance.random()
        every += [((place + begin) / len(own), mutant) for place, mutant in enumerate(own)]
    every.sort(key=lambda pair: (pair[0], pair[1].id))
    fitting = (mutant for _, mutant in every if differs(mutant, texts[mutant.file]))
    return Draw(tuple(islice(fitting, number)), len(every), aside)
