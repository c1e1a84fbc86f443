"""Turns expressions into Python code, written into the body of one function.

The pipeline, of which `kconform show NAME --stages` prints every step:

    syntax tree   front/syntax        names and instances resolved
    facts         semantics/analysis  what an expression depends on, what it is sure to evaluate
    code          this module         each kind of node to its handler: logic, structures, builtins
    search        solver              of an action: loops that assign the next state's variables
    function      machine             source compiled, constants pooled, each line with its place

`Writer.expr` returns a Python expression for a TLA+ expression, after writing the statements
that it needs. Evaluation is as lazy as TLC's: statements of a conjunct stand inside the `if` of
the conjuncts before it, a LET is computed where a path first needs it.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.tla.front import syntax as s
from conformance.tla.python import builtins, logic, structures
from conformance.tla.python.lazy import LazyValues
from conformance.tla.python.protocol import Routine, unsupported
from conformance.tla.python.scope import (
    BoundVariable,
    Closure,
    Entry,
    Frame,
    LazyDefinition,
    NamedOperator,
    Operator,
    PythonCode,
    Standard,
    read_of,
)

LARGEST_LITERAL = 10**1000
"""Python neither reads nor writes integers of some thousands of digits as literals."""

_INLINE_SIZE = 12
"""Definitions up to this many nodes are expanded where they are called."""


class Writer(LazyValues):
    """The code of one generated function."""

    # --- expressions ----------------------------------------------------------------------

    def expr(self, node: s.Expr, context: Frame) -> PythonCode:
        """A Python expression for `node`; statements that it needs are written."""
        literal = _literal(node)
        if literal is not None:
            return literal
        with self.emitter.at(node.location):
            match node:
                case s.Bound():
                    return self._bound(node, context)
                case s.Variable(name=name):
                    return self._variable(name, context)
                case _ if self.services.analysis.of(node).constant:
                    return self.services.constant(node)
                case _:
                    return self.compound(node, context)

    def compound(self, node: s.Expr, context: Frame) -> PythonCode:
        """As `expr`, for what is neither a name nor a constant to be folded."""
        match node:
            case s.Builtin():
                return builtins.builtin(self, node, context)
            case s.Call():
                return self._call(node, context)
            case s.Constant():
                return self._constant(node, context)
            case s.Binding(kind=kind):
                if kind in (r"\A", r"\E"):
                    return logic.quantifier(self, node, context)
                return structures.binding(self, node, context)
            case s.If():
                return logic.conditional(self, node, context)
            case s.Case():
                return logic.case(self, node, context)
            case s.Let():
                return self.expr(node.body, self.let(node, context))
            case s.Apply():
                return structures.application(self, node, context)
            case s.Field():
                return structures.field(self, node, context)
            case s.Record():
                return structures.record(self, node, context)
            case s.RecordSet():
                return structures.record_set(self, node, context)
            case s.Except():
                return structures.except_(self, node, context)
            case s.RecursiveFunction():
                return structures.recursive_function(self, node, context)
            case s.Opaque(what=what):
                raise unsupported(node, what)
            case _:
                raise AssertionError(node)

    def argument(self, node: s.Argument, context: Frame) -> PythonCode:
        """As `expr`, for an operand that cannot be an operator."""
        return self.expr(self.expression(node), context)

    def expression(self, node: s.Argument) -> s.Expr:
        """The operand, which SANY has made sure is an expression."""
        assert not isinstance(node, s.OperatorArg), node
        return node

    def value(self, node: s.Argument, context: Frame) -> PythonCode:
        """As `expr`, with symbolic sets and lazy functions turned into values."""
        code = self.argument(node, context)
        return PythonCode(f"value_of({code.text})") if code.kind == "lazy" else code

    def atom(self, code: PythonCode, prefix: str = "t") -> PythonCode:
        """The same value in a name, so that it can be repeated."""
        if code.atom:
            return code
        name = self.emitter.fresh(prefix)
        self.emitter.line(f"{name} = {code.text}")
        return PythonCode(name, code.kind, atom=True)

    def named(self, code: PythonCode) -> tuple[str, str]:
        """The code where it is first used, and a name for it from then on; no statement."""
        if code.atom:
            return code.text, code.text
        name = self.emitter.fresh("t")
        return f"({name} := {code.text})", name

    def truth(self, node: s.Argument, context: Frame) -> PythonCode:
        """As `expr`, for a formula: an error if its value is no boolean."""
        return self.checked(self.argument(node, context))

    def checked(self, code: PythonCode) -> PythonCode:
        """The code, with a check that its value is a boolean unless that is known."""
        if code.kind == "bool":
            return code
        if code.kind is not None and code.kind != "lazy":
            return PythonCode(f"not_boolean({code.text})", "bool")
        first, name = self.named(code)
        text = f"({first} is True or {name} is not False and not_boolean({name}))"
        return PythonCode(text, "bool")

    # --- names ----------------------------------------------------------------------------

    def _variable(self, name: str, context: Frame) -> PythonCode:
        python = context.variables().get(name)
        if python is None:
            return PythonCode(f"not_assigned({name!r})")
        return PythonCode(python, None, atom=True)

    def _bound(self, node: s.Bound, context: Frame) -> PythonCode:
        entry = context.env[node.uid]
        if isinstance(entry, BoundVariable):
            return entry.code
        assert isinstance(entry, LazyDefinition), node
        return self.force(entry, context)

    def _constant(self, node: s.Constant, context: Frame) -> PythonCode:
        meaning = self.services.program.meaning(node)
        if isinstance(meaning, s.Definition):
            return self.apply_definition(meaning, (), context)
        return self.services.pool(meaning)

    # --- LET and calls --------------------------------------------------------------------

    def let(self, node: s.Let, context: Frame) -> Frame:
        """The context of a LET's body."""
        definitions = [self.services.program.definition(uid) for uid in node.definitions]
        recursive = [d for d in definitions if self.services.analysis.recursive(d.uid)]
        names: dict[int, Entry] = {
            d.uid: NamedOperator(self.emitter.fresh("f"), d) for d in recursive
        }
        context = context.bind(names)
        for definition in definitions:
            if definition in recursive:
                continue
            if definition.params:
                context = context.bind({definition.uid: Closure(definition, context)})
            else:
                context = context.bind({definition.uid: self.lazy(definition.body, context)})
        for definition in recursive:
            if self._recursive_in_primes(definition):
                continue
            entry = names[definition.uid]
            assert isinstance(entry, NamedOperator)
            self.define(entry.name, definition.params, definition.body, context)
        return context

    def define(self, name: str, params: Sequence[s.Bound], body: s.Expr, context: Frame) -> None:
        """A nested Python function for an operator; arguments are values, or `suspended`."""
        names = [self.emitter.fresh("p") for _ in params]
        with self.function(f"def {name}({', '.join(names)}):"):
            entries: dict[int, Entry] = {
                param.uid: NamedOperator(python) if param.arity else self.parameter(python, context)
                for param, python in zip(params, names, strict=True)
            }
            self.emitter.line(f"return {self.body(params, body, context.bind(entries)).text}")
        if not params:
            self.emitter.line(f"{name} = cache({name})")

    def body(self, params: Sequence[s.Bound], body: s.Expr, context: Frame) -> PythonCode:
        """What a recursive operator stands for. One without parameters that is a function stays
        a rule, as in TLC: its results may need each other's, or those of another such function."""
        if not params and isinstance(body, s.Binding) and body.kind == "function":
            return structures.function_by_rule(self, body, context)
        return self.expr(body, context)

    def _call(self, node: s.Call, context: Frame) -> PythonCode:
        match node.target:
            case s.Bound(uid=uid):
                return self._apply(context.env[uid], node, context)
            case int(uid) if uid in context.env:
                return self._apply(context.env[uid], node, context)
            case _:
                meaning = self.services.program.meaning(node)
                if isinstance(meaning, s.Definition):
                    return self._defined(meaning, node, context)
                return self.services.pool(meaning)

    def _defined(self, definition: s.Definition, node: s.Call, context: Frame) -> PythonCode:
        """A call of a module-level operator."""
        if not self._recursive_in_primes(definition):
            return self.apply_definition(definition, node.args, context)
        named = NamedOperator("", definition)
        return self.apply_operator(named, node.args, node.location, context)

    def _function(self, operator: NamedOperator, context: Frame) -> str:
        """The name of the Python function of a recursive operator.

        One that mentions primes is written where it is used: there it is known which variables
        of the next state have values. The others have theirs already.
        """
        definition = operator.definition
        if definition is None or not self._recursive_in_primes(definition):
            return operator.name
        uid = definition.uid
        name = self._recursive.get(uid)
        if name is None:
            name = self._recursive[uid] = self.emitter.fresh("f")
            scope = context if uid in context.env else context.within({})
            self.define(name, definition.params, definition.body, scope)
            del self._recursive[uid]
        return name

    def _recursive_in_primes(self, definition: s.Definition) -> bool:
        analysis, uid = self.services.analysis, definition.uid
        return analysis.recursive(uid) and analysis.of_definition(uid).primes

    def _apply(self, entry: Entry, node: s.Call, context: Frame) -> PythonCode:
        match entry:
            case LazyDefinition():
                return self.force(entry, context)
            case BoundVariable(code=code):
                return code
            case operator:
                return self.apply_operator(operator, node.args, node.location, context)

    def apply_operator(
        self, operator: Operator, args: Sequence[s.Argument], at: s.Location, context: Frame
    ) -> PythonCode:
        """An operator applied to arguments."""
        match operator:
            case Closure(definition=definition, context=outer):
                inner = context.within(outer.env, primed=outer.primed)
                return self.expand(definition, args, inner, context)
            case Standard(name=name):
                return builtins.builtin(self, s.Builtin(at, name, tuple(args)), context)
            case NamedOperator():
                name = self._function(operator, context)
                codes = [self._passed(arg, context) for arg in args]
                return PythonCode(f"{name}({', '.join(codes)})", "lazy")

    def _passed(self, arg: s.Argument, context: Frame) -> str:
        if isinstance(arg, s.OperatorArg):
            return self.callable(arg, context)
        if self._settled(arg, context):
            return self.expr(arg, context).text
        return self.suspended(arg, context)

    def primes_params(self, definition: s.Definition) -> bool:
        """Whether parameters of the definition are primed in its body."""
        primed = self.services.analysis.primed_names(definition.uid)
        return any(param.uid in primed for param in definition.params)

    def operator(self, arg: s.Argument, context: Frame) -> Operator:
        """What an operator argument stands for."""
        assert isinstance(arg, s.OperatorArg), arg
        program = self.services.program
        match arg.target:
            case s.Bound(uid=uid):
                entry = context.env[uid]
                assert not isinstance(entry, BoundVariable | LazyDefinition)
                return entry
            case int(uid) if uid in context.env:
                entry = context.env[uid]
                assert not isinstance(entry, BoundVariable | LazyDefinition)
                return entry
            case str(name) if program.meaning(arg) is None:
                return Standard(name)
            case _:
                meaning = program.meaning(arg)
                assert isinstance(meaning, s.Definition), arg
                return Closure(meaning, context)

    def callable(self, arg: s.Argument, context: Frame) -> str:
        """The name of a Python function that does what the operator argument does."""
        operator = self.operator(arg, context)
        if isinstance(operator, NamedOperator):
            return self._function(operator, context)
        name = self.emitter.fresh("g")
        if isinstance(operator, Closure):
            if self.primes_params(operator.definition):
                what = f"{operator.definition.name}, which primes its parameter, as an argument"
                raise unsupported(arg, f"{what} of a RECURSIVE or standard operator")
            inner = context.within(operator.context.env)
            params = operator.definition.params
            self.define(name, params, operator.definition.body, inner)
        else:
            self._define_standard(name, operator.name, arg.location, context)
        return name

    def _define_standard(self, name: str, builtin: str, at: s.Location, context: Frame) -> None:
        arity = 1 if builtin in builtins.UNARY else 2
        params = tuple(s.Bound(at, -1 - index, f"x{index}") for index in range(arity))
        self.define(name, params, s.Builtin(at, builtin, params), context)

    def apply_definition(
        self, definition: s.Definition, args: Sequence[s.Argument], context: Frame
    ) -> PythonCode:
        """A module-level operator applied: expanded here, or a call of its routine."""
        if self.expands(definition, args):
            return self.expand(definition, args, context.within({}), context)
        routine = self.services.routine(definition)
        variables = context.variables()
        passed: list[str] = []
        for name in routine.variables:
            if name not in variables:
                return PythonCode(f"not_assigned({name!r})")
            passed.append(read_of(variables[name]))
        for param, arg, strict in zip(definition.params, args, routine.strict, strict=True):
            if param.arity:
                passed.append(self.callable(arg, context))
            elif strict or self._settled(arg, context):
                passed.append(self._passed_value(routine, arg, context).text)
            else:
                passed.append(self._thunk(routine, arg, context))
        return PythonCode(f"{routine.name}({', '.join(passed)})", routine.kind)

    def _settled(self, arg: s.Argument, context: Frame) -> bool:
        """Whether an argument's value is at hand, so that passing it computes nothing."""
        match arg:
            case s.Number() | s.String():
                return True
            case s.Variable(name=name):
                return name in context.variables()
            case s.Bound(uid=uid):
                entry = context.env[uid]
                if isinstance(entry, LazyDefinition) and entry.node is not None:
                    primed = context.primed or entry.context.primed
                    slot = entry.slots.get((self.emitter.function, primed))
                    if slot is not None and self.emitter.is_known(slot.name):
                        return True
                    inner = context.within(entry.context.env, primed=primed)
                    return self._settled(entry.node, inner)
                return isinstance(entry, BoundVariable)
            case _ if self.services.analysis.of(arg).constant and isinstance(arg, s.Expr):
                return self.services.constant(arg).atom
            case _:
                return False

    def _passed_value(self, routine: Routine, arg: s.Argument, context: Frame) -> PythonCode:
        return self.argument(arg, context) if routine.lazy else self.value(arg, context)

    def _thunk(self, routine: Routine, arg: s.Argument, context: Frame) -> str:
        """A function that computes an argument which the operator may not need."""
        name = self.emitter.fresh("g")
        with self.function(f"def {name}():"):
            self.emitter.line(f"return {self._passed_value(routine, arg, context).text}")
        return name

    def suspended(self, arg: s.Argument, context: Frame) -> str:
        """A function that computes an argument where it is first needed.

        It need not know of primes: SANY refuses a recursive operator that primes a parameter.
        """
        entry = context.env.get(arg.uid) if isinstance(arg, s.Bound) else None
        if isinstance(entry, LazyDefinition) and entry.thunk is not None:
            return entry.thunk
        name = self.emitter.fresh("g")
        with self.function(f"def {name}():"):
            self.emitter.line(f"return {self.argument(arg, context).text}")
        return name

    def parameter(self, name: str, context: Frame) -> LazyDefinition:
        """The entry of a parameter that is passed as a value or `suspended`."""
        emitter = self.emitter
        place = emitter.placeholder()
        return LazyDefinition(None, context, place, emitter.loops, emitter.function, thunk=name)

    def expands(self, definition: s.Definition, args: Sequence[s.Argument]) -> bool:
        """Whether the definition is expanded where it is called."""
        analysis = self.services.analysis
        if analysis.recursive(definition.uid):
            return False
        facts = analysis.of_definition(definition.uid)
        if facts.primes or any(param.arity for param in definition.params):
            return True
        if self.primes_params(definition):
            return True
        if any(self._symbolic(arg) for arg in args):
            return True
        return facts.size <= _INLINE_SIZE

    def _symbolic(self, arg: s.Argument) -> bool:
        """Whether an argument is likely a set that should stay a rule."""
        match arg:
            case s.OperatorArg():
                return True
            case s.RecordSet() | s.Builtin(operator="SUBSET" | "Seq" | "[->]" | r"\X"):
                return True
            case _ if self.services.analysis.of(arg).constant:
                return self.services.constant(arg).kind == "lazy"
            case _:
                return False

    def expand(
        self,
        definition: s.Definition,
        args: Sequence[s.Argument],
        scope: Frame,
        context: Frame,
    ) -> PythonCode:
        """The definition's body with its parameters bound to the arguments, lazily."""
        return self.expr(definition.body, self.enter(definition, args, scope, context))

    def enter(
        self,
        definition: s.Definition,
        args: Sequence[s.Argument],
        scope: Frame,
        context: Frame,
    ) -> Frame:
        """The context of the body of an operator that is applied to `args`."""
        entries: dict[int, Entry] = {}
        for param, arg in zip(definition.params, args, strict=True):
            if isinstance(arg, s.OperatorArg):
                entries[param.uid] = self.operator(arg, context)
            elif isinstance(arg, s.Bound):
                entries[param.uid] = context.env[arg.uid]
            else:
                entries[param.uid] = self.lazy(arg, context)
        return scope.bind(entries)

    def recursion(self, node: s.Expr, context: Frame) -> tuple[s.Definition, Frame] | None:
        """The recursive operator that a call stands for, and the scope of its body."""
        if not isinstance(node, s.Call):
            return None
        uid = node.target.uid if isinstance(node.target, s.Bound) else node.target
        entry = context.env.get(uid) if isinstance(uid, int) else None
        if entry is not None:
            known = isinstance(entry, NamedOperator) and entry.definition
            return (known, context) if known else None
        meaning = self.services.program.meaning(node)
        if isinstance(meaning, s.Definition) and self.services.analysis.recursive(meaning.uid):
            return meaning, context.within({})
        return None

    def callee(self, node: s.Expr, context: Frame) -> tuple[s.Expr, Frame] | None:
        """The body that a call stands for and its context, if it can be expanded here."""
        match node:
            case s.Call(target=s.Bound(uid=uid)):
                entry: Entry | None = context.env[uid]
            case s.Call(target=int(uid)):
                entry = context.env.get(uid)
            case s.Bound(uid=uid):
                entry = context.env[uid]
            case _:
                entry = None
        match entry:
            case LazyDefinition(node=body) if body is not None:
                return body, context.within(entry.context.env, primed=entry.context.primed)
            case Closure(definition=definition, context=outer) if isinstance(node, s.Call):
                inner = context.within(outer.env, primed=outer.primed)
                return definition.body, self.enter(definition, node.args, inner, context)
            case None:
                pass
            case _:
                return None
        meaning = self.services.program.meaning(node)
        if not isinstance(meaning, s.Definition):
            return None
        if self.services.analysis.recursive(meaning.uid):
            return None
        args = node.args if isinstance(node, s.Call) else ()
        return meaning.body, self.enter(meaning, args, context.within({}), context)


def _literal(node: s.Expr) -> PythonCode | None:
    match node:
        case s.Number(value=value) if value < LARGEST_LITERAL:
            return PythonCode(repr(value), "int", atom=True)
        case s.String(value=text):
            return PythonCode(repr(text), "str", atom=True)
        case _:
            return None
