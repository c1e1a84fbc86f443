"""Code of the search for successors and initial states, as TLC finds them.

A formula is worked through from left to right. `x' = e` and `x' \\in S` give an unassigned
variable its value, a choice becomes a loop or a branch, everything else is a condition. What
stands after a conjunct is written once for every way through it (`then`), so that at each point
it is known which variables are assigned; where two branches assign the same variables and choose
nothing, they are joined again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from conformance.tla.front import syntax as s
from conformance.tla.python import builtins, logic, structures
from conformance.tla.python.continuations import Assignments, PendingFunctions, Then
from conformance.tla.python.logic import Jump
from conformance.tla.python.protocol import unsupported
from conformance.tla.python.scope import (
    BoundVariable,
    Closure,
    Entry,
    Frame,
    NamedOperator,
    Operator,
    PythonCode,
    Standard,
    as_whole,
)
from conformance.tla.python.writer import Writer

_DEEPEST = 4
"""Levels of a recursive operator that may each pass on another operator."""


class Solver:
    """Writes the search for the values of `variables`: primed ones, or of the initial state."""

    def __init__(
        self, writer: Writer, variables: tuple[str, ...], *, initial: bool = False
    ) -> None:
        self.writer = writer
        self.variables = variables
        self.initial = initial
        self._assignments = Assignments(variables, initial)
        self._functions = PendingFunctions(writer, self._assignments)

    def solve(self, node: s.Argument, context: Frame, then: Then) -> None:
        """Code that runs `then` for every way in which the formula can hold."""
        with self.writer.emitter.at(node.location):
            self._solve(node, context, then)

    def _solve(self, node: s.Argument, context: Frame, then: Then) -> None:
        # As in TLC, what stands after the last assignment chooses nothing: it is a condition,
        # in which a disjunction ends at the first disjunct that holds.
        complete = not missing_variables(self.variables, self._assignments.of(context))
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
            case s.Builtin(operator=r"\subseteq", args=(left, right)):
                subsets = s.Builtin(right.location, "SUBSET", (right,))  # as TLC after 2.15
                self._choice(node, left, subsets, context, then)
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
            case s.Apply() if self._applied(node, context, then):
                pass
            case s.Call() | s.Constant() | s.Bound():
                self._call(node, context, then)
            case _:
                self._condition(node, context, then)

    # --- conjunction and conditions -------------------------------------------------------

    def _all(self, parts: Sequence[s.Argument], context: Frame, then: Then) -> None:
        if not parts:
            then(context)
            return
        self.solve(parts[0], context, lambda c: self._all(parts[1:], _in(c, context), then))

    def _condition(self, node: s.Argument, context: Frame, then: Then) -> None:
        self._fail_unless(node, context)
        then(context)

    def _fail_unless(self, node: s.Argument, context: Frame) -> None:
        logic.jump_if_false(self.writer, node, context, self._failure())

    def _failure(self) -> Jump:
        emitter = self.writer.emitter
        return Jump(("continue" if emitter.loops else "return",), emitter.loops)

    def _overridden(self, node: s.Argument) -> bool:
        program = self.writer.services.program
        return isinstance(node, s.Builtin) and program.meaning(node) is not None

    # --- assignments ----------------------------------------------------------------------

    def _target(self, node: s.Argument, context: Frame) -> str | None:
        """The variable that the left side of an equation names, if it is one to be assigned.

        As TLC's Tool.getPrimedVar: through parameters and operators without parameters.
        """
        node, context = self._meant(node, context)
        match node:
            case s.Builtin(operator="'", args=(inner,)) if not self.initial:
                named, _ = self._meant(inner, context)
                return named.name if isinstance(named, s.Variable) else None
            case s.Variable(name=name) if self.initial or context.primed:
                return name
            case _:
                return None

    def _meant(self, node: s.Argument, context: Frame) -> tuple[s.Argument, Frame]:
        """What a parameter, or an operator without parameters, stands for, also below a LET."""
        while isinstance(node, s.Bound | s.Let) or (isinstance(node, s.Call) and not node.args):
            if isinstance(node, s.Let):
                context = self.writer.let(node, context)
                node = node.body
                continue
            callee = self.writer.callee(node, context)
            if callee is None:
                break
            node, context = callee
        return node, context

    def _open_target(self, left: s.Argument, context: Frame) -> str | None:
        """The variable on the left side, if it has no value yet."""
        name = self._target(left, context)
        return None if name in self._assignments.of(context) else name

    def _assign(self, name: str, code: PythonCode, context: Frame) -> Frame:
        python = self.writer.emitter.fresh(f"n_{name}")
        self.writer.emitter.line(f"{python} = {code.text}")
        text = as_whole(python) if self.writer.services.traced else python
        return self._with(name, text, context)

    def _with(self, name: str, python: str, context: Frame) -> Frame:
        return self._assignments.set(context, {**self._assignments.of(context), name: python})

    def _equation(
        self,
        node: s.Builtin,
        left: s.Argument,
        right: s.Argument,
        context: Frame,
        then: Then,
    ) -> None:
        name = self._open_target(left, context)
        if name is None:
            self._condition(node, context, then)
            return
        code = self._changed(name, right, context) or self.writer.value(right, context)
        same = code.text == context.now.get(name)
        then(self._with(name, code.text, context) if same else self._assign(name, code, context))

    def _changed(self, name: str, right: s.Argument, context: Frame) -> PythonCode | None:
        """[x EXCEPT ![e] = v] as the next value of x, where the machine traces reads."""
        if not self.writer.services.traced or not isinstance(right, s.Except):
            return None
        if not isinstance(right.function, s.Variable):
            return None
        if right.function.name != name or context.primed or self.initial:
            return None
        code = structures.except_(self.writer, right, context, in_part=True)
        return None if code.kind == "lazy" else code

    def _choice(
        self,
        node: s.Builtin,
        left: s.Argument,
        right: s.Argument,
        context: Frame,
        then: Then,
    ) -> None:
        name = self._open_target(left, context)
        if name is None:
            self._condition(node, context, then)
            return
        assert not isinstance(right, s.OperatorArg)
        text, _ = logic.elements(self.writer, right, context, ordered=True)
        python = self.writer.emitter.fresh(f"n_{name}")
        with self.writer.emitter.block(f"for {python} in {text}:", loop=True):
            then(self._with(name, python, context))

    def _unchanged(self, node: s.Argument, context: Frame, then: Then) -> None:
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

    def _unchanged_parts(self, parts: Sequence[s.Argument], context: Frame, then: Then) -> None:
        if not parts:
            then(context)
            return
        self._unchanged(
            parts[0], context, lambda c: self._unchanged_parts(parts[1:], _in(c, context), then)
        )

    def _same(self, node: s.Argument, context: Frame, then: Then) -> None:
        test = builtins.unchanged(self.writer, node, context)
        self.writer.emitter.line(f"if not {test.text}: {self._failure().statements[0]}")
        then(context)

    # --- choices --------------------------------------------------------------------------

    def _any(self, parts: Sequence[tuple[s.Argument, Frame]], then: Then) -> None:
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
        first: list[tuple[s.Argument, Frame]],
        second: list[tuple[s.Argument, Frame]],
        context: Frame,
        then: Then,
    ) -> None:
        """IF, and P => Q, whose other branch is nothing."""
        test = self.writer.truth(condition, context)
        with self.writer.emitter.block(f"if {test.text}:"):
            self._side(first, context, then)
        with self.writer.emitter.block("else:"):
            self._side(second, context, then)

    def _side(self, parts: list[tuple[s.Argument, Frame]], context: Frame, then: Then) -> None:
        if not parts:
            then(context)
        for part, inner in parts:
            self.solve(part, inner, lambda c: then(_in(c, context)))

    def _case(self, node: s.Case, context: Frame, then: Then) -> None:
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
        self, node: s.Binding, binders: Sequence[s.Binder], context: Frame, then: Then
    ) -> None:
        with logic.all_loops(self.writer, binders, context, ordered=True) as inner:
            self.solve(node.body, inner, lambda c: then(_in(c, context)))

    def _forall(self, node: s.Binding, context: Frame, then: Then) -> None:
        """\\A as the conjunction of its instances, of which some assign variables."""
        emitter = self.writer.emitter
        items, index = emitter.fresh("i"), emitter.fresh("i")
        emitter.line(f"{items} = []")
        with logic.all_loops(self.writer, node.binders, context, ordered=True) as inner:
            entries = [inner.env[name.uid] for binder in node.binders for name in binder.names]
            texts = [entry.code.text for entry in entries if isinstance(entry, BoundVariable)]
            emitter.line(f"{items}.append(({', '.join(texts)},))")

        def instances(current: Frame, done: Then) -> None:
            with emitter.block(f"if {index} == len({items}):"):
                done(current)
            with emitter.block("else:"):
                emitter.line(f"{', '.join(texts)}, = {items}[{index}]")
                self.solve(node.body, _in(current, inner), lambda c: again(c, f"{index} + 1", done))

        def again(current: Frame, argument: str, done: Then) -> None:
            reached = _in(current, context)
            self._functions.call((items,), [index], [argument], instances, reached, done)

        again(context, "0", then)

    def _ways_of_all(self, node: s.Binding, context: Frame, then: Then) -> None:
        """As often as the instances hold together: the product of their ways."""
        emitter = self.writer.emitter
        ways, text = emitter.fresh("w"), emitter.fresh("c")
        emitter.line(f"{ways} = 1")
        with logic.all_loops(self.writer, node.binders, context, ordered=True) as inner:
            emitter.line(f"if not {ways}: break")
            emitter.line(f"{text} = []")
            with emitter.block(f"for {emitter.fresh('i')} in (0,):", loop=True):
                self.solve(node.body, inner, lambda _: emitter.line(f"{text}.append(0)"))
            emitter.line(f"{ways} *= len({text})")
        with emitter.block(f"for {emitter.fresh('i')} in range({ways}):", loop=True):
            then(context)

    def _assigns(self, node: s.Expr, context: Frame) -> bool:
        """Whether a formula mentions variables that are yet to be assigned, perhaps by the name
        of a parameter."""
        facts = self.writer.services.analysis.of(node)
        missing = set(self.variables) - set(self._assignments.of(context))
        itself = (facts.primes or self.initial) and bool(facts.variables & missing)
        return itself or self.writer.volatile(node, context)

    # --- operators ------------------------------------------------------------------------

    def _call(self, node: s.Expr, context: Frame, then: Then) -> None:
        facts = self.writer.services.analysis.of(node)
        callee = None
        if (
            facts.primes
            or self.initial
            or self.writer.volatile(node, context)
            or self._chooses(node, frozenset())
        ):
            callee = self.writer.callee(node, context)
            if callee is None and self._recursion(node, context, then):
                return
        if callee is None:
            self._condition(node, context, then)
            return
        self.solve(callee[0], callee[1], lambda c: then(_in(c, context)))

    def _applied(self, node: s.Apply, context: Frame, then: Then) -> bool:
        """The action of `A[i \\in S] == ...` or `[i \\in S |-> ...]`, applied; False for others."""
        meant, scope = self._meant(node.function, context)
        if not isinstance(meant, s.Binding) or meant.kind != "function":
            return False
        binders = meant.binders
        if len(binders) != 1 or binders[0].pattern or len(binders[0].names) != 1:
            return False
        facts = self.writer.services.analysis.of(meant.body)
        domain = binders[0].domain
        if not facts.primes or domain is None:
            return False
        argument = self.writer.atom(self.writer.value(node.argument, context))
        inside = builtins.membership(self.writer, argument, domain, scope)
        self.writer.emitter.line(f"if not {inside.text}: not_in_domain({argument.text})")
        inner = _in(context, scope).bind({binders[0].names[0].uid: BoundVariable(argument)})
        self.solve(meant.body, inner, lambda c: then(_in(c, context)))
        return True

    def _recursion(self, node: s.Expr, context: Frame, then: Then) -> bool:
        """A recursive operator as a function; False if the node is no call of one."""
        result = self.writer.recursion(node, context)
        if result is None:
            return False
        assert isinstance(node, s.Call)
        definition, scope = result
        key: list[Hashable] = [definition.uid]
        by_name: dict[int, Entry] = {}
        names: dict[int, str] = {}
        arguments: list[str] = []
        for param, arg in zip(definition.params, node.args, strict=True):
            named = self._named(arg, context)
            if named is not None:
                identity, by_name[param.uid] = named
                key.append((param.uid, identity))
            else:
                names[param.uid] = self.writer.emitter.fresh("p")
                arguments.append(self.writer.suspended(arg, context))

        def body(current: Frame, done: Then) -> None:
            entries = {uid: self.writer.parameter(name, current) for uid, name in names.items()}
            inner = _in(current, scope).bind({**by_name, **entries})
            self.solve(definition.body, inner, lambda c: done(_in(c, current)))

        others = self._functions.open(lambda other: other[0] == key[0] and other != tuple(key))
        if others > _DEEPEST:
            what = f"{definition.name}, a RECURSIVE operator that passes on ever new operators,"
            raise unsupported(node, f"{what} in an action")
        self._functions.call(tuple(key), list(names.values()), arguments, body, context, then)
        return True

    def _named(self, arg: s.Argument, context: Frame) -> tuple[Hashable, Entry] | None:
        """An argument of a recursive operator that is passed by name, and what tells it from
        others: an operator, or a variable, which the body may assign."""
        if isinstance(arg, s.OperatorArg):
            operator = self.writer.operator(arg, context)
            return self._identity(operator), operator
        meant, scope = self._meant(arg, context)
        plain = isinstance(meant, s.Variable)
        name = meant.name if isinstance(meant, s.Variable) else self._target(meant, scope)
        if name is None:
            return None
        return (name, plain), self.writer.lazy(self.writer.expression(meant), scope)

    def _identity(self, operator: Operator) -> Hashable:
        match operator:
            case Closure(definition=definition):
                free = self.writer.services.analysis.of_definition(definition.uid).free
                return id(operator) if free else definition.uid
            case Standard(name=name) | NamedOperator(name=name):
                return name

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


def _in(current: Frame, scope: Frame) -> Frame:
    """The assignments of `current` in the scope of `scope`."""
    return Frame(scope.env, current.now, current.next, scope.primed)


def missing_variables(variables: Sequence[str], assigned: Mapping[str, str]) -> list[str]:
    """The variables without a value, in the module's order."""
    return [name for name in variables if name not in assigned]


__all__ = ["Solver", "missing_variables"]
