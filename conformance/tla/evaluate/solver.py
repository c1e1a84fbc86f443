"""Code of the search for successors and initial states, as TLC finds them.

A formula is worked through from left to right. `x' = e` and `x' \\in S` give an unassigned
variable its value, a choice becomes a loop or a branch, everything else is a condition. What
stands after a conjunct is written once for every way through it (`then`), so that at each point
it is known which variables are assigned; where two branches assign the same variables and choose
nothing, they are joined again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from conformance.tla import syntax as s
from conformance.tla.evaluate import builtins, logic
from conformance.tla.evaluate.logic import Jump
from conformance.tla.evaluate.scope import Code, Context, Known
from conformance.tla.evaluate.writer import Writer, unsupported

Then = Callable[[Context], None]
"""Writes what follows, in the context with the variables assigned so far."""


@dataclass(frozen=True, slots=True)
class Solver:
    """Writes the search for the values of `variables`: primed ones, or of the initial state."""

    writer: Writer
    variables: tuple[str, ...]
    initial: bool = False

    def solve(self, node: s.Argument, context: Context, then: Then) -> None:
        """Code that runs `then` for every way in which the formula can hold."""
        with self.writer.emitter.at(node.location):
            self._solve(node, context, then)

    def _solve(self, node: s.Argument, context: Context, then: Then) -> None:
        # As in TLC, what stands after the last assignment chooses nothing: it is a condition,
        # in which a disjunction ends at the first disjunct that holds.
        complete = not missing_variables(self.variables, self._assigned(context))
        if complete or self._overridden(node):
            self._condition(node, context, then)
            return
        match node:
            case s.Builtin(operator=r"\land", args=parts):
                self._all(parts, context, then)
            case s.Builtin(operator=r"\lor", args=parts):
                self._any([(part, context) for part in parts], then)
            case s.Builtin(operator="=>", args=(left, right)):
                self._branch(left, [(right, context)], [], context, then)
            case s.Builtin(operator="=", args=(left, right)):
                self._equation(node, left, right, context, then)
            case s.Builtin(operator=r"\in", args=(left, right)):
                self._choice(node, left, right, context, then)
            case s.Builtin(operator="UNCHANGED", args=(what,)) if not self.initial:
                self._unchanged(what, context, then)
            case s.Builtin(operator="[A]_v", args=(action, what)) if not self.initial:
                same = s.Builtin(node.location, "UNCHANGED", (what,))
                self._any([(action, context), (same, context)], then)
            case s.Builtin(operator="<<A>>_v", args=(action, what)) if not self.initial:
                same = s.Builtin(node.location, "UNCHANGED", (what,))
                changed = s.Builtin(node.location, r"\lnot", (same,))
                self.solve(
                    action, context, lambda c: self._condition(changed, _in(c, context), then)
                )
            case s.Binding(kind=r"\E", binders=binders):
                self._exists(node, binders, context, then)
            case s.Binding(kind=r"\A") if self._assigns(node, context):
                self._forall(node, context, then)
            case s.Binding(kind=r"\A", body=body) if self._chooses(body, frozenset()):
                self._ways_of_all(node, context, then)
            case s.If(condition=condition, then=first, otherwise=second):
                self._branch(condition, [(first, context)], [(second, context)], context, then)
            case s.Case():
                self._case(node, context, then)
            case s.Let(body=body):
                inner = self.writer.let(node, context)
                self.solve(body, inner, lambda c: then(_in(c, context)))
            case s.Call() | s.Constant() | s.Bound():
                self._call(node, context, then)
            case _:
                self._condition(node, context, then)

    # --- conjunction and conditions -------------------------------------------------------

    def _all(self, parts: Sequence[s.Argument], context: Context, then: Then) -> None:
        if not parts:
            then(context)
            return
        self.solve(parts[0], context, lambda c: self._all(parts[1:], _in(c, context), then))

    def _condition(self, node: s.Argument, context: Context, then: Then) -> None:
        self._fail_unless(node, context)
        then(context)

    def _fail_unless(self, node: s.Argument, context: Context) -> None:
        logic.jump_if_false(self.writer, node, context, self._failure())

    def _failure(self) -> Jump:
        emitter = self.writer.emitter
        return Jump(("continue" if emitter.loops else "return",), emitter.loops)

    def _overridden(self, node: s.Argument) -> bool:
        program = self.writer.services.program
        return isinstance(node, s.Builtin) and program.meaning(node) is not None

    # --- assignments ----------------------------------------------------------------------

    def _target(self, node: s.Argument, context: Context) -> str | None:
        """The variable that the left side of an equation names, if it is one to be assigned."""
        match node:
            case s.Builtin(operator="'", args=(s.Variable(name=name),)) if not self.initial:
                return name
            case s.Builtin(operator="'", args=(s.Bound() | s.Call() as inner,)) if not self.initial:
                return self._variable(inner, context)
            case s.Variable(name=name) if self.initial or context.primed:
                return name
            case s.Bound() | s.Call() if self.initial or context.primed:
                return self._variable(node, context)
            case _:
                return None

    def _variable(self, node: s.Argument, context: Context) -> str | None:
        """The variable that a parameter or defined name stands for."""
        while isinstance(node, s.Bound | s.Call):
            callee = self.writer.callee(node, context)
            if callee is None:
                return None
            node, context = callee
        return node.name if isinstance(node, s.Variable) else None

    def _assigned(self, context: Context) -> Mapping[str, str]:
        return context.now if self.initial else context.next

    def _assign(self, name: str, code: Code, context: Context) -> Context:
        python = self.writer.emitter.fresh(f"n_{name}")
        self.writer.emitter.line(f"{python} = {code.text}")
        return self._with(name, python, context)

    def _with(self, name: str, python: str, context: Context) -> Context:
        assigned = {**self._assigned(context), name: python}
        return replace(context, now=assigned) if self.initial else replace(context, next=assigned)

    def _equation(
        self,
        node: s.Builtin,
        left: s.Argument,
        right: s.Argument,
        context: Context,
        then: Then,
    ) -> None:
        name = self._target(left, context)
        if name is None or name in self._assigned(context):
            self._condition(node, context, then)
            return
        then(self._assign(name, self.writer.value(right, context), context))

    def _choice(
        self,
        node: s.Builtin,
        left: s.Argument,
        right: s.Argument,
        context: Context,
        then: Then,
    ) -> None:
        name = self._target(left, context)
        if name is None or name in self._assigned(context):
            self._condition(node, context, then)
            return
        assert not isinstance(right, s.OperatorArg)
        text, _ = logic.elements(self.writer, right, context, ordered=True)
        python = self.writer.emitter.fresh(f"n_{name}")
        with self.writer.emitter.block(f"for {python} in {text}:", loop=True):
            then(self._with(name, python, context))

    def _unchanged(self, node: s.Argument, context: Context, then: Then) -> None:
        match node:
            case s.Variable(name=name):
                if name in context.next:
                    self._same(node, context, then)
                else:
                    then(self._with(name, context.now[name], context))
            case s.Builtin(operator="<<>>", args=parts):
                self._unchanged_parts(parts, context, then)
            case s.Bound() | s.Call():
                callee = self.writer.callee(node, context)
                if callee is None:
                    self._same(node, context, then)
                else:
                    self._unchanged(callee[0], callee[1], lambda c: then(_in(c, context)))
            case _:
                self._same(node, context, then)

    def _unchanged_parts(self, parts: Sequence[s.Argument], context: Context, then: Then) -> None:
        if not parts:
            then(context)
            return
        self._unchanged(
            parts[0], context, lambda c: self._unchanged_parts(parts[1:], _in(c, context), then)
        )

    def _same(self, node: s.Argument, context: Context, then: Then) -> None:
        test = builtins.unchanged(self.writer, node, context)
        self.writer.emitter.line(f"if not {test.text}: {self._failure().statements[0]}")
        then(context)

    # --- choices --------------------------------------------------------------------------

    def _any(self, parts: Sequence[tuple[s.Argument, Context]], then: Then) -> None:
        """Branches one after the other; a failing branch goes on with the next."""
        choice = self.writer.emitter.fresh("j")
        numbers = ", ".join(map(str, range(len(parts))))
        with self.writer.emitter.block(f"for {choice} in ({numbers},):", loop=True):
            for index, (part, context) in enumerate(parts):
                word = "if" if index == 0 else "elif"
                header = f"{word} {choice} == {index}:" if index + 1 < len(parts) else "else:"
                header = f"if {choice} == 0:" if len(parts) == 1 else header
                with self.writer.emitter.block(header):
                    self._side([(part, context)], context, then)

    def _branch(
        self,
        condition: s.Argument,
        first: list[tuple[s.Argument, Context]],
        second: list[tuple[s.Argument, Context]],
        context: Context,
        then: Then,
    ) -> None:
        """IF, and P => Q, whose other branch is nothing."""
        test = self.writer.truth(condition, context)
        with self.writer.emitter.block(f"if {test.text}:"):
            self._side(first, context, then)
        with self.writer.emitter.block("else:"):
            self._side(second, context, then)

    def _side(self, parts: list[tuple[s.Argument, Context]], context: Context, then: Then) -> None:
        if not parts:
            then(context)
        for part, inner in parts:
            self.solve(part, inner, lambda c: then(_in(c, context)))

    def _case(self, node: s.Case, context: Context, then: Then) -> None:
        def arm(index: int) -> None:
            if index == len(node.arms):
                if node.other is None:
                    self.writer.emitter.line("no_case()")
                else:
                    self.solve(node.other, context, then)
                return
            guard, value = node.arms[index]
            test = self.writer.truth(guard, context)
            with self.writer.emitter.block(f"if {test.text}:"):
                self.solve(value, context, then)
            with self.writer.emitter.block("else:"):
                arm(index + 1)

        arm(0)

    def _exists(
        self, node: s.Binding, binders: Sequence[s.Binder], context: Context, then: Then
    ) -> None:
        with logic.all_loops(self.writer, binders, context, ordered=True) as inner:
            self.solve(node.body, inner, lambda c: then(_in(c, context)))

    def _forall(self, node: s.Binding, context: Context, then: Then) -> None:
        """\\A as the conjunction of its instances, of which some assign variables."""
        binder = node.binders[0]
        if len(node.binders) > 1 or len(binder.names) > 1 or binder.domain is None:
            raise unsupported(node, r"\A over several names with assignments inside")
        table = self.writer.services.elements(binder.domain)
        if table is None:
            self._forall_of_state(node, binder.names[0], binder.domain, context, then)
            return
        code, kind = table
        count = self.writer.services.count(code)

        def instance(index: int, current: Context) -> None:
            if index == count:
                then(_in(current, context))
                return
            item = Code(f"{code.text}[{index}]", kind, atom=True)
            inner = _in(current, context).bind({binder.names[0].uid: Known(item)})
            self.solve(node.body, inner, lambda c: instance(index + 1, c))

        instance(0, context)

    def _forall_of_state(
        self, node: s.Binding, name: s.Bound, domain: s.Expr, context: Context, then: Then
    ) -> None:
        """Over a set that depends on the state: its first element's instance makes the
        assignments, the others are conditions on them."""
        writer = self.writer
        elements = writer.atom(
            Code(f"list({logic.elements(writer, domain, context, ordered=True)[0]})")
        )

        def rest(reached: Context) -> None:
            item = writer.emitter.fresh("i")
            flag = writer.emitter.fresh("q")
            writer.emitter.line(f"{flag} = True")
            with writer.emitter.block(f"for {item} in {elements.text}[1:]:", loop=True):
                inner = _in(reached, context).bind({name.uid: Known(Code(item, atom=True))})
                jump = logic.jump_to(writer, f"{flag} = False", "break")
                logic.jump_if_false(writer, node.body, inner, jump)
            writer.emitter.line(f"if not {flag}: {self._failure().statements[0]}")
            then(_in(reached, context))

        with writer.emitter.block(f"if not {elements.text}:"):
            then(context)
        with writer.emitter.block("else:"):
            first = Known(Code(f"{elements.text}[0]", atom=True))
            self.solve(node.body, context.bind({name.uid: first}), rest)

    def _ways_of_all(self, node: s.Binding, context: Context, then: Then) -> None:
        """As often as the instances hold together: the product of their ways."""
        emitter = self.writer.emitter
        ways, count = emitter.fresh("w"), emitter.fresh("c")
        emitter.line(f"{ways} = 1")
        with logic.all_loops(self.writer, node.binders, context, ordered=True) as inner:
            emitter.line(f"if not {ways}: break")
            emitter.line(f"{count} = 0")
            with emitter.block(f"for {emitter.fresh('i')} in (0,):", loop=True):
                self.solve(node.body, inner, lambda _: emitter.line(f"{count} += 1"))
            emitter.line(f"{ways} *= {count}")
        with emitter.block(f"for {emitter.fresh('i')} in range({ways}):", loop=True):
            then(context)

    def _assigns(self, node: s.Expr, context: Context) -> bool:
        """Whether a formula mentions variables that are yet to be assigned."""
        facts = self.writer.services.analysis.of(node)
        missing = set(self.variables) - set(self._assigned(context))
        return (facts.primes or self.initial) and bool(facts.variables & missing)

    # --- operators ------------------------------------------------------------------------

    def _call(self, node: s.Expr, context: Context, then: Then) -> None:
        facts = self.writer.services.analysis.of(node)
        callee = None
        if (
            facts.primes
            or self.initial
            or self.writer.volatile(node, context)
            or self._chooses(node, frozenset())
        ):
            callee = self.writer.callee(node, context)
        if callee is None:
            self._condition(node, context, then)
            return
        self.solve(callee[0], callee[1], lambda c: then(_in(c, context)))

    def _chooses(self, node: s.Argument, within: frozenset[int]) -> bool:
        """Whether a guard may hold in several ways, each of which TLC counts as a step."""
        match node:
            case s.Builtin(operator=r"\lor") | s.Binding(kind=r"\E"):
                return True
            case s.Builtin(operator=r"\land" | "=>", args=parts):
                return any(self._chooses(part, within) for part in parts)
            case s.Binding(kind=r"\A", body=body) | s.Let(body=body):
                return self._chooses(body, within)
            case s.If(then=first, otherwise=second):
                return self._chooses(first, within) or self._chooses(second, within)
            case s.Case(arms=arms, other=other):
                values = [value for _, value in arms]
                return any(self._chooses(v, within) for v in (*values, *([other] if other else [])))
            case s.Call() | s.Constant():
                meaning = self.writer.services.program.meaning(node)
                if not isinstance(meaning, s.Definition) or meaning.uid in within:
                    return False
                return self._chooses(meaning.body, within | {meaning.uid})
            case _:
                return False


def _in(current: Context, scope: Context) -> Context:
    """The assignments of `current` in the scope of `scope`."""
    return replace(scope, now=current.now, next=current.next)


def missing_variables(variables: Sequence[str], assigned: Mapping[str, str]) -> list[str]:
    """The variables without a value, in the module's order."""
    return [name for name in variables if name not in assigned]


__all__ = ["Solver", "missing_variables"]
