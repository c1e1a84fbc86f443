"""Shows what the back ends make of a formula or action: the pipeline, stage by stage.

    text      the TLA+ as it is written
    tree      SANY's XML read into the syntax tree, every name and INSTANCE resolved
    facts     what the expression depends on, through all operators that it calls
    python    the function that judges a state or a step; of an action also the function that
              finds the next states
    types     the columns of the states, as Spark sees them
    formula   Spark's three-valued formula: when it is true, when false, when it has no value
    sql       the chain of projections that computes it

`STAGES` is that pipeline. Each stage is made afresh, by the compilers themselves: nothing is
shown that is not what runs, but for the names of operators' functions (`R_7`), which are shown
as `Op_Name`.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, pairwise

from conformance.tla.errors import SpecError, UnsupportedError
from conformance.tla.front import syntax as s
from conformance.tla.front.tree import head, tree_lines
from conformance.tla.python.machine import Listing, Machine
from conformance.tla.python.session import TlcSession
from conformance.tla.python.spec import Spec
from conformance.tla.search import reachable_states
from conformance.tla.spark.api import (
    SparkFormula,
    compile_action,
    compile_action_formulas,
    compile_state_formulas,
)
from conformance.tla.spark.formulas import (
    Atom,
    Conditional,
    Formula,
    Guards,
    Junction,
    Not,
    Nullable,
    Quantified,
    Truth,
)
from conformance.tla.spark.physical import ddl
from conformance.tla.spark.writer import expression, staged
from conformance.tla.values import Value, format_value
from conformance.tla.values.schema import Schema, infer, infer_schema
from conformance.tla.values.types import Type

SAMPLE = 2_000
"""States from which the types of the variables are inferred, if no schema is given."""


@dataclass(frozen=True, slots=True)
class StageText:
    """One stage of one formula, as text."""

    stage: str
    title: str
    text: str


@dataclass(frozen=True)
class ShownDefinition:
    """What is shown: a definition of a bound specification."""

    spec: Spec
    name: str
    schema: Schema | None = None

    @cached_property
    def definition(self) -> s.Definition:
        """The definition; SpecError if there is none of that name."""
        known = self.spec.module.operators
        if self.name not in known:
            close = difflib.get_close_matches(self.name, known, n=2)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            raise SpecError(f"{self.spec.module.name} defines no operator {self.name}.{hint}")
        return self.spec.program.operator(self.name, "what to show")

    @cached_property
    def machine(self) -> Machine:
        """A machine that has compiled nothing yet."""
        return Machine(self.spec.program, TlcSession())

    @cached_property
    def is_action(self) -> bool:
        """Whether it is about two states."""
        return self.spec.machine.analysis.of_definition(self.definition.uid).primes

    @cached_property
    def columns(self) -> Schema:
        """The types of the variables: those given, or those of the first states of a search."""
        if self.schema is not None:
            return self.schema
        return infer_schema(self.spec.variables, islice(reachable_states(self.spec), SAMPLE))


def show(
    spec: Spec, name: str, stages: Iterable[str] | None = None, *, schema: Schema | None = None
) -> list[StageText]:
    """The stages (`STAGES`' names) of the operator of that name.

    If none is named, all; one that a back end cannot make says why instead.
    Without a `schema` Spark's columns have the types that the first `SAMPLE` states need.
    SpecError if there is no such operator, UnsupportedError if a back end lacks something that a
    named stage needs.
    """
    subject = ShownDefinition(spec, name, schema)
    if stages is None:
        return [shown for stage in STAGES for shown in _if_supported(subject, stage)]
    return [shown for stage in stages for shown in _stage(subject, stage)]


def _stage(subject: ShownDefinition, stage: str) -> list[StageText]:
    return [StageText(stage, title, text) for title, text in STAGES[stage](subject)]


def _if_supported(subject: ShownDefinition, stage: str) -> list[StageText]:
    try:
        return _stage(subject, stage)
    except UnsupportedError as error:
        return [StageText(stage, f"{stage}: none", str(error))]


def lacks_arguments(spec: Spec, name: str) -> bool:
    """Whether it is an action with arguments of which the next-state relation has no instance.

    Then nothing says of what types the arguments are, which Spark's columns need. SpecError if
    there is no such operator.
    """
    subject = ShownDefinition(spec, name)
    if not subject.is_action or not subject.definition.params:
        return False
    return not _instances(subject)


Titled = Iterator[tuple[str, str]]


def _text(subject: ShownDefinition) -> Titled:
    location = subject.definition.location
    yield f"TLA+ ({location})", "\n".join(_Sources(subject.spec).lines(location))


def _tree(subject: ShownDefinition) -> Titled:
    module, definition = subject.spec.module, subject.definition
    lines = [f"{head(definition)} ==", *tree_lines(module, definition.body, 1)]
    yield "syntax tree", "\n".join(lines)


def _facts(subject: ShownDefinition) -> Titled:
    analysis = subject.spec.machine.analysis
    facts = analysis.of_definition(subject.definition.uid)
    called = [subject.spec.program.definition(uid).name for uid in sorted(facts.calls)]
    lines = [
        f"variables  {', '.join(sorted(facts.variables)) or 'none'}",
        f"calls      {', '.join(dict.fromkeys(called)) or 'none'}",
        f"primes     {'yes' if facts.primes else 'no'}",
        f"recursive  {'yes' if analysis.recursive(subject.definition.uid) else 'no'}",
        f"nodes      {facts.size}",
    ]
    yield "facts", "\n".join(lines)


# Python


def _python(subject: ShownDefinition) -> Titled:
    definition, machine = subject.definition, subject.machine
    if subject.spec.is_temporal(definition.body):
        step = subject.spec.property_of(subject.name).step
        if step is None:
            raise UnsupportedError(f"{definition.location}: {subject.name} says nothing of a step.")
        machine.action_formula(step.definition.body)
        yield "Python: does it allow this step?", _listed(subject)
    elif subject.is_action:
        machine.action_formula(definition.body, definition.params)
        yield "Python: is it this action?", _listed(subject)
        kinds = [None] * len(definition.params)
        machine.successors(definition.body, definition.params, kinds, definition.name, {})
        yield "Python: where does it lead?", _listed(subject)
    elif definition.params:
        machine.routine(definition)
        yield "Python: an operator", _listed(subject)
    elif _is_formula(subject.spec, definition.body):
        machine.state_formula(definition.body)
        yield "Python: is it true?", _listed(subject)
    else:
        machine.expression(definition.body)
        yield "Python: its value", _listed(subject)


_FORMULAS = frozenset({
    "TRUE", "FALSE", r"\land", r"\lor", r"\lnot", "=>", r"\equiv", "=", "/=", r"\in", r"\notin",
    r"\subseteq", "<", ">", r"\leq", r"\geq", "IsFiniteSet", "ENABLED",
})  # fmt: skip
"""The operators whose value is a boolean."""


def _is_formula(spec: Spec, node: s.Expr) -> bool:
    """Whether the text alone says that the value is a boolean."""
    match node:
        case s.Binding(kind=kind):
            return kind in (r"\A", r"\E")
        case s.Builtin(operator=operator):
            return operator in _FORMULAS
        case s.If(then=part) | s.Let(body=part):
            return _is_formula(spec, part)
        case s.Call(target=int()):
            meaning = spec.program.meaning(node)
            recursive = isinstance(meaning, s.Definition) and meaning.recursive
            if isinstance(meaning, s.Definition) and not recursive:
                return _is_formula(spec, meaning.body)
            return False
        case _:
            return False


def _listed(subject: ShownDefinition) -> str:
    """What the machine compiled since it was last asked, with the text that each line is for."""
    machine, sources = subject.machine, _Sources(subject.spec)
    listings = [listing for listing in machine.take_listings() if not listing.folded]
    text = "\n\n".join("\n".join(_beside(listing, sources)) for listing in reversed(listings))
    constants = dict.fromkeys(re.findall(r"\bK_\d+\b", text))
    legend = [f"# {name} is {_shown(machine.constant_value(name))}" for name in constants]
    variables = subject.spec.variables
    for row, prime in ("s", ""), ("t", "'"):
        places = sorted({int(number) for number in re.findall(rf"\b{row}\[(\d+)\]", text)})
        legend += [f"# {row}[{place}] is {variables[place]}{prime}" for place in places]
    return "\n".join([*legend, *([""] if legend else []), _with_names(subject.spec, text)])


def _shown(value: object) -> str:
    try:
        return format_value(value)  # type: ignore[arg-type]  # raises for others
    except TypeError:  # a set that is kept as a rule, or an error that waits
        return str(value)


def _beside(listing: Listing, sources: _Sources) -> Iterator[str]:
    """The code; above a line, as a comment, the TLA+ line that it begins to be for."""
    before: tuple[str, int] | None = None
    for text, place in zip(listing.source.splitlines(), listing.places, strict=True):
        here = None if place is None else (place.module, place.line)
        quoted = "" if place is None else sources.line(place).strip()
        if place is not None and quoted and here != before:
            indent = text[: len(text) - len(text.lstrip())]
            yield f"{indent}# {place.line}: {quoted}"
            before = here
        yield text


def _with_names(spec: Spec, text: str) -> str:
    """`R_7` as the name of the operator that it is."""
    names: dict[str, str] = {}
    for matches in re.findall(r"\bR_(\d+)\b", text):
        plain = re.sub(r"\W", "_", spec.program.definition(int(matches)).name)
        used = {name for uid, name in names.items() if uid != matches}
        fresh = (f"Op_{plain}{n or ''}" for n in range(len(used) + 1))
        names.setdefault(matches, next(name for name in fresh if name not in used))
    return re.sub(r"\bR_(\d+)\b", lambda match: names[match[1]], text)


class _Sources:
    """The lines of the modules' files."""

    def __init__(self, spec: Spec) -> None:
        self._paths = spec.module.sources
        self._read: dict[str, Sequence[str]] = {}

    def lines(self, place: s.Location) -> Sequence[str]:
        """The lines of a place; none of a module that is no file."""
        return self._of(place.module)[place.line - 1 : place.end_line]

    def line(self, place: s.Location) -> str:
        """The first of them."""
        return next(iter(self.lines(place)), "")

    def _of(self, module: str) -> Sequence[str]:
        if module not in self._read:
            path = self._paths.get(module)
            whole = path is not None and path.is_file()
            text = path.read_text(encoding="utf-8", errors="replace") if path and whole else ""
            self._read[module] = text.splitlines()
        return self._read[module]


# Spark


def _types(subject: ShownDefinition) -> Titled:
    known = subject.spec.machine.analysis.of_definition(subject.definition.uid).variables
    lines = [f"{name}  {ddl(kind)}" for name, kind in subject.columns.variables if name in known]
    yield "columns", "\n".join(lines)


def _formula(subject: ShownDefinition) -> Titled:
    compiled = _compiled(subject)
    yield "three-valued formula", _shortened(_formula_lines(compiled.written, 0))


def _sql(subject: ShownDefinition) -> Titled:
    compiled = _compiled(subject)
    yield "Spark SQL", _shortened(_sql_lines(compiled))


def _sql_lines(compiled: SparkFormula) -> Iterator[str]:
    plan = staged([compiled.node])
    for number, stage in enumerate(plan.stages, 1):
        yield f"stage {number}"
        for name, text in stage.added:
            yield from _indented(f"{text} AS {name}", 1)
    yield from ("value", *(f"  {result}" for result in plan.results))
    if not compiled.total:
        yield from ("where that is NULL", f"  {compiled.reason}")


LINES = 10_000
"""So many lines of Spark's stages are shown: what is shared below is written out at each place."""


def _shortened(lines: Iterator[str]) -> str:
    first = list(islice(lines, LINES))
    if next(lines, None) is not None:
        first.append(
            f"... more than {LINES:,} lines: the others are left out. Show an operator that this "
            "one calls."
        )
    return "\n".join(first)


def _compiled(subject: ShownDefinition) -> SparkFormula:
    program, name, schema = subject.spec.program, subject.name, subject.columns
    if not subject.is_action and not subject.spec.is_temporal(subject.definition.body):
        (formula,) = compile_state_formulas(program, [name], schema)
        return formula
    if not subject.definition.params:
        (formula,) = compile_action_formulas(program, [name], schema)
        return formula
    columns = [f"`{param.name}`" for param in subject.definition.params]
    types = _argument_types(subject)
    return compile_action(program, name, schema, list(zip(types, columns, strict=True)))


def _argument_types(subject: ShownDefinition) -> list[Type]:
    """The types of an action's arguments: those of its instances in Next."""
    rows = _instances(subject)
    if not rows:
        raise SpecError(
            f"{subject.definition.location}: {subject.name} takes arguments, and Next has no "
            "instance of it that says of what type they are. Show an operator that calls it, or "
            "bind it with a model whose Next has it."
        )
    result = [infer(column, subject.name) for column in zip(*rows, strict=True)]
    return [kind for kind in result if kind is not None]


def _instances(subject: ShownDefinition) -> list[tuple[Value, ...]]:
    """The arguments of each instance in Next that has them all."""
    if subject.name not in subject.spec.kinds:  # found faster than all instances are listed
        return []
    wanted = len(subject.definition.params)
    rows = [action.args for action in subject.spec.actions if action.name == subject.name]
    return [row for row in rows if len(row) == wanted]


def _formula_lines(formula: Formula, depth: int) -> Iterator[str]:
    """A formula with its parts below it, each with what must hold for it to have a value."""
    match formula:
        case Truth(known=known):
            yield from _indented("TRUE" if known else "FALSE", depth)
        case Atom(condition=condition, guards=guards):
            yield from _indented(expression(condition), depth)
            yield from _guard_lines(guards, depth + 1)
        case Nullable(expression=value):
            yield from _indented(f"NULL or {expression(value)}", depth)
        case Not(operand=operand):
            yield from _indented("NOT", depth)
            yield from _formula_lines(operand, depth + 1)
        case Junction(operands=operands, neutral=neutral, in_order=in_order):
            order = "" if in_order else " in any order"
            yield from _indented(f"{'AND' if neutral else 'OR'}{order}", depth)
            for operand in operands:
                yield from _formula_lines(operand, depth + 1)
        case Conditional():
            for word, part in (
                ("IF", formula.condition),
                ("THEN", formula.then),
                ("ELSE", formula.otherwise),
            ):
                yield from _indented(word, depth)
                yield from _formula_lines(part, depth + 1)
        case Quantified(array=array, variable=variable, neutral=neutral):
            word = "FOR ALL" if neutral else "FOR SOME"
            yield from _indented(f"{word} {variable} IN {expression(array)}", depth)
            yield from _guard_lines(formula.guards, depth + 1)
            yield from _formula_lines(formula.body, depth + 1)
        case _:
            yield from _indented(expression(formula.value()), depth)


def _guard_lines(guards: Guards, depth: int) -> Iterator[str]:
    for guard in guards:
        yield from _indented(f"defined where {expression(guard.condition)}", depth)


def _indented(text: str, depth: int) -> Iterator[str]:
    return (f"{'  ' * depth}{line}" for line in folded(text))


WIDTH = 96
"""Signs of a line of SQL from which on its arguments get lines of their own."""

_SIGNS = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[(),]", re.DOTALL)
"""A quoted name or text, a bracket or a comma."""


def folded(sql: str, width: int = WIDTH) -> Iterator[str]:
    """An SQL expression in lines: a call too long for one has each argument on its own."""
    calls = _Calls(sql)
    # What is left to do, the next last: a part of the text, its depth, what follows it.
    ahead = [(0, len(sql), 0, "")]
    while ahead:
        begin, end, depth, after = ahead.pop()
        call = calls.last(begin, end) if end - begin > width - 2 * depth else None
        if call is None:
            yield f"{'  ' * depth}{sql[begin:end]}{after}"
            continue
        yield f"{'  ' * depth}{sql[begin : call[0] + 1]}"
        ahead.append((call[1], end, depth, after))
        arguments = calls.arguments(*call)
        for number, (first, last) in enumerate(reversed(arguments)):
            ahead.append((first, last, depth + 1, "," if number else ""))


class _Calls:
    """Where the brackets and commas of an SQL expression are; what is quoted has none."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._closing: list[int] = []
        self._opening: list[int] = []
        """Of each closing bracket."""
        self._commas: dict[int, list[int]] = {}
        """By the opening bracket."""
        ahead: list[int] = []
        for match in _SIGNS.finditer(sql):
            if match[0] == "(":
                ahead.append(match.start())
                self._commas[match.start()] = []
            elif match[0] == ")" and ahead:
                self._closing.append(match.start())
                self._opening.append(ahead.pop())
            elif match[0] == "," and ahead:
                self._commas[ahead[-1]].append(match.start())

    def last(self, begin: int, end: int) -> tuple[int, int] | None:
        """The brackets of the last call within a part of the text, if there is one."""
        number = bisect_left(self._closing, end) - 1
        if number < 0 or self._opening[number] < begin:
            return None
        return self._opening[number], self._closing[number]

    def arguments(self, opening: int, closing: int) -> list[tuple[int, int]]:
        """Where the arguments begin and end, without the space around them."""
        places = [opening, *self._commas[opening], closing]
        return [self._stripped(first + 1, last) for first, last in pairwise(places)]

    def _stripped(self, begin: int, end: int) -> tuple[int, int]:
        text = self._sql[begin:end]
        begin += len(text) - len(text.lstrip())
        return begin, max(begin, end - (len(text) - len(text.rstrip())))


STAGES: Mapping[str, Callable[[ShownDefinition], Titled]] = {
    "text": _text,
    "tree": _tree,
    "facts": _facts,
    "python": _python,
    "types": _types,
    "formula": _formula,
    "sql": _sql,
}
"""The pipeline, in order: each stage's name and what writes it."""
