r"""Which disjuncts of an action a step takes: what coverage tells beside the specification's lines.

A *branch* is a disjunct, a side of an IF or an arm of a CASE that an action reaches through
conjunctions, `\E`, LET and operators. A step for which the action holds takes a branch if the
branch, and all that is conjoined with it there, holds of the step's two states for some values of
the names that `\E` binds. As the disjuncts of one disjunction may hold together, a step can take
several.

`Branches.places` is found in the syntax tree; the code that asks a step is generated, like that of
a formula, by `branch_code`: each part gives the set of branches taken below it as the bits of an
integer, or -1 where it is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conformance.tla.front import syntax as s
from conformance.tla.python import logic
from conformance.tla.python.logic import Jump
from conformance.tla.python.scope import Frame
from conformance.tla.python.writer import Writer
from conformance.tla.semantics.analysis import Analysis
from conformance.tla.semantics.program import Program

UNDEFINED = "Undefined"
"""The name, in generated code, of the errors that mean that an expression has no value."""


class Branches:
    """The branches of one action. The same place, reached by two ways, is one branch."""

    def __init__(self, program: Program, analysis: Analysis, action: s.Expr) -> None:
        self._program, self._analysis = program, analysis
        self._branching: dict[int, bool] = {}
        self.places = tuple(dict.fromkeys(part.location for part in self._below(action)))
        """In the order of the text, as far as one follows the calls."""
        self._bits = {place: 1 << number for number, place in enumerate(self.places)}

    def bit(self, node: s.Expr) -> int:
        """The branch's bit in the sets that the generated code gives."""
        return self._bits[node.location]

    def within(self, node: s.Argument) -> bool:
        """Whether a part has branches."""
        if id(node) not in self._branching:
            self._branching[id(node)] = next(self._below(node), None) is not None
        return self._branching[id(node)]

    def _below(self, node: s.Argument) -> Iterator[s.Expr]:
        for branch in self.alternatives(node):
            yield branch
            yield from self._below(branch)
        for part in self._passed_through(node):
            yield from self._below(part)

    def alternatives(self, node: s.Argument) -> tuple[s.Expr, ...]:
        """The branches that begin at this node."""
        match node:
            case s.Builtin(operator=r"\lor", args=parts) if not self._overridden(node):
                return tuple(part for part in parts if isinstance(part, s.Expr))
            case s.If(then=first, otherwise=second):
                return (first, second)
            case s.Case(arms=arms, other=other):
                return (*(value for _, value in arms), *([other] if other else []))
            case _:
                return ()

    def _passed_through(self, node: s.Argument) -> Sequence[s.Argument]:
        match node:
            case s.Builtin(operator=r"\land", args=parts) if not self._overridden(node):
                return parts
            case s.Binding(kind=r"\E", body=body) | s.Let(body=body):
                return (body,)
            case s.Call(target=int()) | s.Constant():
                called = self.called(node)
                return (called.body,) if called else ()
            case _:
                return ()

    def called(self, node: s.Call | s.Constant) -> s.Definition | None:
        """The operator that a call enters; None for one that is recursive."""
        meaning = self._program.meaning(node)
        if not isinstance(meaning, s.Definition) or self._analysis.recursive(meaning.uid):
            return None
        return meaning

    def _overridden(self, node: s.Builtin) -> bool:
        return self._program.meaning(node) is not None


def branch_code(writer: Writer, branches: Branches, action: s.Expr, context: Frame) -> None:
    """The body of a function of two states: `return` of the branches that the step takes."""
    writer.emitter.line(f"return {_Code(writer, branches).branch_set(action, context)}")


class _Code:
    def __init__(self, writer: Writer, branches: Branches) -> None:
        self._writer, self._branches = writer, branches

    def branch_set(self, node: s.Argument, context: Frame) -> str:
        """The name of the part's set of branches; the part is written into a loop of one round,
        which ends early where the part is false."""
        emitter = self._writer.emitter
        name = emitter.fresh("b")
        emitter.line(f"{name} = -1")
        with emitter.block(f"for {emitter.fresh('j')} in (0,):", loop=True):
            self._fill(node, context, name)
        return name

    def _fill(self, node: s.Argument, context: Frame, name: str) -> None:
        writer, emitter = self._writer, self._writer.emitter
        with emitter.at(node.location):
            if not self._branches.within(node):
                logic.jump_if_false(writer, node, context, Jump(("break",), emitter.loops))
                emitter.line(f"{name} = 0")
                return
            match node:
                case s.Builtin(operator=r"\land", args=parts):
                    self._conjunction(parts, context, name)
                case s.Builtin(operator=r"\lor"):
                    self._disjunction(self._branches.alternatives(node), context, name)
                case s.Binding(binders=binders, body=body):
                    with logic.all_loops(writer, binders, context) as inner:
                        self._join(self.branch_set(body, inner), name)
                case s.Let(body=body):
                    self._fill(body, writer.let(node, context), name)
                case s.If(condition=condition, then=first, otherwise=second):
                    with emitter.block(f"if {writer.truth(condition, context).text}:"):
                        self._join_part(first, context, name)
                    with emitter.block("else:"):
                        self._join_part(second, context, name)
                case s.Case(arms=arms, other=other):
                    self._arms(arms, other, context, name)
                case s.Call() | s.Constant():
                    entered = writer.callee(node, context)
                    assert entered is not None, "`Branches.within` has entered it"
                    self._fill(*entered, name)
                case _:
                    raise AssertionError(node)

    def _conjunction(self, parts: Sequence[s.Argument], context: Frame, name: str) -> None:
        emitter = self._writer.emitter
        result = ["0"]
        for part in parts:
            if self._branches.within(part):
                result.append(self.branch_set(part, context))
                emitter.line(f"if {result[-1]} < 0: break")
            else:
                failure = Jump(("break",), emitter.loops)
                logic.jump_if_false(self._writer, part, context, failure)
        emitter.line(f"{name} = {' | '.join(result)}")

    def _disjunction(self, parts: Sequence[s.Expr], context: Frame, name: str) -> None:
        """All disjuncts are asked; one without a value is not taken: the step holds by another."""
        emitter = self._writer.emitter
        for part in parts:
            with emitter.block("try:"):
                text = self.branch_set(part, context)
                self._join(text, name, self._branches.bit(part))
            with emitter.block(f"except {UNDEFINED}:"):
                pass

    def _join_part(self, node: s.Expr, context: Frame, name: str) -> None:
        self._join(self.branch_set(node, context), name, self._branches.bit(node))

    def _join(self, text: str, name: str, bit: int = 0) -> None:
        added = f"{text} | {bit}" if bit else text
        emitter = self._writer.emitter
        emitter.line(f"if {text} >= 0: {name} = {added} | ({name} if {name} >= 0 else 0)")

    def _arms(
        self,
        arms: Sequence[tuple[s.Expr, s.Expr]],
        other: s.Expr | None,
        context: Frame,
        name: str,
    ) -> None:
        emitter = self._writer.emitter
        if not arms:
            if other is None:
                emitter.line("no_case()")
            else:
                self._join_part(other, context, name)
            return
        (guard, value), *rest = arms
        with emitter.block(f"if {self._writer.truth(guard, context).text}:"):
            self._join_part(value, context, name)
        with emitter.block("else:"):
            self._arms(rest, other, context, name)


__all__ = ["UNDEFINED", "Branches", "branch_code"]
