"""Owns the generated code of a program: constants, routines, formulas, and errors with a place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType, TracebackType
from typing import cast

from conformance.tla.front import syntax as s
from conformance.tla.front.syntax import Location
from conformance.tla.python import interchange, logic, runtime, standard
from conformance.tla.python import traced as tracing
from conformance.tla.python.branches import UNDEFINED, Branches, branch_code
from conformance.tla.python.emitter import TooLong
from conformance.tla.python.protocol import CodeWriter
from conformance.tla.python.scope import (
    BoundVariable,
    Entry,
    Frame,
    Kind,
    LazyDefinition,
    NamedOperator,
    PythonCode,
    as_whole,
    kind_of,
    read_of,
)
from conformance.tla.python.session import TlcSession
from conformance.tla.python.solver import Solver, missing_variables
from conformance.tla.python.writer import LARGEST_LITERAL, Writer
from conformance.tla.semantics import equality, kinds, sets
from conformance.tla.semantics.errors import EvaluationError, shown
from conformance.tla.semantics.program import Program
from conformance.tla.values import Action, Fn, State, Value, canonical_sorted, make_function

_ROOM = 10_000
"""Frames of Python's stack for an evaluation that the usual limit was too low for: not so many
that calls through functions in C, of some hundred bytes each, overflow a C stack of 8 MB."""

_LARGEST_TABLE = 10_000
"""Elements of a constant set up to which it is enumerated once and for all."""

_LONG = 100
"""Lines of a function from which on repeated code is moved into functions."""

_TOO_LONG = 3000
"""Lines after which an attempt is given up, to share what was repeated until then."""

_OF_SESSION = (
    "print_both", "print_true", "java_time", "tlc_get", "tlc_set", "tlc_get_or", "tlc_get_and_set",
    "tlc_cache", "random_element", "random_subset", "random_set_of_subsets",
    "test_random_set_of_subsets",
)  # fmt: skip
"""What generated code calls of the session of its specification."""

_OF_TRACES = ("whole", "apply", "field", "lookup", "replaced")
"""What the code of a traced machine calls in its own way."""

_RAISED_BY_GENERATED_CODE = (KeyError, AttributeError, TypeError, IndexError)


@dataclass(slots=True)
class CompiledRoutine:
    """A definition as a Python function of the variables it reads and its parameters."""

    name: str
    variables: tuple[str, ...]
    strict: tuple[bool, ...]
    lazy: bool
    kind: Kind = "lazy"


@dataclass(frozen=True, slots=True)
class Listing:
    """Generated code; `places` has the place in the specification of each of its lines.

    `folded` code is that of a constant, which has been computed already.
    """

    name: str
    source: str
    places: tuple[Location | None, ...]
    folded: bool


Successor = tuple[Action, State]
Instance = tuple["Value | Action", ...]
Search = Callable[[State, list[Successor], Sequence[Instance]], object]
"""Appends the successors of a state under some action instances."""


class Machine:
    """Compiles and runs the expressions of one program.

    A quantifier ends at the first element that decides or is undefined. In a `patient` machine it
    goes on past undefined ones, unless the order of the elements is known (`logic.in_order`): it
    is undefined if no element decides. That is slower; where the other finds a value, it is the
    same. The code of a `traced` machine notes what it reads of a state.
    """

    def __init__(
        self, program: Program, session: TlcSession, *, patient: bool = False, traced: bool = False
    ) -> None:
        self.program = program
        self.patient = patient
        self.traced = traced
        self.analysis = program.analysis()
        self.variables = tuple(variable.name for variable in program.module.variables)
        self._namespace: dict[str, object] = {
            **_runtime_namespace(),
            "replaced": runtime.Replacements(),
            UNDEFINED: (EvaluationError, RecursionError, *_RAISED_BY_GENERATED_CODE),
            "decide": self._decide,
            **{name: getattr(session, name) for name in _OF_SESSION},
            **({name: getattr(tracing, name) for name in _OF_TRACES} if traced else {}),
        }
        self._places: dict[str, list[Location | None]] = {}
        self._listings: list[Listing] = []
        self._constants: dict[int, tuple[s.Expr, PythonCode]] = {}
        self._pooled: dict[int, tuple[object, str]] = {}
        self._elements: dict[int, tuple[s.Expr, tuple[PythonCode, Kind] | None]] = {}
        self._routines: dict[int, CompiledRoutine] = {}
        self._expressions: dict[
            tuple[int, tuple[int, ...]], tuple[s.Expr, Callable[..., object]]
        ] = {}

    # --- what writers ask -----------------------------------------------------------------

    def constant(self, node: s.Expr) -> PythonCode:
        """The value of a constant expression, computed now; an error waits until it is needed."""
        if isinstance(node, s.Number | s.String):
            return self.pool(node.value)
        if drawn := self.analysis.drawn_once(node):
            node = drawn.body
        if id(node) not in self._constants:
            self._constants[id(node)] = (node, self._fold(node))
        return self._constants[id(node)][1]

    def _fold(self, node: s.Expr) -> PythonCode:
        def write(writer: Writer) -> None:
            with writer.emitter.at(node.location):
                writer.emitter.line(f"return {writer.compound(node, Frame()).text}")

        function = self._make(write, "constant", ())
        try:
            return self.pool(self.guarded(function))
        except EvaluationError as error:
            return PythonCode(f"raise_again({self.pool(error).text})")

    def pool(self, value: object) -> PythonCode:
        """A name for a constant value."""
        kind = kind_of(value)
        if kind in ("str", "bool") or (isinstance(value, int) and abs(value) < LARGEST_LITERAL):
            return PythonCode(repr(value), kind, atom=True)
        if id(value) not in self._pooled:
            name = f"K_{len(self._pooled)}"
            self._pooled[id(value)] = (value, name)
            self._namespace[name] = value
        return PythonCode(self._pooled[id(value)][1], kind, atom=True)

    def elements(self, node: s.Expr) -> tuple[PythonCode, Kind] | None:
        """The elements of a constant set in canonical order, and their kind; None otherwise."""
        if not self.analysis.of(node).constant:
            return None
        if id(node) not in self._elements:
            self._elements[id(node)] = (node, self._enumerate(self.constant(node)))
        return self._elements[id(node)][1]

    def _enumerate(self, code: PythonCode) -> tuple[PythonCode, Kind] | None:
        value = self._namespace.get(code.text)
        if isinstance(value, sets.SymbolicSet):
            size = value.at_most()
            if size is None or size > _LARGEST_TABLE:
                return None
            try:
                value = equality.value_of(value)
            except EvaluationError:  # of a filter, whose other elements nobody may ask for
                return None
        if not isinstance(value, frozenset):
            return None
        items = tuple(canonical_sorted(value))
        kinds = {kind_of(item) for item in items}
        return self.pool(items), kinds.pop() if len(kinds) == 1 else None

    def empty(self, code: PythonCode) -> bool:
        """Whether the code is a constant, and that the empty set or sequence."""
        return self._namespace.get(code.text) in (frozenset(), ())

    def infinite(self, node: s.Expr) -> bool:
        """Whether a constant expression is an infinite set."""
        value = self._namespace.get(self.constant(node).text)
        return isinstance(value, sets.SymbolicSet) and value.at_most() is None

    def by_rule(self, node: s.Expr) -> bool:
        """Whether a filter of a constant set is to be a rule: of an S \\X T if it is infinite."""
        value = self._namespace.get(self.constant(node).text)
        finite_product = isinstance(value, sets.Product) and not self.infinite(node)
        return isinstance(value, sets.SymbolicSet) and not finite_product

    def routine(self, definition: s.Definition) -> CompiledRoutine:
        """The Python function of a definition, compiled when first called for."""
        uid = definition.uid
        if uid not in self._routines:
            facts = self.analysis.of_definition(uid)
            needed = self.analysis.strict_params(uid)
            routine = self._routines[uid] = CompiledRoutine(
                name=f"R_{uid}",
                variables=tuple(name for name in self.variables if name in facts.variables),
                strict=tuple(param.uid in needed for param in definition.params),
                lazy=self.analysis.recursive(uid),
            )
            self._compile_routine(routine, definition)
        return self._routines[uid]

    def _compile_routine(self, routine: CompiledRoutine, definition: s.Definition) -> None:
        params = {name: f"s_{name}" for name in routine.variables}
        now = {name: self._read(text) for name, text in params.items()}
        names = [f"a_{index}" for index in range(len(definition.params))]

        def write(writer: Writer) -> None:
            entries = self._parameters(writer, routine, definition, names, Frame(now=now))
            routine.kind = self._return(writer, definition, Frame(env=entries, now=now))

        made = self._make(write, routine.name, (*params.values(), *names), label=definition.name)
        if routine.lazy and not now and not names:
            self._namespace[routine.name] = cache(made)

    def _parameters(
        self,
        writer: Writer,
        routine: CompiledRoutine,
        definition: s.Definition,
        names: Sequence[str],
        context: Frame,
    ) -> dict[int, Entry]:
        kind: Kind = "lazy" if routine.lazy else None
        entries: dict[int, Entry] = {}
        for param, name, strict in zip(definition.params, names, routine.strict, strict=True):
            if param.arity:
                entries[param.uid] = NamedOperator(name)
            elif strict:
                entries[param.uid] = BoundVariable(PythonCode(name, kind, atom=True))
            else:
                declaration = writer.emitter.placeholder()
                entries[param.uid] = LazyDefinition(
                    None, context, declaration, 0, 0, thunk=name, kind=kind
                )
        return entries

    def _return(self, writer: Writer, definition: s.Definition, context: Frame) -> Kind:
        body = definition.body
        if isinstance(body, s.Binding) and body.kind in (r"\A", r"\E"):
            self._return_truth(writer, body, context)
            return "bool"
        if self.analysis.recursive(definition.uid):
            code = writer.body(definition.params, body, context)
        else:
            code = writer.expr(body, context)
        writer.emitter.line(f"return {code.text}")
        return code.kind

    def _return_truth(self, writer: Writer, body: s.Expr, context: Frame) -> None:
        logic.jump_if_false(writer, body, context, logic.Jump(("return False",), 0))
        writer.emitter.line("return True")

    def enabled(self, writer: CodeWriter, node: s.Expr, context: Frame) -> PythonCode:
        """ENABLED node: whether the search finds a successor; it need not be complete."""
        name = writer.emitter.fresh("enabled")
        inner = Frame(env=context.env, now=context.variables())
        partial, writer.partial = writer.partial, True
        assert isinstance(writer, Writer)  # the one that `_make` has made
        solver = Solver(writer, self.variables)
        with writer.function(f"def {name}():"):
            # In one loop, so that a failing condition ends the search by `return`.
            solver.solve(node, inner, lambda _: writer.emitter.line("return True"))
            writer.emitter.line("return False")
        writer.partial = partial
        return PythonCode(f"({name}() is True)", "bool")

    # --- formulas -------------------------------------------------------------------------

    def state_formula(self, node: s.Expr) -> Callable[[State], bool]:
        """f(state) of a formula of one state."""

        def write(writer: Writer) -> None:
            self._return_truth(writer, node, Frame(now=self._indexed("s")))

        function = self._make(write, "formula", ("s",))
        return lambda state: self.guarded(function, state) is True

    def action_formula(self, node: s.Expr, params: Sequence[s.Bound] = ()) -> Callable[..., bool]:
        """f(state, next_state, *arguments) of a formula of two states."""
        names = [f"a_{index}" for index in range(len(params))]
        context = self._two_states(params, names, None)

        def write(writer: Writer) -> None:
            self._return_truth(writer, node, context)

        function = self._make(write, "action", ("s", "t", *names))
        return lambda *args: self.guarded(function, *args) is True

    def expression(
        self, node: s.Expr, names: Sequence[s.Bound] = ()
    ) -> Callable[..., equality.Unforced]:
        """f(state, next_state, *values of the names) of any expression, for explanations."""
        key = (id(node), tuple(name.uid for name in names))
        if key not in self._expressions:
            python = [f"a_{index}" for index in range(len(names))]
            context = self._two_states(names, python, "lazy")

            def write(writer: Writer) -> None:
                with writer.emitter.at(node.location):
                    writer.emitter.line(f"return {writer.expr(node, context).text}")

            self._expressions[key] = (node, self._make(write, "expression", ("s", "t", *python)))
        compiled = self._expressions[key][1]
        return lambda *args: cast("equality.Unforced", self.guarded(compiled, *args))

    def branches(
        self, branches: Branches, node: s.Expr, params: Sequence[s.Bound]
    ) -> Callable[..., int]:
        """f(state, next_state, *arguments): the branches of an action that a step takes, as bits.

        -1 where the action is false.
        """
        names = [f"a_{index}" for index in range(len(params))]
        context = self._two_states(params, names, None)

        def write(writer: Writer) -> None:
            branch_code(writer, branches, node, context)

        function = self._make(write, "branches", ("s", "t", *names))
        return lambda *args: cast("int", self.guarded(function, *args))

    def _two_states(self, names: Sequence[s.Bound], python: Sequence[str], kind: Kind) -> Frame:
        pairs = zip(names, python, strict=True)
        entries = {
            bound.uid: BoundVariable(PythonCode(name, kind, atom=True)) for bound, name in pairs
        }
        return Frame(env=entries, now=self._indexed("s"), next=self._indexed("t"))

    def successors(
        self,
        node: s.Expr,
        names: Sequence[s.Bound],
        kinds: Sequence[Kind],
        label: str,
        operators: Mapping[int, s.OperatorArg],
    ) -> Search:
        """f(state, found, instances): appends (action, next state) for each instance.

        An instance is the values of `names`, then its Action; `operators` are what operator
        parameters stand for.
        """
        python = [f"a_{index}" for index in range(len(names))]
        entries = {
            bound.uid: BoundVariable(PythonCode(name, kind, atom=True))
            for bound, name, kind in zip(names, python, kinds, strict=True)
        }
        context = Frame(env=entries, now=self._indexed("s"))

        def write(writer: Writer) -> None:
            def result(reached: Frame) -> None:
                self._emit_state(writer, reached.next, "found.append((action, {}))", label)

            header = f"for {', '.join([*python, 'action'])}, in instances:"
            with writer.emitter.block(header, loop=True):
                inner = context
                for uid, operator in operators.items():
                    inner = inner.bind({uid: writer.operator(operator, inner)})
                Solver(writer, self.variables).solve(node, inner, result)

        parameters = ("s", "found", "instances")
        return self._make(write, "successors", parameters, label=label, partial=True)

    def initial_states(self, node: s.Expr) -> list[State]:
        """The states that satisfy an initial predicate."""

        def write(writer: Writer) -> None:
            def result(reached: Frame) -> None:
                self._emit_state(writer, reached.now, "found.append({})", "the initial predicate")

            Solver(writer, self.variables, initial=True).solve(node, Frame(), result)

        function = self._make(write, "initial", ("found",), partial=True, initial=True)
        states: list[State] = []
        self.guarded(function, states)
        return states

    def _emit_state(
        self, writer: Writer, assigned: Mapping[str, str], statement: str, label: str
    ) -> None:
        missing = missing_variables(self.variables, assigned)
        if missing:
            writer.emitter.line(f"incomplete({label!r}, {missing!r})")
            return
        values = ", ".join(read_of(assigned[name]) for name in self.variables)
        writer.emitter.line(statement.format(f"({values},)"))

    def _indexed(self, state: str) -> Mapping[str, str]:
        names = enumerate(self.variables)
        return {name: self._read(f"{state}[{index}]") for index, name in names}

    def _read(self, text: str) -> str:
        """The code of a variable's value."""
        return as_whole(text) if self.traced else text

    # --- generated code -------------------------------------------------------------------

    def _make(
        self,
        write: Callable[[Writer], None],
        name: str,
        params: Sequence[str],
        *,
        label: str = "",
        partial: bool = False,
        initial: bool = False,
    ) -> Callable[..., object]:
        """The function with the body that `write` writes."""
        writer = self._written(write, partial=partial, initial=initial)
        source, places = writer.emitter.source(f"def {name}({', '.join(params)}):")
        filename = f"<TLA+ {label or name} {len(self._places)}>"
        code: CodeType = compile(source, filename, "exec")
        self._places[filename] = places
        self._listings.append(Listing(name, source, tuple(places), name == "constant"))
        scope: dict[str, object] = {}
        exec(code, self._namespace, scope)
        function = scope[name]
        assert callable(function)
        if name.startswith("R_"):
            self._namespace[name] = function
        return function

    def _written(self, write: Callable[[Writer], None], *, partial: bool, initial: bool) -> Writer:
        """A writer after `write`.

        Long code is mostly the same lazy values computed at many places: it is written again,
        with functions for those, until there is nothing more to share.
        """
        shared: frozenset[int] = frozenset()
        limit: int | None = _TOO_LONG
        while True:
            writer = Writer(self, partial=partial, initial=initial, shared=shared)
            writer.emitter.limit = limit
            try:
                write(writer)
                finished = len(writer.emitter.lines) <= _LONG
            except TooLong:
                finished = False
            repeated = {node for node, times in writer.emissions.items() if times > 1}
            if finished or (limit is None and repeated <= shared):
                return writer
            if repeated <= shared:
                limit = None
            shared |= repeated

    def guarded(self, function: Callable[..., object], *args: object) -> object:
        """Calls generated code; its errors become EvaluationError with a place in the module."""
        try:
            return self._with_room(function, *args) if self.patient else function(*args)
        except EvaluationError as error:
            if error.location is not None:
                raise
            raise EvaluationError(error.reason, self._place(error.__traceback__)) from None
        except RecursionError as error:
            place = self._place(error.__traceback__)
            raise EvaluationError("the recursion goes too deep", place) from None
        except _RAISED_BY_GENERATED_CODE as error:
            if not self._raised_by_generated_code(error.__traceback__):
                raise
            raise EvaluationError(_reason(error), self._place(error.__traceback__)) from None

    def _with_room(self, function: Callable[..., object], *args: object) -> object:
        """The call with a deeper stack: a recursive operator needs some frames for each level."""
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _ROOM))
        try:
            return function(*args)
        finally:
            sys.setrecursionlimit(before)

    def _decide(
        self,
        elements: Iterable[Value],
        holds: Callable[[Value], bool],
        every: bool,
        in_order: bool | None,
    ) -> bool:
        """A quantifier of a patient machine: `\\A` if `every`, else `\\E`.

        `in_order` as of `logic.in_order`.
        """
        if in_order is None:
            elements = frozenset(elements)
            in_order = elements == frozenset(range(1, len(elements) + 1))
        undefined: EvaluationError | None = None
        for element in elements:
            try:
                if self.guarded(holds, element) is not every:
                    return not every
            except EvaluationError as error:
                if in_order:
                    raise
                undefined = undefined or error
        if undefined is not None:
            raise undefined
        return every

    def _raised_by_generated_code(self, traceback: TracebackType | None) -> bool:
        last = None
        while traceback is not None:
            last, traceback = traceback, traceback.tb_next
        return last is not None and last.tb_frame.f_code.co_filename in self._places

    def _place(self, traceback: TracebackType | None) -> Location | None:
        place = None
        while traceback is not None:
            places = self._places.get(traceback.tb_frame.f_code.co_filename)
            if places is not None and traceback.tb_lineno <= len(places):
                place = places[traceback.tb_lineno - 1] or place
            traceback = traceback.tb_next
        return place

    def take_listings(self) -> list[Listing]:
        """The code generated since the last call, in the order in which it was finished."""
        listings, self._listings = self._listings, []
        return listings

    def constant_value(self, name: str) -> object:
        """What a constant's name (`K_3`) stands for in generated code."""
        return self._namespace[name]


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"a function is applied to {shown(error.args[0])}, which is not in its domain"
    if isinstance(error, AttributeError):
        return "a record or function is needed here"
    return f"an operand has the wrong type ({error})"


def _runtime_namespace() -> dict[str, object]:
    names: dict[str, object] = {
        "Fn": Fn,
        "make_function": make_function,
        "FunctionType": FunctionType,
        "cache": cache,
        "Filtered": sets.Filtered,
        "Powerset": sets.Powerset,
        "Sequences": sets.Sequences,
        "Functions": sets.Functions,
        "Records": sets.Records,
        "Product": sets.Product,
        "BOOLEAN": frozenset([False, True]),
        "STRING": sets.Strings(),
        "NAT": sets.Integers(0),
        "INT": sets.Integers(None),
        "ANY": sets.AnyValue(),
    }
    for module in (kinds, equality, runtime, standard, interchange):
        names.update({name: value for name, value in vars(module).items() if name[0] != "_"})
    return names
